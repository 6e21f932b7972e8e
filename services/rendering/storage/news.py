"""When the latest news of each kind about a submission was told.

Whoever takes them counts by the moments in them, as they may come late, twice or out of order. A clock that was put back, or
that is behind another replica's, must not make new ones look old.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import Event
from contracts.runtime.data.database import for_update, insert_into
from services.rendering.models import News

_NEXT = timedelta(milliseconds=1)

KEPT = timedelta(days=90)
"""No clock is put back by more."""


def moment(session: Session, event: Event, submission_id: int, now: datetime) -> datetime:
    """Return the moment to tell news at: now, or just after the latest of the same kind about the submission."""
    first = insert_into(session, News).values(submission_id=submission_id, event=event.type, at=now)
    if session.execute(first.on_conflict_do_nothing().returning(News.at)).first() is not None:
        return now
    latest = sa.select(News).where(News.submission_id == submission_id, News.event == event.type)
    row: News | None = session.scalars(for_update(latest).execution_options(populate_existing=True)).one_or_none()
    if row is None:  # erased meanwhile, by another process
        return moment(session, event, submission_id, now)
    row.at = max(now, row.at + _NEXT)
    return row.at


def erase(session: Session, submission_id: int) -> None:
    session.execute(sa.delete(News).where(News.submission_id == submission_id))


def forget(session: Session, now: datetime) -> None:
    """Forget what nobody has heard of for long."""
    session.execute(sa.delete(News).where(News.at < now - KEPT))
