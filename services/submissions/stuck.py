"""Submissions that everybody has signed and that are not sealed, and those that were removed for good and have no receipt: what
``countersign stuck`` shows of them."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.evidence.erasure import PARTS
from contracts.rpc.operating import SEAL, Backlog, Stuck, StuckRow
from contracts.runtime.operations.stuck import GIVEN_UP, LATE, SEALING, SHOWN, UNDER_WAY
from contracts.types import SealingStatus
from services.submissions.commands import erasures, retention
from services.submissions.models import ErasureRow, SubmissionRow

_RECEIPTS = "receipts of deletions"
_SOON = timedelta(days=7)

_REMEDIES = {
    SealingStatus.SEALING: (UNDER_WAY, "See what is stuck in rendering, which seals them.", ()),
    SealingStatus.FAILED: (GIVEN_UP, "Mend what the reasons say, then: POST /api/submissions/:id/seal", (SEAL,)),
}


def stuck(session: Session, moment: datetime) -> list[Stuck]:
    """Return the submissions that have waited for their seal since LATE, and those whose sealing has failed."""
    stuck_work = []
    for status, (state, remedy, actions) in _REMEDIES.items():
        condition: sa.ColumnElement[bool] = SubmissionRow.sealing_status == status.value
        if status is SealingStatus.SEALING:
            condition = sa.and_(condition, SubmissionRow.sealing_since <= moment - LATE)
        if count := session.scalar(sa.select(sa.func.count()).select_from(SubmissionRow).where(condition)):
            stuck_work.append(Stuck(SEALING, state, count, _oldest(session, condition), remedy, actions))
    return stuck_work + _without_receipt(session, moment)


def backlog(session: Session, moment: datetime) -> list[Backlog]:
    """Return what is on its way besides due work: submissions being sealed, those that are erased because they were kept for
    long enough (``later``: in the next seven days; ``waiting``: on legal hold), and erasures whose receipts are not signed
    yet."""
    sealing = SubmissionRow.sealing_status == SealingStatus.SEALING.value
    overdue, on_hold = retention.backlog(session, moment)
    soon, _ = retention.backlog(session, moment + _SOON)
    return [
        Backlog(work=SEALING, **_due(session, SubmissionRow.sealing_since, sealing)),
        Backlog(work="deletions by retention", due=overdue, later=soon - overdue, waiting=on_hold),
        Backlog(work=_RECEIPTS, **_due(session, ErasureRow.erased_at, ErasureRow.signature.is_(None))),
    ]


def _due(session: Session, since: Any, condition: sa.ColumnElement[bool]) -> dict[str, Any]:
    count, oldest = session.execute(sa.select(sa.func.count(), sa.func.min(since)).where(condition)).one()
    return {"due": count, "oldest": oldest}


def _without_receipt(session: Session, moment: datetime) -> list[Stuck]:
    waiting = ErasureRow.signature.is_(None), ErasureRow.erased_at <= moment - erasures.TOO_LONG
    count = session.scalar(sa.select(sa.func.count()).where(*waiting)) or 0
    oldest = session.scalars(sa.select(ErasureRow).where(*waiting).order_by(ErasureRow.erased_at).limit(SHOWN))
    rows = tuple(
        StuckRow(str(row.submission_id), row.submission_id, row.erased_at, 0, None, f"waits for {_awaited(row)}")
        for row in oldest
    )
    remedy = "See CountersignErasureUnconfirmed in deploy/RUNBOOK.md."
    return [Stuck(_RECEIPTS, UNDER_WAY, count, rows, remedy)] if count else []


def _awaited(row: ErasureRow) -> str:
    return ", ".join(part for part in PARTS if part not in row.parts) or "its signature"


def _oldest(session: Session, condition: Any) -> tuple[StuckRow, ...]:
    since = sa.func.coalesce(SubmissionRow.sealing_since, SubmissionRow.updated_at)
    query = sa.select(
        SubmissionRow.id, SubmissionRow.sealing_since, SubmissionRow.updated_at, SubmissionRow.sealing_error
    )
    rows = session.execute(query.where(condition).order_by(since, SubmissionRow.id).limit(SHOWN))
    return tuple(
        StuckRow(str(number), number, sealing_since or updated_at, 0, None, error or "")
        for number, sealing_since, updated_at, error in rows
    )
