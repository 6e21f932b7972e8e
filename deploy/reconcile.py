"""``python -m deploy.reconcile``: compare the services with each other and with the file store, after a restore.

It needs the environment of ``deploy.backup`` and reads the databases themselves; the suite may run. It says what it finds. What
can be mended by writing it down again it mends, unless ``--dry-run``: files that rendering sealed and does not know any more,
submissions that were removed for good and that a service has again.
What the services mend by themselves (missed events, seals that were under way) may still be going on: look again after a
minute. The status is 0 when nothing is left, 1 when something is, 2 when it could not be found out.

``--restored SERVICE...`` first begins a new life for databases that were put back in another way than by ``deploy.restore``:
with a tool of their own, as a snapshot of the machine. Do that before the suite is started.
"""

import argparse
import importlib
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import INCOMING
from contracts.errors import ServiceError
from contracts.evidence.statements import PREFIX as STATEMENTS
from contracts.runtime import migrations
from contracts.runtime.clock import now
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.operations import retrying
from contracts.runtime.restored import high_water
from contracts.runtime.restored.high_water import MARKS
from deploy.manifest import Places, Unsuitable
from deploy.services import SERVICES
from services.notifications import reconcile as notifications
from services.rendering import commands as rendering_commands
from services.rendering import reconcile as rendering
from services.submissions import reconcile as submissions
from services.submissions.commands import erasures
from services.submissions.models import SubmissionRow
from services.webhooks import reconcile as webhooks

YOUNG = timedelta(days=1)
"""A file may be written before the row that names it: younger ones are nobody's yet."""

_SUBMISSIONS = "submissions.submissions"
_KEY = re.compile(r'"key":\s*"([^"\\]+)"')
_AT_ONCE = 500


