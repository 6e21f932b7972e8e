"""Reads of the rendering service."""

import hashlib
from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.evidence.statements import Parts, Statement
from contracts.runtime.data.tables import inbox
from services.rendering.models import (
    ArchivedFile,
    Result,
    ResultSource,
    SealedFile,
    SealJob,
    StatementRow,
    StatementsSince,
)
from services.rendering.rules.differences import Known

FORGOTTEN = "forgotten document"
"""In the inbox, with the mark of a document in place of an event's id."""

LAID_OUT, REMOVAL = "html", "removal"
"""The kinds of results that are HTML, laid out, and that are no result but files that must go."""


def result(session: Session, kind: str, digest: str) -> dict[str, Any] | None:
    """The kept answer, or None."""
    answer = session.scalar(sa.select(Result.answer).where(Result.kind == kind, Result.digest == digest))
    return dict(answer) if answer is not None else None


def result_and_marks(
    session: Session, kind: str, digest: str, sources: Collection[str]
) -> tuple[dict[str, Any] | None, dict[str, datetime]]:
    """The kept answer, or None and the marks of its sources, which ``commands.remember_result`` compares."""
    stored = result(session, kind, digest)
    return stored, marks(session, sources) if stored is None else {}


def marks(session: Session, sources: Collection[str]) -> dict[str, datetime]:
    """Return when what was made of each of these documents (SHA-256) was last to be forgotten; only of those for which that
    was a short time ago."""
    names = [mark_of(sha256) for sha256 in sources]
    query = sa.select(inbox.c.event_id, inbox.c.at).where(inbox.c.handler == FORGOTTEN, inbox.c.event_id.in_(names))
    return {row.event_id: row.at for row in session.execute(query)} if names else {}


def mark_of(sha256: str) -> str:
    """Return what stands for a document in a mark: who reads the table learns no digest that a document has."""
    return hashlib.sha256(sha256.encode()).hexdigest()


def laid_out(session: Session, digests: Collection[str]) -> list[str]:
    """The digests of the results that are HTML, laid out as one of these files (SHA-256)."""
    query = sa.select(ResultSource.digest).where(ResultSource.sha256.in_(digests), ResultSource.kind == LAID_OUT)
    return list(session.scalars(query.distinct()))


def removals(session: Session) -> list[Result]:
    """Files that must go: some of the earliest."""
    return list(session.scalars(sa.select(Result).where(Result.kind == REMOVAL).order_by(Result.digest).limit(100)))


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
    return [_known_statement(row) for row in session.scalars(query.order_by(StatementRow.id))]


def _known_statement(row: StatementRow) -> Known:
    return Known(Statement.model_validate(row.statement), Parts.model_validate(row.parts) if row.parts else None)


def statements_and_since(session: Session, submission_id: int) -> tuple[list[Known], datetime]:
    """The statements that were taken on of a submission, and the moment from which on completions are confirmed: in one
    statement, because it is asked before each sealing."""
    of_it = sa.and_(StatementRow.submission_id == submission_id, StatementRow.erased_at.is_(None))
    query = sa.select(StatementsSince.at, StatementRow).outerjoin(StatementRow, of_it).order_by(StatementRow.id)
    rows = session.execute(query).all()
    return [_known_statement(row.StatementRow) for row in rows if row.StatementRow is not None], rows[0].at


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
