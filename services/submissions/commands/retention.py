"""Erasing what has been kept for as long as it should be (docs/retention.md)."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.types import SealingStatus
from services.submissions.commands import erasing
from services.submissions.models import SubmissionRow
from services.submissions.outgoing.announce import Announcement
from services.submissions.site import Site
from services.submissions.storage import store


def due(session: Session, now: datetime, after: tuple[datetime, int] | None, limit: int) -> list[tuple[datetime, int]]:
    """List time and id of the submissions to erase, the longest overdue first; those that come ``after``."""
    query = (
        sa.select(SubmissionRow.erase_at, SubmissionRow.id)
        .where(SubmissionRow.erase_at.is_not(None), SubmissionRow.erase_at <= now, *_may_go())
        .order_by(SubmissionRow.erase_at, SubmissionRow.id)
        .limit(limit)
    )
    if after is not None:
        at, last = after
        later = sa.and_(SubmissionRow.erase_at == at, SubmissionRow.id > last)
        query = query.where(SubmissionRow.erase_at >= at, sa.or_(SubmissionRow.erase_at > at, later))
    return [(at, number) for at, number in session.execute(query) if at is not None]


def erase(session: Session, submission_id: int, site: Site, due_by: datetime, now: datetime) -> bool:
    """Erase it, if it is still due by ``due_by`` once its row is locked. Returns whether it was."""
    submission = store.lock(session, submission_id)
    if submission is None:
        return False
    row = submission.row
    if row.erase_at is None or row.erase_at > due_by or row.legal_hold or row.sealing_status == SealingStatus.SEALING:
        return False
    erasing.erase(Announcement(submission, site, store.moment(submission, now)))
    return True


def backlog(session: Session, now: datetime) -> tuple[int, int]:
    """Count the submissions that are due and not erased yet, and those that are on legal hold."""
    overdue = sa.select(sa.func.count()).where(SubmissionRow.erase_at <= now, *_may_go())
    held = sa.select(sa.func.count()).where(SubmissionRow.legal_hold)
    return session.scalar(overdue) or 0, session.scalar(held) or 0


def _may_go() -> tuple[sa.ColumnElement[bool], ...]:
    """A sealing that is under way ends first: what it makes would be left behind."""
    sealing = SubmissionRow.sealing_status
    return ~SubmissionRow.legal_hold, sa.or_(sealing.is_(None), sealing != SealingStatus.SEALING.value)
