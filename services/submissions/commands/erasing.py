"""Removing a submission for good (decisions, 'Permanent deletion').

Rows go at once; files through rows of ``blob_removals``, so that a crash leaves none behind. The documents that the template
was made with stay: they are the template's and that of its other submissions. Those of a one-off submission are its own; their
digests are told, so that rendering removes the pictures of their pages, unless another submission brought the same along.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import DocumentsSealed
from contracts.evidence import statements
from contracts.evidence.erasure import ErasedDocument, ErasureReason
from contracts.rpc.submissions.api import CREATE, CREATE_ONE_OFF
from contracts.runtime.bus import outbox
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import for_update, leave_work
from contracts.runtime.data.tables import answers
from contracts.types import Erasure, Order, Submission, SubmissionStatus
from services.submissions.commands import erasures
from services.submissions.models import (
    AttachmentRow,
    BatchLineRow,
    BlobRemovalRow,
    CodeRow,
    IdentityCheckRow,
    OwnDocumentRow,
    ReplacedLinkRow,
    SnapshotRow,
    StatementRow,
    SubmissionRow,
    SubmitterRow,
    TrailRow,
)
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Announcement
from services.submissions.planning.preparing import PREFIX
from services.submissions.storage import trail

_SEALED_BESIDES = (("audit_trail", "audit_trail"), ("combined", "merged"))
"""What receipts call the files of ``SubmissionRow.results`` that are no documents, and its key."""


def erase(announcement: Announcement, why: ErasureReason) -> Erasure:
    """Forget the submission; the trail keeps types, times and hashes. Tells the services that keep anything of it, and notes
    what they have to confirm. Returns what can be said at once."""
    submission, session = announcement.submission, announcement.submission.session
    row = submission.row
    trail.append(submission, [trail.Line(trail.ERASE_SUBMISSION)], announcement.now)
    trail.erase(session, row.id)
    session.flush()
    brands = [submitter.branding for submitter in submission.submitters] + [
        invitee["branding"] for invitee in row.invitees
    ]
    brand_keys = [file["key"] for brand in brands for file in brand.values()]
    stated = sa.select(StatementRow.submitter_id, StatementRow.sha256).where(StatementRow.submission_id == row.id)
    proofs = [key for reference in session.execute(stated) for key in statements.keys(row.id, *reference)]
    own_files = own_documents(submission.snapshot.documents)
    documents = _nobody_elses(session, row.id, own_files)
    keys = [
        *blobs_of(row, announcement.attachments),
        *(file["key"] for file in own_files),
        *brand_keys,
        *proofs,
    ]
    remove_blobs(session, row.id, keys, announcement.now)
    at_once = sa.update(BlobRemovalRow).where(BlobRemovalRow.submission_id == row.id, BlobRemovalRow.state == "due")
    session.execute(at_once.values(next_attempt_at=announcement.now))
    leave_work(session, BlobRemovalRow.__tablename__)
    of_batch = sa.update(BatchLineRow).where(BatchLineRow.submission_id == row.id)
    session.execute(of_batch.values(external_id=None))
    _forget_answers(announcement)
    outbox.forget(session, announcement.subject)
    announce.erased(announcement, documents, why.reason)
    storage = "overwritten" if scrubbing.writes_anew(session) else "left_to_vacuum"
    erasures.begin(announcement, why, deleted_documents(submission.snapshot.documents, row.results), documents, storage)
    scrubbing.ask(session)
    of_it = (
        CodeRow,
        IdentityCheckRow,
        AttachmentRow,
        ReplacedLinkRow,
        StatementRow,
        SubmitterRow,
        OwnDocumentRow,
        SnapshotRow,
    )
    for table in of_it:
        session.execute(sa.delete(table).where(table.submission_id == row.id))
    session.execute(sa.delete(SubmissionRow).where(SubmissionRow.id == row.id))
    session.expunge_all()
    return Erasure(at=announcement.now, storage=storage)


def blobs_of(row: SubmissionRow, attachments: Iterable[AttachmentRow]) -> list[str]:
    """The keys of the files that belong to this submission alone."""
    keys = [attachment.file["key"] for attachment in attachments]
    for results in (row.results, row.drafts):
        if results:
            keys += blobs_in(results)
    return keys


def own_documents(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files (BlobRefs) that came with a one-off submission or were filled for this one, of its snapshot's documents."""
    files = [document[part] for document in documents for part in ("file", "original")]
    return [file for file in files if file["key"].startswith(PREFIX)]