def main(arguments: list[str] | None = None, *, program: str = "python -m deploy.reconcile") -> int:
    parser = argparse.ArgumentParser(prog=program, description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--dry-run", action="store_true", help="change nothing")
    parser.add_argument("--remove-unnamed", action="store_true", help="remove files older than a day that no row names")
    parser.add_argument("--restored", nargs="+", metavar="SERVICE", choices=[*SERVICES, "all"], default=[])
    chosen = parser.parse_args(arguments)
    if chosen.dry_run and (chosen.restored or chosen.remove_unnamed):
        parser.error("--dry-run changes nothing")
    try:
        places = Places.from_environment()
        if chosen.restored:
            begin_again(places, list(SERVICES) if "all" in chosen.restored else chosen.restored)
        count = 0
        for finding in findings(places, mend=not chosen.dry_run, remove=chosen.remove_unnamed):
            print(finding)
            count += not finding.startswith("mended")
    except (Unsuitable, ServiceError, OSError, sqlite3.Error, sa.exc.SQLAlchemyError) as error:
        print(f"Not found out: {error}", file=sys.stderr)
        return 2
    print(f"{count} findings are left." if count else "The services agree with each other and with the files.")
    return 1 if count else 0


def begin_again(places: Places, services: list[str]) -> None:
    """A new life for these databases, whose ids go on above whatever their mark or another service knows of."""
    store = BlobStore.from_url(places.blobs)
    highest = highest_known(places)
    for service in services:
        with _opened(places, service) as database, migrations.alone(database.url):
            mark = high_water.read(store, service)
            floors = dict(mark.ceilings) if mark else {}
            for table, number in highest.get(service, {}).items():
                floors[table] = max(number, floors.get(table, 0))
            high_water.begin_again(service, database, floors)
            high_water.renew(service, database, store, mark)


def highest_known(places: Places) -> dict[str, dict[str, int]]:
    """The highest id of each table that any other service has heard of, by service and table."""
    highest: dict[str, dict[str, int]] = {}
    for by_table in _known(places).values():
        for name, ids in by_table.items():
            owner, _, table = name.partition(".")
            of_owner = highest.setdefault(owner, {})
            of_owner[table] = max(of_owner.get(table, 0), *ids, 0)
    return highest


def findings(places: Places, *, mend: bool = False, remove: bool = False) -> Iterator[str]:
    """A line for everything that is not as it should be; those that begin with "mended" are done."""
    yield from _unknown_submissions(places)
    yield from _deleted(places, mend=mend)
    yield from _seals(places)
    yield from _sealed_files(places, mend=mend)
    yield from _statements(places, mend=mend)
    yield from _missing_events(places)
    yield from _given_up(places)
    yield from _files(places, remove=remove)


def _unknown_submissions(places: Places) -> Iterator[str]:
    """Yield what others have heard of and submissions does not have: it was made after the backup, and is lost."""
    existing = _read(places, "submissions", lambda session: {*session.scalars(sa.select(SubmissionRow.id))})
    erased = _read(places, "webhooks", webhooks.erased) | _read(places, "notifications", notifications.erased)
    erased |= _read(places, "submissions", submissions.erased)
    lost: set[int] = set()
    for service, ids in _known(places).items():
        if unknown := ids.get(_SUBMISSIONS, set()) - existing - erased:
            lost |= unknown
            yield f"{service} knows {len(unknown)} submissions that submissions does not have: {_ranges(unknown)}"
    for number, count in _read(places, "webhooks", webhooks.open_deliveries, lost | erased).items():
        yield f"webhooks still has {count} deliveries to make about submission {number}, which is not there"


def _deleted(places: Places, *, mend: bool) -> Iterator[str]:
    """Yield what was removed for good and a service has all the same: its database was put back to a time before that, and the
    event is kept by nobody any more."""
    gone = _read(places, "submissions", submissions.erased)
    ids_known = {service: ids.get(_SUBMISSIONS, set()) for service, ids in _known(places).items()}
    left = {
        "notifications": gone & ids_known["notifications"] - _read(places, "notifications", notifications.erased),
        "webhooks": gone & ids_known["webhooks"] - _read(places, "webhooks", webhooks.erased),
        "rendering": gone & _read(places, "rendering", rendering.submissions_with_content),
    }
    if mend and (again := set().union(*left.values())):
        with _opened(places, "submissions") as database:
            for number in sorted(again):
                database.write(erasures.delete_again, number)
    for service, numbers in left.items():
        if numbers:
            prefix = "mended: " if mend else ""
            yield f"{prefix}{service} has {len(numbers)} submissions that were removed for good: {_ranges(numbers)}"


def _seals(places: Places) -> Iterator[str]:
    waiting = _read(places, "submissions", submissions.sealing)
    states = _read(places, "rendering", rendering.jobs, list(waiting)) if waiting else {}
    for seal_id, number in waiting.items():
        state = states.get(seal_id)
        if state is None:
            yield f"submission {number} is being sealed, rendering has no job for it: it is ordered again by itself"
        elif state == "done":
            yield f"submission {number} is being sealed, rendering has done it: it hears of it by itself"
        elif state == "parked":
            yield f"submission {number} is being sealed, rendering has given it up: POST /api/submissions/{number}/seal"


def _sealed_files(places: Places, *, mend: bool) -> Iterator[str]:
    """Files that rendering sealed and does not recognise any more: whoever asks about one would hear that it is not ours."""
    for number, digests in _read(places, "submissions", lambda session: list(submissions.sealed(session))):
        if not (unknown := _read(places, "rendering", rendering.unknown_files, digests)):
            continue
        if mend:
            with _opened(places, "rendering") as database:
                database.write(rendering_commands.remember_sealed, sorted(unknown), number, now())
        yield f"{'mended: ' if mend else ''}rendering does not know {len(unknown)} of the files of submission {number}"


def _statements(places: Places, *, mend: bool) -> Iterator[str]:
    """Completions that only one of submissions and rendering knows as confirmed."""
    stated = _read(places, "submissions", submissions.statements)
    existing = _read(places, "submissions", lambda session: {*session.scalars(sa.select(SubmissionRow.id))})
    confirmed = _read(places, "rendering", rendering.statements)
    if unknown := sorted(stated.keys() - confirmed.keys()):
        if mend:
            with _opened(places, "rendering") as database:
                for sha256 in unknown:
                    database.write(rendering_commands.take_on_statement, stated[sha256], now())
        yield f"{'mended: ' if mend else ''}rendering does not know {len(unknown)} statements of completions"
    for number in sorted({confirmed[sha256] for sha256 in confirmed.keys() - stated.keys()} & existing):
        yield (
            f"rendering has confirmed a completion of submission {number} that submissions does not know: when it is signed"
            " anew, the sealing fails until an admin accepts that"
        )


def _missing_events(places: Places) -> Iterator[str]:
    for service in places.databases:
        if count := _read(places, service, _count, tables.missing_events):
            yield f"{service} has yet to take {count} events that others have told"
    for subject, count in _read(places, "webhooks", webhooks.waiting).items():
        yield f"webhooks has {count} events of {subject} that wait for an earlier one"


def _given_up(places: Places) -> Iterator[str]:
    for service in places.databases:
        for row in retrying.kinds(service):
            count, _ = _read(places, service, retrying.parked, row)
            if count:
                yield f"{service} has given up {count} of its {row.__tablename__}: python -m services.{service} retry"


def _files(places: Places, *, remove: bool) -> Iterator[str]:
    """Rows whose file is missing, and files that no row names."""
    store = BlobStore.from_url(places.blobs)
    there = {file.key: file for file in store.everything() if not file.key.startswith((MARKS, INCOMING))}
    named: set[str] = set()
    for service in places.databases:
        for table, identity, key in _read(places, service, lambda session, name=service: list(_names(session, name))):
            named.add(key)
            if identity is not None and key not in there:
                yield f"{service}: the file {key} of {table} {identity} is missing"
    nobodys = [key for key, file in there.items() if key not in named and now() - file.changed_at > YOUNG]
    unnamed = [key for key in nobodys if not key.startswith(STATEMENTS)]
    if stated := [key for key in nobodys if key.startswith(STATEMENTS) and key.endswith(".json")]:
        yield f"{len(stated)} statements are kept of completions that no row knows, such as {min(stated)}"
    for key in unnamed if remove else ():
        store.remove_listed(key)
    if unnamed:
        size = sum(there[key].size for key in unnamed)
        done = "mended: removed" if remove else "no row names"
        yield f"{done} {len(unnamed)} files ({size} bytes) older than a day, such as {min(unnamed)}"


def _names(session: Session, service: str) -> Iterator[tuple[str, str | None, str]]:
    """Table, primary key and key of each file that a row names; without primary key where it is only mentioned."""
    models = importlib.import_module(f"services.{service}.models")
    for table in (*models.Base.metadata.tables.values(), *tables.runtime_metadata.tables.values()):
        for column in table.columns:
            if isinstance(column.type, sa.JSON):
                for *identity, value in _rows(session, table, column, sa.cast(column, sa.Text).like('%"sha256"%')):
                    for key in _references(value):
                        yield table.name, "/".join(map(str, identity)), key
            elif isinstance(column.type, sa.Text):
                for *_, value in _rows(session, table, column, column.like('%"sha256"%')):
                    for key in _KEY.findall(value):
                        yield table.name, None, key
    if "blob_removals" in models.Base.metadata.tables:
        for key in session.scalars(sa.select(models.Base.metadata.tables["blob_removals"].c.key)):
            yield "blob_removals", None, key


def _rows(session: Session, table: sa.Table, column: Any, condition: Any) -> Any:
    chosen = sa.select(*table.primary_key.columns, column).where(condition)
    return session.execute(chosen.execution_options(yield_per=_AT_ONCE))


def _references(value: Any) -> Iterator[str]:
    """The keys of the BlobRefs in plain JSON."""
    if isinstance(value, dict):
        if isinstance(value.get("key"), str) and "sha256" in value:
            yield value["key"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, str) and value.startswith(("{", "[")) and '"sha256"' in value:
        yield from _references(json.loads(value))


def _known(places: Places) -> dict[str, dict[str, set[int]]]:
    return {
        service: _read(places, service, importlib.import_module(f"services.{service}.reconcile").known)
        for service in places.databases
    }


def _read(places: Places, service: str, query: Callable[..., Any], *arguments: Any) -> Any:
    with _opened(places, service) as database:
        return database.read(query, *arguments)


@contextmanager
def _opened(places: Places, service: str) -> Iterator[Database]:
    database = Database(places.databases[service])
    try:
        yield database
    finally:
        database.dispose()


def _count(session: Session, table: sa.Table) -> int:
    return session.scalar(sa.select(sa.func.count()).select_from(table)) or 0


def _ranges(numbers: set[int]) -> str:
    """``{1, 2, 3, 7}`` as ``1-3, 7``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


if __name__ == "__main__":
    sys.exit(main())
