"""Rows that belong to somebody: each lane has its places, a failing or hanging one takes none of the others', and what a choice
costs does not depend on a backlog."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, UtcDateTime
from contracts.runtime.data.due_work.background import Done, DueWork, Outcome
from contracts.runtime.data.due_work.lanes import Lanes
from services.webhooks.models import Delivery
from tests.contract.runtime.data.due_work.test_background import LONG, said, say, work
from tests.load.deliveries import deliver, new_webhook, plan
from tests.support.material.jobs import Job, add, with_tables
from tests.support.services.loops import running
from tests.support.services.migrated import migrated
from tests.support.services.suite import wait_until

FAILING = sa.Table(
    "failing", sa.MetaData(), sa.Column("lane", sa.Text, primary_key=True), sa.Column("since", UtcDateTime)
)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    yield from with_tables(database_url, FAILING.metadata)


class Busy:
    """Attempts that last until they are let go; counts what is under way."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.under_way: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.order: list[str] = []
        self._lock = threading.Lock()

    def attempt(self, row: Job) -> Outcome:
        lane = str(row.lane)
        with self._lock:
            self.order.append(lane)
            self.under_way[lane] = self.under_way.get(lane, 0) + 1
            self.most[lane] = max(self.most.get(lane, 0), self.under_way[lane])
        if not lane.startswith("quick"):
            self.release.wait(120)
        with self._lock:
            self.under_way[lane] -= 1
        return Done(say(lane))


def quick_ones_done(database: Database) -> int:
    return sum(what.startswith("quick") for what in said(database))


def test_a_lane_has_its_places_in_all_processes_together(database: Database) -> None:
    busy = Busy()
    for number in range(20):
        database.write(add, ("a", "b")[number % 2])
    lanes = Lanes(Job.lane, 3)
    loops = [work(database, busy.attempt, concurrency=8, lanes=lanes) for _ in range(2)]
    with running(*loops):
        wait_until(lambda: busy.under_way == {"a": 3, "b": 3}, what="three of each")
        for _ in range(3):
            database.write(add, "quick")
        wait_until(lambda: quick_ones_done(database) == 3, what="the quick ones")
        assert busy.under_way == {"a": 3, "b": 3, "quick": 0}
        busy.release.set()
        wait_until(lambda: len(said(database)) == 23, what="all of them")
    assert max(busy.most.values()) == 3


def test_a_lane_that_hangs_gets_no_more_and_the_others_have_theirs(database: Database) -> None:
    """Two lanes with eight places each could take sixteen; there are twelve."""
    busy = Busy()
    loop = work(database, busy.attempt, concurrency=12, lanes=Lanes(Job.lane, 8))
    with running(loop):
        for number in range(8):
            database.write(add, f"hangs {number % 2}")
        wait_until(lambda: sum(busy.under_way.values()) == 8, what="eight attempts that hang")
        wait_until(lambda: slowest(database) > timedelta(seconds=1.2), what="their being slow")
        for number in range(50):
            database.write(add, f"hangs {number % 2}")
        database.write(add, "quick")
        wait_until(lambda: quick_ones_done(database) == 1, what="the quick one")
        busy.release.set()
        wait_until(lambda: len(said(database)) == 59, what="all of them")


def slowest(database: Database) -> timedelta:
    leases = database.read(
        lambda session: session.scalars(sa.select(Job.leased_until).where(Job.leased_by.is_not(None))).all()
    )
    return max(now() + LONG - lease for lease in leases if lease is not None)


def test_failing_lanes_share_a_quarter_of_the_places_and_each_gets_its_turn(database: Database) -> None:
    """However long their backlogs are; the one that is well again has all its places."""
    busy = Busy()
    names = [f"dead {number}" for number in range(6)]
    long_ago, at_once = now() - timedelta(seconds=1), now() + timedelta(hours=1)
    without_rest = [{"lane": name, "since": at_once} for name in names]
    database.write(lambda session: session.execute(FAILING.insert(), without_rest))
    for name in names:
        for _ in range(10):
            database.write(add, name, next_attempt_at=long_ago)
    lanes = Lanes(Job.lane, 4, failing=sa.select(FAILING.c.lane, FAILING.c.since))
    with running(work(database, busy.attempt, concurrency=8, lanes=lanes)):
        wait_until(lambda: sum(busy.under_way.values()) == 2, what="two attempts at dead ones")
        for number in range(30):
            database.write(add, f"quick {number % 3}")
        wait_until(lambda: quick_ones_done(database) == 30, what="the quick ones")
        assert sum(busy.under_way.values()) == 2
        # The two that had a turn are not the next ones, though theirs are no younger: without turns, these two would have all of
        # theirs done before, twenty. A thread may be late on a busy machine, so not the first six are looked at.
        busy.release.set()
        wait_until(lambda: set(busy.most) >= set(names), what="a turn for each dead one")
        assert set([lane for lane in busy.order if lane in names][:12]) == set(names)
        assert {busy.most[name] for name in names} == {1}
        busy.release.clear()
        well = sa.delete(FAILING).where(FAILING.c.lane == names[0])
        database.write(lambda session: session.execute(well))
        wait_until(lambda: busy.under_way[names[0]] == 4, what="four at once at the one that is well again")
        busy.release.set()


