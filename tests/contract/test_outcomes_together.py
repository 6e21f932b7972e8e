"""Outcomes that come at once share a transaction, and none of them keeps another one from being written."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data import database as runtime_database
from contracts.runtime.data.background import Done, DueWork
from contracts.runtime.data.database import Database
from tests.contract.test_runtime_background import Base, Job, add, job, said, say, work
from tests.support.loops import running
from tests.support.postgres import PrivatePostgres
from tests.support.suite import wait_until

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


def test_outcomes_that_come_together_share_a_transaction(database: Gathering) -> None:
    for _ in range(JOBS):
        database.write(add)
    with at_work(database, lambda _: Done(say("done"))):
        wait_until(lambda: len(said(database)) == JOBS, what="all of them")
    assert sum(database.sizes) == JOBS
    assert len(database.sizes) <= 2


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
        locked.wait(20)
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
