"""Archive time-stamps of stored files are renewed before they run out: one due row for each file.

A new version is a file of its own, named by its content; the transaction that ends an attempt makes it the file. What a killed
attempt has written was noted down before, and is swept. The older version stays until submissions has the new one and some
time has passed, so that a database that is restored still finds it.
"""

import hashlib
import math
import random
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_client import Counter, Gauge

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobDamaged, BlobStore
from contracts.runtime.monitoring import observe
from contracts.types import Notice
from services.rendering import commands, queries
from services.rendering.children.pool import JobFailed, JobRefused
from services.rendering.models import ArchivedFile
from services.rendering.rules import domain
from services.rendering.settings import Settings
from services.rendering.signatures.archiving import LEVEL, Archived, Archiver, NotArchived
from services.rendering.signatures.time_stamping import CertificateRevoked, TimeStampFailed

log = observe.logger(__name__)

RENEWALS = Counter("countersign_archive_renewals_total", "Attempts to renew an archive time-stamp", ["outcome"])
EXPIRES = Gauge("countersign_archive_expires_seconds", "Seconds until the first archive time-stamp runs out")
EXPIRES.set(math.nan)  # in a process that does not look: 0 would be an alarm

PDF = "application/pdf"
_NOT_CONFIGURED = timedelta(days=1)
_AWAY_SECONDS = 300.0
_ASKED_AGAIN = timedelta(hours=1)


class ArchiveWork:
    """What the background process does with a due ArchivedFile. Thread-safe. While the authority is away it is asked now and
    then, and not once for each file."""

    def __init__(self, settings: Settings, blobs: BlobStore, database: Database, archiver: Archiver | None) -> None:
        self._settings, self._blobs, self._database, self._archiver = settings, blobs, database, archiver
        self._away_until = 0.0

    def attempt(self, row: ArchivedFile) -> Outcome:
        """One attempt. It may be made twice: the first to end counts."""
        if row.file is None:
            return Park("the submission was erased")
        if self._archiver is None:
            return Retry("TSA_URL is not set: there is no authority to ask", after=_NOT_CONFIGURED, counts=False)
        if time.monotonic() < self._away_until:
            after = _ASKED_AGAIN * random.uniform(0.5, 1.5)
            return Retry("the time-stamping authority is away", after=after, counts=False)
        outcome = self._renew(row, self._archiver, BlobRef.model_validate(row.file))
        RENEWALS.labels(type(outcome).__name__.lower()).inc()
        return outcome

    def _renew(self, row: ArchivedFile, archiver: Archiver, file: BlobRef) -> Outcome:
        try:
            archived = archiver.archive(self._blobs.get(file))
            new = due(self._settings, row.document, archived, self._write(row, file, archived.data))
        except _Overtaken as overtaken:
            return Retry(str(overtaken), counts=False)
        except TimeStampFailed as error:
            self._away_until = time.monotonic() + _AWAY_SECONDS
            return Retry(f"no time-stamp: {error}")
        except CertificateRevoked as error:
            log.error("archive.revoked", submission=row.submission_id, reason=str(error))  # noqa: TRY400 - no fault of the code
            return Retry(f"a certificate was revoked: {error}")
        except JobRefused as error:
            return Park(error.reason)
        except BlobDamaged as error:
            return Park(str(error))
        except NotArchived as error:
            return Retry(str(error))
        except JobFailed as error:
            return Retry(f"{error.task} failed: {error.reason}")
        except ServiceError as error:
            return Retry(error.message)
        return Done(lambda session, again: commands.finish_archive(session, again, file.sha256, new, now()))

    def _write(self, row: ArchivedFile, old: BlobRef, data: bytes) -> BlobRef:
        key = domain.archive_key(row.submission_id, hashlib.sha256(data).hexdigest())
        if not self._database.write(commands.plan_archive, row.id, old.sha256, key):
            raise _Overtaken("it was renewed, or its submission erased, meanwhile")
        prefix, _, name = key.rpartition("/")
        return self._blobs.put(data, PDF, f"{prefix}/", name=name)


class _Overtaken(Exception):
    pass


@dataclass(frozen=True)
class Lifted:
    """A sealed file as it is stored: with an archive time-stamp, where there is one, or where it ``is_to_be_archived``."""

    data: bytes
    is_to_be_archived: bool = False
    archived: Archived | None = None

    def level(self, sealed: str) -> str:
        """The PAdES level, of a file whose seal is of that one."""
        return LEVEL if self.archived is not None and sealed == domain.LEVELS[2] else sealed


class Archives:
    """The archive time-stamps of the files of one attempt to seal; none where there is no ``archiver``. Thread-safe."""

    def __init__(self, settings: Settings, archiver: Archiver | None) -> None:
        self._settings, self._archiver = settings, archiver
        self.forget()

    def forget(self) -> None:
        """Begin anew: what was made is thrown away."""
        self.due: list[commands.ArchiveDue] = []
        self._missing: dict[str, None] = {}

    def lift(self, sealed: bytes, *, stamped: bool) -> Lifted:
        """The last thing that is done to a file before it is stored. ``stamped``: there is an authority for time-stamps.
        Raises TimeStampFailed, CertificateRevoked."""
        if self._archiver is None or not stamped:
            return Lifted(sealed)
        try:
            archived = self._archiver.archive(sealed)
        except NotArchived as error:
            self._missing[str(error)] = None
            return Lifted(sealed, is_to_be_archived=True)
        return Lifted(archived.data, is_to_be_archived=True, archived=archived)

    def keep(self, lifted: Lifted, document: str, file: BlobRef) -> None:
        """The file is stored: plan its next archive time-stamp. ``document`` as in DocumentArchived."""
        if lifted.is_to_be_archived:
            self.due.append(due(self._settings, document, lifted.archived, file))

    @property
    def notices(self) -> list[Notice]:
        """Return what could not be had."""
        return [
            Notice(
                code="no_archive_time_stamp",
                message=f"No archive time-stamp could be obtained. It is tried again ({why}).",
            )
            for why in self._missing
        ]

    @property
    def until(self) -> datetime | None:
        """Return when the first of the files' archive time-stamps runs out."""
        return min((time_stamp.until for time_stamp in self.due if time_stamp.until is not None), default=None)


def due(settings: Settings, document: str, archived: Archived | None, file: BlobRef) -> commands.ArchiveDue:
    """Return when a file is renewed; ``archived`` is None where there was no archive time-stamp to be had, which is tried
    again."""
    if archived is None:
        return commands.ArchiveDue(document, file, None, now() + commands.ARCHIVED_AGAIN)
    before = timedelta(days=settings.archive_renewal_days)
    at = domain.renewed_at(archived.stamped_at, archived.until, before, random.random())
    return commands.ArchiveDue(document, file, archived.until, at)


def sweep(database: Database, blobs: BlobStore, limit: timedelta) -> None:
    """Remove what attempts have left behind, once none of them (``limit``: its longest time) can still be under way."""
    for row in database.read(queries.archives_to_sweep, without_leaps(limit) - limit):
        for key in row.candidates:
            blobs.delete(key)
        database.write(commands.finish_archive_sweep, row.id, row.candidates)


def watch(database: Database) -> None:
    """Say when the first archive time-stamp runs out."""
    end = database.read(queries.first_archive_end)
    EXPIRES.set((end - now()).total_seconds() if end is not None else float("inf"))
