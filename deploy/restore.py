"""``python -m deploy.restore [--replace] DIR``: put a backup of ``deploy.backup`` back, with the suite stopped.

It needs the environment of ``deploy.backup``. Nothing is changed before the backup's digests were checked and every place
turned out to be empty; ``--replace`` lets it write over what is there. Then: the databases, their migrations to this version,
the files. Every database begins a new life: the other services recognise it, and no id is given out again that may have been
known outside. It can be done again at any time, also when it was cut off.
"""

import argparse
import json
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.runtime import migrations
from contracts.runtime.data.database import normalised
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import heartbeats
from contracts.runtime.process import HEARTBEAT_EVERY, HEARTBEAT_MISSED_AFTER
from deploy import manifest
from deploy.backup import NOT_KEPT, run_postgres
from deploy.manifest import FILES, LISTED, ListedFile, Manifest, Places, Unsuitable, connected, tables_of
from deploy.reconcile import begin_again

ALIVE = HEARTBEAT_MISSED_AFTER
LISTEN_SECONDS = 2 * HEARTBEAT_EVERY.total_seconds()


def main(arguments: list[str] | None = None, *, program: str = "python -m deploy.restore") -> int:
    parser = argparse.ArgumentParser(prog=program, description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--replace", action="store_true", help="write over databases and files that are there")
    chosen = parser.parse_args(arguments)
    try:
        restored = restore(Places.from_environment(), chosen.folder, replace=chosen.replace)
    except Unsuitable as reason:
        print(f"Not restored: {reason}", file=sys.stderr)
        return 1
    except (ServiceError, OSError, sqlite3.Error, sa.exc.SQLAlchemyError) as error:
        print(f"Cut off, do it again: {error}", file=sys.stderr)
        return 1
    print("Restored. What is left to do:")
    print(f"  the same secrets as before: {', '.join(restored.secrets)}")
    print("  a broker with empty queues")
    print("  python -m services.<name> migrate for each service, then start them")
    print("  python -m deploy.reconcile, once they have caught up with each other: it says what is not as it was")
    return 0


def restore(places: Places, folder: Path, *, replace: bool = False) -> Manifest:
    """Raises Unsuitable before anything was changed."""
    backup = manifest.read(folder)
    sums = manifest.check_sums(folder)
    store = BlobStore.from_url(places.blobs)
    _check_places(places, backup, store, replace=replace)
    for service, copy in backup.databases.items():
        url = places.databases[service]
        (_restore_sqlite if copy.kind == "sqlite" else _restore_postgres)(url, folder / copy.file)
        migrations.upgrade(service, url)
        print(f"{service}: as at {copy.taken_at.isoformat()}")
    _restore_files(store, folder, backup, sums)
    begin_again(places, list(backup.databases))
    return backup


def _check_places(places: Places, backup: Manifest, store: BlobStore, *, replace: bool) -> None:
    for service, copy in backup.databases.items():
        url = normalised(places.databases[service])
        if (url.get_backend_name() == "sqlite") != (copy.kind == "sqlite"):
            raise Unsuitable(f"the backup of {service} is of {copy.kind}, the database is not")
        if copy.kind == "sqlite" and not Path(url.database or "").exists():
            continue
        with connected(places.databases[service]) as connection:
            if tables_of(connection) and not replace:
                raise Unsuitable(f"the database of {service} is not empty: --replace writes over it")
    if running := _running(places):
        raise Unsuitable(f"still running, stop it first: {', '.join(running)}")
    if not replace and any(not file.key.startswith(NOT_KEPT) for file in store.everything()):
        raise Unsuitable("the file store is not empty: --replace keeps what is there and adds what is missing")


def _running(places: Places) -> list[str]:
    """The services whose background process writes its heartbeat. Waits for another one only where the last is fresh."""
    before = _heartbeats(places)
    if not any(datetime.now(UTC) - at < ALIVE for at in before.values()):
        return []
    time.sleep(LISTEN_SECONDS)
    return [service for service, at in _heartbeats(places).items() if at != before.get(service)]


def _heartbeats(places: Places) -> dict[str, datetime]:
    beats: dict[str, datetime] = {}
    for service, url in places.databases.items():
        path = normalised(url)
        if path.get_backend_name() == "sqlite" and not Path(path.database or "").exists():
            continue
        with connected(url) as connection:
            if heartbeats.name in tables_of(connection):
                query = sa.select(heartbeats.c.at).where(heartbeats.c.name == service)
                if (at := connection.scalar(query)) is not None:
                    beats[service] = at
    return beats


def _restore_sqlite(url: str, source: Path) -> None:
    """Whole or not at all. The log of the database that was there goes first: it must not be taken for one of the new file."""
    path = Path(normalised(url).database or "")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.restoring")
    shutil.copyfile(source, temporary)
    temporary.chmod(0o600)
    manifest.sync(temporary)
    for log in ("-wal", "-shm"):
        Path(f"{path}{log}").unlink(missing_ok=True)
    temporary.rename(path)
    manifest.sync(path.parent)


def _restore_postgres(url: str, source: Path) -> None:
    """pg_restore, in one transaction, into a database that was emptied before."""
    with connected(url) as connection, connection.begin():
        for statement in connection.scalars(_EMPTY).all():
            connection.execute(sa.text(statement))
    options = ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
    run_postgres("pg_restore", normalised(url), *options, str(source))


_EMPTY = sa.text(
    "SELECT format('DROP %s IF EXISTS %s CASCADE', kind, name) FROM ("
    " SELECT 'TABLE' AS kind, oid::regclass::text AS name, oid, 'pg_class'::regclass AS catalog FROM pg_class"
    "  WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace"
    " UNION ALL SELECT 'FUNCTION', oid::regprocedure::text, oid, 'pg_proc'::regclass FROM pg_proc"
    "  WHERE pronamespace = current_schema()::regnamespace) made"
    " WHERE NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = made.catalog AND objid = made.oid AND deptype = 'e')"
    " ORDER BY kind DESC"
)
"""What is ours in the schema: not what belongs to an extension, which a superuser may have put there."""


def _restore_files(store: BlobStore, folder: Path, backup: Manifest, sums: dict[str, str]) -> None:
    there = {file.key: file.size for file in store.everything()}
    if backup.files.kind == "listed":
        missing = [file.key for file in _listed_files(folder) if there.get(file.key) != file.size]
        for key in missing:
            print(f"not in the file store as it was: {key}")
        print(f"files: {backup.files.count} were listed, {len(missing)} are missing or of another size")
        return
    prefix = f"{FILES}/"
    added = 0
    for name in (name for name in sums if name.startswith(prefix)):
        path, key = folder / name, name.removeprefix(prefix)
        if there.get(key) == path.stat().st_size and manifest.digest_of(store.stream(key)) == sums[name]:
            continue
        store.replace(key, path.read_bytes(), "application/octet-stream")
        added += 1
    print(f"files: {added} put back, {backup.files.count - added} were there")


def _listed_files(folder: Path) -> Iterator[ListedFile]:
    return (ListedFile.model_validate(entry) for entry in json.loads((folder / LISTED).read_bytes()))


if __name__ == "__main__":
    sys.exit(main())
