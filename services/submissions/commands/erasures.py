"""What is known of submissions that were removed for good: which parts are gone, and the receipt for all of it.

Each service says when it has deleted its part (``ErasureConfirmed``); of the files ``blob_removals`` knows. With the last of
them the receipt is written, and rendering signs it. Who has not confirmed is asked again: a service of an older version does
not, and one whose database was restored may have what it had deleted.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts import events
from contracts.events import Erased, ErasureConfirmed, ErasureReceiptDue, ErasureReceiptSigned
from contracts.evidence import erasure
from contracts.evidence.erasure import FILES, PARTS, ErasedDocument, ErasedPart, ErasureReason, ErasureReceipt
from contracts.evidence.statements import LineReference
from contracts.runtime.bus.outbox import emit, first_time
from contracts.runtime.data.database import for_update
from services.submissions.models import BlobRemovalRow, ErasureRow, StatementRow
from services.submissions.outgoing.announce import Announcement

ASKED_AGAIN = timedelta(hours=6)
"""After so long those who have not confirmed are asked again, and rendering for a signature."""

TOO_LONG = timedelta(hours=2)
"""An operator should look: well above what a service takes that was just restarted, and the half hour for which an attempt at a
sealing may keep rendering."""

AT_ONCE = 200


def begin(
    announcement: Announcement,
    why: ErasureReason,
    documents: Iterable[ErasedDocument],
    made_from: list[str],
    storage: str,
) -> None:
    """Note that the submission is being removed: while its rows are still there, in the transaction that forgets them.
    ``made_from`` is what rendering is told (``Erased.documents``)."""
    submission = announcement.submission
    session, row = submission.session, submission.row
    statements = sa.select(sa.func.count()).where(StatementRow.submission_id == row.id)
    deleted = {
        "submitters": len(submission.submitters),
        "values": sum(len(submitter.values) for submitter in submission.submitters),
        "attachments": len(announcement.attachments),
        "events": row.trail_length,
        "statements": session.scalar(statements) or 0,
    }
    own_part = ErasedPart(at=announcement.now, deleted=deleted, storage=storage)
    session.add(
        ErasureRow(
            submission_id=row.id,
            template_id=row.template_id,
            created_by_id=row.created_by_id,
            test=row.test,
            erased_at=announcement.now,
            why=why.model_dump(mode="json"),
            trail_length=row.trail_length,
            trail_hash=row.trail_hash,
            documents=[document.model_dump(mode="json") for document in documents],
            made_from=made_from,
            parts={"submissions": own_part.model_dump(mode="json")},
            asked_at=announcement.now,
        )
    )


def confirm(session: Session, event_id: str, service: str, confirmed: ErasureConfirmed) -> None:
    """A service has deleted its part. What it says again changes nothing, nor what it says of a submission that is there: an
    older version has removed that one, or this database was restored since."""
    if not first_time(session, f"{service} erased", event_id):
        return
    row = _locked(session, confirmed.submission_id)
    if row is None or service in row.parts:
        return
    _note(row, service, ErasedPart(at=confirmed.at, deleted=confirmed.deleted))
    _complete(session, row)


def files_gone(session: Session) -> list[int]:
    """List submissions that were removed and of which no file is left to be removed, unless that is known."""
    left = sa.exists().where(BlobRemovalRow.submission_id == ErasureRow.submission_id, BlobRemovalRow.state != "done")
    open_ones = sa.select(ErasureRow.submission_id).where(_OPEN, ErasureRow.files_gone_at.is_(None), ~left)
    return list(session.scalars(open_ones.order_by(ErasureRow.erased_at).limit(AT_ONCE)))


def note_files(session: Session, submission_id: int, now: datetime) -> None:
    """The files of a submission are gone from the store. Of how many it is known as long as ``blob_removals`` keeps them."""
    row = _locked(session, submission_id)
    if row is None or row.files_gone_at is not None:
        return
    row.files_gone_at = now
    of_it = sa.select(sa.func.count(sa.distinct(BlobRemovalRow.key))).where(
        BlobRemovalRow.submission_id == submission_id
    )
    _note(row, FILES, ErasedPart(at=now, deleted={"files": session.scalar(of_it) or 0}))
    _complete(session, row)


def to_ask(session: Session, now: datetime) -> list[int]:
    """List those removed submissions whose receipt has been waited for too long since somebody was asked."""
    waiting = sa.select(ErasureRow.submission_id).where(_OPEN, ErasureRow.asked_at <= now - ASKED_AGAIN)
    return list(session.scalars(waiting.order_by(ErasureRow.asked_at).limit(AT_ONCE)))


def ask(session: Session, submission_id: int, now: datetime) -> None:
    """Ask again: everybody to delete what they have, or rendering to sign the receipt that is written."""
    row = _locked(session, submission_id)
    if row is None or row.signature is not None:
        return
    row.asked_at = now
    if row.receipt is not None:
        _order_signature(session, row, row.receipt)
    else:
        _have_deleted(session, row)


def delete_again(session: Session, submission_id: int) -> None:
    """Have every service delete what it has of a submission that was removed, though it has confirmed that before."""
    row = _locked(session, submission_id)
    if row is not None:
        _have_deleted(session, row)


def accept_signature(session: Session, event_id: str, signed: ErasureReceiptSigned) -> None:
    """The receipt is signed; the first signature of what it says is kept."""
    if not first_time(session, "erasure receipt signed", event_id):
        return
    row = _locked(session, signed.submission_id)
    if row is None or row.receipt is None or row.signature is not None or erasure.digest(row.receipt) != signed.sha256:
        return
    row.signature, row.stamped = signed.signature, signed.stamped


def backlog(session: Session) -> tuple[int, datetime | None]:
    """Return how many removed submissions have no signed receipt yet, and when the first of them was removed."""
    count, oldest = session.execute(sa.select(sa.func.count(), sa.func.min(ErasureRow.erased_at)).where(_OPEN)).one()
    return count, oldest


_OPEN = ErasureRow.signature.is_(None)


def _locked(session: Session, submission_id: int) -> ErasureRow | None:
    row: ErasureRow | None = session.scalar(
        for_update(sa.select(ErasureRow).where(ErasureRow.submission_id == submission_id))
    )
    return row


def _note(row: ErasureRow, part: str, gone: ErasedPart) -> None:
    row.parts = {**row.parts, part: gone.model_dump(mode="json")}


def _complete(session: Session, row: ErasureRow) -> None:
    """Write the receipt when all parts are gone, and have it signed."""
    if row.receipt is not None or not row.parts.keys() >= set(PARTS) or row.why["reason"] == erasure.TEST_MODE:
        return
    parts = {part: ErasedPart.model_validate(row.parts[part]) for part in PARTS}
    receipt = ErasureReceipt(
        submission=row.submission_id,
        why=ErasureReason.model_validate(row.why),
        erased_at=row.erased_at,
        completed_at=max(part.at for part in parts.values()),
        trail=LineReference(number=row.trail_length, hash=row.trail_hash),
        documents=[ErasedDocument.model_validate(document) for document in row.documents],
        parts=parts,
    )
    row.receipt = erasure.encoded(receipt)
    _order_signature(session, row, row.receipt)


def _have_deleted(session: Session, row: ErasureRow) -> None:
    forget = row.why["reason"] == erasure.TEST_MODE
    again = Erased(submission_id=row.submission_id, documents=row.made_from, forget=forget)
    emit(session, events.ERASURE_ASKED, again, subject=_subject(row))


def _order_signature(session: Session, row: ErasureRow, text: str) -> None:
    due = ErasureReceiptDue(submission_id=row.submission_id, sha256=erasure.digest(text), text=text, test=row.test)
    emit(session, events.ERASURE_RECEIPT_DUE, due, subject=_subject(row))


def _subject(row: ErasureRow) -> str:
    """Not that of the submission: what was told of it is forgotten (``outbox.forget``)."""
    return f"erasure:{row.submission_id}"
