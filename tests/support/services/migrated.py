"""A service's schema in an empty database, as its migrations make it: they run once for each kind, then the result is copied."""

import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psycopg
import sqlalchemy as sa

from contracts.runtime import migrations
from contracts.runtime.data.database import Database
from tests.support.servers.postgres import BINARIES, PrivatePostgres


def migrated(service: str, database_url: str) -> None:
    """Bring a database to the service's latest schema. For tests of something else than migrations."""
    if _COPIES.get(database_url) == service:
        return
    url = sa.make_url(database_url)
    if url.get_backend_name() != "sqlite":
        _migrate_postgresql(service, url)
    elif url.database and not Path(url.database).exists():
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        Path(url.database).write_bytes(_sqlite_file(service))
    else:
        migrations.upgrade(service, database_url)


def migrated_in(cluster: PrivatePostgres, service: str) -> str:
    """The URL of a new database of a cluster, with the service's schema: a copy of the first one, which takes half of what its
    statements take."""
    template = f"migrated_{service}"
    if (service, cluster.port) not in _TEMPLATES:
        migrated(service, cluster.new_database(template))
        _TEMPLATES.add((service, cluster.port))
    url = cluster.new_database(template=template)
    _COPIES[url] = service
    return url


def migrated_database(service: str, url: str) -> Iterator[Database]:
    """The same database, open, for a fixture or for the one pass of a loop."""
    migrated(service, url)
    database = Database(url, pool_size=1)
    yield database
    database.dispose()


def _migrate_postgresql(service: str, url: sa.URL) -> None:
    with psycopg.connect(_libpq(url), autocommit=True) as connection:
        (version,) = connection.execute("SELECT to_regclass('alembic_version')").fetchone() or (None,)
        statements = _STATEMENTS.get((service, url.port))
        if version is None and statements is not None:
            connection.execute(statements)
            return
    migrations.upgrade(service, url.render_as_string(hide_password=False))
    if version is None:
        _STATEMENTS[service, url.port] = _dumped(url)


_STATEMENTS: dict[tuple[str, int | None], bytes] = {}
"""What makes a service's schema, by service and cluster."""
_TEMPLATES: set[tuple[str, int]] = set()
"""Of which services a cluster, by its port, has a database to be copied."""
_COPIES: dict[str, str] = {}
"""The service by the URL of each copy: what is asked for then is there."""


@cache
def _sqlite_file(service: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "migrated.sqlite"
        migrations.upgrade(service, f"sqlite:///{path}")
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


def _dumped(url: sa.URL) -> bytes:
    """All of a database as statements that one message to the server may hold."""
    program = BINARIES / "pg_dump"
    command = [str(program), "--no-owner", "--inserts", _libpq(url)]
    dump = subprocess.run(command, capture_output=True, check=True).stdout
    # Lines with a backslash are meant for psql.
    return b"\n".join(line for line in dump.splitlines() if not line.startswith(b"\\"))


def _libpq(url: sa.URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
