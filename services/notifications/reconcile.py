"""Compare what this service knows of the others with what they have themselves, after one of them was restored."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.notifications.models import MailRow, PhoneMessageRow, SubmissionRow


def known(session: Session) -> dict[str, set[int]]:
    """The ids that this service has heard of, by ``service.table``."""
    submitters = [
        {*session.scalars(sa.select(row.submitter_id).where(row.submitter_id.is_not(None)).distinct())}
        for row in (MailRow, PhoneMessageRow)
    ]
    return {
        "submissions.submissions": {*session.scalars(sa.select(SubmissionRow.id))},
        "submissions.submitters": set().union(*submitters),
    }


def erased(session: Session) -> set[int]:
    """The submissions that were removed for good."""
    return {*session.scalars(sa.select(SubmissionRow.id).where(SubmissionRow.erased_at.is_not(None)))}
