"""What this service knows of the others: compared with what they have themselves, after one of them was restored."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.submissions.models import SubmissionRow, TemplateRow


def known(session: Session) -> dict[str, set[int]]:
    """The ids that this service has heard of, by ``service.table``."""
    return {
        "templates.templates": {*session.scalars(sa.select(TemplateRow.id))},
        "gateway.users": {*session.scalars(sa.select(SubmissionRow.created_by_id).distinct())} - {None},
    }
