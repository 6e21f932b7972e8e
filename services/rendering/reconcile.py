"""What this service knows of the others: compared with what they have themselves, after one of them was restored."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.rendering.models import SealedFile, SealJob, StatementRow


def submissions_with_content(session: Session) -> set[int]:
    """The submissions of which there is anything that goes when they are removed for good."""
    sealed = sa.select(SealedFile.submission_id).where(SealedFile.submission_id.is_not(None)).distinct()
    stated = sa.select(StatementRow.submission_id).where(StatementRow.erased_at.is_(None)).distinct()
    return {number for number in (*session.scalars(sealed), *session.scalars(stated)) if number is not None}


def known(session: Session) -> dict[str, set[int]]:
    """The ids that this service has heard of, by ``service.table``."""
    return {
        "submissions.submissions": submissions_with_content(session)
        | {*session.scalars(sa.select(SealJob.submission_id).distinct())}
    }


def jobs(session: Session, seal_ids: Collection[str]) -> dict[str, str]:
    """The state of each of these jobs that there is: ``due``, ``done`` or ``parked``."""
    query = sa.select(SealJob.seal_id, SealJob.state).where(SealJob.seal_id.in_(seal_ids))
    return {row.seal_id: row.state for row in session.execute(query)}


def statements(session: Session) -> dict[str, int]:
    """The submission of each statement that was taken on, by the SHA-256 of its bytes."""
    query = sa.select(StatementRow.sha256, StatementRow.submission_id).where(StatementRow.erased_at.is_(None))
    return {row.sha256: row.submission_id for row in session.execute(query)}


def unknown_files(session: Session, digests: Collection[str]) -> set[str]:
    """Return which of these SHA-256 are not among the files that were sealed here."""
    return {*digests} - {*session.scalars(sa.select(SealedFile.sha256).where(SealedFile.sha256.in_(digests)))}
