"""One look for all loops that rest, on SQLite and PostgreSQL: what it costs, and that nothing is found later by it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Mapped, Session, mapped_column

from contracts.runtime import clock
from contracts.runtime.clock import now
from contracts.runtime.data.database import BigId, Database
from contracts.runtime.data.due_work import background
from contracts.runtime.data.due_work.background import Done, DueRow, DueWork, Loop
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.data.due_work.watch import Watch
from tests.contract.conftest import ON_BOTH
from tests.support.material.jobs import Base, Job, add, with_tables
from tests.support.services.loops import running
from tests.support.services.suite import wait_until

LONG = timedelta(minutes=5)


class Parcel(DueRow, Base):
    __tablename__ = "parcels"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    receiver: Mapped[str] = mapped_column(sa.Text)


class Silence(Loop):
    """Has nothing that could be asked for, and never rests."""

    def turn(self) -> float:
        return self.poll_seconds


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    yield from with_tables(database_url)


@pytest.fixture
def elsewhere(database: Database) -> Iterator[Database]:
    """The same database as another process has it: nobody here is told what it commits."""
    made = Database(database.url.render_as_string(hide_password=False))
    yield made
    made.dispose()


@pytest.fixture
def statements(database: Database) -> list[str]:
    """A list that grows with each statement to the database."""
    made: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        made.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    return made


def noting_ids(attempts: list[int]) -> Callable[[Any], Done]:
    """An attempt that notes the row's id."""

    def attempt(row: Any) -> Done:
        attempts.append(row.id)
        return Done()

    return attempt


def send(session: Session, /, **more: Any) -> None:
    session.add(Parcel(**{"next_attempt_at": now(), "receiver": "a", **more}))


def loops(database: Database, attempt: Any = lambda _row: Done()) -> tuple[DueWork, DueWork]:
    plan: dict[str, Any] = {"schedule": [LONG], "lease": LONG}
    jobs = DueWork("jobs", database, Job, attempt, **plan)
    return jobs, DueWork("parcels", database, Parcel, attempt, lanes=Lanes(Parcel.receiver), **plan)


def woken(*looked_after: Loop) -> list[str]:
    """The names of those that were woken since they were asked last."""
    found = [loop.name for loop in looked_after if loop._woken.is_set()]
    for loop in looked_after:
        loop._woken.clear()
    return found


def rest(*looked_after: DueWork) -> None:
    """Have them do what there is, until there is no more."""
    for loop in looked_after:
        while loop.resting is None:
            loop.turn()
            loop.finish()
    woken(*looked_after)


@ON_BOTH
def test_an_idle_minute_takes_a_statement_a_second_or_none(database: Database, statements: list[str]) -> None:
    """However many loops there are. SQLite is asked for the number of its changes, which is no statement to the engine."""
    all_loops = [loop for _ in range(5) for loop in loops(database)]
    looking = Watch("specimen", database, [*all_loops, Silence("silence")])
    for loop in all_loops:
        assert loop.turn() > 20  # the wait until somebody wakes it, or until what nobody thought of
    looking.turn()
    statements.clear()
    for _ in range(60):
        assert looking.turn() == looking.poll_seconds
        assert woken(*all_loops) == []
    assert len(statements) == (0 if database.sqlite else 60)


def test_whoever_has_something_to_do_is_woken(database: Database, elsewhere: Database) -> None:
    """And nobody else is, however much is written."""
    jobs, parcels = loops(database)
    looking = Watch("specimen", database, [jobs, parcels])
    for leave, loop in ((add, jobs), (send, parcels)):
        rest(jobs, parcels)
        looking.turn()
        assert woken(jobs, parcels) == []
        elsewhere.write(leave)
        looking.turn()
        assert woken(jobs, parcels) == [loop.name]
        assert loop.resting is None
        rest(jobs, parcels)


def test_what_nobody_here_has_to_do_anything_about_wakes_nobody(
    database: Database, elsewhere: Database, statements: list[str]
) -> None:
    """After a change one statement for all that rest, and none after that."""
    jobs, parcels = loops(database)
    elsewhere.write(add, next_attempt_at=now() + LONG)
    looking = Watch("specimen", database, [jobs, parcels])
    rest(jobs, parcels)
    for _ in range(3):
        elsewhere.write(add, state="done")
        statements.clear()
        looking.turn()
        assert len(statements) == 1
        looking.turn()
        assert len(statements) == (1 if database.sqlite else 2)
        assert woken(jobs, parcels) == []
    for loop, leave in ((jobs, add), (parcels, send)):
        elsewhere.write(leave)
        looking.turn()
        assert woken(jobs, parcels) == [loop.name], "what came after the changes that were nobody's is seen"
        rest(jobs, parcels)


