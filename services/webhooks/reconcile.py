"""Compare what this service knows of the others with what they have themselves, after one of them was restored."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.webhooks.models import Arrival, Delivery, LoggedEvent, SubjectHead

_OWNERS = {"submission": "submissions.submissions", "template": "templates.templates"}


def known(session: Session) -> dict[str, set[int]]:
    """The ids that this service has heard of, by ``service.table``."""
    ids: dict[str, set[int]] = {owner: set() for owner in _OWNERS.values()}
    for subject in session.scalars(sa.select(SubjectHead.subject)):
        kind, _, number = subject.partition(":")
        if kind in _OWNERS:
            ids[_OWNERS[kind]].add(int(number))
    ids["gateway.users"] = {*session.scalars(sa.select(LoggedEvent.author_id).distinct())} - {None}
    return ids


def erased(session: Session) -> set[int]:
    """The submissions that were removed for good."""
    subjects = session.scalars(sa.select(SubjectHead.subject).where(SubjectHead.erased))
    return {int(subject.partition(":")[2]) for subject in subjects if subject.startswith("submission:")}


def waiting(session: Session) -> dict[str, int]:
    """Count the events of each subject that wait for an earlier one."""
    counted = (
        sa.select(Arrival.subject, sa.func.count().label("events")).group_by(Arrival.subject).order_by(Arrival.subject)
    )
    return {row.subject: row.events for row in session.execute(counted)}


def open_deliveries(session: Session, submission_ids: set[int]) -> dict[int, int]:
    """Count the deliveries about these submissions that are still to be made."""
    counted = (
        sa.select(LoggedEvent.subject, sa.func.count())
        .join(Delivery, Delivery.position == LoggedEvent.position)
        .where(Delivery.outcome.is_(None), Delivery.state != "parked")
        .group_by(LoggedEvent.subject)
    )
    counts = ((subject.partition(":"), count) for subject, count in session.execute(counted))
    numbered = {int(number): count for (kind, _, number), count in counts if kind == "submission"}
    return {number: count for number, count in sorted(numbered.items()) if number in submission_ids}
