"""The database of a service, on SQLite and PostgreSQL: transactions, types, text, idempotency, migrations."""

import os
import sqlite3
import threading
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from pydantic import BaseModel
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import services
import tests.support.services.specimens
from contracts.errors import ServiceError
from contracts.runtime import migrations
from contracts.runtime.bus.outbox import emit, first_time, once
from contracts.runtime.data import database as connecting
from contracts.runtime.data import tables
from contracts.runtime.data.database import (
    BigId,
    Database,
    Json,
    UtcDateTime,
    for_update,
    leave_work,
    metadata,
    normalised,
)
from deploy.services import SERVICES
from tests.support.noting import noting
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.migrated import migrated
from tests.support.services.specimens import contract


class Base(DeclarativeBase):
    metadata = metadata()


class Thing(Base):
    __tablename__ = "things"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(sa.Text, unique=True)
    amount: Mapped[float | None] = mapped_column(sa.Float)
    seen_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    facts: Mapped[Any] = mapped_column(Json, nullable=True)


@pytest.fixture(autouse=True)
def specimen_among_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "__path__", [*services.__path__, *tests.support.services.specimens.__path__])


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("specimen", database_url)
    made = Database(database_url)
    Base.metadata.create_all(made.engine.execution_options(countersign_write=True))
    yield made
    made.dispose()


def add(session: Session, /, name: str, **more: Any) -> int:
    thing = Thing(name=name, **more)
    session.add(thing)
    session.flush()
    return thing.id


def names(session: Session) -> list[str]:
    return list(session.scalars(sa.select(Thing.name).order_by(Thing.id)))


def test_a_write_commits_and_a_refusal_leaves_nothing(database: Database) -> None:
    assert database.write(add, "kept") == 1

    def refused(session: Session) -> None:
        add(session, "gone")
        raise ServiceError("conflict", "No")

    with pytest.raises(ServiceError, match="conflict"):
        database.write(refused)
    assert database.read(names) == ["kept"]


def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises((sa.exc.DBAPIError, ServiceError)):
        database.read(add, "by mistake")
    assert database.read(names) == []
    database.write(add, "by intention")
    assert database.read(names) == ["by intention"]


def test_ids_are_never_given_twice(database: Database) -> None:
    first = database.write(add, "one")
    database.write(lambda session: session.execute(sa.delete(Thing)))
    assert database.write(add, "two") > first


def test_times_are_utc_and_aware(database: Database) -> None:
    paris = datetime(2026, 3, 4, 5, 6, 7, 89_000, timezone(timedelta(hours=2)))
    identifier = database.write(add, "timed", seen_at=paris)
    seen = database.read(lambda session: session.get_one(Thing, identifier).seen_at)
    assert seen == paris
    assert seen is not None
    assert seen.tzinfo is UTC
    with pytest.raises(sa.exc.StatementError, match="naive"):
        database.write(add, "naive", seen_at=datetime(2026, 1, 1))  # noqa: DTZ001
    before = sa.select(sa.func.count()).where(Thing.seen_at < paris + timedelta(microseconds=1))
    assert database.read(lambda session: session.scalar(before)) == 1


@pytest.mark.parametrize(
    "bad", ["nul \x00 in it", "lone \ud800 surrogate", "\udfff"], ids=["nul", "high surrogate", "low surrogate"]
)
@pytest.mark.parametrize("place", ["text", "json", "json key", "deep json"])
def test_text_that_postgresql_refuses_is_refused_everywhere(database: Database, bad: str, place: str) -> None:
    rows: dict[str, dict[str, Any]] = {
        "text": {"name": bad},
        "json": {"name": "x", "facts": bad},
        "json key": {"name": "x", "facts": {bad: 1}},
        "deep json": {"name": "x", "facts": [{"a": ["fine", bad]}]},
    }
    with pytest.raises(ServiceError) as refused:
        database.write(add, **rows[place])
    assert refused.value.status == 422
    assert database.read(names) == []


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(database: Database, number: float) -> None:
    for row in ({"amount": number}, {"facts": {"n": number}}):
        with pytest.raises(ServiceError) as refused:
            database.write(add, "x", **row)
        assert refused.value.status == 422


@pytest.mark.parametrize(
    "text",
    ["", "Zoë 🖋️ 山田 עברית", "\\u0000 written out", "a\\\\u0000", "tab\tnew\nline\x7f\x01", "‮reversed", "'; DROP"],
)
def test_other_text_comes_back_as_it_was(database: Database, text: str) -> None:
    database.write(add, text, facts={"text": text, text: [text]})
    thing = database.read(lambda session: session.scalars(sa.select(Thing)).one())
    assert thing.name == text
    assert thing.facts == {"text": text, text: [text]}


