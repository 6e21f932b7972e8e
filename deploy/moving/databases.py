"""The two kinds of database that rows are moved between: held alone, read in order of the primary key, written in portions.

``holding`` opens a source: nobody else uses it, and nobody gets at it until it is let go. ``Target`` is written to: how far a
move has come is kept in a table of the target itself (``migrations.MOVING``), in the transaction of each portion.
"""

import contextlib
import json
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection
from sqlalchemy.pool import NullPool

from contracts.runtime import migrations
from contracts.runtime.data.database import normalised, refuse_other_encodings
from contracts.runtime.operations.checking import OLDEST_POSTGRESQL
from contracts.runtime.restored import identities
from deploy.manifest import Unsuitable, tables_of
from deploy.moving.values import Column, for_postgresql, for_sqlite

PATIENCE = 3.0
"""Seconds for connections of others to go away: those of a process that has just ended, or of our own."""

_AT_ONCE = 500
"""Rows that are asked PostgreSQL for at once."""


@dataclass(frozen=True)
class Table:
    """A table: its columns in the order of the model, and which of them are its primary key."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...]

    @classmethod
    def of(cls, table: sa.Table) -> "Table":
        """Describe a table of the models, or of the runtime."""
        columns = tuple(map(Column.of, table.columns))
        names = [column.name for column in columns]
        return cls(table.name, columns, tuple(names.index(column.name) for column in table.primary_key.columns))

    def key_of(self, row: Sequence[Any]) -> list[Any]:
        """Return the primary key of a row."""
        return [row[place] for place in self.key]

    def place_of(self, row: Sequence[Any]) -> str:
        """Name a row for an operator, such as ``submissions with id 7``."""
        return f"{self.name} with " + ", ".join(f"{self.columns[place].name} {row[place]!r}" for place in self.key)


class Opened:
    """A connection to a database of a service."""

    kind = ""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def driver(self) -> Any:
        """The connection as the driver has it."""
        return self.connection.connection.driver_connection

    def stored(self, table: Table, after: Sequence[Any] | None = None) -> Iterator[Sequence[Any]]:
        """Yield the rows as they are stored, in order of the primary key, by bytes where it is a text; only those after this
        key."""
        raise NotImplementedError

    def revision(self) -> str | None:
        """Return the schema's."""
        return migrations.revision_of(self.connection)

    def layout(self) -> dict[str, set[str]]:
        """Return the names of the columns of each table that is a service's, by the table's name."""
        inspector = sa.inspect(self.connection)
        names = set(tables_of(self.connection)) - {"alembic_version", migrations.MOVING} - self._search_tables()
        return {name: {column["name"] for column in inspector.get_columns(name)} for name in names}

    def dangling(self) -> Iterator[str]:
        """Yield rows that refer to others which are not there."""
        yield from ()

    def _search_tables(self) -> set[str]:
        return set()

    def _columns(self, table: Table) -> str:
        return ", ".join(f'"{column.name}"' for column in table.columns)

    def insert(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows of what ``Column.normalised`` returned. Raises Unsuitable, naming the row, when the database refuses one."""
        raise NotImplementedError

    def empty(self, tables: Sequence[Table]) -> None:
        """Remove all rows; ``tables`` in the order in which they refer to those before them."""
        raise NotImplementedError


class OnSqlite(Opened):
    kind = "SQLite"

    def stored(self, table: Table, after: Sequence[Any] | None = None) -> Iterator[Sequence[Any]]:
        keys = ", ".join(f'"{table.columns[place].name}"' for place in table.key)
        places = ", ".join("?" * len(table.key))
        where = f"WHERE ({keys}) > ({places})" if after is not None else ""
        statement = f'SELECT {self._columns(table)} FROM "{table.name}" {where} ORDER BY {keys}'  # noqa: S608 - names of models
        yield from self.driver.execute(statement, after or ())

    def dangling(self) -> Iterator[str]:
        for table, row, other, _ in self.driver.execute("PRAGMA foreign_key_check"):
            yield f"{table}, row {row}: it names one of {other} that is not there"

    def _search_tables(self) -> set[str]:
        statement = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
        virtual = [name for (name,) in self.driver.execute(statement)]
        return {
            name
            for name in tables_of(self.connection)
            if any(f"{name}_".startswith(f"{virtual_table}_") for virtual_table in virtual)
        }

    def insert(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        places = ", ".join("?" * len(table.columns))
        statement = f'INSERT INTO "{table.name}" ({self._columns(table)}) VALUES ({places})'  # noqa: S608 - names of models
        kinds = [column.kind for column in table.columns]
        for row in rows:
            try:
                self.driver.execute(statement, [for_sqlite(*pair) for pair in zip(kinds, row, strict=True)])
            except sqlite3.IntegrityError as error:
                raise Unsuitable(f"{table.place_of(row)} is refused by SQLite: {error}") from error

    def empty(self, tables: Sequence[Table]) -> None:
        for table in reversed(tables):
            self.driver.execute(f'DELETE FROM "{table.name}"')  # noqa: S608 - names of models


class OnPostgresql(Opened):
    kind = "PostgreSQL"

    def stored(self, table: Table, after: Sequence[Any] | None = None) -> Iterator[Sequence[Any]]:
        keys = [self._compared(table.columns[place]) for place in table.key]
        where = f"WHERE ({', '.join(keys)}) > ({', '.join(['%s'] * len(keys))})" if after is not None else ""
        chosen = ", ".join(self._read(column) for column in table.columns)
        statement = f'SELECT {chosen} FROM "{table.name}" {where} ORDER BY {", ".join(keys)}'  # noqa: S608 - names of models
        with self.driver.cursor(name=f"move_{table.name}") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(statement, after or ())
            yield from cursor

    @staticmethod
    def _compared(column: Column) -> str:
        return f'"{column.name}" COLLATE "C"' if column.kind == "text" else f'"{column.name}"'

    @staticmethod
    def _read(column: Column) -> str:
        if column.kind == "moment":
            return f"(\"{column.name}\" AT TIME ZONE 'UTC')::text"
        return f'"{column.name}"::text' if column.kind == "json" else f'"{column.name}"'

    def insert(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        try:
            with (
                self.driver.cursor() as cursor,
                cursor.copy(f'COPY "{table.name}" ({self._columns(table)}) FROM STDIN') as copy,
            ):
                for row in rows:
                    copy.write_row([for_postgresql(value) for value in row])
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded) as error:
            raise Unsuitable(self._refused(table, rows, error)) from error

    @staticmethod
    def _refused(table: Table, rows: Sequence[Sequence[Any]], error: psycopg.Error) -> str:
        """Name the row that PostgreSQL counts as a line of the COPY."""
        match = re.search(r"^COPY [^\n]*?, line (\d+)", error.diag.context or "", re.MULTILINE)
        place = table.place_of(rows[int(match.group(1)) - 1]) if match else f"a row of {table.name}"
        return f"{place} is refused by PostgreSQL: {error.diag.message_primary}"

    def empty(self, tables: Sequence[Table]) -> None:
        names = ", ".join(f'"{table.name}"' for table in tables)
        self.driver.execute(f"TRUNCATE {names}")


@contextlib.contextmanager
def holding(url: str, tables: Sequence[Table]) -> Iterator[Opened]:
    """Open a source and keep everybody else out, in one transaction that sees one moment and changes nothing. Raises Unsuitable
    when somebody uses it."""
    parsed = normalised(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise Unsuitable(f"there is no database {parsed.database}")
    with _unless_locked(_IN_USE), _connected(parsed) as opened, _rolled_back(opened):
        if isinstance(opened, OnPostgresql):
            _must_be_unused(opened)
            existing_tables = set(tables_of(opened.connection))
            _lock(opened, [table for table in tables if table.name in existing_tables])
        yield opened


@contextlib.contextmanager
def _rolled_back(opened: Opened) -> Iterator[None]:
    transaction = opened.connection.begin()
    try:
        yield
    finally:
        transaction.rollback()


_IN_USE = "a process has it open: stop the service, serve and background, and whatever else looks into it"
_TARGET_IN_USE = "a process has the target open: stop it first"


@contextlib.contextmanager
def _unless_locked(words: str) -> Iterator[None]:
    """Of SQLite: whoever has read once keeps a lock for as long as it has the database open."""
    try:
        yield
    except (sqlite3.OperationalError, sa.exc.OperationalError) as error:
        if "database is locked" not in str(error):
            raise
        raise Unsuitable(words) from error


_OTHERS = sa.text(
    "SELECT DISTINCT coalesce(usename, '?') || ' at ' || coalesce(client_addr::text, 'this machine')"
    " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL"
    " AND coalesce(backend_type, 'client backend') IN ('client backend', 'walsender') ORDER BY 1"
)
"""Of a user's sessions other users see no kind; the server's own have no user."""


def _must_be_unused(opened: Opened) -> None:
    deadline = time.monotonic() + PATIENCE
    while connected := opened.connection.scalars(_OTHERS).all():
        if time.monotonic() > deadline:
            raise Unsuitable(f"others are connected to it, stop them first: {', '.join(map(str, connected))}")
        time.sleep(0.1)
        opened.connection.execute(sa.text("SELECT pg_stat_clear_snapshot()"))


def _lock(opened: Opened, tables: Sequence[Table]) -> None:
    """Whoever comes now may read; to write, they wait."""
    if not tables:
        return
    names = ", ".join(f'"{table.name}"' for table in tables)
    try:
        opened.driver.execute(f"LOCK TABLE {names} IN SHARE MODE NOWAIT")
    except psycopg.errors.LockNotAvailable as error:
        raise Unsuitable("somebody is writing to it: stop the service first") from error


class Target:
    """A database that is written to. ``state`` names what is being moved; ``opened`` reads it back."""

    def __init__(self, url: str) -> None:
        self.url = normalised(url)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Target":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def text(self) -> str:
        """The URL with its password, for programs."""
        return self.url.render_as_string(hide_password=False)

    @cached_property
    def opened(self) -> Opened:
        return self._stack.enter_context(_connected(self.url))

    def let_go(self) -> None:
        """Close the connection, so that others (migrations) can open theirs."""
        self._stack.close()
        self.__dict__.pop("opened", None)

    @property
    def is_there(self) -> bool:
        """Is there a database to be looked into? An SQLite file appears when it is written to."""
        return self.url.get_backend_name() != "sqlite" or Path(self.url.database or "").exists()

    def make_file(self) -> None:
        """Make an SQLite file that nobody else may read, with its folder."""
        if self.url.get_backend_name() == "sqlite":
            path = Path(self.url.database or "")
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)

    def tables(self) -> list[str]:
        """Return the names of all that are there."""
        with self.transaction():
            return tables_of(self.opened.connection)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction, committed at the end."""
        with _unless_locked(_TARGET_IN_USE), self.opened.connection.begin():
            yield self.opened.connection

    # --- how far it is

    def begin(self, **facts: str) -> None:
        """Say, in an empty target, that a move into it is under way: nothing starts on it from now on."""
        with self.transaction() as connection:
            connection.execute(sa.schema.CreateTable(_moving))
            for name, value in facts.items():
                _note(connection, name, value)

    def facts(self) -> dict[str, str]:
        """Return what is written down about the move; empty when none is under way."""
        with self.transaction() as connection:
            if not sa.inspect(connection).has_table(migrations.MOVING):
                return {}
            return {row.name: row.value for row in connection.execute(sa.select(_moving))}

    def begin_rows(self, tables: Sequence[Table], state: str) -> None:
        """Forget all rows, those that migrations made and those of an earlier try, and begin with the first."""
        with self.transaction() as connection:
            self.opened.empty(tables)
            connection.execute(_moving.delete().where(_moving.c.name.like(f"{_ROWS}%")))
            _note(connection, "state", state)

    def progress(self, table: Table) -> list[Any] | None:
        """Return the primary key of the last row that is there; None before the first."""
        with self.transaction() as connection:
            return _progress(connection, table)

    def add(self, table: Table, rows: Sequence[Sequence[Any]], after: Sequence[Any] | None) -> list[Any]:
        """Add a portion behind the key ``after``; returns the key of its last row. Raises Unsuitable when the target refuses a
        row, or when another process has added some meanwhile."""
        last = table.key_of(rows[-1])
        with self.transaction() as connection:
            if _progress(connection, table) != after:
                raise Unsuitable("another process moves into the same target")
            _note(connection, f"{_ROWS}{table.name}", json.dumps(last))
            self.opened.insert(table, rows)
        return last

    def go_on_above(self, numbers: Mapping[str, int]) -> None:
        """Let the numbers of each table go on where they were."""
        with self.transaction() as connection:
            identities.go_on_above(connection, numbers)

    def end(self) -> None:
        """Forget that there was a move: from now on it is a service's database."""
        with self.transaction() as connection:
            connection.execute(sa.schema.DropTable(_moving))


_ROWS = "rows of "
_moving = sa.Table(
    migrations.MOVING,
    sa.MetaData(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)


def _note(connection: Connection, name: str, value: str) -> None:
    connection.execute(_moving.delete().where(_moving.c.name == name))
    connection.execute(_moving.insert().values(name=name, value=value))


def _progress(connection: Connection, table: Table) -> list[Any] | None:
    value = connection.scalar(sa.select(_moving.c.value).where(_moving.c.name == f"{_ROWS}{table.name}"))
    return json.loads(value) if value is not None else None


@contextlib.contextmanager
def _connected(url: URL) -> Iterator[Opened]:
    """A connection to this database alone, as far as SQLite is concerned: whoever else has it open must close it first."""
    engine = sa.create_engine(
        url,
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"timeout": PATIENCE} if url.get_backend_name() == "sqlite" else {"connect_timeout": 10},
    )
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _open_sqlite, insert=True)  # before SQLAlchemy looks into it
        sa.event.listen(engine, "begin", _begin_sqlite)
        opened_class: type[Opened] = OnSqlite
    else:
        refuse_other_encodings(engine)
        sa.event.listen(engine, "connect", _open_postgresql)
        opened_class = OnPostgresql
    try:
        with engine.connect() as connection:
            yield opened_class(connection)
    finally:
        engine.dispose()


def _open_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None
    # What is no UTF-8 comes as lone surrogates, which are found to be unfit, row by row.
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    for pragma in ("locking_mode = EXCLUSIVE", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    driver: Any = connection.connection.driver_connection
    driver.execute("BEGIN IMMEDIATE")


def _open_postgresql(connection: psycopg.Connection, _record: Any) -> None:
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    version = connection.info.server_version
    if version < OLDEST_POSTGRESQL * 10_000:
        raise Unsuitable(f"PostgreSQL {version // 10_000} is too old: it must be {OLDEST_POSTGRESQL} or later")
    connection.autocommit = True
    for setting in (
        "datestyle = ISO",
        "timezone = 'UTC'",
        "statement_timeout = 0",
        "lock_timeout = '10s'",
        "idle_in_transaction_session_timeout = 0",
    ):
        connection.execute(f"SET {setting}")
    connection.autocommit = False
