"""Erasing what has been kept for as long as it should be (docs/retention.md)."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.evidence import erasure
from contracts.evidence.erasure import ErasureReason
from contracts.types import SealingStatus
from services.submissions.commands import erasing
from services.submissions.models import SubmissionRow
from services.submissions.outgoing.announce import Announcement
from services.submissions.rules import retention
from services.submissions.site import Site
from services.submissions.storage import store
from services.submissions.storage.due import Due, list_due


def due(session: Session, now: datetime, after: Due | None, limit: int) -> list[Due]:
    """List time and id of the submissions to erase, the longest overdue first; those that come ``after``."""
    return list_due(session, SubmissionRow.erase_at, _due_by(now), after, limit)


def erase(session: Session, submission_id: int, site: Site, due_by: datetime, now: datetime) -> bool:
    """Erase it, if it is still due by ``due_by`` once its row is locked. Returns whether it was."""
    submission = store.lock(session, submission_id)
    still_due = sa.exists().where(SubmissionRow.id == submission_id, *_due_by(due_by))
    if submission is None or not session.scalar(sa.select(still_due)):
        return False
    row, account = submission.row, submission.snapshot.account
    keep_days = retention.days(row.preferences, account)
    why = ErasureReason(reason=erasure.RETENTION, keep_days=keep_days, due_at=row.erase_at)
    erasing.erase(Announcement(submission, site, store.moment(submission, now)), why)
    return True


def backlog(session: Session, now: datetime) -> tuple[int, int]:
    """Count the submissions that are due and not erased yet, and those that are on legal hold."""
    overdue = sa.select(sa.func.count()).where(*_due_by(now))
    on_hold = sa.select(sa.func.count()).where(SubmissionRow.legal_hold)
    return session.scalar(overdue) or 0, session.scalar(on_hold) or 0


def _due_by(moment: datetime) -> tuple[sa.ColumnElement[bool], ...]:
    """Say which submissions are to be erased by then. A sealing that is under way ends first: what it makes would be left
    behind."""
    sealing = SubmissionRow.sealing_status
    return (
        SubmissionRow.erase_at.is_not(None),
        SubmissionRow.erase_at <= moment,
        ~SubmissionRow.legal_hold,
        sa.or_(sealing.is_(None), sealing != SealingStatus.SEALING.value),
    )
