"""A service's own database: SQLite (WAL) or PostgreSQL (psycopg 3), the same code on both.

A use case is a function whose first parameter is a Session. ``Database.write`` runs it in one transaction, commits, and
then wakes the relay and the due work; ``Database.read`` runs a query in a read-only transaction. Nothing that waits for
anything but the database belongs inside.

On SQLite a write starts with BEGIN IMMEDIATE: a deferred transaction that turns into a write fails at once, without
waiting, when another one wrote in between. ``synchronous`` is FULL: with NORMAL the last commits are lost in a power cut,
and what was answered with 2xx must not be.
"""

import contextvars
import json
import math
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from contracts.errors import CannotStart, ServiceError, invalid
from contracts.runtime.monitoring import observe

P = ParamSpec("P")
R = TypeVar("R")

log = observe.logger(__name__)

SQLITE_BUSY_SECONDS = 10
POSTGRES_OPTIONS = (
    "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=60s -c timezone=UTC"
)
_WRITE = "countersign_write"
_UNSYNCED = "countersign_unsynced"
_WORK = "countersign_work"
_HELD_BACK = "countersign_held_back"
_TRIES = 4
_VERSIONS = 2**32
"""SQLite counts what was committed in that many numbers, and for each connection anew."""
_LOCKED_PAUSE = 0.05
_DO_NOT_SYNC = sa.text("SET LOCAL synchronous_commit = off")

offload: Callable[..., Any] | None = None
"""Set by the worker: runs a function in a real thread while the event loop goes on (SQLite only)."""


def thread_key() -> int:
    """Name the engine that a thread uses. The worker replaces it: there, each real thread has an engine of its own."""
    return 0


