"""What changes in the rendering service's database, one function per use case."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import (
    COMBINED_FILE,
    DOCUMENT_ARCHIVED,
    DOCUMENTS_FAILED,
    DOCUMENTS_SEALED,
    DOCUMENTS_STAMPED,
    STATEMENT_SIGNED,
    ArchivingDue,
    DocumentArchived,
    DocumentsFailed,
    DocumentsSealed,
    DocumentsStamped,
    Erased,
    StatementDue,
    StatementSigned,
)
from contracts.evidence import statements
from contracts.evidence.statements import Parts, SignedStatement
from contracts.providers import CertsignRetried, DutystampRetried
from contracts.rpc.rendering import ConfirmationOrder, SealRequest
from contracts.runtime import clock
from contracts.runtime.bus.outbox import emit, first_time, forget
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import dialect_of, insert_for, insert_into, leave_work
from contracts.runtime.data.tables import inbox
from services.rendering import queries
from services.rendering.models import (
    ArchivedFile,
    CertsignJob,
    Result,
    ResultSource,
    SealedFile,
    SealJob,
    StampedSeal,
    StatementRow,
)
from services.rendering.rules import domain
from services.rendering.stamping import orders, seals
from services.rendering.stamping.accounts import Account
from services.rendering.storage import certsigning, confirmations, erasures, news

_STAMPED_AGAIN = timedelta(hours=1)

JOBS_KEPT = timedelta(days=90)

ARCHIVED_AGAIN = timedelta(days=1)
"""For so long a file waits for another try to get an archive time-stamp."""

AFTER_SEALING = timedelta(seconds=2)
"""For so long the signature of the last statement waits for the sealing, which takes the same processors and writes to the same
database; ``finish_job`` ends the wait. Well above what a usual submission takes, and not long where a sealing takes minutes."""

_MARKED = timedelta(hours=1)
"""Longer than anything takes that is made from a document while its caller waits."""

_ERASED = "erased submission"
"""In the inbox, with the id of a submission in place of an event's."""


class SourceForgotten(ServiceError):
    """What an answer was made from was to be forgotten meanwhile: it is not kept. Who still has the document asks again."""

    def __init__(self) -> None:
        super().__init__("unavailable", "The document was removed in the meantime. Try again.")


@dataclass(frozen=True)
class ArchiveDue:
    """A file whose archive time-stamp lasts ``until``, None where there was none to be had; ``due`` when the next one is.
    ``document`` as in DocumentArchived."""

    document: str
    file: BlobRef
    until: datetime | None
    due: datetime


def accept_job(session: Session, envelope: Envelope, request: SealRequest, now: datetime) -> None:
    """One job per ``seal_id``, however often the event comes and under however many ids."""
    if not first_time(session, "seal", envelope.id) or _was_erased(session, request.submission_id, envelope):
        return
    job = {
        "seal_id": request.seal_id,
        "submission_id": request.submission_id,
        "request_id": envelope.request_id,
        "request": request.model_dump(mode="json"),
        "files": len(request.documents) + 1 + _combined(request),
        "swept": False,
        "created_at": now,
        "next_attempt_at": now,
        "state": "due" if request.certsign is None else domain.WAITING,
        "attempts": 0,
    }
    for party in request.to_check.parties if request.to_check else ():
        if party.statement is not None:
            parts = party.parts or Parts()
            due = StatementDue(statement=party.statement, parts=parts, sealing=True, test=request.test)
            take_on_statement(session, due, now, envelope.request_id)
    inserted = session.execute(_new_job(dialect_of(session)), job).first()
    if inserted is None:
        _complete_order(session, request, now)
    elif request.certsign is not None:
        certsigning.begin(session, inserted.id, request, envelope.request_id, now)
        return
    leave_work(session, SealJob.__tablename__)


def accept_confirmation(session: Session, envelope: Envelope, order: ConfirmationOrder, now: datetime) -> None:
    """One confirmation per id, however often the event comes; none when the submission was erased before it came."""
    if not _was_erased(session, order.submission_id, envelope):
        confirmations.accept(session, envelope, order, now)


def _combined(request: SealRequest) -> bool:
    """Return whether one file of all documents is made, too."""
    return request.dutystamp is not None and "combined" in request.dutystamp.targets


