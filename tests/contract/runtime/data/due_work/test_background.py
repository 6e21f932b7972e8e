"""Due work on SQLite and PostgreSQL: outcomes, leases, wake-ups, and what is left when a process is killed."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Mapped, Session, mapped_column

import services
import tests.support.services.specimens
from contracts.errors import ServiceError
from contracts.runtime import clock
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now
from contracts.runtime.data.database import BigId, Database
from contracts.runtime.data.due_work import background, holder
from contracts.runtime.data.due_work.background import TURNS_APART, Done, DueWork, Every, Loop, More, Park, Retry
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.monitoring import liveness
from deploy.rabbitmq import PrivateBroker
from tests.contract.conftest import ON_BOTH
from tests.support.material.jobs import Base, Job, add, with_tables
from tests.support.noting import noting
from tests.support.services.loops import running
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, specimen
from tests.support.services.suite import wait_until

SOON = [timedelta(milliseconds=20), timedelta(milliseconds=20)]
LONG = timedelta(minutes=5)


class Said(Base):
    __tablename__ = "said"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    what: Mapped[str] = mapped_column(sa.Text)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    yield from with_tables(database_url)


def noting_ids(attempts: list[int]) -> Callable[[Any], Done]:
    """An attempt that notes the row's id."""

    def attempt(row: Any) -> Done:
        attempts.append(row.id)
        return Done()

    return attempt


def job(database: Database, identifier: int) -> Job:
    return database.read(lambda session: session.get_one(Job, identifier))


def said(database: Database) -> list[str]:
    return database.read(lambda session: list(session.scalars(sa.select(Said.what).order_by(Said.id))))


def say(what: str) -> Callable[[Session, Any], None]:
    return lambda session, row: session.add(Said(what=f"{what} {row.state} {row.attempts}"))


def work(database: Database, attempt: Callable[[Any], Any], **more: Any) -> DueWork:
    return DueWork("jobs", database, Job, attempt, **{"schedule": SOON, "lease": LONG, **more})


@ON_BOTH
def test_done_work_is_done_once_with_its_record(database: Database) -> None:
    attempts: list[int] = []

    def attempt(row: Job) -> Done:
        attempts.append(row.id)
        return Done(say("done"))

    identifiers = [database.write(add) for _ in range(5)]
    with running(work(database, attempt, concurrency=3)):
        wait_until(lambda: len(said(database)) == 5, what="all five")
    assert sorted(attempts) == identifiers
    finished = job(database, identifiers[0])
    assert (finished.state, finished.attempts, finished.leased_until, finished.last_error) == ("done", 1, None, None)
    assert finished.finished_at is not None
    assert said(database)[0] == "done done 1"


def test_failures_are_tried_again_then_parked(database: Database) -> None:
    def attempt(row: Job) -> Any:
        if row.attempts == 1:
            raise RuntimeError("exception")
        if row.attempts == 2:
            return Retry("the second", record=say("noted"))
        raise ServiceError("unavailable", "The receiver is not available")

    identifier = database.write(add)
    with running(work(database, attempt, on_park=say("given up"))):
        wait_until(lambda: job(database, identifier).state == "parked", what="the job to be parked")
    parked = job(database, identifier)
    assert (parked.attempts, parked.last_error) == (3, "The receiver is not available")
    assert said(database) == ["noted due 2", "given up parked 3"]
    database.write(lambda session: session.get_one(Job, identifier).make_due(now()))
    with running(work(database, lambda _: Done(say("after all")))):
        wait_until(lambda: job(database, identifier).state == "done", what="the operator's retry")


def test_work_in_parts_goes_on_until_it_is_done_and_failures_before_a_part_count_no_more(database: Database) -> None:
    parts = iter([Retry("no"), Retry("no"), More(timedelta(0)), Retry("no"), Retry("no"), More(timedelta(0)), Done()])
    seen: list[int] = []

    def attempt(row: Job) -> Any:
        seen.append(row.attempts)
        return next(parts)

    identifier = database.write(add)
    with running(work(database, attempt)):
        wait_until(lambda: job(database, identifier).state == "done", what="the last part")
    assert seen == [1, 2, 3, 1, 2, 3, 1]
    other = database.write(add)
    with running(work(database, lambda _: More(LONG))):
        wait_until(lambda: job(database, other).next_attempt_at > now() + LONG / 2, what="the first part")
    waiting = job(database, other)
    assert (waiting.state, waiting.attempts, waiting.leased_until, waiting.last_error) == ("due", 0, None, None)


