"""The removal of all that was made in test mode: asked for in one transaction, done in portions by the background process.

Each submission is removed as any that is erased (``erasing``), so that every service forgets its part; then what is kept of
others that were erased, the hashes of their trails and the receipts, goes as well. A process that is killed leaves the row of
the wiping, and another one goes on.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts import events
from contracts.events import TestModeWiped
from contracts.evidence import erasure
from contracts.evidence.erasure import PARTS, ErasureReason
from contracts.rpc.submissions import test_mode as rpc
from contracts.rpc.submissions.batches import RowStatus
from contracts.runtime.bus.outbox import emit
from contracts.runtime.data.database import leave_work
from contracts.types import SealingStatus
from services.submissions.commands import erasing
from services.submissions.commands.test_mode import clock
from services.submissions.models import (
    BatchLineRow,
    BatchRow,
    BlobRemovalRow,
    ErasureRow,
    SubmissionRow,
    TemplateRow,
    TestWipeRow,
    TrailRow,
)
from services.submissions.outgoing.announce import Announcement
from services.submissions.site import Site
from services.submissions.storage import store
from services.submissions.storage.repeats import once

AT_ONCE = 20
"""Submissions in one transaction."""

SEALING_AWAITED = timedelta(minutes=10)
"""A sealing that is under way ends first: what it makes would be left behind. One that takes longer is not waited for."""


@dataclass(frozen=True)
class Portion:
    """``did``: something was removed. ``left``: something is still to be."""

    did: bool
    left: bool


def ask(session: Session, command: rpc.WipeTestMode, _site: Site, now: datetime) -> rpc.WipedTestMode:
    """Have everything removed that there is of test mode now."""

    def decide() -> rpc.WipedTestMode:
        counts = inventory(session, now)
        tests = sa.select(BatchRow.id).where(BatchRow.test)
        waiting = (BatchLineRow.batch_id.in_(tests), BatchLineRow.status == RowStatus.PENDING.value)
        cancelled = {"status": RowStatus.CANCELLED.value, "input": None}
        # Before it is looked what there is: whoever makes one of these rows is waited for, and no other one is made.
        session.execute(sa.update(BatchLineRow).where(*waiting).values(**cancelled))
        last, removed, batch = (
            session.scalar(sa.select(sa.func.max(number))) or 0
            for number in (SubmissionRow.id, ErasureRow.submission_id, BatchRow.id)
        )
        wipe = TestWipeRow(
            last_submission_id=max(last, removed), last_batch_id=batch, created_at=now, next_attempt_at=now
        )
        session.add(wipe)
        session.flush()
        leave_work(session, TestWipeRow.__tablename__)
        emit(session, events.TEST_MODE_WIPED, TestModeWiped(at=now), subject="test mode")
        return rpc.WipedTestMode(submissions=counts.submissions, batches=counts.batches)

    return once(session, rpc.WIPE, command, decide)


def inventory(session: Session, now: datetime) -> rpc.InTestMode:
    """Count what there is of test mode."""

    def count(row: Any) -> int:
        return session.scalar(sa.select(sa.func.count()).where(row.test)) or 0

    return rpc.InTestMode(
        submissions=count(SubmissionRow),
        batches=count(BatchRow),
        removing=count(ErasureRow),
        due=clock.due(session, now),
    )


def portion(session: Session, wipe: TestWipeRow, site: Site, now: datetime) -> Portion:
    """Remove the next ones of what was there when the wiping was asked for."""
    did = _remove_batch(session, wipe) or _erase_some(session, wipe, site, now) or _forget_some(session, wipe)
    return Portion(did, left=did or _is_left(session, wipe))


def _remove_batch(session: Session, wipe: TestWipeRow) -> bool:
    which = sa.select(BatchRow.id).where(BatchRow.test, BatchRow.id <= wipe.last_batch_id).order_by(BatchRow.id)
    if (batch_id := session.scalar(which.limit(1))) is None:
        return False
    session.execute(sa.delete(BatchLineRow).where(BatchLineRow.batch_id == batch_id))
    session.execute(sa.delete(BatchRow).where(BatchRow.id == batch_id))
    return True


def _erase_some(session: Session, wipe: TestWipeRow, site: Site, now: datetime) -> bool:
    sealing = sa.and_(
        SubmissionRow.sealing_status == SealingStatus.SEALING.value, SubmissionRow.sealing_since > now - SEALING_AWAITED
    )
    which = sa.select(SubmissionRow.id).where(*_of(SubmissionRow, SubmissionRow.id, wipe), sa.not_(_sure(sealing)))
    numbers = list(session.scalars(which.order_by(SubmissionRow.id).limit(AT_ONCE)))
    why = ErasureReason(reason=erasure.TEST_MODE)
    for number in numbers:
        if (submission := store.lock(session, number)) is not None:
            erasing.erase(Announcement(submission, site, store.moment(submission, now)), why)
    return bool(numbers)


def _forget_some(session: Session, wipe: TestWipeRow) -> bool:
    """Forget those submissions that are gone in every service."""
    which = sa.select(ErasureRow).where(*_of(ErasureRow, ErasureRow.submission_id, wipe))
    gone = [row for row in session.scalars(which) if row.parts.keys() >= set(PARTS)][:AT_ONCE]
    numbers = [row.submission_id for row in gone]
    for table in (TrailRow, BlobRemovalRow, ErasureRow):
        session.execute(sa.delete(table).where(table.submission_id.in_(numbers)))
    if numbers:
        return True
    # Those that are made later may be used at this very moment.
    unused = ~sa.exists().where(SubmissionRow.template_id == TemplateRow.id)
    which_templates = (TemplateRow.test, TemplateRow.created_at <= wipe.created_at, unused)
    return bool(session.execute(sa.delete(TemplateRow).where(*which_templates)).rowcount)  # type: ignore[attr-defined]


def _is_left(session: Session, wipe: TestWipeRow) -> bool:
    submissions = sa.exists().where(*_of(SubmissionRow, SubmissionRow.id, wipe))
    removed = sa.exists().where(*_of(ErasureRow, ErasureRow.submission_id, wipe))
    return session.scalar(sa.select(sa.or_(submissions, removed))) or False


def _of(row: Any, number: Any, wipe: TestWipeRow) -> tuple[sa.ColumnElement[bool], ...]:
    return row.test, number <= wipe.last_submission_id


def _sure(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """The condition, false where it is not known."""
    return sa.func.coalesce(condition, sa.false())
