"""The wall clock is put forward a day or back an hour in mid-work, on both databases (threats: F19): nothing is lost, nothing is
done twice, and nobody waits for the clock."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc import webhooks as rpc
from contracts.runtime import process
from contracts.runtime.bus.outbox import emit
from contracts.runtime.bus.publisher import CONFIRMED
from contracts.runtime.bus.relay import Relay
from contracts.runtime.clock import now
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Park, Retry
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.operations import retrying
from services.submissions.storage import rates
from services.webhooks import queries
from tests.support.material.jobs import Job, add, with_tables
from tests.support.material.submissions import Desk
from tests.support.material.webhooks import ADMIN, envelope, record
from tests.support.material.webhooks import database as webhooks
from tests.support.present import present
from tests.support.services.circumstances.wall_clock import WallClock
from tests.support.services.loops import running
from tests.support.services.specimens import contract
from tests.support.services.suite import wait_until

__all__ = ["webhooks"]

DAY, HOUR = 86_400.0, 3_600.0
LEASE = timedelta(seconds=30)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    yield from with_tables(database_url, tables.runtime_metadata)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


def work(database: Database, attempt: Any, **more: Any) -> DueWork:
    return DueWork("jobs", database, Job, attempt, **{"schedule": [timedelta(hours=1)], "lease": LEASE, **more})


def jobs(database: Database) -> dict[int, Job]:
    return {job.id: job for job in database.read(lambda session: list(session.scalars(sa.select(Job))))}


def test_a_lease_is_not_taken_from_who_is_at_work(database: Database, wall: WallClock) -> None:
    """Two processes' worth of loops; while one sends a mail, the clock is put forward. What comes later is done meanwhile."""
    release, attempts = threading.Event(), []

    def attempt(row: Job) -> Done:
        attempts.append(row.id)
        if row.lane == "slow":
            release.wait(120)
        return Done()

    slow = database.write(add, lane="slow")
    with running(*(work(database, attempt, lanes=Lanes(Job.lane)) for _ in range(2))):
        wait_until(lambda: attempts == [slow], what="the slow attempt")
        wall.leap(DAY)
        behind, other = database.write(add, lane="slow"), database.write(add, lane="other")
        wait_until(lambda: jobs(database)[other].state == "done", what="the other lane")
        assert jobs(database)[behind].attempts == 0
        release.set()
        wait_until(lambda: jobs(database)[behind].state == "done", what="the rest")
    assert attempts == [slow, other, behind]


def test_a_lease_of_the_lost_still_ends(database: Database, wall: WallClock) -> None:
    moment = now()
    lost = {"leased_until": moment + LEASE, "leased_by": "elsewhere/ns/1/1", "attempts": 1}
    wall.leap(DAY)
    left = database.write(add, next_attempt_at=moment, **lost)
    with running(work(database, lambda _: Done())):
        done = database.write(add)
        wait_until(lambda: jobs(database)[done].state == "done", what="what nobody has")
        assert jobs(database)[left].state == "due"
        wall.pass_by(LEASE.total_seconds())
        wait_until(lambda: jobs(database)[left].state == "done", what="what was lost")


def test_what_was_due_does_not_wait_for_a_clock_that_was_put_back(database: Database, wall: WallClock) -> None:
    """But what failed keeps its pause, or its whole schedule would be through in a moment; and what is planned, its time."""
    attempts: list[int] = []

    def attempt(row: Job) -> Any:
        attempts.append(row.id)
        return Retry("not yet") if row.lane == "fails" else Done()

    fresh, failing = database.write(add), database.write(add, lane="fails")
    wall.leap(-HOUR)
    with running(work(database, attempt)):
        wait_until(lambda: jobs(database)[fresh].state == "done", what="what was due")
        wait_until(lambda: jobs(database)[failing].last_error, what="the failure")
        later = database.write(add)
        wait_until(lambda: jobs(database)[later].state == "done", what="what comes now")
    assert attempts == [fresh, failing, later]
    planned = database.write(add, next_attempt_at=now() + timedelta(minutes=30))
    with running(work(database, attempt, scheduled=True)):
        later = database.write(add)
        wait_until(lambda: jobs(database)[later].state == "done", what="what comes now")
    assert planned not in attempts


def test_a_pause_that_began_while_the_clock_was_ahead_is_not_longer_than_others(
    database: Database, wall: WallClock
) -> None:
    """The same holds for the lease of a process that was lost meanwhile; a right pause stays as it is."""
    attempts: list[int] = []

    def attempt(row: Job) -> Any:
        attempts.append(row.id)
        return Done() if attempts.count(row.id) > 1 else Retry("not yet")

    wall.leap(HOUR)
    failing = database.write(add)
    schedule = [timedelta(seconds=2), timedelta(minutes=30)]
    with running(work(database, attempt, schedule=schedule)):
        wait_until(lambda: jobs(database)[failing].last_error, what="the failure")
        lost = {"leased_until": now() + LEASE, "leased_by": "elsewhere/ns/1/1", "attempts": 1}
        left = database.write(add, **lost)
        wall.leap(-HOUR)
        right = database.write(add, next_attempt_at=now() + timedelta(minutes=20), attempts=2)
        wait_until(lambda: jobs(database)[failing].state == "done", what="the second attempt")
        assert present(jobs(database)[left].leased_until) <= now() + LEASE
        assert jobs(database)[right].next_attempt_at > now() + timedelta(minutes=19)
    assert attempts == [failing, failing]


