"""``python -m deploy.backup [--list-files] DIR``: databases and files of a running suite into a new folder DIR.

It needs the services' ``<SERVICE>_DATABASE_URL`` and ``BLOB_URL``; where none of them is set, it takes those of ``make up``
in VAR_DIR. The suite goes on meanwhile. All databases are seen at one moment: for some milliseconds, in which each gets a
snapshot, nothing is told or taken in any of them, so that no service knows of what another one has not done. Then they are
written out one after the other, then the files: one that no row names does no harm, a row whose file is missing does.
``--list-files`` leaves the files where they are, for a bucket with versions or a backup of its own, and writes down only
which there are.

Everything is written to ``DIR.partial``, which gets its name when it is complete. Secrets are not in it; the manifest names
them.
"""

import argparse
import contextlib
import importlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection

from contracts.blobs import INCOMING
from contracts.errors import ServiceError
from contracts.runtime import migrations
from contracts.runtime.data.database import normalised
from contracts.runtime.data.files.blobstore import BlobMissing, BlobStore, Stored
from contracts.runtime.data.tables import event_stream, inbox, outbox
from contracts.runtime.monitoring import build
from contracts.runtime.restored import identities
from contracts.runtime.restored.high_water import MARKS
from contracts.runtime.settings import is_secret
from deploy import manifest
from deploy.manifest import (
    DATABASES,
    FILES,
    LISTED,
    MANIFEST,
    DatabaseCopy,
    FilesCopy,
    ListedFile,
    Manifest,
    Places,
    Unsuitable,
    connected,
    tables_of,
    write,
    write_sums,
)
from deploy.services import ROOT, SERVICES

NOT_KEPT = (INCOMING, MARKS)
"""Prefixes of what no row names: uploads on their way, and the marks of the store, which must not be put back."""

LONGEST_WAIT = 20
"""Seconds for the transactions that are under way."""


