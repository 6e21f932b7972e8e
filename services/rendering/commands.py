"""What changes in the rendering service's database, one function per use case."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.events import (
    DOCUMENTS_FAILED,
    DOCUMENTS_SEALED,
    STATEMENT_SIGNED,
    DocumentsFailed,
    DocumentsSealed,
    Erased,
    StatementDue,
    StatementSigned,
)
from contracts.evidence import statements
from contracts.evidence.statements import Parts, SignedStatement
from contracts.rpc.rendering import SealRequest
from contracts.runtime.bus.outbox import emit, first_time, forget
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import dialect_of, insert_for, insert_into, leave_work
from contracts.runtime.data.tables import inbox
from services.rendering import queries
from services.rendering.models import Result, ResultSource, SealedFile, SealJob, StatementRow

JOBS_KEPT = timedelta(days=90)

AFTER_SEALING = timedelta(seconds=2)
"""For so long the signature of the last statement waits for the sealing, which takes the same processors and writes to the same
database; ``finish_job`` ends the wait. Well above what a usual submission takes, and not long where a sealing takes minutes."""

_ERASED = "erased submission"
"""In the inbox, with the id of a submission in place of an event's."""


def accept_job(session: Session, envelope: Envelope, request: SealRequest, now: datetime) -> None:
    """One job per ``seal_id``, however often the event comes and under however many ids."""
    if not first_time(session, "seal", envelope.id) or _was_erased(session, request.submission_id, envelope):
        return
    job = {
        "seal_id": request.seal_id,
        "submission_id": request.submission_id,
        "request_id": envelope.request_id,
        "request": request.model_dump(mode="json"),
        "files": len(request.documents) + 1,
        "swept": False,
        "created_at": now,
        "next_attempt_at": now,
        "state": "due",
        "attempts": 0,
    }
    for party in request.to_check.parties if request.to_check else ():
        if party.statement is not None:
            due = StatementDue(statement=party.statement, parts=party.parts or Parts(), sealing=True)
            take_on_statement(session, due, now, envelope.request_id)
    if session.execute(_new_job(dialect_of(session)), job).first() is None:
        _complete_order(session, request, now)
    leave_work(session, SealJob.__tablename__)


def _complete_order(session: Session, request: SealRequest, now: datetime) -> None:
    """An order of an older version says nothing to compare with the statements: the same order of this version does."""
    job = session.scalar(sa.select(SealJob).where(SealJob.seal_id == request.seal_id).with_for_update())
    if job is None or job.request is None or request.to_check is None or job.request.get("to_check") is not None:
        return
    job.request, job.next_attempt_at = request.model_dump(mode="json"), now


def accept_statement(session: Session, envelope: Envelope, due: StatementDue, now: datetime) -> None:
    """One row per statement, however often the event comes; none when the submission was erased before it came."""
    if first_time(session, "statement", envelope.id) and not _was_erased(session, due.statement.submission, envelope):
        take_on_statement(session, due, now, envelope.request_id)


def take_on_statement(session: Session, due: StatementDue, now: datetime, request_id: str | None = None) -> None:
    """Have a statement signed, unless it was taken on before."""
    stated = due.statement
    row = {
        "sha256": statements.digest(stated),
        "submission_id": stated.submission,
        "submitter_id": stated.submitter,
        "request_id": request_id,
        "statement": stated.model_dump(mode="json"),
        "parts": due.parts.model_dump(mode="json"),
        "created_at": now,
        "next_attempt_at": now + AFTER_SEALING if due.sealing else now,
        "state": "due",
        "attempts": 0,
    }
    session.execute(_new_statement(dialect_of(session)), row)
    if not due.sealing:
        leave_work(session, StatementRow.__tablename__)


def finish_statement(session: Session, row: StatementRow, signed: SignedStatement) -> None:
    """The statement is signed and kept: say so."""
    row.signed = signed.model_dump(mode="json")
    event = StatementSigned(
        submission_id=row.submission_id, submitter_id=row.submitter_id, sha256=row.sha256, signed=signed
    )
    emit(session, STATEMENT_SIGNED, event, subject=f"submission:{row.submission_id}")


def finish_job(session: Session, job: SealJob, sealed: DocumentsSealed, attempt: int, now: datetime) -> None:
    """The job is done: say so, remember what was sealed, forget what it was made from; the last statement waits no longer."""
    job.request = None
    job.pades_level = sealed.pades_level
    job.sealed_attempt = attempt
    job.swept = job.attempts == 1
    files = [*(document.file.sha256 for document in sealed.documents), sealed.audit_trail.sha256]
    remember_sealed(session, files, job.submission_id, now)
    of_it = StatementRow.submission_id == job.submission_id
    session.execute(sa.update(StatementRow).where(of_it).values(parts=None))
    waiting = sa.update(StatementRow).where(of_it, StatementRow.state == "due", StatementRow.attempts == 0)
    session.execute(waiting.values(next_attempt_at=now))
    leave_work(session, StatementRow.__tablename__)
    emit(session, DOCUMENTS_SEALED, sealed, subject=f"submission:{job.submission_id}")


def fail_job(session: Session, job: SealJob, differences: Sequence[str] = ()) -> None:
    """The job was given up; ``last_error`` says why. ``differences``: what is not as the parties signed it."""
    job.request = None
    failed = DocumentsFailed(
        submission_id=job.submission_id,
        seal_id=job.seal_id,
        reason=job.last_error or "sealing failed",
        differences=list(differences),
    )
    emit(session, DOCUMENTS_FAILED, failed, subject=f"submission:{job.submission_id}")


