"""What this service knows of the others: compared with what they have themselves, after one of them was restored."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.rendering.models import SealedFile, SealJob


def known(session: Session) -> dict[str, set[int]]:
    """The ids that this service has heard of, by ``service.table``."""
    sealed = sa.select(SealedFile.submission_id).where(SealedFile.submission_id.is_not(None))
    return {"submissions.submissions": {*session.scalars(sealed.union(sa.select(SealJob.submission_id)))}}
