"""Reads of the rendering service."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.evidence.statements import Parts, Statement
from services.rendering.models import ArchivedFile, Result, SealedFile, SealJob, StatementRow, StatementsSince
from services.rendering.rules.differences import Known


def result(session: Session, kind: str, digest: str) -> dict[str, Any] | None:
    """The kept answer, or None."""
    answer = session.scalar(sa.select(Result.answer).where(Result.kind == kind, Result.digest == digest))
    return dict(answer) if answer is not None else None


def sealed_here(session: Session, sha256: str) -> bool:
    """Is the file with this SHA-256 one that we sealed?"""
    return session.scalar(sa.select(SealedFile.sha256).where(SealedFile.sha256 == sha256)) is not None


def sealed_file(session: Session, sha256: str) -> SealedFile | None:
    """Return what is known of the file with this SHA-256, if we sealed it."""
    return session.get(SealedFile, sha256)


def not_sealed_for(session: Session, submission_id: int, digests: Collection[str]) -> set[str]:
    """Return which of these SHA-256 are not among the files that were sealed for this submission."""
    query = sa.select(SealedFile.sha256).where(SealedFile.submission_id == submission_id)
    return {*digests} - {*session.scalars(query)}


def has_sealed(session: Session) -> bool:
    """Was anything ever sealed here?"""
    return session.scalar(sa.select(SealedFile.sha256).limit(1)) is not None


def jobs_to_sweep(session: Session, before: datetime) -> list[SealJob]:
    """Jobs that ended before that time and of whose interrupted attempts something may be left."""
    ended = sa.select(SealJob).where(SealJob.swept.is_(False), SealJob.state != "due", SealJob.finished_at < before)
    return list(session.scalars(ended.order_by(SealJob.id).limit(100)))


def statements_of(session: Session, submission_id: int) -> list[Known]:
    """The statements that were taken on of a submission."""
    query = sa.select(StatementRow).where(StatementRow.submission_id == submission_id, StatementRow.erased_at.is_(None))
    return [
        Known(Statement.model_validate(row.statement), Parts.model_validate(row.parts) if row.parts else None)
        for row in session.scalars(query.order_by(StatementRow.id))
    ]


def statements_since(session: Session) -> datetime:
    """The moment from which on completions are confirmed."""
    return session.scalars(sa.select(StatementsSince.at)).one()


def erased_statements(session: Session, before: datetime) -> list[StatementRow]:
    """Statements whose submission was erased before that time."""
    return list(session.scalars(sa.select(StatementRow).where(StatementRow.erased_at < before).limit(100)))


def archives_to_sweep(session: Session, before: datetime) -> list[ArchivedFile]:
    """Archived files of which attempts may have left something, since before that time."""
    return list(session.scalars(sa.select(ArchivedFile).where(ArchivedFile.sweep_at < before).limit(100)))


def first_archive_end(session: Session) -> datetime | None:
    """Return when the first archive time-stamp runs out that nobody has renewed yet."""
    return session.scalar(sa.select(sa.func.min(ArchivedFile.until)).where(ArchivedFile.file.is_not(None)))


def job(session: Session, seal_id: str) -> SealJob | None:
    """The job that this ``seal_id`` names: its state, attempts and last error."""
    return session.scalar(sa.select(SealJob).where(SealJob.seal_id == seal_id))
