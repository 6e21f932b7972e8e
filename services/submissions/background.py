"""What the background process of this service does: expire, work through batches, remind of sealings, remove files of erased
submissions."""

import time
from collections import deque
from datetime import UTC, datetime, timedelta

from prometheus_client import Counter, Gauge

from contracts.errors import ServiceError
from contracts.runtime.bus.client import shared_client
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Every, More, Outcome
from contracts.runtime.data.files import stored_files
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.submissions.batches.running import Batches
from services.submissions.commands import erasures, followups, retention
from services.submissions.commands.test_mode import wiping
from services.submissions.creating.single import Creator
from services.submissions.models import BlobRemovalRow, ReminderRow, StorageReportRow, TestWipeRow
from services.submissions.outgoing import reminders
from services.submissions.planning.first_pages import FirstPages
from services.submissions.reading import stored_files as own_files
from services.submissions.settings import Settings
from services.submissions.site import Site
from services.submissions.storage import handovers
from services.submissions.storage.due import Due
from services.submissions.storage.signers import identity_checks, one_time_codes, phone_drawings

SEALING_AGE = Gauge("countersign_sealing_oldest_seconds", "How long the longest sealing under way has been waited for")
SEALING_FAILED = Gauge("countersign_sealing_failed", "Submissions whose sealing failed and waits for a retry")

RETENTION_DUE = Gauge("countersign_retention_due", "Submissions that have been kept long enough and are not erased yet")
RETENTION_HELD = Gauge("countersign_retention_held", "Submissions on legal hold")
RETENTION_ERASED = Counter(
    "countersign_retention_erased_total", "Submissions erased because they were kept long enough"
)

ERASURES_OPEN = Gauge("countersign_erasures_open", "Submissions removed for good that have no signed receipt yet")
ERASURE_AGE = Gauge("countersign_erasure_oldest_seconds", "How long ago the longest waiting of them was removed")

log = observe.logger(__name__)

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

ERASED_EVERY = timedelta(minutes=10)
ERASED_IN_A_TURN = 200

RECEIPTS_EVERY = timedelta(seconds=5)
"""So soon it is noticed that the files of a removed submission are gone."""

DAYS_BELIEVED_AFTER = timedelta(hours=6)
"""What is erased is gone: a clock that was put forward is believed only after that."""

EXPIRED_AT_ONCE = 40
"""Submissions in one transaction, which holds SQLite's write lock."""

LOOKED_UP_AT_ONCE = 1_000
"""Submissions that are due: to look them up costs more, the more there are, so that it is not done for each transaction."""

ARCHIVED_AT_ONCE, ARCHIVED_EVERY = 50, timedelta(seconds=10)
"""Submissions whose files are to get archive time-stamps later: some 18,000 an hour, each of which costs time-stamps."""

WIPED_IN_A_TURN, WIPED_AGAIN_AFTER = 60.0, timedelta(seconds=1)
"""Seconds of work before a wiping's lease is given back; and when it is looked whether all services have forgotten their
parts."""

REMOVALS_KEPT = timedelta(days=7)
CLOCK_BELIEVED_AFTER = timedelta(minutes=1)
"""A clock that was put forward may be put back at once; what has expired stays expired."""

REMOVAL_SCHEDULE = [timedelta(seconds=seconds) for seconds in (1, 10, 60, 600, 3_600, 6 * 3_600, 24 * 3_600)]


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    site = Site.configured(settings)
    patience = timedelta(seconds=settings.sealing_reminder_seconds)

    expiry, kept = Expiry(database, site), Retention(database, site)

    def remind() -> None:
        for submission_id in database.read(followups.waiting_for_seal, now(), patience):
            database.write(followups.remind, submission_id, site, patience, now())
        oldest, failed = database.read(followups.sealing_backlog)
        SEALING_AGE.set((now() - oldest).total_seconds() if oldest else 0)
        SEALING_FAILED.set(failed)

    def remove(row: BlobRemovalRow) -> Outcome:
        blobs.delete(row.key)
        return Done()

    def remind_signer(row: ReminderRow) -> Outcome:
        database.write(reminders.remind, row, site, now())
        return Done()

    def wipe(row: TestWipeRow) -> Outcome:
        """Go on until nothing is left; of what has to be waited for some, later."""
        give_up = time.monotonic() + WIPED_IN_A_TURN
        while (done := database.write(wiping.portion, row, site, now())).did and time.monotonic() < give_up:
            pass
        return More(WIPED_AGAIN_AFTER) if done.left else Done()

    creator = Creator(shared_client(settings.amqp_url), blobs, settings, FirstPages())
    batches = Batches(creator, database, site, timedelta(days=settings.batches_kept_days))
    earlier = [Every("archive earlier documents", ARCHIVED_EVERY, EarlierDocuments(database).portion)]

    return [
        *(earlier if settings.archive_earlier_documents else []),
        *batches.loops(),
        Every("expire", timedelta(seconds=settings.expiry_sweep_seconds), expiry.portion),
        DueWork(
            "reminders",
            database,
            ReminderRow,
            remind_signer,
            schedule=REMOVAL_SCHEDULE,
            lease=timedelta(minutes=2),
            scheduled=True,
        ),
        Every("remind-of-sealing", min(patience / 2, timedelta(seconds=30)), remind),
        Every(
            "forget-removals",
            timedelta(hours=1),
            lambda: database.write(followups.forget_removals, now() - REMOVALS_KEPT),
        ),
        Every("retention", ERASED_EVERY, kept.portion),
        Every(
            "count files",
            stored_files.LOOKED_EVERY,
            stored_files.kept_counted(database, StorageReportRow, own_files.count),
        ),
        Every("receipts of erasures", RECEIPTS_EVERY, lambda: look_after_erasures(database)),
        Every("forget-codes", timedelta(hours=1), lambda: database.write(one_time_codes.forget, now())),
        Every("forget-phone-drawings", timedelta(hours=1), lambda: database.write(phone_drawings.forget, now())),
        Every("forget-handovers", timedelta(hours=1), lambda: database.write(handovers.forget, now())),
        Every("forget-identity-checks", timedelta(hours=1), lambda: database.write(identity_checks.forget, now())),
        DueWork(
            "test-wipes",
            database,
            TestWipeRow,
            wipe,
            schedule=REMOVAL_SCHEDULE,
            lease=timedelta(minutes=5),
            scheduled=True,
        ),
        DueWork(
            "remove-blobs",
            database,
            BlobRemovalRow,
            remove,
            schedule=REMOVAL_SCHEDULE,
            lease=timedelta(minutes=2),
            concurrency=2,
            scheduled=True,
        ),
    ]