def main(arguments: list[str] | None = None, *, program: str = "python -m deploy.backup") -> int:
    parser = argparse.ArgumentParser(prog=program, description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument(
        "--list-files", action="store_true", help="do not copy the files, only write down which there are"
    )
    chosen = parser.parse_args(arguments)
    try:
        manifest = backup(Places.from_environment(), chosen.folder, copy_files=not chosen.list_files)
    except (Unsuitable, ServiceError, OSError, sqlite3.Error, sa.exc.SQLAlchemyError) as error:
        print(f"No backup was made: {error}", file=sys.stderr)
        return 1
    files = f"{manifest.files.count} files {manifest.files.kind} ({manifest.files.bytes} bytes)"
    print(f"{chosen.folder}: {len(manifest.databases)} databases, {files}")
    for service, copy in manifest.databases.items():
        print(f"  {service}: as at {copy.taken_at.isoformat()}, schema {copy.revision}, {sum(copy.rows.values())} rows")
    print(f"Keep apart from it, nothing opens without them: {', '.join(manifest.secrets)}")
    return 0


def backup(places: Places, folder: Path, *, copy_files: bool = True) -> Manifest:
    """Write a backup to ``folder``, which must not be there yet. Raises Unsuitable, or what a database or the store raises."""
    if folder.exists():
        raise Unsuitable(f"{folder} is there already")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    (partial / DATABASES).mkdir()
    began_at = datetime.now(UTC)
    with contextlib.ExitStack() as stack:
        with contextlib.ExitStack() as standing_still:
            for service, url in places.databases.items():
                standing_still.enter_context(_standstill(service, url))
            snapshots = {service: stack.enter_context(_snapshot(url)) for service, url in places.databases.items()}
        databases = {service: snapshot.write(partial, service) for service, snapshot in snapshots.items()}
    files = (_copy_files if copy_files else _list_files)(places.blobs, partial)
    manifest = Manifest(
        version=_version(),
        began_at=began_at,
        finished_at=datetime.now(UTC),
        databases=databases,
        files=files,
        secrets=secret_names(),
    )
    write(partial / MANIFEST, (manifest.model_dump_json(indent=2) + "\n").encode())
    write_sums(partial)
    _sync(partial)
    partial.rename(folder)
    _sync(folder.parent, deep=False)
    return manifest


class _Snapshot(Protocol):
    def write(self, folder: Path, service: str) -> DatabaseCopy: ...


@contextlib.contextmanager
def _standstill(service: str, url: str) -> Iterator[None]:
    """Nothing is told or taken in a database while the block runs: whoever wants to, waits.

    What one service took, another one had told before. With all databases held, no snapshot is ahead of another. Raises
    Unsuitable where a transaction that is under way does not end.
    """
    parsed = normalised(url)
    opening: contextlib.AbstractContextManager[Any] = (
        _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else connected(url)
    )
    with opening as database:
        try:
            _hold(database)
        except (sqlite3.OperationalError, sa.exc.OperationalError) as error:
            raise Unsuitable(f"the database of {service} did not stand still, try again: {error}") from error
        yield


def _hold(database: sqlite3.Connection | Connection) -> None:
    """Until the transaction that this begins is rolled back."""
    if isinstance(database, sqlite3.Connection):
        database.execute("BEGIN IMMEDIATE")
        return
    database.exec_driver_sql(f"SET LOCAL lock_timeout = '{LONGEST_WAIT} s'")
    # In the order in which whoever handles an event writes to them.
    if tables := [table.name for table in (inbox, outbox) if table.name in tables_of(database)]:
        database.exec_driver_sql(f"LOCK TABLE {', '.join(tables)} IN SHARE MODE")


@contextlib.contextmanager
def _snapshot(url: str) -> Iterator[_Snapshot]:
    parsed = normalised(url)
    if parsed.get_backend_name() == "sqlite":
        with _sqlite(parsed) as source:
            # A copy that begins within a transaction shows what the transaction sees.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield _SqliteSnapshot(source, datetime.now(UTC))
    else:
        with connected(url) as connection:
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            name = connection.execute(sa.text("SELECT pg_export_snapshot()")).scalar_one()
            connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            yield _PostgresSnapshot(parsed, connection, name, datetime.now(UTC))


@contextlib.contextmanager
def _sqlite(url: URL) -> Iterator[sqlite3.Connection]:
    """A connection of which the transaction, if there is one, is rolled back at the end."""
    if not url.database or not Path(url.database).is_file():
        raise Unsuitable(f"there is no database {url.database}")
    with contextlib.closing(
        sqlite3.connect(f"file:{url.database}?mode=rw", uri=True, timeout=LONGEST_WAIT)
    ) as connection:
        connection.isolation_level = None
        yield connection


class _SqliteSnapshot:
    def __init__(self, source: sqlite3.Connection, taken_at: datetime) -> None:
        self._source, self._taken_at = source, taken_at

    def write(self, folder: Path, service: str) -> DatabaseCopy:
        """By SQLite's own backup call, in one go, as one file without a log beside it."""
        name = f"{DATABASES}/{service}.sqlite"
        with contextlib.closing(sqlite3.connect(folder / name)) as target:
            self._source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
            (verdict,) = target.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise Unsuitable(f"the database of {service} is damaged: {verdict}")
        with connected(f"sqlite:///{folder / name}") as connection:
            return _describe(connection, name, self._taken_at)


class _PostgresSnapshot:
    def __init__(self, url: URL, connection: Connection, name: str, taken_at: datetime) -> None:
        self._url, self._connection, self._name, self._taken_at = url, connection, name, taken_at

    def write(self, folder: Path, service: str) -> DatabaseCopy:
        """By pg_dump, in its custom format, of the snapshot that was taken with all the others."""
        name = f"{DATABASES}/{service}.dump"
        options = ["--format=custom", "--no-owner", "--no-privileges", "--no-comments", f"--snapshot={self._name}"]
        run_postgres("pg_dump", self._url, *options, f"--file={folder / name}")
        return _describe(self._connection, name, self._taken_at)


def run_postgres(program: str, url: URL, *arguments: str) -> None:
    """A program of PostgreSQL, found on PATH, with the database of ``url``. Raises Unsuitable with what it said."""
    address = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    password = {"PGPASSWORD": str(url.password)} if url.password is not None else {}
    try:
        done = subprocess.run(
            [program, *arguments, f"--dbname={address}"],
            env={**os.environ, **password},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise Unsuitable(f"{program} is not on PATH (Debian: postgresql-client)") from None
    if done.returncode:
        raise Unsuitable(f"{program} failed: {done.stderr.strip()}")


def _describe(connection: Connection, name: str, taken_at: datetime) -> DatabaseCopy:
    count = "SELECT count(*) FROM {}"
    tables = tables_of(connection)
    quote = connection.dialect.identifier_preparer.quote
    return DatabaseCopy(
        file=name,
        kind="sqlite" if connection.dialect.name == "sqlite" else "postgresql",
        taken_at=taken_at,
        revision=migrations.revision_of(connection),
        epoch=connection.scalar(sa.select(event_stream.c.epoch)) if event_stream.name in tables else None,
        given=identities.highest_numbers(connection),
        rows={table: connection.scalar(sa.text(count.format(quote(table)))) or 0 for table in tables},
    )


def _files_to_keep(store: BlobStore) -> Iterator[Stored]:
    return (file for file in store.everything() if not file.key.startswith(NOT_KEPT))


def _copy_files(url: str, folder: Path) -> FilesCopy:
    """Into ``files/``: by a second name for the same bytes, which never change, where the file system has that; else copied."""
    store, taken_at = BlobStore.from_url(url), datetime.now(UTC)
    root = Path(unquote(urlsplit(url).path)) if urlsplit(url).scheme == "file" else None
    count = size = 0
    (folder / FILES).mkdir()
    for file in _files_to_keep(store):
        target = folder / FILES / file.key
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _copy_file(store, root, file.key, target)
        except (BlobMissing, FileNotFoundError):
            continue  # it was removed meanwhile
        count, size = count + 1, size + file.size
    return FilesCopy(kind="copied", taken_at=taken_at, count=count, bytes=size)


def _copy_file(store: BlobStore, root: Path | None, key: str, target: Path) -> None:
    if root is not None:
        try:
            target.hardlink_to(root / key)
            return
        except FileNotFoundError:
            raise
        except OSError:
            pass  # another file system, or one that has no second names
    chunks = store.stream(key)
    with target.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _list_files(url: str, folder: Path) -> FilesCopy:
    taken_at = datetime.now(UTC)
    files = [
        ListedFile(key=file.key, size=file.size, etag=file.etag) for file in _files_to_keep(BlobStore.from_url(url))
    ]
    lines = ",\n".join(file.model_dump_json() for file in files)
    write(folder / LISTED, f"[\n{lines}\n]\n".encode())
    return FilesCopy(kind="listed", taken_at=taken_at, count=len(files), bytes=sum(file.size for file in files))


def secret_names() -> list[str]:
    """The settings of all services that are secret, and where the seal's key is."""
    names = {"CERTIFICATE_DIR", "SIGNING_PKCS12_FILE"}
    for service in SERVICES:
        for name, field in importlib.import_module(f"services.{service}.settings").Settings.model_fields.items():
            if is_secret(field.annotation):
                names.add(str(field.validation_alias or name).upper())
    return sorted(names)


def _version() -> str:
    """As git describes a checkout, else the version of the suite."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--tags"]
    if (ROOT / ".git").exists():
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return build.version()


def _sync(folder: Path, *, deep: bool = True) -> None:
    """Names and bytes onto the disk."""
    for path in [folder, *(folder.rglob("*") if deep else ())]:
        manifest.sync(path)


if __name__ == "__main__":
    sys.exit(main())