def deleted_documents(documents: Iterable[dict[str, Any]], results: dict[str, Any] | None) -> list[ErasedDocument]:
    """List the documents that go with the submission, those of its snapshot that are its own and those that were sealed, each
    once. What its parties attached is not among them: from the hash of a drawn name somebody could guess the name."""
    kind_and_file = [
        (kind, document[part])
        for document in documents
        for kind, part in (("original", "original"), ("prepared", "file"))
        if document[part]["key"].startswith(PREFIX)
    ]
    for version in (*results.get("earlier", ()), results) if results else ():
        kind_and_file += [("sealed", document["file"]) for document in version["documents"]]
        kind_and_file += [(kind, version[part]) for kind, part in _SEALED_BESIDES if version.get(part)]
    kinds = {file["sha256"]: kind for kind, file in reversed(kind_and_file)}
    return [ErasedDocument(kind=kind, sha256=sha256) for sha256, kind in reversed(kinds.items())]


def record_documents(session: Session, submission_id: int, documents: Iterable[dict[str, Any]]) -> None:
    """Remember which documents are the submission's own, of those of its snapshot."""
    digests = dict.fromkeys(file["sha256"] for file in own_documents(documents))
    session.add_all(OwnDocumentRow(sha256=sha256, submission_id=submission_id) for sha256 in digests)


def _nobody_elses(session: Session, submission_id: int, files: Iterable[dict[str, Any]]) -> list[str]:
    """The digests of these files that no other submission brought along. Of two that are erased at once the second waits for
    the first here, so that one of them has what both had. Whether a template has the same is not asked: pictures of its pages
    are made anew."""
    digests = {file["sha256"] for file in files}
    rows = sa.select(OwnDocumentRow).where(OwnDocumentRow.sha256.in_(digests))
    in_order = rows.order_by(OwnDocumentRow.sha256, OwnDocumentRow.submission_id)
    digests_of_others = {
        row.sha256 for row in session.scalars(for_update(in_order)) if row.submission_id != submission_id
    }
    return sorted(digests - digests_of_others)


def blobs_in(results: dict[str, Any]) -> list[str]:
    """The keys of ``SubmissionRow.results`` or ``drafts``."""
    keys = [document["file"]["key"] for document in results["documents"]]
    keys += [results[name]["key"] for name in ("audit_trail", "merged") if results.get(name)]
    return keys + [key for earlier in results.get("earlier", ()) for key in blobs_in(earlier)]


def was_erased(session: Session, submission_id: int) -> bool:
    """Of an erased submission the lines of its trail are left."""
    return session.scalar(sa.select(sa.exists().where(TrailRow.submission_id == submission_id))) or False


def unwanted(session: Session, sealed: DocumentsSealed, results: dict[str, Any] | None, now: datetime) -> None:
    """Files of a sealing that nobody waits for any more, unless they are those that were accepted."""
    keys = [document.file.key for document in sealed.documents] + [sealed.audit_trail.key]
    keys += [sealed.combined.key] if sealed.combined else []
    accepted = set(blobs_in(results)) if results else set()
    remove_blobs(session, sealed.submission_id, [key for key in keys if key not in accepted], now)


def remove_blobs(
    session: Session, submission_id: int, keys: Iterable[str], now: datetime, *, at: datetime | None = None
) -> None:
    """Have the background process delete these files, after the commit or later (``at``)."""
    session.add_all(
        BlobRemovalRow(submission_id=submission_id, key=key, created_at=now, next_attempt_at=at or now)
        for key in dict.fromkeys(keys)
    )
    session.flush()


def _forget_answers(announcement: Announcement) -> None:
    """Answers to requests are kept for a while to repeat them; those about this submission name one of its secrets.

    Of the answer to its creation the id stays: the same request must not create it again.
    """
    row = announcement.submission.row
    session = announcement.submission.session
    replaced = session.scalars(sa.select(ReplacedLinkRow.slug).where(ReplacedLinkRow.submission_id == row.id))
    slugs = [row.slug, *(submitter.slug for submitter in announcement.submission.submitters), *replaced]
    secrets = [*slugs, *(attachment.uuid for attachment in announcement.attachments)]
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
        updated_at=announcement.now,
        submitters=[],
    )
    session.execute(sa.delete(answers).where(recent, answers.c.method.not_in(created)))
    session.execute(sa.update(answers).where(recent).values(answer=CREATE.encode(remains).decode()))