def test_json_keeps_its_types(database: Database) -> None:
    facts: dict[str, Any] = {"int": 2**53, "float": 1.5, "true": True, "none": None, "list": [1, "1"], "": {}}
    identifier = database.write(add, "typed", facts=facts)
    assert database.read(lambda session: session.get_one(Thing, identifier).facts) == facts


def test_two_who_make_the_same_thing_at_once(database: Database) -> None:
    """Look, then insert: the second one's second look finds what the first one made."""
    both = threading.Barrier(2)

    def find_or_add(session: Session) -> int:
        found = session.scalar(sa.select(Thing.id).where(Thing.name == "same"))
        if not database.sqlite and both.n_waiting < 2 and not both.broken:
            both.wait(5)
            both.abort()
        return found or add(session, "same")

    def run(_: int) -> int:
        try:
            return database.write(find_or_add)
        except threading.BrokenBarrierError:
            return database.write(find_or_add)

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(run, range(2)))) == 1
    assert database.read(names) == ["same"]
    with pytest.raises(sa.exc.IntegrityError):
        database.write(add, "same")


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_deadlock_is_solved_by_doing_it_again(database: Database) -> None:
    """On PostgreSQL only: SQLite has one writer at a time and no deadlocks."""
    first, second = database.write(add, "a"), database.write(add, "b")
    meet = threading.Barrier(2)
    tries: list[int] = []

    def lock(session: Session, one: int, other: int) -> None:
        tries.append(one)
        session.execute(for_update(sa.select(Thing).where(Thing.id == one))).one()
        if len(tries) <= 2:
            meet.wait(120)
        session.execute(for_update(sa.select(Thing).where(Thing.id == other))).one()

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(database.write, lock, first, second), pool.submit(database.write, lock, second, first)]
        for job in jobs:
            job.result(120)
    assert len(tries) == 3


def test_whoever_waits_is_told_cheaply_whether_anything_was_committed(database: Database) -> None:
    def add(session: Session, name: str) -> None:
        session.add(Thing(name=name))

    def undone(session: Session) -> None:
        session.execute(sa.insert(Thing).values(name="undone"))
        session.rollback()

    if not database.sqlite:
        assert database.changes() is None
        return
    numbers = [database.changes()]
    database.read(lambda session: session.scalars(sa.select(Thing)).all())
    database.write(undone)
    assert database.changes() == numbers[0]
    database.write(add, "one")
    numbers.append(database.changes())
    other = Database(str(database.url))
    other.write_unsynced(add, "two")
    other.dispose()
    numbers.append(database.changes())
    assert None not in numbers
    assert len(set(numbers)) == 3
    database.dispose()  # and asked again, it looks again
    assert database.changes() is not None


def test_what_nobody_waits_for_is_no_change(database: Database) -> None:
    """It is there for everybody, and another process counts it."""

    def add(session: Session, name: str) -> None:
        session.execute(sa.insert(Thing).values(name=name))

    def names(session: Session) -> list[str]:
        return list(session.scalars(sa.select(Thing.name).order_by(Thing.name)))

    other = Database(str(database.url.render_as_string(hide_password=False)))
    before, elsewhere = database.changes(), other.changes()
    database.write_unnoticed(add, "alive")
    database.write_unnoticed(add, "still alive")
    assert other.read(names) == database.read(names) == ["alive", "still alive"]
    assert database.changes() == before
    if database.sqlite:
        assert other.changes() != elsewhere
    database.write(add, "news")
    if database.sqlite:
        assert database.changes() != before
    other.dispose()

    def broken(session: Session) -> None:
        session.execute(sa.text("INSERT INTO nothing VALUES (1)"))

    with pytest.raises(sa.exc.DBAPIError):
        database.write_unnoticed(broken)
    database.write_unnoticed(add, "alive again")
    assert "alive again" in database.read(names)


def test_a_heartbeat_waits_its_turn_and_says_when_there_is_none(database: Database, tmp_path: Path) -> None:
    if not database.sqlite:
        return
    gone = Database(f"sqlite:///{tmp_path}/nothing.sqlite")
    with pytest.raises(ServiceError, match="not available"):
        gone.write_unnoticed(lambda session: session.execute(sa.text("SELECT 1")))
    assert not (tmp_path / "nothing.sqlite").exists()


