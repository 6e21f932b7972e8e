"""The clock of test mode. Nothing has a time of its own: what the submissions of test mode wait for is moved nearer.

So whatever asks whether a time is over (sweeps, the signing page, lists) asks as for any other submission, and nothing that is
live can be meant. What has happened stays where it was: the audit trail says that the clock was moved on, and by how much. All
of it is one transaction, which a request that comes again does not repeat.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import invalid
from contracts.rpc.submissions import test_mode as rpc
from contracts.runtime.data.database import leave_work
from contracts.types import iso
from services.submissions.models import (
    CodeRow,
    HandoverRow,
    IdentityCheckRow,
    PhoneDrawingRow,
    ReminderRow,
    SubmissionRow,
)
from services.submissions.site import Site
from services.submissions.storage import store, trail
from services.submissions.storage.repeats import once

_AT_ONCE = 100
_TESTS = sa.select(SubmissionRow.id).where(SubmissionRow.test)
_EXPIRES = (SubmissionRow.status == "pending", SubmissionRow.unfinished, SubmissionRow.expire_at.is_not(None))
_WAITS = (ReminderRow.state == "due", ReminderRow.submission_id.in_(_TESTS))
_LINKS: tuple[Any, ...] = (CodeRow, HandoverRow, IdentityCheckRow, PhoneDrawingRow)
"""Rows with an end (``expires_at``): one-time codes, and what a link or a device is good for."""


def advance(session: Session, command: rpc.AdvanceTestClock, _site: Site, now: datetime) -> rpc.AdvancedTestClock:
    """Let time go by for what there is of test mode. Raises ServiceError("invalid") for a moment that is over."""

    def decide() -> rpc.AdvancedTestClock:
        by = _by(command, now)
        before = due(session, now)
        numbers = list(session.scalars(_waiting()))
        for start in range(0, len(numbers), _AT_ONCE):
            _move(session, numbers[start : start + _AT_ONCE], by, trail.actor_data(command.actor), now)
        for reminder in session.scalars(sa.select(ReminderRow).where(*_WAITS)):
            reminder.next_attempt_at -= by
        for table in _LINKS:
            for row in session.scalars(sa.select(table).where(table.submission_id.in_(_TESTS), table.expires_at > now)):
                row.expires_at -= by
        session.flush()
        leave_work(session, ReminderRow.__tablename__)
        after = due(session, now)
        more = rpc.DueInTestMode(
            expire=after.expire - before.expire,
            reminders=after.reminders - before.reminders,
            erase=after.erase - before.erase,
        )
        return rpc.AdvancedTestClock(seconds=int(by.total_seconds()), submissions=len(numbers), due=more)

    return once(session, rpc.ADVANCE, command, decide)


def due(session: Session, now: datetime) -> rpc.DueInTestMode:
    """Count what of test mode is due and not done yet."""

    def count(table: Any, *conditions: Any) -> int:
        return session.scalar(sa.select(sa.func.count()).select_from(table).where(*conditions)) or 0

    return rpc.DueInTestMode(
        expire=count(SubmissionRow, SubmissionRow.id.in_(due_to_expire(now))),
        reminders=count(ReminderRow, *_WAITS, ReminderRow.next_attempt_at <= now),
        erase=count(SubmissionRow, SubmissionRow.id.in_(due_to_erase(now))),
    )


def due_to_expire(now: datetime) -> sa.Select[int]:
    """The submissions of test mode whose time is over and that nobody has told of it."""
    over = (SubmissionRow.expire_at <= now, SubmissionRow.archived_at.is_(None))
    return sa.select(SubmissionRow.id).where(SubmissionRow.test, *_EXPIRES, *over)


def due_to_erase(now: datetime) -> sa.Select[int]:
    """The submissions of test mode that have been kept for as long as they should be."""
    over = (SubmissionRow.erase_at <= now, ~SubmissionRow.legal_hold)
    return sa.select(SubmissionRow.id).where(SubmissionRow.test, *over)


def _by(command: rpc.AdvanceTestClock, now: datetime) -> timedelta:
    if command.until is None:
        if command.seconds is None:
            raise invalid("advance is required, or now", "advance", "is required, or now")
        return timedelta(seconds=command.seconds)
    by = command.until - now
    if by <= timedelta(0):
        raise invalid("now must be in the future: the clock is never moved back", "now", "must be in the future")
    if by.total_seconds() > rpc.LONGEST_ADVANCE:
        raise invalid("now must be within ten years", "now", "must be within ten years")
    return by


def _waiting() -> sa.Select[int]:
    """The submissions of test mode that wait for a time of their own."""
    reminded = sa.exists().where(ReminderRow.submission_id == SubmissionRow.id, ReminderRow.state == "due")
    waits = sa.or_(sa.and_(*_EXPIRES), SubmissionRow.erase_at.is_not(None), reminded)
    return sa.select(SubmissionRow.id).where(SubmissionRow.test, waits).order_by(SubmissionRow.id)


def _move(session: Session, numbers: Sequence[int], by: timedelta, actor: dict[str, Any], now: datetime) -> None:
    """Bring what these submissions wait for nearer, and say so on their trails."""
    for submission in store.lock_all(session, numbers):
        row = submission.row
        data: dict[str, Any] = {**actor, "seconds": int(by.total_seconds())}
        if row.expire_at is not None and row.status == "pending":
            row.expire_at = row.expire_at - by
            data["expire_at"] = iso(row.expire_at)
        if row.erase_at is not None:
            row.erase_at = row.erase_at - by
            data["erase_at"] = iso(row.erase_at)
        at = store.moment(submission, now)
        row.updated_at = at
        trail.append(submission, [trail.Line(trail.ADVANCE_TEST_CLOCK, None, data)], at)
    session.flush()