def test_an_operator_retries_what_was_given_up_by_a_clock_that_was_ahead(database: Database, wall: WallClock) -> None:
    rows = [database.write(add) for _ in range(3)]
    with running(work(database, lambda _: Park("hopeless"))):
        wait_until(lambda: {job.state for job in jobs(database).values()} == {"parked"}, what="parked")
    wall.leap(-DAY)
    assert retrying.made_due(database, Job, []) == len(rows)
    assert {job.state for job in jobs(database).values()} == {"due"}


class _Taking:
    """A publisher whose broker takes everything."""

    def __init__(self) -> None:
        self.published: list[str] = []

    def publish(self, messages: Any) -> dict[str, str]:
        self.published += [message.id for message in messages]
        return {message.id: CONFIRMED for message in messages}


def emitted(database: Database, key: str) -> None:
    database.write(emit, contract.NOTED, contract.Noted(key=key), subject="thing:1")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # on PostgreSQL a lock says who relays
def test_a_relay_keeps_its_turn(database: Database, wall: WallClock) -> None:
    broker: Any = _Taking()
    one, other = Relay("specimen", database, broker), Relay("specimen", database, broker)
    emitted(database, "a")
    one.turn()
    wall.leap(DAY)
    emitted(database, "b")
    other.turn()
    assert len(broker.published) == 1
    one.turn()
    assert len(broker.published) == 2
    wall.leap(-2 * DAY)
    emitted(database, "c")
    one.turn()
    assert len(broker.published) == 3


def test_what_no_queue_took_is_not_held_up_by_the_clock(database: Database, wall: WallClock) -> None:
    broker: Any = _Taking()
    emitted(database, "a")
    pausing = tables.outbox.update().values(retry_at=now() + timedelta(seconds=15), error="no queue takes it")
    database.write(lambda session: session.execute(pausing))
    relay = Relay("specimen", database, broker)
    relay.turn()
    assert broker.published == []
    wall.leap(-HOUR)
    relay.turn()
    assert len(broker.published) == 1


def test_readiness_is_about_the_background_process_and_not_about_the_clock(
    database: Database, wall: WallClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "time", wall)
    gone = ["its background process has not been seen for 30 s"]
    assert process.problems_of(database, "specimen") == gone
    database.write(process._beat, "specimen")
    for leap in (DAY, -2 * DAY, HOUR):
        assert process.problems_of(database, "specimen") == []
        wall.leap(leap)
        assert process.problems_of(database, "specimen") == []
        wall.pass_by(29)
        assert process.problems_of(database, "specimen") == []
        database.write(process._beat, "specimen")
    wall.leap(-HOUR)
    assert process.problems_of(database, "specimen") == []
    wall.pass_by(31)
    assert process.problems_of(database, "specimen") == gone
    database.write(process._beat, "specimen")
    assert process.problems_of(database, "specimen") == []


def test_nobody_waits_for_a_clock_that_was_ahead_to_get_a_code(desk: Desk) -> None:
    rate = rates.Rate(most=3, within=timedelta(days=1), pause=timedelta(seconds=60))
    moment = now()

    def count(at: Any) -> None:
        desk.database.write(rates.count, "code to x", rate, at, refusal="Too soon")

    def left(at: Any) -> float:
        return desk.database.read(rates.wait, "code to x", rate, at).total_seconds()

    ahead = moment + timedelta(days=1)
    count(ahead)
    assert left(ahead - timedelta(seconds=30)) == 60  # another machine's clock
    assert left(moment) == 0
    count(moment)
    assert left(moment) == 60
    for minutes in (2, 4):
        count(moment + timedelta(minutes=minutes))
    with pytest.raises(ServiceError):  # it is counted all the same
        count(moment + timedelta(minutes=6))


def test_a_poller_goes_on_while_the_log_is_ahead_of_the_clock(webhooks: Database) -> None:
    """The clock was a day ahead for a moment: what comes then is seen, once, without waiting for that day."""
    moment = now()
    seen: list[str] = []
    after: int | None = None

    def polled(at: Any) -> int:
        nonlocal after
        request = rpc.ListEvents(actor=ADMIN, event_type="form.completed", limit=2, after=after)
        page = webhooks.write(queries.events, request, at)
        seen.extend(event.id for event in page.data)
        if page.data:
            after = int(page.data[-1].timestamp.timestamp())
        return len(page.data)

    record(webhooks, envelope(1), at=moment + timedelta(days=1))
    for number in range(2, 6):
        record(webhooks, envelope(number), at=moment + timedelta(seconds=number))
        polled(moment + timedelta(seconds=number))
    head = webhooks.read(lambda session: session.scalar(sa.text("SELECT last_recorded_at FROM log_head")))
    for second in range(10, 20):
        polled(moment + timedelta(seconds=second))
    assert seen == [envelope(number).id for number in range(1, 6)]
    assert head == webhooks.read(lambda session: session.scalar(sa.text("SELECT last_recorded_at FROM log_head")))