class EarlierDocuments:
    """Has files of earlier submissions get archive time-stamps, from the first submission on, at a pace that leaves time for
    others. Each is asked for once, also when that begins anew with each start."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._after = 0

    def portion(self) -> None:
        """The next portion; nothing when all were looked at."""
        last, asked = self._database.write(followups.archive_earlier, self._after, ARCHIVED_AT_ONCE)
        if last is None:
            return
        self._after = last
        log.info("archives.asked_for", submissions=asked, up_to=last)


def look_after_erasures(database: Database) -> bool:
    """Note which removed submissions have no files left, and ask again where a receipt does not come. True while there may be
    more."""
    without_files, silent = database.read(erasures.files_gone), database.read(erasures.to_ask, now())
    for number in without_files:
        database.write(erasures.note_files, number, now())
    for number in silent:
        database.write(erasures.ask, number, now())
        log.warning("erasure.asked_again", submission=number)
    count, oldest = database.read(erasures.backlog)
    ERASURES_OPEN.set(count)
    ERASURE_AGE.set((now() - oldest).total_seconds() if oldest else 0)
    return max(len(without_files), len(silent)) == erasures.AT_ONCE


class Sweep:
    """Goes through what is due, the longest overdue first, in portions: others who write wait for one of them at most. What
    cannot be done keeps the rest from nothing; it is tried again with the next sweep. A subclass says what is looked up, how
    many are done at a time, and how."""

    name: str

    def __init__(self, database: Database, site: Site) -> None:
        self._database, self._site = database, site
        self._due: deque[Due] = deque()
        self._after: Due | None = None

    def portion(self) -> bool:
        """Do the next portion; True while there may be more."""
        if not self._due:
            self._due.extend(self.look_up(self._after))
            self._after = self._due[-1] if self._due else None
        numbers = [self._due.popleft()[1] for _ in range(min(self.at_once(), len(self._due)))]
        if numbers:
            self._try(numbers)
        return bool(numbers)

    def look_up(self, after: Due | None) -> list[Due]:
        """List what is due and comes ``after``, in order."""
        raise NotImplementedError

    def at_once(self) -> int:
        """Say how many are done in one transaction."""
        return 1

    def do(self, numbers: list[int]) -> None:
        """Do it with these, in one transaction, as far as they are still due."""
        raise NotImplementedError

    def _try(self, numbers: list[int]) -> None:
        try:
            self.do(numbers)
        except Exception as error:
            if isinstance(error, ServiceError) and error.code == "unavailable":
                self._due.clear()
                self._after = None
                raise
            if len(numbers) == 1:
                log.exception("sweep.failed", sweep=self.name, submission=numbers[0])
                return
            log.warning("sweep.one_by_one", sweep=self.name, exc_info=error)
            for number in numbers:
                self._try([number])


class Retention(Sweep):
    """Erases what has been kept for as long as it should be, one after the other."""

    name = "retention"

    def __init__(self, database: Database, site: Site) -> None:
        super().__init__(database, site)
        self._due_by = _LONG_AGO

    def look_up(self, after: Due | None) -> list[Due]:
        self._due_by = without_leaps(DAYS_BELIEVED_AFTER)
        overdue, held = self._database.read(retention.backlog, self._due_by)
        RETENTION_DUE.set(overdue)
        RETENTION_HELD.set(held)
        return self._database.read(retention.due, self._due_by, after, ERASED_IN_A_TURN)

    def do(self, numbers: list[int]) -> None:
        for number in numbers:
            if self._database.write(retention.erase, number, self._site, self._due_by, now()):
                RETENTION_ERASED.inc()
                log.info("retention.erased", submission=number)


class Expiry(Sweep):
    """Expires what is due, however much it is."""

    name = "expiry"

    def look_up(self, after: Due | None) -> list[Due]:
        moment = without_leaps(CLOCK_BELIEVED_AFTER)
        return self._database.read(followups.due_to_expire, moment, after, LOOKED_UP_AT_ONCE)

    def at_once(self) -> int:
        return EXPIRED_AT_ONCE

    def do(self, numbers: list[int]) -> None:
        self._database.write(followups.expire, numbers, self._site, now())
