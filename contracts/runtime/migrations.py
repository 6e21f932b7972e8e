"""Schema migrations: Alembic per service, its environment here, its versions in ``services/<name>/migrations/versions``.

A migration run holds a lock, so that two at once are safe: the second finds nothing left to do. ``serve`` never migrates;
it waits until the schema is at the version it was written for, or a later one.

Alembic is imported by those who migrate, not by every process that starts: that takes a quarter of a second of a processor.
"""

import fcntl
import importlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

from contracts.errors import CannotStart, ServiceError
from contracts.runtime.data import search, tables
from contracts.runtime.data.database import normalised, refuse_other_encodings
from contracts.runtime.monitoring import observe

if TYPE_CHECKING:
    from alembic.config import Config

log = observe.logger(__name__)

_POSTGRES_LOCK = 0x636F756E  # "coun": one migration at a time per database
_ENVIRONMENT = Path(__file__).parent / "migration_environment"

MOVING = "countersign_move"
"""A table that is there while a database is being moved here (``deploy/moving``): only a part of its rows is."""

_HALF_MOVED = (
    "a database is being moved into this one, and is not whole: run countersign move again, with the same target"
)


def upgrade(service: str, database_url: str, revision: str = "head", *, moving: bool = False) -> None:
    """Bring the database of ``services.<service>`` to ``revision``. Creates an SQLite file when there is none.

    A schema that is later than this code is left as it is: after a rollback the older version migrates again and starts.
    Raises CannotStart where a move into this database is not finished, unless it is that move which asks (``moving``).
    """
    from alembic import command

    def run(config: "Config") -> None:
        connection = config.attributes["connection"]
        if not moving and _is_half_moved(connection):
            raise CannotStart(_HALF_MOVED)
        current = revision_of(connection)
        connection.rollback()  # Alembic commits only transactions that it has begun itself
        if _is_later(current, revisions(service)):
            log.warning("migrate.schema_is_later", service=service, schema=current)
            return
        command.upgrade(config, revision)

    _run(service, database_url, run)


def downgrade(service: str, database_url: str, revision: str = "base") -> None:
    """Take the database back to ``revision``."""
    from alembic import command

    _run(service, database_url, lambda config: command.downgrade(config, revision))


def pending(service: str, database_url: str) -> str | None:
    """Say what is wrong with the schema, or None when it is at this code's version or at one that this code does not know.

    A later version is fine: migrations only expand while old code may still run.
    """
    versions = revisions(service)
    with _engine(database_url) as engine, engine.connect() as connection:
        if _is_half_moved(connection):
            return _HALF_MOVED
        current = revision_of(connection)
    if current == versions[-1] or _is_later(current, versions):
        return None
    if current is None:
        return f"the schema is empty, not at {versions[-1]}: run migrate"
    return f"the schema is at {current}, not at {versions[-1]}: run migrate"


def revisions(service: str) -> list[str]:
    """Those that this code knows, the first one first. A revision's file is called by it: ``0001_start.py``."""
    return sorted(path.name.partition("_")[0] for path in _versions(service).glob("[0-9]*_*.py"))


def revision_of(connection: Connection) -> str | None:
    """The database's, None when it is empty."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return revision


def _is_half_moved(connection: Connection) -> bool:
    return sa.inspect(connection).has_table(MOVING)


def _is_later(current: str | None, versions: list[str]) -> bool:
    """A revision that this code does not know was made by a version after it."""
    return current is not None and current not in versions


def differences(service: str, database_url: str) -> list[Any]:
    """List how the migrated schema differs from ``services.<service>.models``; empty when they agree."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    models = importlib.import_module(f"services.{service}.models")
    expected = sa.MetaData()
    for source in (tables.runtime_metadata, models.Base.metadata):
        for table in source.tables.values():
            table.to_metadata(expected)
    with _engine(database_url) as engine, engine.connect() as connection:
        if connection.dialect.name != "postgresql":
            for table in expected.tables.values():
                table.indexes -= {index for index in table.indexes if search.is_for_postgresql(index)}
        options = {"compare_type": True, "include_object": _comparable(connection)}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), expected))


def check_trigrams(service: str, database_url: str) -> None:
    """Raises search.NoTrigrams when the service's lists need pg_trgm and this database neither has it nor may get it."""
    models = importlib.import_module(f"services.{service}.models")
    indexes = [index for table in models.Base.metadata.tables.values() for index in table.indexes]
    if any(search.is_search_index(index) for index in indexes):
        with _engine(database_url) as engine, engine.connect() as connection, connection.begin() as transaction:
            search.require_trigrams(connection)
            transaction.rollback()


@contextmanager
def alone(database_url: str | sa.URL, *, patience: float = math.inf) -> Iterator[None]:
    """Nobody else migrates this database, or does anything else under this lock, while the block runs. Raises ServiceError
    when somebody else has the lock for longer than ``patience`` seconds."""
    with _engine(database_url) as engine, engine.connect() as connection, _alone(connection, patience):
        yield


def _comparable(connection: Connection) -> Callable[..., bool]:
    """FTS5 tables and what SQLite keeps of them are in no model."""
    virtual: list[str] = []
    if connection.dialect.name == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
        virtual = list(connection.scalars(sa.text(query)))

    def compared(_item: Any, name: str | None, kind: str, _reflected: bool, _other: Any) -> bool:
        return kind != "table" or not any(name == table or str(name).startswith(f"{table}_") for table in virtual)

    return compared


def _run(service: str, database_url: str, run: "Callable[[Config], None]") -> None:
    with _engine(database_url) as engine, engine.connect() as connection, _alone(connection):
        config = _config(service)
        config.attributes["connection"] = connection
        run(config)


def _config(service: str) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_ENVIRONMENT))
    config.set_main_option("version_locations", str(_versions(service)))
    config.set_main_option("path_separator", "newline")
    return config


def _versions(service: str) -> Path:
    package = importlib.import_module(f"services.{service}")
    folder = Path(package.__path__[0]) / "migrations" / "versions"
    if not folder.is_dir():
        raise ServiceError("internal", f"services/{service}/migrations/versions does not exist")
    return folder


@contextmanager
def _engine(database_url: str | sa.URL) -> Iterator[Engine]:
    url = normalised(database_url)
    if url.database and url.get_backend_name() == "sqlite":
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, poolclass=NullPool)
    if url.get_backend_name() == "postgresql":
        refuse_other_encodings(engine)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _alone(connection: Connection, patience: float = math.inf) -> Iterator[None]:
    end = time.monotonic() + patience
    if connection.dialect.name == "postgresql":
        # Asked for again and again: whoever waits within a statement keeps a snapshot, and CREATE INDEX CONCURRENTLY would
        # wait for that one while that one waits for the lock.
        while not connection.scalar(sa.text("SELECT pg_try_advisory_lock(:key)"), {"key": _POSTGRES_LOCK}):
            connection.commit()
            _wait_for_lock(end)
        connection.commit()
        try:
            yield
        finally:
            connection.rollback()
            connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), {"key": _POSTGRES_LOCK})
            connection.commit()
        return
    database = connection.engine.url.database
    if not database or database == ":memory:":
        yield
        return
    with Path(f"{database}.migrating").open("w") as file:
        while not _locked(file):
            _wait_for_lock(end)
        yield


def _locked(file: IO[str]) -> bool:
    """Asked for again and again, too: in a worker, a thread that waits for a file's lock would be all that it does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_for_lock(end: float) -> None:
    if time.monotonic() >= end:
        raise ServiceError(
            "unavailable", "another process is migrating the database, or checking whether it was restored"
        )
    time.sleep(0.2)