def _complete_order(session: Session, request: SealRequest, now: datetime) -> None:
    """An order of an older version says nothing to compare with the statements: the same order of this version does."""
    job = session.scalar(sa.select(SealJob).where(SealJob.seal_id == request.seal_id).with_for_update())
    if job is None or job.request is None or request.to_check is None or job.request.get("to_check") is not None:
        return
    job.request, job.next_attempt_at = request.model_dump(mode="json"), now
    if job.state == domain.WAITING:
        certsigning.hurry_one(session, job.id, now)


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
        "test": due.test,
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


def finish_job(
    session: Session,
    job: SealJob,
    sealed: DocumentsSealed,
    attempt: int,
    now: datetime,
    archives: Sequence[ArchiveDue] = (),
) -> None:
    """The job is done: say so, remember what was sealed, forget what it was made from; the last statement waits no longer.
    ``archives``: files that are to stay PAdES B-LTA."""
    keep_archived(session, job.submission_id, job.seal_id, archives, now)
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


def finish_stamped(
    session: Session,
    job: SealJob,
    sealed: DocumentsSealed,
    attempt: int,
    unstamped: Sequence[str],
    now: datetime,
    *,
    complete: bool,
    archives: Sequence[ArchiveDue] = (),
) -> None:
    """The files of a job that gets duty stamps are there: say so; ``complete`` with all stamps, else again once they are there.
    ``unstamped``: the SHA-256 of what they were put onto."""
    row = session.scalar(sa.select(StampedSeal).where(StampedSeal.id == job.id).with_for_update())
    request, told_at = job.request, row.told_at if row is not None else None
    digests = [*unstamped, *([sealed.combined.sha256] if sealed.combined else [])]
    remember_sealed(session, digests, job.submission_id, now)
    if told_at is None:
        finish_job(session, job, sealed, attempt, now, archives)
    else:
        versions = _archive_stamped(session, job, sealed, archives, now)
        files = [*(document.file.sha256 for document in sealed.documents), sealed.audit_trail.sha256]
        remember_sealed(session, files, job.submission_id, now)
        job.request = None
        later = DocumentsStamped.model_validate({**sealed.model_dump(), "archive_versions": versions})
        emit(session, DOCUMENTS_STAMPED, later, subject=f"submission:{job.submission_id}")
        if row is not None:
            row.stamped_attempt = attempt
    job.swept = False
    if not complete and row is not None:
        row.told_at = now
        job.request, job.state, job.finished_at, job.next_attempt_at = request, "due", None, now + seals.LOOKED_AFTER
        if seals.is_ready(session, row, now):
            job.next_attempt_at = now


def keep_archived(
    session: Session, submission_id: int, seal_id: str, archives: Sequence[ArchiveDue], now: datetime
) -> None:
    """Have these files renewed when it is time, in place of what there was of the same documents."""
    for archive in archives:
        row = _new_archive(submission_id, seal_id, archive, now)
        replaced = {name: row[name] for name in ("file", "until", "next_attempt_at", "state", "attempts")}
        session.execute(
            insert_into(session, ArchivedFile)
            .values(**row)
            .on_conflict_do_update(
                index_elements=["seal_id", "document"], set_={**replaced, "version": ArchivedFile.version + 1}
            )
        )


def _archive_stamped(
    session: Session, job: SealJob, sealed: DocumentsSealed, archives: Sequence[ArchiveDue], now: datetime
) -> dict[str, int]:
    """Renew the files with their stamps from now on, in place of those without. What had an archive time-stamp before it was
    stamped is to have one again, whether there was one to be had just now or not. Returns the version of each file."""
    keep_archived(session, job.submission_id, job.seal_id, archives, now)
    files = {
        "": sealed.audit_trail,
        COMBINED_FILE: sealed.combined,
        **{document.uuid: document.file for document in sealed.documents},
    }
    of_seal = sa.select(ArchivedFile).where(ArchivedFile.seal_id == job.seal_id).with_for_update()
    versions = {}
    for row in session.scalars(of_seal.execution_options(populate_existing=True)):
        file = files.get(row.document)
        if row.file is not None and file is not None and row.file["sha256"] != file.sha256:
            row.file, row.until = file.model_dump(mode="json"), None
            row.version += 1
            row.make_due(now + ARCHIVED_AGAIN)
            if row.document == "" and sealed.pades_level == domain.LEVELS[0]:
                # The trail is sealed anew, this time without a time-stamp: nothing can be built on that.
                row.state, row.finished_at = "done", now
        versions[row.document] = row.version
    return versions