@ON_BOTH
def test_a_lane_with_plans_looks_for_itself_after_a_change(database: Database, elsewhere: Database) -> None:
    """What is asked for is one of its rows, which need not be the first: the new one is due."""
    _, parcels = loops(database)
    looking = Watch("specimen", database, [parcels])
    elsewhere.write(send, next_attempt_at=now() + LONG)
    parcels.turn()
    woken(parcels)
    elsewhere.write(send, receiver="b")
    looking.turn()
    assert woken(parcels) == (["parcels"] if database.sqlite else [])


def test_a_rest_that_has_ended_is_not_begun_again_by_who_looks(
    database: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop was woken by somebody else while the look was under way."""
    jobs, _ = loops(database)
    looking = Watch("specimen", database, [jobs])
    rest(jobs)
    elsewhere.write(add, state="done")

    def look(_session: Session) -> Any:
        jobs.look_again()
        return {jobs: None}

    monkeypatch.setattr(looking, "_first_rows", look)
    looking.turn()
    assert jobs.resting is None


def test_what_is_planned_is_no_news_until_it_is_due(
    database: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, parcels = loops(database)
    looking = Watch("specimen", database, [jobs, parcels])
    elsewhere.write(add, next_attempt_at=now() + timedelta(seconds=9))
    assert 8 < jobs.turn() <= 9
    parcels.turn()
    looking.turn()
    assert woken(jobs, parcels) == []
    elsewhere.write(add, next_attempt_at=now() + timedelta(seconds=5))
    looking.turn()
    assert "jobs" in woken(jobs, parcels)
    assert 4 < jobs.turn() <= 5
    moment = now() + timedelta(seconds=6)  # the clock was put forward: nobody may sleep until it would have been due
    monkeypatch.setattr(background, "now", lambda: moment)
    looking.turn()
    assert woken(jobs) == ["jobs"]


@ON_BOTH
def test_a_lane_with_plans_does_not_rest_where_nobody_counts_changes(database: Database, elsewhere: Database) -> None:
    _, parcels = loops(database)
    Watch("specimen", database, [parcels])
    elsewhere.write(send, next_attempt_at=now() + LONG)
    pause = parcels.turn()
    assert (parcels.resting is not None) == database.sqlite
    assert database.sqlite or pause == parcels.poll_seconds


def test_who_waits_for_a_lease_does_not_rest(database: Database, elsewhere: Database) -> None:
    jobs, _ = loops(database)
    Watch("specimen", database, [jobs])
    elsewhere.write(add, leased_until=now() + LONG, leased_by="elsewhere/pid:[1]/1/1", attempts=1)
    assert jobs.turn() == jobs.poll_seconds
    assert jobs.resting is None


def test_a_clock_that_is_put_back_wakes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, _ = loops(database)
    looking = Watch("specimen", database, [jobs])
    jobs.turn()
    monkeypatch.setattr(clock, "put_back_in_all", lambda: timedelta(hours=1))
    looking.turn()
    assert woken(jobs) == ["jobs"]


def test_rest_ends_for_what_nobody_thought_of(database: Database) -> None:
    jobs, _ = loops(database)
    looking = Watch("specimen", database, [jobs])
    jobs.turn()
    assert jobs.resting is not None
    jobs.resting = replace(jobs.resting, ends=0.0)
    looking.turn()
    assert woken(jobs) == ["jobs"]


@ON_BOTH
def test_what_another_process_leaves_is_attempted(database: Database, elsewhere: Database) -> None:
    attempts: list[int] = []
    jobs, parcels = loops(database, noting_ids(attempts))
    with running(Watch("specimen", database, [jobs, parcels]), jobs, parcels):
        wait_until(lambda: jobs.resting and parcels.resting, what="a rest")
        identifier = elsewhere.write(add)
        wait_until(lambda: attempts, what="the attempt")
    assert attempts == [identifier]


@ON_BOTH
def test_a_database_that_does_not_answer_is_asked_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite is asked by the number of its changes, which says nothing then, and each loop looks for itself."""
    jobs, _ = loops(database)
    looking = Watch("specimen", database, [jobs])
    jobs.turn()
    if database.sqlite:
        monkeypatch.setattr(database, "changes", lambda: None)
        looking.turn()
        assert woken(jobs) == ["jobs"]
    else:
        monkeypatch.setattr(looking, "_firsts", sa.text("SELECT 1/0"))
        with pytest.raises(sa.exc.DBAPIError):
            looking.turn()
        assert jobs.resting is not None
