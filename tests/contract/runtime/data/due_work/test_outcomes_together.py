"""Outcomes that come at once share a transaction, and none of them keeps another one from being written."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data import database as runtime_database
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work import background
from contracts.runtime.data.due_work.background import Done, DueWork
from contracts.runtime.monitoring import observe
from tests.contract.conftest import ON_BOTH
from tests.contract.runtime.data.due_work.test_background import job, said, say, work
from tests.support.material.jobs import Base, Job, add
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.loops import running
from tests.support.services.suite import wait_until

JOBS = 5


class Gathering(Database):
    """Does not write the first outcomes until all the others have come."""

    loop: DueWork
    sizes: list[int]

    def write(self, use_case: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if getattr(use_case, "__name__", "") == "_write_outcomes":
            if not self.sizes:
                wait_until(lambda: len(args[0]) + len(self.loop._ended) == JOBS, what="the other outcomes")
            self.sizes.append(len(args[0]))
        return super().write(use_case, *args, **kwargs)


def gathering(url: str) -> Gathering:
    made = Gathering(url)
    made.sizes = []
    Base.metadata.create_all(made.engine.execution_options(countersign_write=True))
    return made


@pytest.fixture
def database(database_url: str) -> Iterator[Gathering]:
    made = gathering(database_url)
    yield made
    made.dispose()


def at_work(database: Gathering, attempt: Callable[[Any], Any]) -> Any:
    database.loop = work(database, attempt, concurrency=JOBS)
    return running(database.loop)


@ON_BOTH
def test_outcomes_that_come_together_share_a_transaction(database: Gathering) -> None:
    for _ in range(JOBS):
        database.write(add)
    with at_work(database, lambda _: Done(say("done"))):
        wait_until(lambda: len(said(database)) == JOBS, what="all of them")
    assert sum(database.sizes) == JOBS
    assert len(database.sizes) <= 2


def test_attempts_that_were_begun_together_and_end_together_share_a_transaction(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, whoever ends last: the others have left their outcomes with those that it writes."""
    monkeypatch.setattr(background, "_GATHERING", 600.0)
    sizes: list[int] = []

    class Counting(Database):
        def write(self, use_case: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if getattr(use_case, "__name__", "") == "_write_outcomes":
                sizes.append(len(args[0]))
            return super().write(use_case, *args, **kwargs)

    database = Counting(database_url)
    database.write(lambda session: Base.metadata.create_all(session.connection()))
    for _ in range(JOBS):
        database.write(add)
    with running(work(database, lambda _: Done(say("done")), concurrency=JOBS)):
        wait_until(lambda: len(said(database)) == JOBS, what="all of them")
    database.dispose()
    assert sizes == [JOBS]


def test_what_is_recorded_belongs_to_its_own_attempt(database: Gathering) -> None:
    """Whichever thread writes it: an event that it states has the request id, and the trace, of its own work."""
    for _ in range(JOBS):
        database.write(add)
    ids: set[tuple[str | None, str | None]] = set()

    def attempt(_row: Job) -> Done:
        own = observe.request_id()

        def record(session: Session, row: Job) -> None:
            ids.add((own, observe.request_id()))
            say("done")(session, row)

        return Done(record)

    with at_work(database, attempt):
        wait_until(lambda: len(said(database)) == JOBS, what="all of them")
    assert len(ids) == JOBS
    assert all(own == recorded for own, recorded in ids)


@ON_BOTH
def test_one_that_cannot_be_recorded_fails_alone(database: Gathering) -> None:
    made = [database.write(add) for _ in range(JOBS)]
    bad = made[1:3]

    def broken(_session: Session, _row: Any) -> None:
        raise RuntimeError("cannot be recorded")

    with at_work(database, lambda row: Done(broken if row.id in bad and row.attempts == 1 else say("done"))):
        wait_until(lambda: len(said(database)) == JOBS, what="all of them")
    assert {number: job(database, number).attempts for number in made} == {
        number: 2 if number in bad else 1 for number in made
    }


def test_a_row_that_somebody_holds_keeps_no_other_from_being_written(
    postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it is held: nobody gives up waiting for it here."""
    monkeypatch.setattr(runtime_database, "POSTGRES_OPTIONS", "-c timezone=UTC")
    database = gathering(postgres.new_database())
    made = [database.write(add) for _ in range(JOBS)]
    held = made[0]
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with database.engine.connect() as connection:
            connection.execute(sa.select(Job.id).where(Job.id == held).with_for_update())
            locked.set()
            release.wait(120)

    holder = threading.Thread(target=hold)

    def attempt(row: Job) -> Done:
        if row.id == held:
            holder.start()
        locked.wait(120)
        return Done(say("done"))

    with at_work(database, attempt):
        try:
            wait_until(lambda: len(said(database)) == JOBS - 1, what="the others")
            assert job(database, held).state == "due"
        finally:
            release.set()
        wait_until(lambda: len(said(database)) == JOBS, what="the one that was held")
    assert job(database, held).attempts == 1
    holder.join()
    database.dispose()


class Told(threading.Event):
    """Tells that somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_for = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited_for.set()
        return super().wait(timeout)


def test_who_has_ended_waits_for_those_who_began_together_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_GATHERING", 600)
    wave = background._Wave(3)
    wave._all_ended = told = Told()
    others = [threading.Thread(target=wave.gather, daemon=True) for _ in range(2)]
    for thread in others:
        thread.start()
        assert told.waited_for.wait(120)
        told.waited_for.clear()
    wave.gather()
    for thread in others:
        thread.join(120)
        assert not thread.is_alive()


def a_quick_and_a_slow_one(database: Gathering) -> tuple[int, threading.Event, Callable[[Job], Done]]:
    """Add two jobs. The attempt of the one whose id is returned ends at once, that of the other one with the event."""
    database.sizes.append(0)  # the first write is not held up here
    quick, release = database.write(add), threading.Event()
    database.write(add)

    def attempt(row: Job) -> Done:
        if row.id != quick:
            release.wait(60)
        return Done(say("done"))

    return quick, release, attempt


def test_an_outcome_waits_for_those_of_attempts_that_were_begun_with_its_own(
    database: Gathering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_GATHERING", 600)
    _, release, attempt = a_quick_and_a_slow_one(database)
    with at_work(database, attempt):
        try:
            wait_until(lambda: not_ended(database) == 1, what="the quick one to wait")
            assert said(database) == []
        finally:
            release.set()
        wait_until(lambda: len(said(database)) == 2, what="both of them")


def not_ended(database: Gathering) -> int | None:
    """Of the attempts that were begun together, those that have not ended."""
    return next((len(one.wave._under_way) for one in list(database.loop._running.values())), None)


def test_an_outcome_does_not_wait_for_an_attempt_that_takes_long(database: Gathering) -> None:
    quick, release, attempt = a_quick_and_a_slow_one(database)
    with at_work(database, attempt):
        try:
            wait_until(lambda: job(database, quick).state == "done", what="the quick one")
        finally:
            release.set()
    assert len(said(database)) == 2


def test_a_transaction_takes_so_many_outcomes_at_most(database: Gathering, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others who write on SQLite wait for it."""
    monkeypatch.setattr(background, "_TOGETHER", 2)
    for _ in range(JOBS):
        database.write(add)
    with at_work(database, lambda _: Done(say("done"))):
        wait_until(lambda: len(said(database)) == JOBS, what="all of them")
    assert sum(database.sizes) == JOBS
    assert max(database.sizes) == 2


class Clinging:
    """A note that holds up its attempt's thread once the outcome is written."""

    def __init__(self) -> None:
        self.removing, self.released = threading.Event(), threading.Event()

    def sync(self) -> None: ...

    def remove(self) -> None:
        self.removing.set()
        self.released.wait(60)


def test_an_attempt_whose_outcome_is_written_takes_no_place(database: Gathering) -> None:
    """Whatever its thread has still to do: nothing would tell the loop when that ends."""
    database.sizes.append(0)
    note, began = Clinging(), []
    for _ in range(2):
        database.write(add)

    def attempt(row: Job) -> Done:
        began.append(row.id)
        return Done(say("done"), note if len(began) == 1 else None)

    database.loop = work(database, attempt, concurrency=1)
    with running(database.loop, poll=60.0):
        try:
            wait_until(note.removing.is_set, what="the first outcome")
            wait_until(lambda: len(said(database)) == 2, what="the second attempt")
        finally:
            note.released.set()


@ON_BOTH
def test_only_what_was_written_is_followed_up(database: Gathering) -> None:
    """Not the late outcome of an attempt after which another process has ended the work."""
    database.sizes.append(0)
    followed: list[int] = []
    late, other = (database.write(add) for _ in range(2))

    def attempt(row: Job) -> Done:
        if row.id == late:
            database.write(lambda session: session.execute(sa.update(Job).where(Job.id == late).values(state="done")))
        return Done(say("done"))

    def follow_up(_session: Session, rows: Sequence[Job]) -> None:
        followed.extend(row.id for row in rows)

    database.loop = work(database, attempt, concurrency=JOBS, on_written=follow_up)
    with running(database.loop):
        wait_until(lambda: len(said(database)) == 1, what="the other one")
    assert followed == [other]


@ON_BOTH
def test_what_is_read_for_an_attempt_is_read_in_the_transaction_that_leases_it(database: Gathering) -> None:
    """If it cannot be read, nothing is leased, and no attempt is counted; it is tried again."""
    database.sizes.append(0)
    made, prepared = database.write(add), list[int]()

    def prepare(session: Session, rows: Sequence[Job]) -> None:
        prepared.extend(row.id for row in rows)
        if len(prepared) == 1:
            raise RuntimeError("cannot be read")
        assert session.scalar(sa.select(Job.leased_by).where(Job.id == made)) is not None

    database.loop = work(database, lambda _: Done(say("done")), on_claimed=prepare)
    with running(database.loop):
        wait_until(lambda: said(database), what="the attempt")
    assert prepared == [made, made]
    assert said(database) == ["done done 1"]
