"""The rows of prepared submissions, each function within a transaction."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, not_found
from contracts.runtime.data.database import for_update
from contracts.types import Actor
from services.gateway.accounts import queries
from services.gateway.accounts.api_keys import key_rows
from services.gateway.models import PreparedRow, User
from services.gateway.prepared.rules import NOUN, check_preparing

LASTS = timedelta(hours=24)
"""For which a link can be confirmed."""
RESUMED = timedelta(hours=24)
"""After it was confirmed for which it is sent under the same ``request_id`` again: the service knows that for longer."""
KEPT = timedelta(days=2)
"""After its end for which an agent is told what became of it."""
MOST_OPEN = 100
"""That one user's agents may have prepared at a time."""

CHANGED, WITHDRAWN = "changed", "withdrawn"
_ENDS = {
    CHANGED: "The template has been changed since this submission was prepared: have it prepared again.",
    WITHDRAWN: "A person has refused to send this submission.",
}


def add(session: Session, row: PreparedRow, now: datetime) -> None:
    """Keep what was prepared. Raises ServiceError("rate_limited") when too much waits already."""
    waiting = sa.select(sa.func.count()).where(
        PreparedRow.user_id == row.user_id,
        PreparedRow.submission_id.is_(None),
        PreparedRow.ended.is_(None),
        PreparedRow.expires_at > now,
    )
    if (session.scalar(waiting) or 0) >= MOST_OPEN:
        raise ServiceError(
            "rate_limited", f"{MOST_OPEN} prepared submissions wait to be confirmed already: confirm or refuse some"
        )
    session.add(row)


def find(session: Session, row_id: str) -> PreparedRow:
    """Return what was prepared. Raises ServiceError("not_found")."""
    row = session.get(PreparedRow, row_id)
    if row is None:
        raise not_found(NOUN)
    session.expunge(row)
    return row


def claim(
    session: Session, row_id: str, sender: bytes, now: datetime, checked: Actor | None = None
) -> PreparedRow | None:
    """Note that it is to be sent in the name of ``sender``; the first one counts. ``checked`` is the ``preparer`` as they were
    when it was asked what their key reaches; None when they are others by now, and nothing is noted. Raises ServiceError when
    it is not to be sent any more: it has ended, it was not confirmed in time, or the agent's key or its user is no longer
    good."""
    row = _locked(session, row_id)
    if row.submission_id is None:
        check_open(row, now)
        if row.confirmed_at is None:
            if not sender:
                raise ServiceError("conflict", "This submission has not been confirmed.")
            if preparer(session, row, now) != checked:
                return None
            row.confirmed_at, row.sender = now, sender
    session.flush()
    session.expunge(row)
    return row


def check_open(row: PreparedRow, now: datetime) -> None:
    """Raises ServiceError("conflict") when it can be sent no more."""
    if row.ended is not None:
        raise ended(row.ended)
    over = row.expires_at if row.confirmed_at is None else row.confirmed_at + RESUMED
    if over <= now:
        raise ServiceError("conflict", "This submission was not confirmed in time: have it prepared again.")


def ended(why: str) -> ServiceError:
    """Return the refusal of what has ended."""
    return ServiceError("conflict", _ENDS[why])


def preparer(session: Session, row: PreparedRow, now: datetime) -> Actor:
    """Return whom it was prepared for, with what their key reaches now. Raises ServiceError("conflict") when the key that it
    was prepared with is deleted, expired, of a user who is archived, or could not prepare anything any more: whoever takes
    an agent's key or its rights away does not want what it has left behind."""
    user = session.get(User, row.user_id)
    keys = key_rows.of_user(session, user) if user is not None and user.archived_at is None else []
    rights = next((key_rows.rights(key) for key in keys if key.id == row.key_id), None)
    if user is None or rights is None or rights.expired(now):
        raise ServiceError("conflict", "The key that this submission was prepared with is no longer good.")
    actor = queries.as_actor(user.id, user.role, user.email, user.first_name, user.last_name)
    check_preparing(actor.role, rights)
    folders = None if rights.folders is None else list(rights.folders)
    limits = {"key_id": row.key_id, "may_act": False, "test": rights.test, "folders": folders}
    return actor.model_copy(update=limits)


def finish(session: Session, row_id: str, submission_id: int, content: bytes) -> None:
    """Note which submission it has become, which says from now on what was prepared: ``content`` is what is kept of it here."""
    row = _locked(session, row_id)
    row.submission_id, row.content = submission_id, content


def release(session: Session, row_id: str) -> None:
    """It was refused and nothing happened: it may be confirmed again."""
    row = _locked(session, row_id)
    if row.submission_id is None:
        row.confirmed_at = row.sender = None


def end(session: Session, row_id: str, why: str, content: bytes, now: datetime) -> None:
    """Nobody is to send it any more; ``content`` is what is kept of it. Raises ServiceError("conflict") when it has been
    confirmed already."""
    row = _locked(session, row_id)
    if why == WITHDRAWN and row.confirmed_at is not None:
        raise ServiceError("conflict", "This submission has been confirmed already.")
    check_open(row, now)
    row.ended, row.content = why, content


def drop(session: Session, row_id: str, content: bytes, now: datetime) -> bool:
    """Keep ``content`` of it and nothing else; nobody is to send it any more. False when that is too late: it is being sent."""
    row = session.scalars(for_update(sa.select(PreparedRow).where(PreparedRow.id == row_id))).one_or_none()
    if row is None or state(row, now) is State.CONFIRMED:
        return False
    if row.submission_id is None and row.ended is None:
        row.ended = WITHDRAWN
    row.content = content
    return True


class State(StrEnum):
    """How far what was prepared is: a person may confirm it, it is being sent, or nothing becomes of it any more."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    OVER = "over"


def state(row: PreparedRow, now: datetime) -> State:
    """Return how far it is."""
    if row.submission_id is not None:
        return State.OVER
    try:
        check_open(row, now)
    except ServiceError:
        return State.OVER
    return State.WAITING if row.confirmed_at is None else State.CONFIRMED


def every(session: Session) -> list[PreparedRow]:
    """Return all that is kept, the latest first."""
    all_rows = list(session.scalars(sa.select(PreparedRow).order_by(PreparedRow.created_at.desc(), PreparedRow.id)))
    session.expunge_all()
    return all_rows


def confirmed_unsent(session: Session, before: datetime) -> list[str]:
    """Return those that were confirmed until then, and of which it is not known that they were sent."""
    ids = sa.select(PreparedRow.id).where(
        PreparedRow.submission_id.is_(None), PreparedRow.ended.is_(None), PreparedRow.confirmed_at <= before
    )
    return list(session.scalars(ids))


def forget(session: Session, before: datetime) -> int:
    """Remove what could be confirmed until then at the latest, and say how many."""
    deleted: Any = session.execute(sa.delete(PreparedRow).where(PreparedRow.expires_at <= before))
    return int(deleted.rowcount)


def _locked(session: Session, row_id: str) -> PreparedRow:
    mine = sa.select(PreparedRow).where(PreparedRow.id == row_id)
    row: PreparedRow | None = session.scalars(for_update(mine)).one_or_none()
    if row is None:
        raise not_found(NOUN)
    return row