def metadata() -> sa.MetaData:
    """The MetaData of a service's tables, with names for every constraint, so that migrations can change them."""
    return sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""For integer ids. Use with ``sqlite_autoincrement=True`` in the table's arguments: an id is never given twice."""

Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""JSONB on PostgreSQL. NaN, NUL and lone surrogates are refused on both."""


class UtcDateTime(sa.types.TypeDecorator[datetime]):
    """Aware UTC datetimes in and out. A naive one is a bug and is refused."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive datetime {value.isoformat()}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Database:
    """Transactions on one database. ``on_commit`` callbacks run after each committed write that left work for others
    (``leave_work``); they get the names of the tables where it is."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = normalised(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._pool_size = pool_size
        self._engines: dict[int, Engine] = {}
        self._with_options: dict[tuple[int, tuple[str, ...]], Engine] = {}
        # SQLite has one write lock, and whoever waits for it only looks now and then: those of this process queue up here,
        # so that each gets its turn (measured: up to 7 s of waiting without it, beside two other processes).
        self._turn = threading.Lock()
        self._watching: sqlite3.Connection | None = None
        self._watches = 0
        self._unnoticed: Engine | None = None
        self._watch = threading.Lock()
        self.on_commit: list[Callable[[Set[str]], None]] = []

    @property
    def engine(self) -> Engine:
        """The engine of this thread. One per process, but on SQLite in a worker one per real thread (see ``observe``)."""
        key = thread_key()
        if (engine := self._engines.get(key)) is None:
            engine = self._engines[key] = make_engine(self.url, self._pool_size)
        return engine

    def _engine_with(self, *options: str) -> Engine:
        """The same with these options on. Kept: to make one costs as much as a statement."""
        key = thread_key(), options
        if (engine := self._with_options.get(key)) is None:
            engine = self._with_options[key] = self.engine.execution_options(**dict.fromkeys(options, True))
        return engine

    def write(self, use_case: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run ``use_case(session, ...)`` in one transaction and commit.

        It may run several times when transactions collide (serialization, deadlock, a unique key made by two at once), so it
        must have no effect but through the session. Raises ServiceError("unavailable") when the database cannot be reached,
        is full, or is locked for too long.
        """
        return self._written(use_case, args, kwargs, {_WRITE: True})  # type: ignore[no-any-return]

    def write_unsynced(self, use_case: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As ``write``, but the commit does not wait for the disk (SQLite: ``synchronous = NORMAL``, PostgreSQL:
        ``synchronous_commit = off``). A power cut may undo it, ``kill -9`` does not. For what is harmless to lose: leases,
        and that something was published. Measured: 0.1 ms instead of 2."""
        return self._written(use_case, args, kwargs, {_WRITE: True, _UNSYNCED: True})  # type: ignore[no-any-return]

    def take_on(self, use_case: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As ``write``, but the due work is woken before the commit is on the disk; this returns when it is. For a message that
        becomes due work, which must be safe to attempt twice: after a power cut in between, the message comes again."""
        result = self.write_unsynced(use_case, *args, **kwargs)
        self._in_thread(self._sync)
        return result

    def read(self, query: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run ``query(session, ...)`` in one read-only transaction, once more when the connection turned out to be dead."""
        return self._in_thread(self._read, query, args, kwargs)  # type: ignore[no-any-return]

    def look_up(self, query: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As ``read``, for a few rows that are found by an index: in a worker on SQLite it is done at once, without a thread,
        because handing it over costs more than such a read (measured: 0.2 ms of processor and a wait for the interpreter)."""
        return self._read(query, args, kwargs)  # type: ignore[no-any-return]

    def wake(self, tables: Set[str]) -> None:
        """Tell those who look at these tables that there is something to do. Losing it costs only the polling interval."""
        for callback in self.on_commit:
            callback(tables)

    def changes(self) -> int | None:
        """A number that is another one when anything was committed since it was asked for last, by whatever process; None on
        PostgreSQL, which has none. Who waits for rows asks this first: it costs a fiftieth of a read."""
        if not self.sqlite or not self.url.database:
            return None
        with self._watch:
            try:
                version = int(self._watched(self.url.database).execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error:  # whoever then looks is told what is wrong
                self._end_watch()
                return None
            return self._watches * _VERSIONS + version

    def write_unnoticed(
        self, use_case: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """As ``write_unsynced``, for a change that nobody waits for, as that a process is alive: ``changes`` stays as it was
        here, so that no loop looks. (SQLite does not count what the connection that is asked has committed itself.) Each
        statement is committed by itself. While somebody else has the lock, ``changes`` goes on answering."""
        if not self.sqlite or not self.url.database:
            self.write_unsynced(use_case, *args, **kwargs)
            return
        with self._in_turn():
            patience = time.monotonic() + SQLITE_BUSY_SECONDS
            while not self._written_unnoticed(use_case, args, kwargs, last=time.monotonic() >= patience):
                time.sleep(_LOCKED_PAUSE)

    def _written_unnoticed(self, use_case: Callable[..., Any], args: Any, kwargs: Any, *, last: bool) -> bool:
        """False when the file is locked, unless this was the ``last`` try."""
        assert self.url.database is not None
        with self._watch:
            try:
                with _translated():
                    self._watched(self.url.database)
                    with Session(self._unnoticed) as session:
                        use_case(session, *args, **kwargs)
            except Exception as error:
                if isinstance(error, _Locked) and not last:
                    return False
                self._end_watch()
                raise
        return True

    def _watched(self, path: str) -> sqlite3.Connection:
        """The connection that is asked for changes, which commits each statement of its own."""
        if self._watching is None:
            address = f"{Path(path).absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(address, uri=True, timeout=0, check_same_thread=False, isolation_level=None)
            connection.execute("PRAGMA synchronous = NORMAL")
            self._watching, self._watches = connection, self._watches + 1
            self._unnoticed = sa.create_engine("sqlite+pysqlite://", creator=lambda: connection, poolclass=StaticPool)
        return self._watching

    def _end_watch(self) -> None:
        if self._watching is not None:
            self._watching.close()
            self._watching = self._unnoticed = None

    def ping(self) -> None:
        """Raises ServiceError("unavailable") when the database does not answer."""
        self.read(lambda session: session.execute(sa.text("SELECT 1")).scalar())

    def dispose(self) -> None:
        """Close all connections."""
        for engine in list(self._engines.values()):
            engine.dispose()
        with self._watch:
            self._end_watch()

    def _written(self, use_case: Callable[..., Any], args: Any, kwargs: Any, options: dict[str, bool]) -> Any:
        with self._in_turn():
            result, tables = self._in_thread(self._write, use_case, args, kwargs, options)
        if tables:
            self.wake(tables)
        return result

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self.sqlite:
            yield
        elif self._turn.acquire(timeout=SQLITE_BUSY_SECONDS):
            try:
                yield
            finally:
                self._turn.release()
        else:
            raise ServiceError("unavailable", "The database is busy. Try again.")

    def _in_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        if offload is None or not self.sqlite:
            return function(*args)
        return offload(contextvars.copy_context().run, function, *args)

    def _write(
        self, use_case: Callable[..., Any], args: Any, kwargs: Any, options: dict[str, bool]
    ) -> tuple[Any, Set[str]]:
        for attempt in range(1, _TRIES + 1):
            try:
                with (
                    _translated(),
                    Session(self._engine_with(*options), expire_on_commit=False) as session,
                ):
                    if _UNSYNCED in options and not self.sqlite:
                        session.execute(_DO_NOT_SYNC)
                    result = use_case(session, *args, **kwargs)
                    session.commit()
                    return result, session.info.get(_WORK, frozenset())
            except _Collision:
                if attempt == _TRIES:
                    raise
            except _ReadOnly:
                # These connections lead to a server that was the first one until it was replaced: the next ones may not.
                self.engine.dispose()
                raise
            except sa.exc.IntegrityError as error:
                # Two transactions made the same thing at once: the second look finds what the first one made. A duplicate
                # that is no race fails again.
                if attempt > 1 or getattr(error.orig, "sqlstate", None) != _UNIQUE_VIOLATION:
                    raise
            time.sleep(0.01 * 2**attempt)
        raise AssertionError("unreachable")

    def _sync(self) -> None:
        """Wait until every commit so far is on the disk. Both databases keep their commits in one log, in order."""
        if self.sqlite:
            log_file = os.open(f"{self.url.database}-wal", os.O_RDONLY)
            try:
                os.fsync(log_file)
            finally:
                os.close(log_file)
        else:
            # Only a transaction with a number waits for the log.
            self._write(lambda session: session.execute(sa.text("SELECT pg_current_xact_id()")), (), {}, {_WRITE: True})

    def _read(self, query: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        for last in (False, True):
            try:
                with _translated(), Session(self._reading()) as session:
                    return query(session, *args, **kwargs)
            except _ReadOnly as error:
                # Our own mistake: it is we who said that nothing will be changed.
                raise (error.__cause__ or error) from None
            except (_Disconnected, _Collision):
                if last:
                    raise
        raise AssertionError("unreachable")

    def _reading(self) -> Engine:
        return self.engine if self.sqlite else self._engine_with("postgresql_readonly")


def leave_work(session: Session, table: str) -> None:
    """Once the transaction is committed, whoever looks at ``table`` is told that there is something to do."""
    session.info.setdefault(_WORK, set()).add(table)


@contextmanager
def inserting_together(session: Session) -> Iterator[None]:
    """Insert what ``insert`` adds meanwhile at the end, in order, statement by statement: nobody may look for it before."""
    pending: dict[Any, list[Any]] = {}
    session.info[_HELD_BACK] = pending
    try:
        yield
    finally:
        del session.info[_HELD_BACK]
    for statement, rows in pending.items():
        session.execute(statement, rows)


def insert(session: Session, statement: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, now or with many others (``inserting_together``): one wait for the database is enough for all of them.

    What has changed of objects is not written for it: it is written once, at the end or when somebody looks for it.
    """
    pending = session.info.get(_HELD_BACK)
    if pending is None:
        with session.no_autoflush:
            session.execute(statement, rows)
    else:
        pending.setdefault(statement, []).extend(rows)


def for_update(statement: sa.Select[Any]) -> sa.Select[Any]:
    """Lock the rows that ``statement`` selects. Says nothing on SQLite, where the write lock is held already."""
    return statement.with_for_update()


def insert_into(session: Session, table: Any) -> Any:
    """An INSERT into a table or model that knows ``on_conflict_do_nothing`` and ``on_conflict_do_update`` on both databases."""
    return insert_for(dialect_of(session), table)


def insert_for(dialect: str, table: Any) -> Any:
    """The same for a dialect (``dialect_of``): for statements that are built once and kept."""
    return (postgresql if dialect == "postgresql" else sqlite).insert(table)


def dialect_of(session: Session) -> str:
    """``postgresql`` or ``sqlite``."""
    return session.get_bind().dialect.name


def normalised(url: str | URL) -> URL:
    """The URL with the driver that we use."""
    parsed = make_url(url)
    if parsed.get_backend_name() in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite":
        return parsed.set(drivername="sqlite+pysqlite")
    raise ValueError(f"database {parsed.get_backend_name()!r}: only sqlite and postgresql are supported")


_SILENCE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
"""A network that goes silent ends a connection within about a minute: its own time-out would be two hours, and a statement's is
the server's to keep. A server that is only stopped still acknowledges."""


def make_engine(url: URL, pool_size: int = 10) -> Engine:
    """An engine with our time-outs and pragmas."""
    sqlite = url.get_backend_name() == "sqlite"
    engine = sa.create_engine(
        url,
        json_serializer=to_json,
        pool_size=pool_size,
        max_overflow=0 if sqlite else pool_size,
        pool_timeout=10,
        hide_parameters=True,
        connect_args=(
            {"timeout": SQLITE_BUSY_SECONDS, "check_same_thread": False}
            if sqlite
            else {"options": POSTGRES_OPTIONS, "connect_timeout": 5, "prepare_threshold": 5, **_SILENCE}
        ),
    )
    if sqlite:
        sa.event.listen(engine, "connect", _open_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    else:
        refuse_other_encodings(engine)
        ask_the_rested(engine)
    sa.event.listen(engine, "before_cursor_execute", _refuse_undrawable_text)
    return engine


_RESTED = 1.0
"""Seconds after which a connection is asked whether it still leads to a server before it is used. To ask each time takes a
third of what a small transaction does."""
_RESTS_SINCE = "rests since"


def ask_the_rested(engine: Engine) -> None:
    """Have the pool connect anew, all of it, where a connection that has rested leads nowhere any more."""

    def note(_connection: Any, record: Any) -> None:
        record.info[_RESTS_SINCE] = time.monotonic()

    def ask(connection: Any, record: Any, _proxy: Any) -> None:
        since = record.info.get(_RESTS_SINCE)
        if since is None or time.monotonic() - since < _RESTED:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise sa.exc.InvalidatePoolError from error

    sa.event.listen(engine, "checkin", note)
    sa.event.listen(engine, "checkout", ask)


def refuse_other_encodings(engine: Engine) -> None:
    """Have each connection of an engine to PostgreSQL raise CannotStart unless the database is in UTF8: in another encoding
    names are refused, or come back as bytes."""

    def check(connection: Any, _record: Any) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise CannotStart(
                f"the database is in the encoding {encoding}, it must be UTF8:"
                " CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
            )

    # Before SQLAlchemy's own first look at the server, which fails in an unreadable way.
    sa.event.listen(engine, "connect", check, insert=True)


def to_json(value: Any) -> str:
    """Compact JSON. Raises ServiceError("invalid") for what JSON or a database has no place for."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise invalid("Numbers must be finite.") from error
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise invalid(_BAD_TEXT)
    refuse_bad_text(text)
    return text


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_BAD_TEXT = "Text must not contain NUL characters or unpaired surrogates."


def _open_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"busy_timeout = {SQLITE_BUSY_SECONDS * 1000}",
        "journal_size_limit = 67108864",
        "secure_delete = ON",  # what is deleted or changed is overwritten; see ``scrubbing``
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    write = _WRITE in options
    # Straight to the driver: what SQLAlchemy does around each statement costs ten times the statement itself.
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA query_only = {0 if write else 1}")
    if write:
        driver.execute(f"PRAGMA synchronous = {'NORMAL' if _UNSYNCED in options else 'FULL'}")
    driver.execute("BEGIN IMMEDIATE" if write else "BEGIN")


def _refuse_undrawable_text(
    _connection: Connection, _cursor: Any, _statement: str, parameters: Any, _context: Any, executemany: bool
) -> None:
    # "Insert many values" says executemany too, but hands over one flat tuple or dict for all its rows.
    for row in parameters if executemany and isinstance(parameters, list) else (parameters,):
        for value in row.values() if isinstance(row, dict) else row or ():
            if isinstance(value, str):
                refuse_bad_text(value)
            elif isinstance(value, float) and not math.isfinite(value):
                raise invalid("Numbers must be finite.")


def refuse_bad_text(text: str, field: str | None = None) -> None:
    """Raises ServiceError("invalid") for NUL and lone surrogates, which PostgreSQL refuses and SQLite keeps."""
    if "\x00" in text:
        raise invalid(_BAD_TEXT, field)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise invalid(_BAD_TEXT, field) from None


class _Collision(ServiceError):
    """Two transactions got in each other's way; the same again may succeed."""


class _Locked(ServiceError):
    """Another process writes, and has done so for as long as one waits."""


class _Disconnected(ServiceError):
    """The connection turned out to be dead."""


class _ReadOnly(ServiceError):
    """The server takes no changes: it is a standby, or somebody told it so."""


# https://www.postgresql.org/docs/15/errcodes-appendix.html
_COLLISIONS = {"40001", "40P01"}
_UNIQUE_VIOLATION = "23505"
_UNAVAILABLE_CLASSES = ("08", "53", "57", "55", "58")
_READ_ONLY = "25006"
_NOT_SUPPORTED = "0A000"
"""The answer of a standby to ``BEGIN READ WRITE``, with which a connection begins that was told to only read before."""


@contextmanager
def _translated() -> Iterator[None]:
    """Database errors as what they mean to a caller: the same again, unavailable, or our own mistake (raised as it is)."""
    try:
        yield
    except sa.exc.TimeoutError as error:
        raise ServiceError("unavailable", "The database is busy. Try again.") from error
    except sqlite3.OperationalError as error:  # of the BEGIN, which goes past SQLAlchemy
        raise _meaning_on_sqlite(error) from error
    except sa.exc.StatementError as error:
        if isinstance(error.orig, ServiceError):
            raise error.orig from None
        if not isinstance(error, sa.exc.DBAPIError):
            raise
        raise _meaning(error) from error


def _meaning(error: sa.exc.DBAPIError) -> Exception:
    state = getattr(error.orig, "sqlstate", None)
    text = str(error.orig)
    if state in _COLLISIONS:
        return _Collision("unavailable", "The database is busy. Try again.")
    if isinstance(error.orig, sqlite3.OperationalError):
        meaning = _meaning_on_sqlite(error.orig)
        return error if meaning is error.orig else meaning
    if error.connection_invalidated or (isinstance(error, sa.exc.OperationalError) and state is None):
        log.warning("database.unavailable", reason=text.partition("\n")[0])
        return _Disconnected("unavailable", "The database is not available. Try again later.")
    if state == _READ_ONLY or (state == _NOT_SUPPORTED and "recovery" in text):
        log.warning("database.unavailable", reason=text.partition("\n")[0], sqlstate=state)
        return _ReadOnly("unavailable", "The database takes no changes at the moment. Try again later.")
    if state and state.startswith(_UNAVAILABLE_CLASSES):
        log.warning("database.unavailable", reason=text.partition("\n")[0], sqlstate=state)
        return ServiceError("unavailable", "The database is not available. Try again later.")
    return error


def _meaning_on_sqlite(error: sqlite3.OperationalError) -> Exception:
    text = str(error)
    if "locked" in text or "busy" in text:
        return _Locked("unavailable", "The database is busy. Try again.")
    if "full" in text or "unable to open" in text or "disk I/O" in text or "readonly" in text:
        log.error("database.unavailable", reason=text)
        return ServiceError("unavailable", "The database is not available. Try again later.")
    return error
