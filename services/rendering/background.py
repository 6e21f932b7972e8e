"""What the background process of this service does: sign statements, seal, renew archive time-stamps, sweep, look at the
certificate."""

from datetime import timedelta
from functools import partial

from contracts.evidence import statements as stated
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import TURNS_APART, DueWork, Every
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering import commands, queries, results
from services.rendering.jobs.sealing import certificates
from services.rendering.models import (
    ArchivedFile,
    CertsignJob,
    Confirmation,
    ErasureReceipt,
    SealJob,
    StampedSeal,
    StatementRow,
)
from services.rendering.providers.opening import Providers
from services.rendering.rules import confirming, domain
from services.rendering.sealing import archive_work
from services.rendering.sealing.receipts import ReceiptWork
from services.rendering.sealing.remote import certsign_work, confirm_work
from services.rendering.sealing.remote.certsign_work import CertsignWork
from services.rendering.sealing.remote.confirm_work import ConfirmWork
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.sealing.stamp_orders import StampOrderWork
from services.rendering.sealing.statements import StatementWork
from services.rendering.settings import Settings
from services.rendering.signatures.archiving import LEVEL
from services.rendering.signatures.workshop import Workshop
from services.rendering.stamping import orders, seals, stages
from services.rendering.stamping.loops import loops as stamp_loops
from services.rendering.stamping.providing import Providers as StampProviders
from services.rendering.storage import certsigning, confirmations, erasures, news

LIMIT = timedelta(minutes=15)
"""Above what the largest submission takes: 30 documents of 1,000 pages with a time-stamp each. An attempt that takes longer
hangs, and is not waited for."""

_LOOKED_FOR = timedelta(seconds=20)
"""A provider that was away is noticed that soon when it is back; until then it is asked that often, by nobody else."""

_WARM = 2
"""A sealed file is read back by one child while the next is drawn by another: the signer's wait is shorter by as much."""


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    """Opens the workshop: a service without a usable key does not start."""
    workshop = Workshop(settings, warm=_WARM).open()
    archiver = workshop.archiver if settings.pades_level == LEVEL else None
    work = SealWork(
        settings,
        blobs,
        workshop.renderer,
        workshop.sealer,
        database,
        provider_sealer=workshop.provider_sealer,
        archiver=archiver,
    )
    # Files that were archived once are kept so, also when new ones are not.
    archiving = archive_work.ArchiveWork(settings, blobs, database, workshop.archiver)
    providers = Providers(workshop.outbound)
    asking = CertsignWork(settings, blobs, workshop, database, providers.open)
    signers = ConfirmWork(settings, blobs, workshop, database, providers.open)
    selling = StampProviders(settings, workshop.outbound)
    ordering = StampOrderWork(settings, blobs, workshop.renderer, database, selling)
    signing = StatementWork(settings, blobs, workshop.sealer)
    due_work = partial(DueWork, lease=timedelta(seconds=settings.rendering_lease_seconds), limit=LIMIT)
    children, providers_at_once = settings.rendering_children, settings.certsign_at_once
    return [
        due_work(
            "sign statements",
            database,
            StatementRow,
            signing.attempt,
            schedule=domain.SCHEDULE,
            concurrency=children,
            apart=TURNS_APART,
        ),
        due_work(
            "sign receipts",
            database,
            ErasureReceipt,
            ReceiptWork(settings, workshop.sealer).attempt,
            schedule=domain.SCHEDULE,
        ),
        due_work(
            "seal",
            database,
            SealJob,
            work.attempt,
            schedule=domain.SCHEDULE,
            concurrency=children,
            on_park=commands.fail_job,
        ),
        due_work(
            "sign at providers",
            database,
            CertsignJob,
            asking.attempt,
            schedule=asking.schedule,
            concurrency=providers_at_once,
            on_park=certsign_work.give_up,
            on_claimed=asking.claimed,
            synced_claims=True,
        ),
        due_work(
            "confirm at providers",
            database,
            Confirmation,
            signers.attempt,
            schedule=confirming.SCHEDULE,
            concurrency=providers_at_once,
            on_park=confirm_work.give_up,
        ),
        due_work(
            "order stamps",
            database,
            StampedSeal,
            ordering.attempt,
            schedule=stages.SCHEDULE,
            concurrency=2,
            on_park=lambda session, row: seals.tell(session, row, now()),
        ),
        *stamp_loops(
            settings,
            database,
            blobs,
            workshop.outbound,
            workshop.renderer.check_stamp,
            orders.tell,
            lambda: certificates.read_anchors(settings.trust_anchors_dir),
        ),
        Every("look for providers", _LOOKED_FOR, asking.look_for_providers),
        Every("abandoned confirmations", timedelta(minutes=15), signers.discard_abandoned),
        due_work(
            "renew archive time-stamps",
            database,
            ArchivedFile,
            archiving.attempt,
            schedule=domain.ARCHIVE_SCHEDULE,
            scheduled=True,
        ),
        Every("sweep archives", timedelta(minutes=5), lambda: archive_work.sweep(database, blobs, LIMIT)),
        Every("archives", timedelta(minutes=15), lambda: archive_work.watch(database)),
        Every("sweep interrupted seals", timedelta(minutes=5), lambda: sweep(database, blobs)),
        Every("tell erasures", timedelta(minutes=1), lambda: results.tell_erasures(database)),
        Every("forget results", timedelta(minutes=15), lambda: results.expire(database, blobs)),
        Every("certificate", timedelta(days=1), workshop.watch_certificate),
    ]


def sweep(database: Database, blobs: BlobStore) -> None:
    """Remove what killed attempts left behind, once no attempt can still be under way; forget old jobs."""
    for job in database.read(queries.jobs_to_sweep, without_leaps(LIMIT) - LIMIT):
        stamped = database.read(seals.seal, job.id)
        results = {job.sealed_attempt, stamped.stamped_attempt if stamped else None}
        for key in domain.leftovers(job.submission_id, job.id, job.attempts, job.files, results):
            blobs.delete(key)
        database.write(commands.mark_swept, job.id)
    if ended := database.read(certsigning.over, without_leaps(LIMIT) - LIMIT):
        for key in (key for certsign in ended for key in certsigning.prepared_keys(certsign)):
            blobs.delete(key)
        database.write(certsigning.forget, [certsign.id for certsign in ended])
    for waiting in database.read(seals.without_stamps, without_leaps(LIMIT) - seals.GIVEN_UP_AFTER):
        for key in database.write(seals.give_up, waiting.id, now()):
            blobs.delete(key)
    _sweep_confirmations(database, blobs)
    for seal in database.read(seals.over, without_leaps(LIMIT) - LIMIT):
        for key in seals.kept_keys(seal):
            blobs.delete(key)
        database.write(seals.forget, seal.id)
    database.write(commands.forget_old_jobs, now())
    database.write(erasures.forget_receipts, now())
    database.write(certsigning.forget_trials, now())
    database.write(news.forget, now())
    for row in database.read(queries.erased_statements, without_leaps(LIMIT) - LIMIT):
        for key in stated.keys(row.submission_id, row.submitter_id, row.sha256):
            blobs.delete(key)
        database.write(commands.forget_statement, row.id)


def _sweep_confirmations(database: Database, blobs: BlobStore) -> None:
    """Remove the files of signers' confirmations that nobody needs any more."""
    for confirmation in database.read(confirmations.over, without_leaps(LIMIT) - LIMIT):
        for key in confirmations.keys(confirmation):
            blobs.delete(key)
        database.write(confirmations.forget, confirmation.id)
