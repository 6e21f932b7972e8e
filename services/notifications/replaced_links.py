"""Signing links that are no longer valid: nothing is sent with them any more.

The news may come before what was to be sent with the link, or after it; what is being sent just now may still leave, and is
then told as every other. What is not sent is told as failed, so that the audit trail says so.
"""

import hashlib
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data.database import for_update
from services.notifications.domain import Kind
from services.notifications.models import MailRow, OutgoingRow, PhoneMessageRow, ReplacedLinkRow


def digest(slug: str | None) -> str | None:
    """Name a link without the secret that it is."""
    return hashlib.sha256(slug.encode()).hexdigest()[:32] if slug else None


def replace(session: Session, submission_id: int, slug: str, at: datetime) -> None:
    """Let what waits with this link expire, and remember the link for what comes late. The submission's row is locked."""
    link = digest(slug)
    if link is None or is_replaced(session, link):
        return
    session.add(ReplacedLinkRow(link_digest=link, submission_id=submission_id))
    for table in (MailRow, PhoneMessageRow):
        with_it = sa.select(table).where(
            table.submission_id == submission_id, table.link_digest == link, table.state != "done"
        )
        for row in session.scalars(for_update(with_it)):
            row.expires_at = at  # an attempt that is under way says what became of it
            if row.state == "due":
                row.next_attempt_at = at


def is_replaced(session: Session, link: str | None) -> bool:
    return link is not None and session.get(ReplacedLinkRow, link) is not None


def why_expired(row: OutgoingRow) -> str:
    """Say why a message is not sent any more: but for codes nothing else expires."""
    if row.kind == Kind.ONE_TIME_CODE:
        return "It could not be sent before it expired"
    return "The signing link was replaced before it could be sent"


def forget(session: Session, submission_id: int) -> None:
    session.execute(sa.delete(ReplacedLinkRow).where(ReplacedLinkRow.submission_id == submission_id))