def accept_archiving(session: Session, envelope: Envelope, due: ArchivingDue, now: datetime) -> None:
    """Have files that were sealed without an archive time-stamp get one, however often the event comes."""
    if not first_time(session, "archive", envelope.id) or _was_erased(session, due.submission_id, envelope):
        return
    rows = [
        _new_archive(due.submission_id, due.seal_id, ArchiveDue(document, file, None, now), now)
        for document, file in due.files.items()
    ]
    if rows:
        session.execute(insert_into(session, ArchivedFile).values(rows).on_conflict_do_nothing())
        leave_work(session, ArchivedFile.__tablename__)


def _new_archive(submission_id: int, seal_id: str, archive: ArchiveDue, now: datetime) -> dict[str, Any]:
    return {
        "submission_id": submission_id,
        "seal_id": seal_id,
        "document": archive.document,
        "file": archive.file.model_dump(mode="json"),
        "version": 0,
        "until": archive.until,
        "candidates": [],
        "created_at": now,
        "next_attempt_at": archive.due,
        "state": "due",
        "attempts": 0,
    }


def plan_archive(session: Session, archive_id: int, sha256: str, key: str) -> bool:
    """Note where a new version of a file is about to be written, so that nothing is left behind. False when there is nothing to
    be renewed any more: the submission was erased, or another attempt was quicker."""
    row = session.scalar(sa.select(ArchivedFile).where(ArchivedFile.id == archive_id).with_for_update())
    if row is None or row.file is None or row.file["sha256"] != sha256:
        return False
    row.candidates = [*dict.fromkeys([*row.candidates, key])]
    return True


def finish_archive(session: Session, row: ArchivedFile, sha256: str, renewed: ArchiveDue, now: datetime) -> None:
    """A file has a new archive time-stamp: say so, remember it, and when it is due again. ``sha256`` is that of the version
    that was renewed; where another attempt was quicker this one counts for nothing."""
    due = renewed.due
    if row.file is None or row.file["sha256"] != sha256 or renewed.until is None:
        due = row.next_attempt_at
    else:
        row.candidates = [key for key in row.candidates if key != renewed.file.key]
        row.file, row.until = renewed.file.model_dump(mode="json"), renewed.until
        row.version += 1
        remember_sealed(session, [renewed.file.sha256], row.submission_id, now)
        archived = DocumentArchived(
            submission_id=row.submission_id,
            seal_id=row.seal_id,
            document=row.document,
            file=renewed.file,
            version=row.version,
            archive_until=renewed.until,
        )
        emit(session, DOCUMENT_ARCHIVED, archived, subject=f"submission:{row.submission_id}")
    row.sweep_at = now if row.candidates else None
    row.make_due(due)


def finish_archive_sweep(session: Session, archive_id: int, removed: Collection[str]) -> None:
    """These candidates are gone. The row of an erased submission goes with the last of them."""
    row = session.scalar(sa.select(ArchivedFile).where(ArchivedFile.id == archive_id).with_for_update())
    if row is None:
        return
    row.candidates = [key for key in row.candidates if key not in removed]
    if not row.candidates:
        row.sweep_at = None
        if row.file is None:
            session.delete(row)


def fail_job(session: Session, job: SealJob, differences: Sequence[str] = ()) -> None:
    """The job was given up; ``last_error`` says why. ``differences``: what is not as the parties signed it."""
    stamped_seal = session.get(StampedSeal, job.id)
    if stamped_seal is not None and stamped_seal.told_at is not None:
        # What was sealed was told. The stamps are paid for: that their version cannot be made now is no end.
        job.state, job.finished_at, job.next_attempt_at = "due", None, clock.now() + _STAMPED_AGAIN
        return
    job.request = None
    failed = DocumentsFailed(
        submission_id=job.submission_id,
        seal_id=job.seal_id,
        reason=job.last_error or "sealing failed",
        differences=list(differences),
    )
    emit(session, DOCUMENTS_FAILED, failed, subject=f"submission:{job.submission_id}")


def retry_dutystamp(
    session: Session, envelope: Envelope, retried: DutystampRetried, account: Account | None, now: datetime
) -> None:
    """Have stamps that failed tried again, however often the event comes. Without an account, whose settings nobody can read,
    it is only noted."""
    if first_time(session, "dutystamp", envelope.id) and account is not None:
        seals.retry(session, retried.submission_id, retried.seal_id, retried.order, account, now)