def test_what_waits_for_a_receiver_is_not_what_waits_for_us(database: Database) -> None:
    """A dead receiver, or a slow one, is no reason to call an operator; that nobody is at a row of any other is one."""
    long_ago, a_while_ago = now() - timedelta(hours=2), now() - timedelta(minutes=20)
    begun = {"leased_until": now() + LONG - timedelta(seconds=5), "leased_by": "elsewhere/1"}
    lanes = Lanes(Job.lane, 4, failing=sa.select(FAILING.c.lane, FAILING.c.since))
    loop = work(database, Busy().attempt, lanes=lanes)

    def oldest() -> Any:
        return database.read(loop._survey)[2]

    database.write(lambda session: session.execute(FAILING.insert(), [{"lane": "dead", "since": long_ago}]))
    for lane in ("dead", "slow"):
        database.write(add, lane, next_attempt_at=long_ago)
    database.write(add, "slow", next_attempt_at=long_ago, **begun)
    assert oldest() == long_ago, "one place of four is taken by a slow attempt"
    database.write(add, "slow", next_attempt_at=long_ago, **begun)
    assert oldest() is None
    database.write(add, "quick", next_attempt_at=a_while_ago)
    database.write(add, "quick", next_attempt_at=now())
    assert oldest() == a_while_ago
    database.write(lambda session: session.execute(sa.delete(FAILING)))
    assert oldest() == long_ago


@pytest.mark.parametrize("reverse", [False, True], ids=["indexes in order", "indexes in reverse"])
def test_a_choice_costs_the_same_beside_any_backlog(tmp_path: Any, reverse: bool) -> None:
    """Counted in steps of SQLite's machine, of everything that a loop asks for again and again. Of two indexes that would do,
    SQLite takes the one that was made last, and a migration makes them in any order."""

    def steps(backlog: int) -> int:
        url = f"sqlite:///{tmp_path}/{backlog}.sqlite"
        migrated("webhooks", url)
        database = Database(url)
        database.write(make_indexes_anew, reverse)
        plan(database, new_webhook(database, "http://127.0.0.1:9/", failing=True), backlog, 1, tag="dead")
        for number in range(5):
            plan(database, new_webhook(database, "http://127.0.0.1:9/"), 3, 1, tag=f"live {number}")
        loop = deliver(database)
        assert isinstance(loop, DueWork)
        count = [0]

        def counted(session: Session, use: Any, *arguments: Any) -> Any:
            driver: Any = session.connection().connection.driver_connection
            driver.set_progress_handler(lambda: count.__setitem__(0, count[0] + 1), 10)
            try:
                return use(session, *arguments)
            finally:
                driver.set_progress_handler(None, 0)

        for _ in range(3):
            database.read(counted, loop._seconds_until_due, 64, None)
            rows, _ = database.write(counted, loop._claim, 4)
            assert len(rows) == 4
            database.read(counted, loop._survey)
        left = database.read(
            lambda session: session.scalar(sa.select(sa.func.count()).where(Delivery.leased_by.is_(None)))
        )
        assert left == backlog + 15 - 12
        database.dispose()
        return count[0]

    assert steps(3000) < 1.5 * steps(10)


def make_indexes_anew(session: Session, reverse: bool) -> None:
    indexes = sa.text(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'deliveries'"
    )
    rows = sorted(session.execute(indexes).all(), reverse=reverse)
    assert len(rows) > 2
    for name, _ in rows:
        session.execute(sa.text(f"DROP INDEX {name}"))
    for _, made_by in rows:
        session.execute(sa.text(made_by))
