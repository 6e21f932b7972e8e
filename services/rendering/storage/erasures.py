"""Submissions that were removed for good: what was deleted of them, and that it is told once their files are gone; the receipts
that are to be signed."""

import base64
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.events import (
    ERASURE_RECEIPT_SIGNED,
    RENDERINGS_ERASED,
    ErasureConfirmed,
    ErasureReceiptDue,
    ErasureReceiptSigned,
)
from contracts.runtime.bus.outbox import emit, first_time
from contracts.runtime.data.database import for_update, insert_into, leave_work
from services.rendering import queries
from services.rendering.models import (
    ArchivedFile,
    CertsignJob,
    Confirmation,
    ErasureReceipt,
    ErasureRow,
    Result,
    SealJob,
    StampedSeal,
    StatementRow,
)

SWEPT_AFTER = timedelta(minutes=25)
"""Once the lease of an attempt that was under way has ended, what it has written is removed: within the longest that an attempt
takes (``background.LIMIT``) and two sweeps."""

RECEIPTS_KEPT = timedelta(days=90)


def busy_until(session: Session, submission_id: int) -> datetime | None:
    """Return until when an attempt at anything of the submission may still be under way; None when none is."""
    tables: tuple[Any, ...] = (SealJob, CertsignJob, Confirmation, StampedSeal, ArchivedFile, StatementRow)
    leases = [
        session.scalar(
            sa.select(sa.func.max(table.leased_until)).where(
                table.submission_id == submission_id, table.state == "due", table.leased_by.is_not(None)
            )
        )
        for table in tables
    ]
    return max((lease for lease in leases if lease is not None), default=None)


def statements(session: Session, submission_id: int) -> int:
    """Count the statements that are kept of a submission."""
    count = sa.select(sa.func.count()).where(
        StatementRow.submission_id == submission_id, StatementRow.erased_at.is_(None)
    )
    return session.scalar(count) or 0


def begin(
    session: Session,
    submission_id: int,
    deleted: dict[str, int],
    removal: str | None,
    busy: datetime | None,
    now: datetime,
    *,
    is_requested: bool,
) -> None:
    """Note what was deleted. When it ``is_requested`` again, not only told twice, it is confirmed again: with what was deleted
    then, or the first time."""
    row = session.scalar(for_update(sa.select(ErasureRow).where(ErasureRow.submission_id == submission_id)))
    if row is None:
        row = ErasureRow(submission_id=submission_id, erased_at=now, deleted={}, ready_at=now)
        session.add(row)
    row.deleted = {kind: max(count, row.deleted.get(kind, 0)) for kind, count in deleted.items()}
    row.removal = removal or row.removal
    if is_requested:
        row.ready_at = now if busy is None else busy + SWEPT_AFTER
        row.told_at = None


def to_tell(session: Session, now: datetime) -> list[int]:
    """List the submissions that were removed with all their files, of which that was not told yet."""
    files_left = sa.exists().where(Result.kind == queries.REMOVAL, Result.digest == ErasureRow.removal)
    gone = sa.select(ErasureRow.submission_id).where(
        ErasureRow.told_at.is_(None), ErasureRow.ready_at <= now, ~files_left
    )
    return list(session.scalars(gone.order_by(ErasureRow.ready_at).limit(200)))


def tell(session: Session, submission_id: int, now: datetime) -> None:
    """Say that nothing of the submission is left here."""
    row = session.scalar(for_update(sa.select(ErasureRow).where(ErasureRow.submission_id == submission_id)))
    if row is None or row.told_at is not None:
        return
    row.told_at = now
    confirmed = ErasureConfirmed(submission_id=submission_id, at=now, deleted=row.deleted)
    emit(session, RENDERINGS_ERASED, confirmed, subject=_subject(submission_id))


def accept_receipt(session: Session, envelope: Envelope, due: ErasureReceiptDue, now: datetime) -> None:
    """Have a receipt signed; asked for again, once more, because the signature has not reached whoever asks."""
    if not first_time(session, "erasure receipt", envelope.id):
        return
    row = {
        "sha256": due.sha256,
        "submission_id": due.submission_id,
        "text": due.text,
        "test": due.test,
        "created_at": now,
        "next_attempt_at": now,
        "state": "due",
        "attempts": 0,
    }
    again = {"state": "due", "attempts": 0, "next_attempt_at": now, "finished_at": None}
    insert = insert_into(session, ErasureReceipt).values(**row)
    ended = ErasureReceipt.state != "due"
    session.execute(insert.on_conflict_do_update(index_elements=["sha256"], set_=again, where=ended))
    leave_work(session, ErasureReceipt.__tablename__)


def finish_receipt(session: Session, row: ErasureReceipt, signature: bytes, *, stamped: bool) -> None:
    """A receipt is signed: say so."""
    signed = ErasureReceiptSigned(
        submission_id=row.submission_id,
        sha256=row.sha256,
        signature=base64.b64encode(signature).decode(),
        stamped=stamped,
    )
    emit(session, ERASURE_RECEIPT_SIGNED, signed, subject=_subject(row.submission_id))


def forget_receipts(session: Session, now: datetime) -> None:
    """Drop the orders of receipts that were signed long ago."""
    old = sa.and_(ErasureReceipt.state == "done", ErasureReceipt.finished_at < now - RECEIPTS_KEPT)
    session.execute(sa.delete(ErasureReceipt).where(old))


def _subject(submission_id: int) -> str:
    """Not that of the submission: what was told of it is forgotten (``outbox.forget``)."""
    return f"erasure:{submission_id}"
