"""A mark of how far a service had come, kept outside its database: the next start sees by it if that was restored.

A database that was put back to an earlier moment knows nothing of it. It would give out ids a second time, and the other
services take what is told under them for what they have heard long ago. So the background process keeps a small file per
service in the blob store, ``marks/<service>.json``: which life the event stream was in, which numbers every table had given
out, and a ceiling that is always ahead of them. A database that is behind its mark, or in another life, was restored: its
stream begins a new life, and every number goes on above the ceiling.

No mark is no sign of anything: the first start, or the blob store is new as well.
"""

import importlib
import importlib.util
import time
from collections.abc import Mapping
from datetime import datetime, timedelta

from pydantic import BaseModel, ValidationError
from sqlalchemy.orm import Session

from contracts.runtime import migrations
from contracts.runtime.clock import now
from contracts.runtime.data import epoch
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobMissing, BlobStore
from contracts.runtime.monitoring import observe
from contracts.runtime.restored import identities
from contracts.runtime.restored.identities import RESERVE

log = observe.logger(__name__)

MARKS = "marks/"
LOOK_EVERY = timedelta(seconds=2)
"""A database that was put back by less than this, by hand, is not noticed here; ``deploy.restore`` need not notice it."""

START_PATIENCE = 15.0
"""Seconds for which a process that starts waits for another one that is at it: much longer than a restored database takes to
begin again, and than several take one after the other when the store is silent."""

_LONGEST_QUIET = 30.0
"""Seconds after which a running service looks although nothing has changed."""

_PATIENCE = 3.0
"""The same for a process that is running."""

_FLOORS, _JUMPS = "countersign_floors", "countersign_jumps"
_BURST = 20
"""For so many looks the reserve lasts at the rate of the last one."""


class Mark(BaseModel):
    """``epoch`` is the life that the stream of events was in, ``given`` the highest number that each table had given out;
    above ``ceilings`` none was given out."""

    service: str
    epoch: str
    given: dict[str, int]
    ceilings: dict[str, int]
    written_at: datetime


def store_at(blob_url: str) -> BlobStore:
    """The store for marks. They are small, nobody's start waits for long for them, and whoever looks has locked out others."""
    return BlobStore.from_url(blob_url, impatient=True)


def read(store: BlobStore, service: str) -> Mark | None:
    """The mark, or None when there is none that can be read. Raises ServiceError when the store does not answer."""
    try:
        return Mark.model_validate_json(store.get(_key(service)))
    except BlobMissing:
        return None
    except ValidationError as error:
        log.warning("mark.unreadable", service=service, reason=str(error))
        return None


def keep(service: str, database: Database, store: BlobStore, *, patience: float = _PATIENCE) -> Mark:
    """Compare the database with its mark, deal with it if it was restored, and write the mark anew. One process at a time, so
    that of several that start at once one does it. Raises ServiceError when the database or the store does not answer, or
    when another process has been at it for ``patience`` seconds."""
    with migrations.alone(database.url, patience=patience):
        mark = read(store, service)
        if mark is not None and _was_restored(mark, *database.read(_state)):
            # Whoever is killed before the mark is written does it again: the epochs differ until then.
            begin_again(service, database, mark.ceilings)
        return renew(service, database, store, mark)


def renew(service: str, database: Database, store: BlobStore, last: Mark | None) -> Mark:
    """Write down how far the database is now, without asking whether it was restored."""
    present, highest = database.read(_state)
    ceilings = dict(last.ceilings) if last else {}
    for table, number in highest.items():
        if ceilings.get(table, 0) < number + RESERVE // 2:
            pace = number - last.given.get(table, number) if last else 0
            ceilings[table] = number + max(RESERVE, _BURST * pace)
    mark = Mark(service=service, epoch=present, given=highest, ceilings=ceilings, written_at=now())
    _write(store, mark)
    return mark


def begin_again(service: str, database: Database, floors: Mapping[str, int]) -> None:
    """A new life for a database that was restored, in one transaction: a new epoch, all numbers go on above ``floors``, and
    what the service itself does then (``services.<service>.reconcile.restored``, if there is one)."""
    begun, jumps = database.write(_begin_again, service, floors)
    log.error(
        "database.restored",
        service=service,
        epoch=begun,
        jumped={table: f"{old} -> {new}" for table, (old, new) in jumps.items()},
    )


class Keeper:
    """Keeps the mark of a running service; remembers the last one, so that the store is asked only when something changed, and
    the database only when anything was committed, or once in a while."""

    def __init__(self, service: str, database: Database, store: BlobStore) -> None:
        self._service, self._database, self._store = service, database, store
        self._last: Mark | None = None
        self._changes: int | None = None
        self._looks_at = 0.0

    def __call__(self) -> None:
        changes = self._database.changes()
        if changes is not None and changes == self._changes and time.monotonic() < self._looks_at:
            return
        state = self._database.read(_state)
        if self._last is None or state != (self._last.epoch, self._last.given):
            self._last = keep(self._service, self._database, self._store)
        self._changes, self._looks_at = changes, time.monotonic() + _LONGEST_QUIET


def _was_restored(mark: Mark, present: str, highest: Mapping[str, int]) -> bool:
    return present != mark.epoch or any(number < mark.given.get(table, 0) for table, number in highest.items())


def _state(session: Session) -> tuple[str, dict[str, int]]:
    return epoch.epoch_of(session), identities.highest_numbers(session.connection())


def _begin_again(session: Session, service: str, floors: Mapping[str, int]) -> tuple[str, dict[str, tuple[int, int]]]:
    session.info[_FLOORS] = floors
    begun = epoch.begin_epoch(session)
    if importlib.util.find_spec(f"services.{service}.reconcile") is not None:
        reconcile = importlib.import_module(f"services.{service}.reconcile")
        getattr(reconcile, "restored", lambda _: None)(session)
    return begun, session.info[_JUMPS]


def _jump(session: Session) -> None:
    """Whoever begins a new epoch, and for whatever reason: no number is given out twice."""
    session.info[_JUMPS] = identities.jump(session.connection(), session.info.get(_FLOORS, {}))


epoch.on_new_epoch.append(_jump)


def _write(store: BlobStore, mark: Mark) -> None:
    store.replace(_key(mark.service), mark.model_dump_json(indent=2).encode(), "application/json")


def _key(service: str) -> str:
    return f"{MARKS}{service}.json"