def remember_sealed(session: Session, digests: Iterable[str], submission_id: int | None, now: datetime) -> None:
    """Files with these SHA-256 are ours."""
    rows = [{"sha256": digest, "submission_id": submission_id, "created_at": now} for digest in digests]
    session.execute(_new_file(dialect_of(session)), rows)


# Compiled once: building a statement costs more than running it.
@cache
def _new_job(dialect: str) -> Any:
    return (
        insert_for(dialect, SealJob.__table__).on_conflict_do_nothing(index_elements=["seal_id"]).returning(SealJob.id)
    )


@cache
def _new_statement(dialect: str) -> Any:
    return insert_for(dialect, StatementRow.__table__).on_conflict_do_nothing(index_elements=["sha256"])


@cache
def _new_file(dialect: str) -> Any:
    return insert_for(dialect, SealedFile.__table__).on_conflict_do_nothing()


def remember_result(
    session: Session,
    kind: str,
    digest: str,
    *,
    answer: dict[str, Any],
    keys: Sequence[str],
    sources: Iterable[str],
    expires_at: datetime,
) -> dict[str, Any]:
    """Keep an answer; returns the one that is kept, which is another's when two made the same at once."""
    row = {
        "kind": kind,
        "digest": digest,
        "answer": answer,
        "keys": list(keys),
        "expires_at": expires_at,
    }
    if session.execute(
        insert_into(session, Result).values(**row).on_conflict_do_nothing().returning(Result.digest)
    ).first():
        for sha256 in set(sources):
            session.add(ResultSource(sha256=sha256, kind=kind, digest=digest))
        return answer
    return queries.result(session, kind, digest) or answer


def forget_result(session: Session, kind: str, digest: str) -> None:
    """Forget an answer that has no files of its own."""
    _forget(session, session.scalars(sa.select(Result).where(Result.kind == kind, Result.digest == digest)).all())


def erase(session: Session, envelope: Envelope, erased: Erased, now: datetime) -> list[str]:
    """Forget a submission: its jobs' contents, which files were its, what was made from them. Returns blobs to remove.

    A job under way loses its row's request and counts as ended; what it still writes is swept later. Events of each kind have
    a queue of their own: what happened before this and comes after it is not taken on.
    """
    first_time(session, _ERASED, str(erased.submission_id))
    if first_time(session, "erase", envelope.id):
        scrubbing.ask(session)
    forget(session, f"submission:{erased.submission_id}")
    jobs = session.scalars(sa.select(SealJob).where(SealJob.submission_id == erased.submission_id).with_for_update())
    for job in jobs:
        job.request = None
        job.swept = False
        job.sealed_attempt = None
        if job.state == "due":
            job.state, job.finished_at, job.last_error = "parked", now, "the submission was erased"
    # A statement may be about to be signed: the row stays until nothing of it can be written any more.
    cleared = {
        "statement": None,
        "parts": None,
        "signed": None,
        "state": "done",
        "finished_at": now,
        "erased_at": now,
    }
    session.execute(sa.update(StatementRow).where(StatementRow.submission_id == erased.submission_id).values(**cleared))
    own_files = sa.select(SealedFile.sha256).where(SealedFile.submission_id == erased.submission_id)
    own_results = sa.select(ResultSource.digest).where(ResultSource.sha256.in_(own_files))
    results = list(session.scalars(sa.select(Result).where(Result.digest.in_(own_results))))
    keys = [key for result in results for key in result.keys]
    _forget(session, results)
    session.execute(sa.delete(SealedFile).where(SealedFile.submission_id == erased.submission_id))
    return keys


def _was_erased(session: Session, submission_id: int, envelope: Envelope) -> bool:
    """Whether the submission was erased after what the event says: one that a restore has brought back goes on."""
    noted = sa.select(inbox.c.at).where(inbox.c.handler == _ERASED, inbox.c.event_id == str(submission_id))
    at = session.scalar(noted)
    return at is not None and at >= envelope.occurred_at


def expire_results(session: Session, now: datetime, limit: int = 500) -> list[str]:
    """Forget answers that have been kept long enough. Returns blobs to remove."""
    due = sa.select(Result).where(Result.expires_at < now).order_by(Result.expires_at).limit(limit)
    results = list(session.scalars(due))
    keys = [key for result in results for key in result.keys]
    _forget(session, results)
    return keys


def mark_swept(session: Session, job_id: int) -> None:
    """Nothing is left of interrupted attempts of this job."""
    session.execute(sa.update(SealJob).where(SealJob.id == job_id).values(swept=True))


def forget_statement(session: Session, statement_id: int) -> None:
    """Nothing is left of the statement of an erased submission."""
    session.execute(sa.delete(StatementRow).where(StatementRow.id == statement_id))


def forget_old_jobs(session: Session, now: datetime) -> None:
    """Ended jobs are kept for a while, for the operator and against repeated events."""
    old = sa.and_(SealJob.state != "due", SealJob.swept, SealJob.finished_at < now - JOBS_KEPT)
    session.execute(sa.delete(SealJob).where(old))


def _forget(session: Session, results: Sequence[Result]) -> None:
    """Results and their sources; SQLite and PostgreSQL both remove the sources by themselves."""
    for result in results:
        session.execute(sa.delete(Result).where(Result.kind == result.kind, Result.digest == result.digest))
