"""Removing a submission for good (decisions, 'Permanent deletion').

Rows go at once; files through rows of ``blob_removals``, so that a crash leaves none behind. The documents that the template
was made with stay: they are the template's and that of its other submissions. Those of a one-off submission are its own.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import DocumentsSealed
from contracts.evidence import statements
from contracts.rpc.submissions.api import CREATE, CREATE_ONE_OFF
from contracts.runtime.bus import outbox
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import leave_work
from contracts.runtime.data.tables import answers
from contracts.types import Erasure, Order, Submission, SubmissionStatus
from services.submissions.models import (
    AttachmentRow,
    BlobRemovalRow,
    CodeRow,
    IdentityCheckRow,
    ReplacedLinkRow,
    SnapshotRow,
    StatementRow,
    SubmissionRow,
    SubmitterRow,
    TrailRow,
)
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Telling
from services.submissions.planning.preparing import PREFIX
from services.submissions.storage import trail


def erase(telling: Telling) -> Erasure:
    """Forget the submission; the trail keeps types, times and hashes. Tells the services that keep anything of it. Returns the
    receipt."""
    found, session = telling.found, telling.found.session
    row = found.row
    trail.append(found, [trail.Line(trail.ERASE_SUBMISSION)], telling.now)
    trail.erase(session, row.id)
    session.flush()
    brands = [one.branding for one in found.submitters] + [one["branding"] for one in row.invitees]
    own = [file["key"] for brand in brands for file in brand.values()]
    stated = sa.select(StatementRow.submitter_id, StatementRow.sha256).where(StatementRow.submission_id == row.id)
    proofs = [key for one in session.execute(stated) for key in statements.keys(row.id, *one)]
    keys = [*blobs_of(row, telling.attachments), *own_documents(found.snapshot.documents), *own, *proofs]
    remove_blobs(session, row.id, keys, telling.now)
    at_once = sa.update(BlobRemovalRow).where(BlobRemovalRow.submission_id == row.id, BlobRemovalRow.state == "due")
    session.execute(at_once.values(next_attempt_at=telling.now))
    leave_work(session, BlobRemovalRow.__tablename__)
    _forget_answers(telling)
    outbox.forget(session, telling.subject)
    announce.erased(telling)
    scrubbing.ask(session)
    of_it = (CodeRow, IdentityCheckRow, AttachmentRow, ReplacedLinkRow, StatementRow, SubmitterRow, SnapshotRow)
    for table in of_it:
        session.execute(sa.delete(table).where(table.submission_id == row.id))
    session.execute(sa.delete(SubmissionRow).where(SubmissionRow.id == row.id))
    session.expunge_all()
    overwritten = scrubbing.writes_anew(session)
    return Erasure(at=telling.now, storage="overwritten" if overwritten else "left_to_vacuum")


def blobs_of(row: SubmissionRow, attachments: Iterable[AttachmentRow]) -> list[str]:
    """The keys of the files that belong to this submission alone."""
    keys = [one.file["key"] for one in attachments]
    for made in (row.results, row.drafts):
        if made:
            keys += blobs_in(made)
    return keys


def own_documents(documents: Iterable[dict[str, Any]]) -> list[str]:
    """The keys of the files that came with a one-off submission, of the documents of its snapshot."""
    keys = [one[part]["key"] for one in documents for part in ("file", "original")]
    return [key for key in keys if key.startswith(PREFIX)]


def blobs_in(made: dict[str, Any]) -> list[str]:
    """The keys of ``SubmissionRow.results`` or ``drafts``."""
    keys = [one["file"]["key"] for one in made["documents"]]
    return keys + [made[name]["key"] for name in ("audit_trail", "merged") if made.get(name)]


def was_erased(session: Session, submission_id: int) -> bool:
    """Of an erased submission the lines of its trail are left."""
    return session.scalar(sa.select(sa.exists().where(TrailRow.submission_id == submission_id))) or False


def unwanted(session: Session, sealed: DocumentsSealed, kept: dict[str, Any] | None, now: datetime) -> None:
    """Files of a sealing that nobody waits for any more, unless they are those that were accepted."""
    keys = [one.file.key for one in sealed.documents] + [sealed.audit_trail.key]
    taken = set(blobs_in(kept)) if kept else set()
    remove_blobs(session, sealed.submission_id, [key for key in keys if key not in taken], now)


def remove_blobs(
    session: Session, submission_id: int, keys: Iterable[str], now: datetime, *, at: datetime | None = None
) -> None:
    """Have the background process delete these files, after the commit or later (``at``)."""
    session.add_all(
        BlobRemovalRow(submission_id=submission_id, key=key, created_at=now, next_attempt_at=at or now)
        for key in dict.fromkeys(keys)
    )
    session.flush()


def _forget_answers(telling: Telling) -> None:
    """Answers to requests are kept for a while to repeat them; those about this submission name one of its secrets.

    Of the answer to its creation the id stays: the same request must not create it again.
    """
    row = telling.found.row
    session = telling.found.session
    replaced = session.scalars(sa.select(ReplacedLinkRow.slug).where(ReplacedLinkRow.submission_id == row.id))
    slugs = [row.slug, *(one.slug for one in telling.found.submitters), *replaced]
    secrets = [*slugs, *(one.uuid for one in telling.attachments)]
    about = sa.or_(*(answers.c.answer.contains(secret, autoescape=True) for secret in secrets))
    recent = sa.and_(answers.c.method.like("submissions.%"), answers.c.at >= row.created_at, about)
    created = [f"{call.service}.{call.method}" for call in (CREATE, CREATE_ONE_OFF)]
    remains = Submission(
        id=row.id,
        slug="",
        status=SubmissionStatus(row.status),
        order=Order(row.order),
        submitters_order=Order(row.order),
        archived=True,
        created_at=row.created_at,
        updated_at=telling.now,
        submitters=[],
    )
    session.execute(sa.delete(answers).where(recent, answers.c.method.not_in(created)))
    session.execute(sa.update(answers).where(recent).values(answer=CREATE.encode(remains).decode()))