def test_parking_by_decision(database: Database) -> None:
    own, common = database.write(add, "own"), database.write(add, "common")
    decisions = {own: Park("hopeless", say("its own")), common: Park("hopeless")}
    with running(work(database, lambda row: decisions[row.id], on_park=say("common"))):
        wait_until(lambda: len(said(database)) == 2, what="both parked")
    assert sorted(said(database)) == ["common parked 1", "its own parked 1"]


def test_times_between_attempts(database: Database) -> None:
    """The n-th time of the schedule after the n-th failure, +-20 %; a time that the receiver named, as it is."""
    schedule = [timedelta(seconds=100), timedelta(seconds=1000)]
    scheduled, named = database.write(add), database.write(add)
    later = database.write(add, attempts=1)

    def attempt(row: Job) -> Retry:
        return Retry("no", after=timedelta(seconds=7) if row.id == named else None)

    began = now()
    with running(work(database, attempt, schedule=schedule)):
        wait_until(lambda: all(job(database, i).last_error for i in (scheduled, named, later)), what="the attempts")
    waits = {i: (job(database, i).next_attempt_at - began).total_seconds() for i in (scheduled, named, later)}
    assert 80 <= waits[scheduled] < 150
    assert 800 <= waits[later] < 1230
    assert 7 <= waits[named] < 30


@ON_BOTH
def test_a_record_that_fails_does_not_lose_the_row(database: Database) -> None:
    def broken(_session: Session, _row: Any) -> None:
        raise RuntimeError("cannot be recorded")

    identifier = database.write(add)
    with running(work(database, lambda row: Done(broken if row.attempts == 1 else say("then")))):
        wait_until(lambda: job(database, identifier).state == "done", what="the second attempt")
    assert said(database) == ["then done 2"]


@ON_BOTH
def test_work_is_woken_by_the_write_that_makes_it(database: Database) -> None:
    loop = work(database, lambda _: Done(say("done")))
    database.on_commit.append(lambda tables: loop.wake() if tables == {"jobs"} else None)
    with running(loop, poll=3600):
        for number in range(3):
            database.write(add)
            wait_until(lambda n=number: len(said(database)) == n + 1, what="the job, without polling")


def test_what_is_planned_for_later_wakes_nobody_and_is_done_in_its_time(database: Database) -> None:
    """Who is told claims at once, and so takes SQLite's write lock: for a reminder of next week that would be for nothing."""
    told: list[Any] = []
    database.on_commit.append(told.append)
    soon = database.write(add, next_attempt_at=now() + timedelta(seconds=0.3))
    planned = database.write(add, next_attempt_at=now() + timedelta(days=7))
    assert told == []
    with running(work(database, lambda _: Done(say("done")))):
        wait_until(lambda: job(database, soon).state == "done", what="the job of later")
    assert (job(database, planned).state, job(database, planned).attempts) == ("due", 0)
    database.write(lambda session: session.get_one(Job, planned).make_due(now()))
    database.write(lambda session: session.add(Job()))  # its time is the default: now
    assert told == [{"jobs"}] * 2


@ON_BOTH
def test_where_nothing_is_due_nobody_waits_for_the_write_lock(database: Database) -> None:
    """SQLite has one for everybody: whoever only looks must neither wait for it nor hold it."""
    database.write(add, state="done")
    elsewhere = Database(database.url.render_as_string(hide_password=False))

    def look(session: Session) -> float:
        session.add(Said(what="under way"))
        session.flush()
        return work(database, lambda _: Done()).turn()

    assert elsewhere.write(look) > 0
    elsewhere.dispose()


def test_work_that_is_due_later_is_not_polled_for(database: Database) -> None:
    identifier = database.write(add)
    database.write(
        lambda session: session.execute(sa.update(Job).values(next_attempt_at=now() + timedelta(milliseconds=400)))
    )
    began = time.monotonic()
    with running(work(database, lambda _: Done()), poll=3600):
        wait_until(lambda: job(database, identifier).state == "done", what="its time")
    assert time.monotonic() - began >= 0.4