def _be_alive(session: Session) -> None:
    session.execute(sa.insert(Thing).values(name="alive"))


def test_a_heartbeat_that_waits_for_a_locked_file_holds_back_no_look(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not database.sqlite:
        return
    waits, looked = threading.Event(), threading.Event()

    def wait(_seconds: float) -> None:
        waits.set()
        assert looked.wait(120)

    monkeypatch.setattr("contracts.runtime.data.database.time.sleep", wait)
    monkeypatch.setattr("contracts.runtime.data.database.SQLITE_BUSY_SECONDS", 3600)
    before = database.changes()
    with ThreadPoolExecutor(1) as threads, closing(sqlite3.connect(str(database.url.database))) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        beat = threads.submit(database.write_unnoticed, _be_alive)
        try:
            assert waits.wait(120)
            assert database.changes() == before
            assert not beat.done()
        finally:
            other.execute("ROLLBACK")
            looked.set()
        beat.result(120)
    assert database.changes() == before
    assert database.read(lambda session: session.scalar(sa.select(Thing.name))) == "alive"


def test_a_heartbeat_gives_up_in_the_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if not database.sqlite:
        return
    monkeypatch.setattr("contracts.runtime.data.database.SQLITE_BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(str(database.url.database))) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ServiceError, match="busy"):
            database.write_unnoticed(_be_alive)
        other.execute("ROLLBACK")


def test_a_watch_that_began_anew_repeats_no_number(database: Database) -> None:
    """SQLite counts for each connection by itself."""
    if not database.sqlite:
        return
    numbers = set()
    for _ in range(3):
        numbers.add(database.changes())
        database.dispose()
    assert len(numbers) == 3


def test_writers_side_by_side_are_never_told_that_it_is_locked(database: Database) -> None:
    """F29."""

    def count_up(session: Session) -> None:
        thing = session.scalars(for_update(sa.select(Thing))).one()
        thing.amount = (thing.amount or 0) + 1

    database.write(add, "counter", amount=0)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: database.write(count_up), range(120)))
    assert database.read(lambda session: session.scalars(sa.select(Thing.amount)).one()) == 120


def test_writers_of_several_processes_are_never_told_that_it_is_locked(database: Database) -> None:
    """F29: each process has a Database of its own, and with it a queue of its own writers; they meet in the file only."""

    def count_up(session: Session) -> None:
        thing = session.scalars(for_update(sa.select(Thing))).one()
        thing.amount = (thing.amount or 0) + 1

    database.write(add, "counter", amount=0)
    processes = [Database(str(database.url.render_as_string(hide_password=False))) for _ in range(4)]
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: processes[number % 4].write(count_up), range(80)))
    finally:
        for each in processes:
            each.dispose()
    assert database.read(lambda session: session.scalars(sa.select(Thing.amount)).one()) == 80


# Idempotency.


class Strange(BaseModel):
    pass


def test_once_stores_the_answer_with_its_effect(database: Database) -> None:
    def use(session: Session, request: str, total: int) -> contract.Counted:
        def decide() -> contract.Counted:
            add(session, f"{request} {total}")
            return contract.Counted(total=total)

        return once(session, contract.COUNT, request, decide)

    assert database.write(use, "r", 1).total == 1
    assert database.write(use, "r", 2).total == 1
    assert database.write(use, "other", 3).total == 3
    assert database.read(names) == ["r 1", "other 3"]


def test_a_refused_request_may_succeed_later(database: Database) -> None:
    def use(session: Session, fails: bool) -> contract.Counted:
        def decide() -> contract.Counted:
            if fails:
                raise ServiceError("conflict", "Not now")
            return contract.Counted(total=7)

        return once(session, contract.COUNT, "r", decide)

    with pytest.raises(ServiceError):
        database.write(use, True)
    assert database.write(use, False).total == 7


def test_racing_requests_have_one_effect(database: Database) -> None:
    decided: list[int] = []

    def use(session: Session, number: int) -> contract.Counted:
        def decide() -> contract.Counted:
            decided.append(number)
            add(session, f"effect {number}")
            return contract.Counted(total=number)

        return once(session, contract.COUNT, "same", decide)

    with ThreadPoolExecutor(8) as pool:
        answers = {answer.total for answer in pool.map(lambda n: database.write(use, n), range(8))}
    assert len(answers) == len(decided) == len(database.read(names)) == 1


