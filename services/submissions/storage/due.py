"""What is due by a time, in order, from a cursor on."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute, Session

from services.submissions.models import SubmissionRow

Due = tuple[datetime, int]
"""When a submission was due, and its id: they are gone through in this order."""


def list_due(
    session: Session,
    at: InstrumentedAttribute[datetime | None],
    conditions: Iterable[Any],
    after: Due | None,
    limit: int,
) -> list[Due]:
    """List the submissions for which ``conditions`` hold, by their time in the column ``at``, the earliest first; those that
    come ``after``. Those that have no such time are left out."""
    query = sa.select(at, SubmissionRow.id).where(*conditions).order_by(at, SubmissionRow.id)
    if after is not None:
        moment, last = after
        query = query.where(at >= moment, sa.or_(at > moment, sa.and_(at == moment, SubmissionRow.id > last)))
    return [(due_at, number) for due_at, number in session.execute(query.limit(limit)) if due_at is not None]