def retry_certsign(session: Session, envelope: Envelope, retried: CertsignRetried, now: datetime) -> None:
    """Have the provider asked again, or the documents sealed without it, however often the event comes."""
    if not first_time(session, "certsign", envelope.id):
        return
    if retried.waived_by is not None:
        certsigning.waive(session, retried.seal_id, retried.waived_by, now)
    elif retried.order is not None:
        certsigning.retry(session, retried.seal_id, retried.order, now)


def stop_waiting(session: Session, certsign: CertsignJob, now: datetime, differences: Sequence[str] = ()) -> None:
    """Stop waiting for a provider: what it was to sign cannot be sealed at all, ``certsign.last_error`` says why."""
    certsigning.fail(session, certsign, "not_sealable", now)
    certsign.order = None
    job = session.scalar(sa.select(SealJob).where(SealJob.id == certsign.id).with_for_update())
    if job is not None and job.state == domain.WAITING:
        job.state, job.finished_at, job.last_error = "parked", now, certsign.last_error
        fail_job(session, job, differences)


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
    sources: Collection[str],
    marks: Mapping[str, datetime],
    further_sources: Collection[str] = (),
    expires_at: datetime,
) -> dict[str, Any]:
    """Keep an answer; returns the one that is kept, which is another's when two made the same at once. ``marks``: those of its
    ``sources`` when it was begun (``queries.marks``). Raises SourceForgotten when there is another by now."""
    _take_turn(session, sources, exclusive=False)
    if not queries.marks(session, sources).items() <= marks.items():
        raise SourceForgotten
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
        for sha256 in {*sources, *further_sources}:
            session.add(ResultSource(sha256=sha256, kind=kind, digest=digest))
        return answer
    return queries.result(session, kind, digest) or answer


def pass_on_sources(session: Session, parts: Collection[str], whole: str) -> None:
    """Have what was laid out from the same text as one of ``parts`` (SHA-256) be forgotten with the file that was made of them,
    too: a submission knows only the whole."""
    for digest in queries.laid_out(session, parts):
        row = {"sha256": whole, "kind": queries.LAID_OUT, "digest": digest}
        session.execute(insert_into(session, ResultSource).values(row).on_conflict_do_nothing())


def forget_made_from(session: Session, digests: Collection[str], now: datetime) -> list[str]:
    """Forget what was made from these documents (SHA-256), for good: whoever is still making something of them does not keep
    it. Returns blobs to remove. Of a document that somebody still uses all of it is made anew when it is asked for."""
    if not digests:
        return []
    _take_turn(session, digests, exclusive=True)
    marks = [{"handler": queries.FORGOTTEN, "event_id": queries.mark_of(sha256), "at": now} for sha256 in digests]
    statement = insert_into(session, inbox).values(marks)
    session.execute(statement.on_conflict_do_update(index_elements=["handler", "event_id"], set_={"at": now}))
    keys_of_results = sa.select(ResultSource.kind, ResultSource.digest).where(ResultSource.sha256.in_(digests))
    results = list(session.scalars(sa.select(Result).where(sa.tuple_(Result.kind, Result.digest).in_(keys_of_results))))
    _forget(session, results)
    return [key for result in results for key in result.keys]


def leave_removal(session: Session, keys: Sequence[str], now: datetime) -> str | None:
    """Have these files removed after the commit, by whoever comes to it (``results.clear``): a crash leaves none behind.
    Returns what the note of it is called, which goes with them; None without files."""
    if not keys:
        return None
    removal = Result(kind=queries.REMOVAL, digest=clock.uuid7(), answer={}, keys=list(keys), expires_at=now)
    session.add(removal)
    return removal.digest


def finish_removal(session: Session, digest: str) -> None:
    """These files are gone."""
    session.execute(sa.delete(Result).where(Result.kind == queries.REMOVAL, Result.digest == digest))


def forget_marks(session: Session, now: datetime) -> None:
    """Nobody can have begun before these documents were forgotten and be at it still."""
    session.execute(sa.delete(inbox).where(inbox.c.handler == queries.FORGOTTEN, inbox.c.at < now - _MARKED))


def _take_turn(session: Session, digests: Collection[str], *, exclusive: bool) -> None:
    """Whoever forgets what was made from a document waits for those who are just keeping something of it, and the other way
    round. On SQLite all who write take turns anyway."""
    if digests and dialect_of(session) == "postgresql":
        session.execute(_EXCLUSIVE if exclusive else _SHARED, {"digests": sorted(digests)})


