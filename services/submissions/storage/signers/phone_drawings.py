"""Links on which a telephone delivers one drawing for a form that is open elsewhere (``rpc.submissions.signing.phone``).

Of the token and of what the telephone's browser is known by only digests are kept, so that a copy of the row delivers nothing.
A link is good for minutes, for the first telephone that connects, and for one drawing.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import not_found
from contracts.rpc.submissions.signing.phone import PhoneStep
from contracts.types import FieldDefinition
from services.submissions.models import PhoneDrawingRow, SubmitterRow
from services.submissions.storage import rates, store
from services.submissions.storage.rates import Rate

LIFETIME = timedelta(minutes=5)
KEPT = timedelta(days=2)
STARTS = Rate(most=40, within=timedelta(days=1))
TOO_MANY = "Too many links for a phone were made for this form today. Please draw here, or try again tomorrow."


def begin(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    field: FieldDefinition,
    token_digest: str,
    now: datetime,
) -> PhoneDrawingRow:
    """Make the link that counts from now on. ServiceError ``rate_limited`` when there were too many."""
    session = submission.session
    rates.count(session, f"phone drawings of submitter:{submitter.id}", STARTS, now, refusal=TOO_MANY)
    cancel_all(session, submitter, now)
    row = PhoneDrawingRow(
        submission_id=submission.row.id,
        submitter_id=submitter.id,
        field_uuid=field.uuid,
        token_digest=token_digest,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    session.add(row)
    session.flush()
    return row


def step(row: PhoneDrawingRow, now: datetime) -> PhoneStep:
    """Tell how far it is, as far as the row knows."""
    if row.cancelled_at is not None:
        return PhoneStep.OVER
    if row.attachment_uuid is not None:
        return PhoneStep.DELIVERED
    if now >= row.expires_at:
        return PhoneStep.OVER
    return PhoneStep.WAITING if row.device_digest is None else PhoneStep.CONNECTED


def row_of_token(session: Session, token_digest: str) -> PhoneDrawingRow:
    """The row of this link. Raises ServiceError("not_found")."""
    row = session.scalar(_query(token_digest))
    if row is None:
        raise not_found("Link")
    return row


def locked(session: Session, token_digest: str) -> tuple[store.LoadedSubmission, PhoneDrawingRow]:
    """The row of this link, and its submission, locked. Raises ServiceError("not_found")."""
    row = session.scalar(_query(token_digest))
    submission = store.lock(session, row.submission_id) if row is not None else None
    again = session.scalar(_query(token_digest), execution_options={"populate_existing": True}) if submission else None
    if submission is None or again is None:  # erased while one waited for the lock
        raise not_found("Link")
    return submission, again


def cancel_all(session: Session, submitter: SubmitterRow, now: datetime) -> None:
    """The links of this signer are good for nothing any more."""
    mine = sa.update(PhoneDrawingRow).where(
        PhoneDrawingRow.submitter_id == submitter.id, PhoneDrawingRow.cancelled_at.is_(None)
    )
    session.execute(mine.values(cancelled_at=now))


def forget(session: Session, now: datetime) -> None:
    """Drop links that were over long ago."""
    session.execute(sa.delete(PhoneDrawingRow).where(PhoneDrawingRow.created_at < now - KEPT))


def _query(token_digest: str) -> sa.Select[PhoneDrawingRow]:
    return sa.select(PhoneDrawingRow).where(PhoneDrawingRow.token_digest == token_digest)
