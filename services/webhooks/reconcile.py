"""What this service knows of the others: compared with what they have themselves, after one of them was restored."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.webhooks.models import LoggedEvent, SubjectHead

_OWNERS = {"submission": "submissions.submissions", "template": "templates.templates"}


def known(session: Session) -> dict[str, set[int]]:
    """The ids that this service has heard of, by ``service.table``."""
    found: dict[str, set[int]] = {owner: set() for owner in _OWNERS.values()}
    for subject in session.scalars(sa.select(SubjectHead.subject)):
        kind, _, number = subject.partition(":")
        if kind in _OWNERS:
            found[_OWNERS[kind]].add(int(number))
    found["gateway.users"] = {*session.scalars(sa.select(LoggedEvent.author_id).distinct())} - {None}
    return found