_KEYS_OF = (
    "FROM (SELECT DISTINCT hashtext('result of ' || sha256) AS key FROM unnest(CAST(:digests AS text[])) AS sha256"
)
_EXCLUSIVE = sa.text(f"SELECT pg_advisory_xact_lock(key) {_KEYS_OF} ORDER BY key) AS keys")
_SHARED = sa.text(f"SELECT pg_advisory_xact_lock_shared(key) {_KEYS_OF} ORDER BY key) AS keys")


def forget_result(session: Session, kind: str, digest: str) -> None:
    """Forget an answer that has no files of its own."""
    _forget(session, session.scalars(sa.select(Result).where(Result.kind == kind, Result.digest == digest)).all())


def erase(session: Session, envelope: Envelope, erased: Erased, now: datetime) -> list[str]:
    """Forget a submission: its jobs' contents, which files were its, what was made from them and from the documents that went
    with it. Returns the blobs that are removed after it (``leave_removal``).

    A job under way loses its row's request and counts as ended; what it still writes is swept later. Events of each kind have
    a queue of their own: what happened before this and comes after it is not taken on. That it is gone is told once its files
    are (``erasures.tell``).
    """
    busy_until = erasures.busy_until(session, erased.submission_id)
    first_time(session, _ERASED, str(erased.submission_id))
    if is_first_request := first_time(session, "erase", envelope.id):
        scrubbing.ask(session)
    forget(session, f"submission:{erased.submission_id}")
    jobs = session.scalars(sa.select(SealJob).where(SealJob.submission_id == erased.submission_id).with_for_update())
    deleted = {"jobs": 0, "statements": erasures.statements(session, erased.submission_id)}
    for job in jobs:
        deleted["jobs"] += 1
        job.request = None
        job.swept = False
        job.sealed_attempt = None
        if job.state in ("due", domain.WAITING):
            job.state, job.finished_at, job.last_error = "parked", now, "the submission was erased"
    keys_of_seals = seals.erase(session, erased.submission_id, now)
    prepared = certsigning.erase(session, erased.submission_id, now)
    prepared += confirmations.erase(session, erased.submission_id, now)
    archives = sa.select(ArchivedFile).where(ArchivedFile.submission_id == erased.submission_id).with_for_update()
    for archive in session.scalars(archives):
        # What an attempt still writes stands among the candidates; so does the present version, which nobody may know yet.
        present_key = [archive.file["key"]] if archive.file is not None and archive.version else []
        archive.candidates, archive.file, archive.sweep_at = [*archive.candidates, *present_key], None, now
        archive.state, archive.finished_at = "parked", now
        archive.last_error = "the submission was erased"
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
    keys = forget_made_from(session, {*erased.documents, *session.scalars(own_files)}, now)
    session.execute(sa.delete(SealedFile).where(SealedFile.submission_id == erased.submission_id))
    keys += [*prepared, *keys_of_seals, *orders.erase(session, erased.submission_id)]
    news.erase(session, erased.submission_id)
    removal = leave_removal(session, keys, now)
    counts = {**deleted, "files": len(set(keys))}
    erasures.begin(session, erased.submission_id, counts, removal, busy_until, now, is_requested=is_first_request)
    return keys


def _was_erased(session: Session, submission_id: int, envelope: Envelope) -> bool:
    """Return whether the submission was erased after what the event says: one that a restore has brought back goes on."""
    query = sa.select(inbox.c.at).where(inbox.c.handler == _ERASED, inbox.c.event_id == str(submission_id))
    at = session.scalar(query)
    return at is not None and at >= envelope.occurred_at


def expire_results(session: Session, now: datetime, limit: int = 500) -> list[str]:
    """Forget answers that have been kept long enough. Returns the blobs that are removed after it (``leave_removal``)."""
    due = sa.select(Result).where(Result.expires_at < now, Result.kind != queries.REMOVAL)
    results = list(session.scalars(due.order_by(Result.expires_at).limit(limit)))
    keys = [key for result in results for key in result.keys]
    _forget(session, results)
    leave_removal(session, keys, now)
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
    session.execute(sa.delete(CertsignJob).where(CertsignJob.id.in_(sa.select(SealJob.id).where(old))))
    session.execute(sa.delete(SealJob).where(old))


def _forget(session: Session, results: Sequence[Result]) -> None:
    """Results and their sources; SQLite and PostgreSQL both remove the sources by themselves."""
    for result in results:
        session.execute(sa.delete(Result).where(Result.kind == result.kind, Result.digest == result.digest))