@pytest.fixture
def reads(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that grows with each read of the database."""
    made: list[Any] = []
    read = database.read
    monkeypatch.setattr(database, "read", noting(made, read))
    return made


@ON_BOTH
def test_where_nothing_changes_nothing_is_read_and_what_another_process_leaves_is_found(
    database: Database, reads: list[Any]
) -> None:
    """PostgreSQL does not say whether anything has changed."""
    attempts: list[int] = []
    loop = work(database, noting_ids(attempts))
    loop.turn()
    before = len(reads)
    for _ in range(10):
        assert loop.turn() == loop.poll_seconds
    assert len(reads) == (before if database.sqlite else before + 10)
    other = Database(database.url.render_as_string(hide_password=False))
    identifier = other.write(add)
    other.write(add, next_attempt_at=now() + LONG)
    other.dispose()
    loop.turn()
    loop.finish()
    assert attempts == [identifier]


@ON_BOTH
def test_where_nothing_changes_what_is_planned_comes_in_time(database: Database, reads: list[Any]) -> None:
    attempts: list[int] = []
    loop = work(database, noting_ids(attempts))
    identifier = database.write(add, next_attempt_at=now() + timedelta(seconds=3))
    pauses = [loop.turn(), loop.turn()]
    assert all(0 < pause <= 3 for pause in pauses)
    time.sleep(pauses[-1])
    while not attempts:
        loop.turn()
        loop.finish()
    assert attempts == [identifier]


@ON_BOTH
def test_where_nothing_changes_a_lease_ends(database: Database) -> None:
    """Of a process elsewhere that is no more."""
    attempts: list[int] = []
    loop = work(database, noting_ids(attempts))
    taken: dict[str, Any] = {
        "leased_until": now() + timedelta(seconds=0.3),
        "leased_by": "elsewhere/pid:[1]/1/1",
        "attempts": 1,
    }
    identifier = database.write(add, **taken)
    wait_until(lambda: loop.turn() and attempts, what="the end of the lease")
    loop.finish()
    assert attempts == [identifier]


@ON_BOTH
def test_where_nothing_changes_a_clock_that_is_put_back_is_noticed(
    database: Database, reads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = work(database, lambda _: Done())
    loop.turn()
    before = len(reads)
    monkeypatch.setattr(clock, "put_back_in_all", lambda: timedelta(hours=1))
    loop.turn()
    assert len(reads) > before


def outcomes(database: Database) -> list[str]:
    """What was said, without the number of attempts: with leases this short, a slow machine needs more of them."""
    return [each.rpartition(" ")[0] for each in said(database)]


@ON_BOTH
def test_a_lease_that_ran_out_is_taken_over_and_the_late_outcome_is_dropped(database: Database) -> None:
    release, stuck = threading.Event(), threading.Event()

    def attempt(row: Job) -> Any:
        if row.attempts == 1:
            stuck.set()
            release.wait(120)
            return Retry("far too late", record=say("late"))
        return Done(say("done"))

    identifier = database.write(add)
    with running(work(database, attempt, lease=timedelta(seconds=0.5))):
        wait_until(stuck.is_set, what="the first attempt")
        wait_until(lambda: job(database, identifier).state == "done", what="the second attempt")
        release.set()
    assert outcomes(database) == ["done done"]


@ON_BOTH
def test_the_first_to_be_done_counts(database: Database) -> None:
    """The attempt that was thought lost succeeds after all, while the next one is under way."""
    second, release = threading.Event(), threading.Event()

    def attempt(row: Job) -> Any:
        if row.attempts == 1:
            wait_until(second.is_set, what="the second attempt")
            return Done(say("first"))
        second.set()
        release.wait(120)
        return Done(say("second"))

    database.write(add)
    with running(work(database, attempt, lease=timedelta(seconds=0.3))):
        wait_until(lambda: said(database), what="an outcome")
        release.set()
    assert outcomes(database) == ["first done"]


@ON_BOTH
def test_a_lease_is_prolonged_while_its_attempt_is_under_way(database: Database) -> None:
    lease = timedelta(seconds=6)
    loops = [work(database, lambda _: attempt(), lease=lease, limit=LONG) for _ in range(2)]
    began = now()

    def attempt() -> Done:
        wait_until(lambda: (job(database, identifier).leased_until or began) > began + 2 * lease, what="a longer lease")
        return Done(say("done"))

    identifier = database.write(add)
    with running(*loops):
        wait_until(lambda: job(database, identifier).state == "done", what="the outcome")
    assert said(database) == ["done done 1"]


def test_an_attempt_that_outlives_its_limit_is_taken_over(database: Database) -> None:
    release = threading.Event()

    def attempt(row: Job) -> Done:
        if row.attempts == 1:
            release.wait(120)
        return Done(say("done"))

    identifier = database.write(add)
    limit = timedelta(seconds=1)
    with running(work(database, attempt, lease=timedelta(seconds=0.3), limit=limit)):
        wait_until(lambda: job(database, identifier).state == "done", what="the second attempt")
        release.set()
    assert outcomes(database) == ["done done"]


@ON_BOTH
def test_an_attempt_that_ends_while_its_lease_is_being_prolonged_has_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody would take the row before that lease ends."""
    began, release, prolong = threading.Event(), threading.Event(), database.write_unsynced

    def attempt(_row: Job) -> Retry:
        began.set()
        release.wait(120)
        return Retry("later", after=LONG)

    def late(change: Callable[[Session], Any]) -> Any:
        release.set()
        wait_until(lambda: job(database, identifier).last_error == "later", what="the outcome")
        return prolong(change)

    identifier = database.write(add)
    loop = work(database, attempt, lease=timedelta(milliseconds=1), limit=LONG)
    loop.turn()
    assert began.wait(120)
    monkeypatch.setattr(database, "write_unsynced", late)
    while not release.is_set():  # a turn within the first third of the lease does not prolong it
        loop.turn()
    loop.finish()
    row = job(database, identifier)
    assert (row.leased_until, row.leased_by) == (None, None)


@ON_BOTH
def test_what_another_process_has_taken_over_is_its_own(database: Database) -> None:
    """The first one stood still for longer than its lease; then it neither takes the lease back nor says how it ended."""
    began, release = threading.Event(), threading.Event()
    elsewhere = {"leased_by": "another-host/pid:[1]/7/1", "leased_until": now() + LONG, "attempts": 2}

    def attempt(_row: Job) -> Retry:
        began.set()
        release.wait(120)
        return Retry("far too late", record=say("late"))

    identifier = database.write(add)
    loop = work(database, attempt, lease=timedelta(milliseconds=1), limit=LONG)
    loop.turn()
    assert began.wait(120)
    database.write(lambda session: session.execute(sa.update(Job).values(**elsewhere)))
    loop.turn()
    release.set()
    loop.finish()
    row = job(database, identifier)
    assert {key: getattr(row, key) for key in elsewhere} == elsewhere
    assert said(database) == []


@ON_BOTH
def test_one_at_a_time_per_lane(database: Database) -> None:
    """Two processes' worth of loops, three lanes."""
    lock = threading.Lock()
    busy: dict[str | None, int] = {}
    overlaps: list[str | None] = []
    together: list[int] = []

    def attempt(row: Job) -> Done:
        with lock:
            busy[row.lane] = busy.get(row.lane, 0) + 1
            if busy[row.lane] > 1:
                overlaps.append(row.lane)
            together.append(sum(busy.values()))
        time.sleep(0.02)
        with lock:
            busy[row.lane] -= 1
        return Done(say("done"))

    for number in range(24):
        database.write(add, ("a", "b", "c")[number % 3])
    loops = [work(database, attempt, concurrency=8, lanes=Lanes(Job.lane)) for _ in range(2)]
    with running(*loops):
        wait_until(lambda: len(said(database)) == 24, what="all of them")
    assert overlaps == []
    assert max(together) > 1


def test_a_slow_lane_holds_up_no_other(database: Database) -> None:
    release = threading.Event()

    def attempt(row: Job) -> Done:
        if row.lane == "slow":
            release.wait(120)
        return Done(say(str(row.lane)))

    for _ in range(30):
        database.write(add, "slow")
    for _ in range(3):
        database.write(add, "quick")
    with running(work(database, attempt, concurrency=2, lanes=Lanes(Job.lane))):
        wait_until(lambda: len(said(database)) == 3, what="the quick ones")
        release.set()
        wait_until(lambda: len(said(database)) == 33, what="the slow ones")


@ON_BOTH
def test_two_processes_share_the_rows(database: Database) -> None:
    attempts: list[int] = []

    def attempt(row: Job) -> Done:
        attempts.append(row.id)
        return Done()

    identifiers = [database.write(add) for _ in range(40)]
    with running(*(work(database, attempt, concurrency=4) for _ in range(3))):
        wait_until(lambda: all(job(database, i).state == "done" for i in identifiers), what="all of them")
    assert sorted(attempts) == identifiers


@ON_BOTH
def test_a_dead_neighbours_lease_is_not_waited_for(database: Database) -> None:
    """On the same machine it is certain that the holder is gone; a stranger's lease has to run out."""
    mine = database.write(add, leased_until=now() + LONG, leased_by=holder.own_name().rsplit("/", 1)[0] + "/1")
    strange = database.write(add, leased_until=now() + LONG, leased_by="another-host/pid:[1]/7/1")
    alive = database.write(add, leased_until=now() + LONG, leased_by=holder.own_name())
    with running(work(database, lambda _: Done())):
        wait_until(lambda: job(database, mine).state == "done", what="the dead one's row")
    assert job(database, strange).state == job(database, alive).state == "due"


@ON_BOTH
def test_a_broken_database_is_no_end(database: Database) -> None:
    """The loop goes on when the table comes back."""
    hide, show = ("ALTER TABLE jobs RENAME TO hidden", "ALTER TABLE hidden RENAME TO jobs")
    identifier = database.write(add)
    database.write(lambda session: session.execute(sa.text(hide)))
    with running(work(database, lambda _: Done())):
        time.sleep(0.2)
        database.write(lambda session: session.execute(sa.text(show)))
        wait_until(lambda: job(database, identifier).state == "done", what="the job")


@pytest.mark.parametrize("lanes", [None, Lanes(Job.lane, 1)], ids=["no lanes", "one lane"])
def test_whoever_ends_makes_room_for_the_next_without_polling(database: Database, lanes: Lanes | None) -> None:
    tried: list[int] = []

    def attempt(row: Job) -> Any:
        tried.append(row.id)
        return Retry("at first") if len(tried) == 1 else Done(say("done"))

    for _ in range(5):
        database.write(add, "lane")
    with running(work(database, attempt, concurrency=2, lanes=lanes), poll=3600):
        wait_until(lambda: len(said(database)) == 5, what="all of them")


@pytest.mark.parametrize("lanes", [None, Lanes(Job.lane, 2)], ids=["no lanes", "one lane"])
def test_where_everything_was_taken_nobody_looks_when_it_ends(database: Database, lanes: Lanes | None) -> None:
    """A look costs as much as a claim, and would find nothing: whoever leaves more to do says so."""
    release = threading.Event()

    def attempt(_row: Job) -> Done:
        release.wait(120)
        return Done()

    loop = work(database, attempt, concurrency=2, lanes=lanes, apart=TURNS_APART)
    looks = {}
    for rows in (1, 2, 3):
        for _ in range(rows):
            database.write(add, "lane")
        while loop.turn() == 0:
            pass
        loop._woken.clear()
        release.set()
        loop.finish()
        looks[rows] = loop._woken.is_set()
        assert loop.gathers == (None if looks[rows] else TURNS_APART), (
            "where there is more, nobody waits for still more"
        )
        release.clear()
    assert looks == {1: False, 2: True, 3: True}


class Resting(threading.Event):
    """Waits for nobody, and keeps for how long it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.rests.append(timeout or 0.0)
        return self.is_set()


class Turns(Loop):
    """Turns that take so long, and say after how many seconds there is more."""

    def __init__(self, turns: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__("turns")
        self._left, self._clock = turns, 0.0
        self._stopping = self.resting_place = Resting()
        self._woken = self.waiting_place = Resting()
        monkeypatch.setattr(f"{background.__name__}.time", SimpleNamespace(monotonic=lambda: self._clock))

    def turn(self) -> float:
        took, pause = self._left.pop(0)
        self._clock += took
        if not self._left:
            self.stop()
        return pause


def test_between_its_turns_a_loop_leaves_time_for_more_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [(0.01, 1.0), (10.0, 1.0), (0.02, 0.05), (10.0, 0.0), (0.0, 1.0)]
    for gathers, rests in (0.0, [0.03, 0.25, 0.05, 0.0]), (0.1, [0.1, 0.25, 0.05, 0.1]), (None, []):
        loop = Turns([*turns, (0.0, 0.0)], monkeypatch)
        loop.gathers = gathers
        loop._turns(liveness.Watched("turns"))
        assert loop.resting_place.rests == pytest.approx(rests)
        waits = loop.waiting_place.rests
        assert [rest + waits[place] for place, rest in enumerate(rests[:3])] == pytest.approx(
            [1.0, 1.0, 0.05][: len(rests)]
        ), "a rest is a part of the pause"


def test_every_goes_on_after_a_failure() -> None:
    calls: list[float] = []

    def sweep() -> None:
        calls.append(time.monotonic())
        if len(calls) == 1:
            raise RuntimeError("once")

    with running(Every("sweep", timedelta(milliseconds=30), sweep)):
        wait_until(lambda: len(calls) >= 4, what="four sweeps")


# The whole background process.


@pytest.fixture
def client(broker: PrivateBroker) -> Iterator[RpcClient]:
    opened = RpcClient(broker.amqp_url, name="test")
    yield opened
    opened.close()


@pytest.fixture
def suite(
    broker: PrivateBroker, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Specimen]:
    monkeypatch.setattr(services, "__path__", [*services.__path__, *tests.support.services.specimens.__path__])
    with specimen(broker.amqp_url, database_url, tmp_path, POLL_SECONDS="30") as made:
        yield made


def add_task(made: Specimen, key: str, todo: str = "succeed") -> None:
    from services.specimen import commands

    made.database.write(commands.add_task, contract.Task(key=key, todo=todo), now())


@ON_BOTH
def test_a_call_its_task_and_the_task_s_event_follow_each_other_without_polling(
    suite: Specimen, client: RpcClient
) -> None:
    """Three hops: the worker's hint wakes the task, the task wakes the relay, the event comes back to the worker."""
    suite.serve(client)
    suite.start("background")
    wait_until(lambda: "background.started" in suite.log("background"), what="the background process")
    for number in range(3):
        client.call(contract.ADD_TASK, contract.Task(key=f"task {number}"))
        wait_until(lambda n=number: f"task {n} done" in suite.notes(), what="the event's effect")


@ON_BOTH
def test_kill_9_in_an_attempt(suite: Specimen, client: RpcClient) -> None:
    suite.serve(client)
    add_task(suite, "dies", "die")
    add_task(suite, "lives")
    assert suite.start("background").wait(60) == 9
    suite.start("background")
    wait_until(lambda: sorted(suite.notes()) == ["dies done", "lives done"], what="both events")
    assert suite.traces("dies") == ["attempt", "attempt"]
    states = suite.rows("SELECT key, state, attempts FROM tasks ORDER BY id")
    assert [(row.key, row.state) for row in states] == [("dies", "done"), ("lives", "done")]


def test_sigterm_finishes_attempts_and_says_so(suite: Specimen) -> None:
    add_task(suite, "slow", "sleep 1.5")
    process = suite.start("background")
    wait_until(lambda: suite.traces("slow") == ["attempt"], what="the attempt")
    add_task(suite, "too late")
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0
    assert suite.traces("slow") == ["attempt", "end"]
    assert suite.rows("SELECT state FROM tasks WHERE key = 'slow'")[0].state == "done"
    assert json.loads(suite.log("background").splitlines()[-1])["drained"] is True


def test_sigterm_leaves_a_stuck_attempt_to_others(suite: Specimen) -> None:
    add_task(suite, "stuck", "sleep 600")
    process = suite.start("background", DRAIN_SECONDS="0.5")
    wait_until(lambda: suite.traces("stuck"), what="the attempt")
    process.terminate()
    assert process.wait(120) == 0
    assert json.loads(suite.log("background").splitlines()[-1])["drained"] is False


def test_a_process_name_tells_the_dead_from_the_living() -> None:
    assert not holder.is_dead(holder.own_name())
    child = os.fork()
    if child == 0:
        os._exit(0)
    prefix, _, start = holder.own_name().rsplit("/", 2)
    os.waitpid(child, 0)
    assert holder.is_dead(f"{prefix}/{child}/{start}")
    for unknown in ("", "nonsense", "a/b/c/d", f"elsewhere/pid:[1]/{child}/{start}", f"{prefix}//"):
        assert not holder.is_dead(unknown)
