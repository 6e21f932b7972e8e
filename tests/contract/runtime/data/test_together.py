"""Writes of many callers in one transaction: each is done when it returns, and answers for itself alone."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.runtime.data import together
from contracts.runtime.data.database import Database, metadata
from contracts.runtime.data.together import MOST, InTurn, Together
from contracts.runtime.monitoring import observe

kept = sa.Table("kept", metadata(), sa.Column("number", sa.Integer, primary_key=True))


class Refused(Exception):
    """What is wrong with one of them."""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    database.write(lambda session: kept.metadata.create_all(session.connection()))
    yield database
    database.dispose()


class Writer:
    """Keeps numbers; refuses those below zero. ``sizes`` are those of the transactions that were tried."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.sizes: list[int] = []
        self.away = False

    def write(self, numbers: Sequence[int]) -> None:
        self.sizes.append(len(numbers))
        self.database.write(self._keep, numbers)

    def _keep(self, session: Session, numbers: Sequence[int]) -> None:
        session.execute(kept.insert(), [{"number": number} for number in numbers])
        if self.away:
            raise ServiceError("unavailable", "The database is away.")
        if min(numbers) < 0:
            raise Refused

    def numbers(self) -> set[int]:
        return set(self.database.read(lambda session: session.scalars(sa.select(kept.c.number)).all()))


def at_once(do: Callable[[int], None], numbers: Sequence[int]) -> dict[int, BaseException]:
    """Do it with each in a thread of its own, all at once; the exceptions by number."""
    failures: dict[int, BaseException] = {}
    ready = threading.Barrier(len(numbers))

    def one(number: int) -> None:
        ready.wait()
        try:
            do(number)
        except BaseException as error:
            failures[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_what_many_write_is_written_in_fewer_transactions(database: Database) -> None:
    writer = Writer(database)
    all_together = Together(writer.write)
    absent: list[int] = []

    def write(number: int) -> None:
        all_together.write(number)
        if number not in writer.numbers():
            absent.append(number)

    numbers = range(2 * MOST + 1)
    assert at_once(write, numbers) == {}
    assert absent == [], "it is committed when the call returns"
    assert writer.numbers() == set(numbers)
    assert sum(writer.sizes) == len(numbers)
    assert max(writer.sizes) <= MOST
    assert len(writer.sizes) < len(numbers)


def test_one_that_is_refused_keeps_nobody_else_from_being_written(database: Database) -> None:
    writer = Writer(database)
    failures = at_once(Together(writer.write).write, range(-2, 10))
    assert {number: type(error) for number, error in failures.items()} == {-2: Refused, -1: Refused}
    assert writer.numbers() == set(range(10))


def test_who_comes_first_waits_as_the_last_write_took_where_few_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all processors are busy, all of a write is slow, and one for several is worth more."""
    clock, took = [0.0], [0.002, 1.0, 0.0, 1.0, 0.0]
    waits: list[float] = []
    own_time = SimpleNamespace(monotonic=lambda: clock[0], sleep=waits.append)
    monkeypatch.setattr("contracts.runtime.data.together.time", own_time)

    def write(numbers: Sequence[int]) -> None:
        clock[0] += took.pop(0)

    writes = Together(write)
    for number in range(3):
        writes.write(number)
    assert waits == pytest.approx([0.004, 0.006, 0.05])
    waits.clear()
    for _ in range(together.FEW - 1):
        writes._waiting.append(together._Part(0))
    writes.write(1)
    writes.write(1)
    assert waits == [together.GATHERING_SECONDS] * 2, "many came"


class Killed(BaseException):
    """As a worker's green thread is ended by, which no handler catches."""


def test_who_is_ended_while_it_writes_for_others_leaves_nothing_unwritten(database: Database) -> None:
    """The others write for themselves: nobody may think that it was done."""
    writer = Writer(database)
    kills = [Killed()]

    def write(numbers: Sequence[int]) -> None:
        if len(numbers) > 1 and kills:
            raise kills.pop()
        writer.write(numbers)

    numbers = range(20)
    failures = at_once(Together(write).write, numbers)
    assert [type(error) for error in failures.values()] == [Killed]
    assert writer.numbers() == set(numbers) - set(failures)


def test_while_the_database_is_away_each_is_told_so_and_may_come_again(database: Database) -> None:
    writer = Writer(database)
    all_together = Together(writer.write)
    writer.away = True
    failures = at_once(all_together.write, range(5))
    assert [getattr(error, "code", error) for error in failures.values()] == ["unavailable"] * 5
    assert sum(writer.sizes) == 5, "nobody asks once more for each of them"
    assert writer.numbers() == set()
    writer.away = False
    assert at_once(all_together.write, range(5)) == {}
    assert writer.numbers() == set(range(5))


def test_who_is_ended_while_it_writes_for_others_leaves_nobody_believing_that_it_was_written(
    database: Database,
) -> None:
    """As a green thread that is killed when its process stops: the others would acknowledge messages that are nowhere."""
    writer = Writer(database)

    def write(numbers: Sequence[int]) -> None:
        if len(numbers) > 1:
            raise SystemExit
        writer.write(numbers)

    all_together = Together(write)
    returned: set[int] = set()

    def one(number: int) -> None:
        with suppress(SystemExit):
            all_together.write(number)
            returned.add(number)

    assert at_once(one, range(10)) == {}
    assert len(returned) < 10, "some were ended"
    assert returned <= writer.numbers()


def test_use_cases_in_turn_share_a_transaction_and_each_has_its_own_context(database: Database) -> None:
    """They take their locks in the order of what they are about, and what one of them does is seen by the next."""
    in_turn = InTurn(database)
    done: dict[Session, list[tuple[int, str | None]]] = {}

    def keep(session: Session, number: int) -> None:
        session.execute(kept.insert().values(number=number))
        done.setdefault(session, []).append((number, observe.request_id()))

    def one(number: int) -> None:
        with observe.request(f"request-{number}"):
            in_turn.write(number, keep, number)

    numbers = list(range(30, 0, -1))
    assert at_once(one, numbers) == {}
    assert Writer(database).numbers() == set(numbers)
    for steps in done.values():
        assert steps == sorted(steps)
        assert all(request_id == f"request-{number}" for number, request_id in steps)
    assert len(done) < len(numbers)


def test_a_use_case_that_fails_takes_nothing_of_another_along(database: Database) -> None:
    def keep(session: Session, number: int) -> None:
        session.execute(kept.insert().values(number=number))
        if number % 3 == 0:
            raise Refused

    in_turn = InTurn(database)
    failures = at_once(lambda number: in_turn.write(number, keep, number), range(1, 13))
    assert {number: type(error) for number, error in failures.items()} == dict.fromkeys((3, 6, 9, 12), Refused)
    assert Writer(database).numbers() == {1, 2, 4, 5, 7, 8, 10, 11}
