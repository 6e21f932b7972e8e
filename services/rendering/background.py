"""What the background process of this service does: sign statements, seal, sweep, look at the certificate."""

from datetime import timedelta
from functools import partial

from contracts.evidence import statements as stated
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.background import DueWork, Every
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from services.rendering import commands, queries, results
from services.rendering.models import SealJob, StatementRow
from services.rendering.rules import domain
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.sealing.statements import StatementWork
from services.rendering.sealing.workshop import Workshop
from services.rendering.settings import Settings

LIMIT = timedelta(minutes=15)
"""Above what the largest submission takes: 30 documents of 1,000 pages with a time-stamp each. An attempt that takes longer
hangs, and is not waited for."""

_WARM = 2
"""A sealed file is read back by one child while the next is drawn by another: the signer's wait is shorter by as much."""


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    """Opens the workshop: a service without a usable key does not start."""
    workshop = Workshop(settings, warm=_WARM).open()
    work = SealWork(settings, blobs, workshop.renderer, workshop.sealer, database)
    signing = StatementWork(settings, blobs, workshop.sealer)
    due_work = partial(
        DueWork,
        schedule=domain.SCHEDULE,
        lease=timedelta(seconds=settings.rendering_lease_seconds),
        limit=LIMIT,
        concurrency=settings.rendering_children,
    )
    return [
        due_work("sign statements", database, StatementRow, signing.attempt),
        due_work("seal", database, SealJob, work.attempt, on_park=commands.fail_job),
        Every("sweep interrupted seals", timedelta(minutes=5), lambda: sweep(database, blobs)),
        Every("forget results", timedelta(minutes=15), lambda: results.expire(database, blobs)),
        Every("certificate", timedelta(days=1), workshop.watch_certificate),
    ]


def sweep(database: Database, blobs: BlobStore) -> None:
    """Remove what killed attempts left behind, once no attempt can still be under way; forget old jobs."""
    for job in database.read(queries.jobs_to_sweep, without_leaps(LIMIT) - LIMIT):
        for key in domain.leftovers(job.submission_id, job.id, job.attempts, job.files, job.sealed_attempt):
            blobs.delete(key)
        database.write(commands.mark_swept, job.id)
    database.write(commands.forget_old_jobs, now())
    for row in database.read(queries.erased_statements, without_leaps(LIMIT) - LIMIT):
        for key in stated.keys(row.submission_id, row.submitter_id, row.sha256):
            blobs.delete(key)
        database.write(commands.forget_statement, row.id)