def test_an_event_is_the_first_time_once(database: Database) -> None:
    def take(session: Session, number: int) -> bool:
        if first_time(session, "handler", "event-1"):
            add(session, f"effect {number}")
            return True
        return False

    def fail(session: Session) -> None:
        assert first_time(session, "handler", "event-1")
        raise ServiceError("unavailable", "no")

    with pytest.raises(ServiceError):
        database.write(fail)
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda n: database.write(take, n), range(8))) == 1
    assert len(database.read(names)) == 1
    assert database.write(lambda session: first_time(session, "another handler", "event-1"))


def test_an_event_is_emitted_with_its_transaction_or_not_at_all(database: Database) -> None:
    woken: list[Set[str]] = []
    database.on_commit.append(woken.append)

    def state(session: Session, fails: bool) -> str:
        identifier = emit(session, contract.NOTED, contract.Noted(key="k"), subject="thing:1", sequence=4)
        if fails:
            raise ServiceError("conflict", "No")
        return identifier

    with pytest.raises(ServiceError):
        database.write(state, True)
    assert not woken
    identifier = database.write(state, False)
    assert woken == [{"outbox"}]
    row = database.read(lambda session: session.execute(sa.select(tables.outbox)).one())
    assert (row.event_id, row.source, row.type) == (identifier, "specimen", "thing.noted")
    with pytest.raises(TypeError, match="carries Noted"):
        database.write(lambda session: emit(session, contract.NOTED, Strange(), subject="thing:1"))
    database.write(add, "nothing for others to do")
    assert woken == [{"outbox"}]


# The server goes away.


def test_a_dead_server_is_unavailable_and_then_is_not(postgres: PrivatePostgres) -> None:
    """F7: every pooled connection is cut; reads do not even notice, and nothing is a 500."""
    database = Database(postgres.new_database(), pool_size=3)
    database.ping()
    killer = sa.create_engine(database.url, isolation_level="AUTOCOMMIT")
    others = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()"""

    def cut_off(session: Session) -> None:
        session.execute(sa.text("SELECT 1"))
        with killer.connect() as connection:
            connection.execute(sa.text(others))
        session.execute(sa.text("SELECT 1"))

    with pytest.raises(ServiceError) as cut:
        database.write(cut_off)
    assert cut.value.status == 503
    database.ping()
    with killer.connect() as connection:
        connection.execute(sa.text(others))
    database.ping()
    killer.dispose()
    database.dispose()


def test_a_connection_that_has_rested_is_asked_before_it_is_used(
    postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write does not notice that all of them were cut while they rested; those that were just used are not asked."""
    database = Database(postgres.new_database(), pool_size=3)
    asked: list[Any] = []
    ping = database.engine.dialect.do_ping
    monkeypatch.setattr(database.engine.dialect, "do_ping", noting(asked, ping))
    monkeypatch.setattr(connecting, "_RESTED", 3600.0)
    for _ in range(3):
        database.ping()
    assert asked == []
    (own,) = database.read(lambda session: session.execute(sa.text("SELECT pg_backend_pid()")).one())
    with psycopg.connect(database.url.set(drivername="postgresql").render_as_string(False)) as killer:
        killer.execute("SELECT pg_terminate_backend(%s, 60000)", [own])
    monkeypatch.setattr(connecting, "_RESTED", 0.0)
    (other,) = database.write(lambda session: session.execute(sa.text("SELECT pg_backend_pid()")).one())
    assert other != own
    assert len(asked) == 1
    database.dispose()


def test_nobody_listens(database_url: str) -> None:
    url = "sqlite:////proc/nothing/here.sqlite" if database_url.startswith("sqlite") else "postgresql://x@127.0.0.1:1/x"
    database = Database(url)
    with pytest.raises(ServiceError) as refused:
        database.ping()
    assert refused.value.status == 503
    assert "127.0.0.1" not in refused.value.message


@pytest.mark.parametrize("url", ["mysql://x/y", "oracle://x", "sqlite+aiosqlite:///x"])
def test_other_databases(url: str) -> None:
    if url.startswith("sqlite"):
        assert normalised(url).drivername == "sqlite+pysqlite"
    else:
        with pytest.raises(ValueError, match="only sqlite and postgresql"):
            normalised(url)


def test_a_commit_waits_for_the_disk_unless_it_may_be_lost(database: Database) -> None:
    def waits(session: Session) -> bool:
        if database.sqlite:
            return bool(session.scalar(sa.text("PRAGMA synchronous")) == 2)  # FULL
        return bool(session.scalar(sa.text("SHOW synchronous_commit")) == "on")

    def added(session: Session, name: str) -> bool:
        add(session, name)
        return waits(session)

    assert [
        database.write(added, "kept"),
        database.write_unsynced(added, "leased"),
        database.write(added, "kept, too"),
    ] == [
        True,
        False,
        True,
    ]
    assert database.read(names) == ["kept", "leased", "kept, too"]


def test_work_that_is_taken_on_is_begun_before_it_is_on_the_disk_and_is_there_at_the_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told once the rows can be seen; then waits for the log: on SQLite by fsync, on PostgreSQL by a commit that waits."""
    happened: list[str] = []
    database.on_commit.append(lambda tables: happened.append(f"told of {database.read(names)} in {set(tables)}"))
    fsync, execute = os.fsync, Session.execute

    def synced(file: int) -> None:
        happened.append(Path(f"/proc/self/fd/{file}").readlink().name.removeprefix("test.sqlite"))
        fsync(file)

    def executed(session: Session, statement: Any, *args: Any, **kwargs: Any) -> Any:
        if "pg_current_xact_id" in str(statement):
            happened.append(f"commit waits: {session.scalar(sa.text('SHOW synchronous_commit'))}")
        return execute(session, statement, *args, **kwargs)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Session, "execute", executed)

    def job(session: Session) -> str:
        add(session, "a job")
        leave_work(session, "jobs")
        return "taken on"

    assert database.take_on(job) == "taken on"
    assert happened == ["told of ['a job'] in {'jobs'}", "-wal" if database.sqlite else "commit waits: on"]


def test_what_is_committed_on_sqlite_is_on_the_disk(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.sqlite")

    def pragmas(session: Session) -> list[Any]:
        asked = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        return [session.execute(sa.text(f"PRAGMA {name}")).scalar() for name in asked]

    assert database.read(pragmas) == ["wal", 2, 1, 10_000]
    database.dispose()


# Migrations.


@pytest.mark.parametrize("service", [*SERVICES, "specimen"])
def test_files_of_migrations_are_called_by_their_revisions(service: str) -> None:
    """One after the other: what a process takes for its schema's version is what Alembic would."""
    script = ScriptDirectory.from_config(migrations._config(service))
    assert migrations.revisions(service) == [one.revision for one in script.walk_revisions()][::-1]
    assert [one.down_revision for one in script.walk_revisions()][::-1] == [None, *migrations.revisions(service)[:-1]]


def test_up_down_and_up_again(database_url: str) -> None:
    assert "empty" in (migrations.pending("specimen", database_url) or "")
    migrations.upgrade("specimen", database_url)
    assert migrations.pending("specimen", database_url) is None
    assert migrations.differences("specimen", database_url) == []
    migrations.downgrade("specimen", database_url)
    assert "empty" in (migrations.pending("specimen", database_url) or "")
    migrations.upgrade("specimen", database_url)
    assert migrations.differences("specimen", database_url) == []


def test_a_schema_that_is_ahead_is_served(database_url: str) -> None:
    """Migrations run before the new code; the old code goes on meanwhile."""
    migrations.upgrade("specimen", database_url)
    database = Database(database_url)
    database.write(lambda session: session.execute(sa.text("UPDATE alembic_version SET version_num = '9999'")))
    database.dispose()
    assert migrations.pending("specimen", database_url) is None


def test_the_older_version_migrates_again_after_a_rollback(database_url: str) -> None:
    """Its pods run migrate whenever they start, on a schema that a later version has made."""
    migrations.upgrade("specimen", database_url)
    database = Database(database_url)
    database.write(lambda session: session.execute(sa.text("UPDATE alembic_version SET version_num = '9999'")))
    migrations.upgrade("specimen", database_url)
    version = database.read(lambda session: session.scalar(sa.text("SELECT version_num FROM alembic_version")))
    database.dispose()
    assert version == "9999"


def test_two_migrations_at_once(database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: migrations.upgrade("specimen", database_url), range(4)))
    assert migrations.differences("specimen", database_url) == []


def test_a_difference_is_found(database: Database, database_url: str) -> None:
    database.write(lambda session: session.execute(sa.text("ALTER TABLE notes ADD COLUMN surplus TEXT")))
    (difference,) = [found for found in migrations.differences("specimen", database_url) if found[0] != "remove_table"]
    assert difference[0] == "remove_column"


def test_decimals_are_no_json() -> None:
    from contracts.runtime.data.database import to_json

    with pytest.raises(TypeError):
        to_json({"price": Decimal("1.5")})
