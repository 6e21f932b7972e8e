"""The rows of signatures that a provider makes (``CertsignJob``, ``CertsignSigning``): one function per step.

Each is a transaction. A step of an attempt is written only while that attempt is the one under way: what a later attempt, an
operator or an erasure has changed meanwhile is not overwritten.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import CERTSIGN_CHANGED
from contracts.providers import CertsignChanged, CertsignOrder, CertsignState, CertsignStatus
from contracts.rpc.rendering import SealRequest
from contracts.runtime.bus.outbox import emit
from contracts.runtime.data.database import insert_into, leave_work
from services.rendering.models import CertsignJob, CertsignSigning, CertsignTrial, SealJob
from services.rendering.rules import domain
from services.rendering.storage import news

TRIED_FOR = timedelta(minutes=2)
"""After that whoever tried settings must have ended, or been killed: a call takes less."""

TRIALS_KEPT = timedelta(days=30)

CERTIFICATE_CHANGED = "certificate_changed"
"""The failure of a job of which some documents were signed with a certificate that the provider no longer has."""


UNKNOWN = "nobody knows what came of the first try with these settings: the provider may have refused and counted it"
"""Why settings are not tried again whose try had no end, because its process was killed."""


class NotAgain(Exception):
    """Settings are not tried by themselves any more, the message says why."""


class TakenOver(Exception):
    """The attempt is no longer the one under way: what it was about to write is not written."""


@dataclass(frozen=True)
class Prepared:
    """The files of a job, and what they were prepared for."""

    signings: Sequence[CertsignSigning]
    prepared_for: Mapping[str, Any]
    assurance: Mapping[str, Any]


@dataclass(frozen=True)
class Begun:
    """What an attempt begins with: the seal ``job`` that waits for it, the documents that were prepared so far. ``numbered``:
    it may prepare files under the row's ``preparation``, which no other attempt has."""

    job: SealJob | None
    signings: Sequence[CertsignSigning]
    numbered: bool = False


# --- reading --------------------------------------------------------------------------------------------------------------


def job(session: Session, job_id: int) -> CertsignJob | None:
    """The provider's part of the seal job with this id, None where there is none."""
    return session.get(CertsignJob, job_id)


def begun(session: Session, row: CertsignJob) -> Begun:
    """Read what an attempt of the row begins with."""
    return Begun(session.get(SealJob, row.id), [] if row.prepared_for is None else signings(session, row.id))


def with_signings(session: Session, job_id: int) -> tuple[CertsignJob | None, list[CertsignSigning]]:
    """The provider's part of a seal job, with its documents where it has ended."""
    of_it = sa.and_(CertsignSigning.job_id == CertsignJob.id, CertsignJob.state == "done")
    query = sa.select(CertsignJob, CertsignSigning).outerjoin(CertsignSigning, of_it).where(CertsignJob.id == job_id)
    rows = session.execute(query.order_by(CertsignSigning.number)).all()
    signings_done = [row.CertsignSigning for row in rows if row.CertsignSigning is not None]
    return (rows[0].CertsignJob, signings_done) if rows else (None, [])


def signings(session: Session, job_id: int) -> list[CertsignSigning]:
    """The documents that were prepared for a job, in order."""
    query = sa.select(CertsignSigning).where(CertsignSigning.job_id == job_id).order_by(CertsignSigning.number)
    return list(session.scalars(query))


def refusal_of(session: Session, settings_mark: str) -> str | None:
    """Return why the provider refused these very settings, where it counts refusals and nobody has had them tried again
    since."""
    query = sa.select(CertsignJob.last_error).where(CertsignJob.settings_mark == settings_mark, CertsignJob.counted)
    return session.scalar(query.limit(1))


def last_signed_at(session: Session, provider: str) -> datetime | None:
    """Return when all documents of a submission were last signed there."""
    signed = (CertsignJob.provider == provider, CertsignJob.state == "done", CertsignJob.waived_at.is_(None))
    return session.scalar(sa.select(sa.func.max(CertsignJob.finished_at)).where(*signed, CertsignJob.failure.is_(None)))


def oldest_pending(session: Session) -> datetime | None:
    """Since when the job that has waited longest for its provider does so."""
    return session.scalar(sa.select(sa.func.min(CertsignJob.created_at)).where(CertsignJob.state == "due"))


def waiting(session: Session, now: datetime) -> list[CertsignJob]:
    """Of each provider that is away the oldest job that waits for a later attempt."""
    query = (
        sa.select(CertsignJob)
        .where(CertsignJob.state == "due", CertsignJob.away, CertsignJob.next_attempt_at > now)
        .order_by(CertsignJob.id)
    )
    oldest: dict[str, CertsignJob] = {}
    for row in session.scalars(query):
        oldest.setdefault(row.provider, row)
    return list(oldest.values())


def over(session: Session, before: datetime) -> list[CertsignJob]:
    """Rows whose seal job ended before that moment: nothing of them is needed any more, and no attempt is under way."""
    ended = (
        sa.select(CertsignJob)
        .join(SealJob, SealJob.id == CertsignJob.id)
        .where(SealJob.finished_at < before, CertsignJob.preparation > 0)
    )
    return list(session.scalars(ended.order_by(CertsignJob.id).limit(100)))


def prepared_keys(row: CertsignJob) -> list[str]:
    """Return where files that were prepared for this job may be."""
    return [
        domain.prepared_key(row.submission_id, row.id, preparation, number)
        for preparation in range(1, row.preparation + 1)
        for number in range(row.documents)
    ]


# --- settings that are tried once ------------------------------------------------------------------------------------------


def take_turn(session: Session, settings_mark: str, process: str, now: datetime, *, once: bool = False) -> bool | None:
    """Try these settings, unless another process does so now. True: they are known to work, and anybody may use them. False:
    it is this process's turn. None: it is another's. ``once``: the provider may count the try, so that there is no other one
    before ``end_turn`` tells what came of it. Raises NotAgain."""
    turn = {"tried_by": process, "tried_until": now + TRIED_FOR, "problem": UNKNOWN if once else None}
    trial = {"settings_mark": settings_mark, "works": False, **turn}
    begun = insert_into(session, CertsignTrial).values(**trial).on_conflict_do_nothing()
    if session.execute(begun.returning(CertsignTrial.settings_mark)).first():
        return False
    trial_row = sa.select(CertsignTrial).where(CertsignTrial.settings_mark == settings_mark).with_for_update()
    row = session.scalars(trial_row).one()
    if row.works:
        return True
    if row.tried_by not in (None, process) and row.tried_until > now:
        return None
    if row.problem is not None:
        raise NotAgain(row.problem)
    for name, value in turn.items():
        setattr(row, name, value)
    return False


def is_known_to_work(session: Session, settings_mark: str) -> bool:
    """Return whether these settings were shown to work, and not refused since."""
    return bool(session.scalar(_WORKS, {"mark": settings_mark}))


def end_turn(session: Session, settings_mark: str, now: datetime, *, works: bool, problem: str | None = None) -> None:
    """Others may use these settings (``works``), or try them, unless there is a ``problem``. They are forgotten when nobody has
    tried them for long."""
    result = {"works": works, "tried_by": None, "tried_until": now, "problem": problem}
    statement = insert_into(session, CertsignTrial).values(settings_mark=settings_mark, **result)
    session.execute(statement.on_conflict_do_update(index_elements=["settings_mark"], set_=result))


def note_problem(session: Session, settings_mark: str, now: datetime, problem: str, *, refused: bool) -> None:
    """A person has tried these settings, and they may have been ``refused`` and counted. What is known to work stays so
    otherwise."""
    if refused or not is_known_to_work(session, settings_mark):
        end_turn(session, settings_mark, now, works=False, problem=problem)


def forget_trials(session: Session, now: datetime) -> None:
    """Forget settings that were shown to work long ago: the next one who uses them shows it again."""
    session.execute(sa.delete(CertsignTrial).where(CertsignTrial.tried_until < now - TRIALS_KEPT))


# --- the way of a job -----------------------------------------------------------------------------------------------------


def begin(session: Session, job_id: int, request: SealRequest, request_id: str | None, now: datetime) -> None:
    """Have the provider asked; the seal job waits for it."""
    assert request.certsign is not None
    row = CertsignJob(
        id=job_id,
        seal_id=request.seal_id,
        submission_id=request.submission_id,
        request_id=request_id,
        provider=request.certsign.provider,
        order=request.certsign.model_dump(mode="json"),
        preparation=0,
        documents=len(request.documents),
        authorization=1,
        faults=0,
        away=False,
        counted=False,
        created_at=now,
        next_attempt_at=now,
        state="due",
        attempts=0,
    )
    session.add(row)


def claimed(session: Session, rows: Sequence[CertsignJob]) -> dict[tuple[int, int], Begun]:
    """Runs in the transaction that claims rows, so that their attempts have no need of ones of their own: what each begins
    with, by the row's id and the number of the attempt.

    Where no files are prepared yet it notes down that some are about to be, under another number than any attempt before, so
    that they are found whatever is killed, and nobody writes over them."""
    ids = [row.id for row in rows]
    jobs = {job.id: job for job in session.scalars(sa.select(SealJob).where(SealJob.id.in_(ids)))}
    begun_by_attempt = {}
    for row in rows:
        unprepared = row.prepared_for is None
        if unprepared:
            row.preparation += 1
        begun_by_attempt[row.id, row.attempts] = Begun(
            jobs.get(row.id), [] if unprepared else signings(session, row.id), numbered=unprepared
        )
    return begun_by_attempt


def begin_preparation(session: Session, attempt: CertsignJob) -> CertsignJob:
    """Note down that files are about to be prepared in place of others, which are void."""
    voided = {"preparation": CertsignJob.preparation + 1, "prepared_for": None, "assurance": None}
    row = _changed(session, attempt, {**voided, **_NO_PERMISSION})
    session.execute(sa.delete(CertsignSigning).where(CertsignSigning.job_id == row.id))
    return row


def keep_prepared(
    session: Session, attempt: CertsignJob, prepared: Prepared, settings_mark: str
) -> tuple[CertsignJob, bool]:
    """The files are what will be signed, from now on, with settings that are about to be tried; whether these are known to
    work. A permission is another one than any before."""
    kept_with_job = {"prepared_for": dict(prepared.prepared_for), "assurance": dict(prepared.assurance)}
    row = _changed(session, attempt, {**kept_with_job, "settings_mark": settings_mark, **_NO_PERMISSION})
    columns = [column.key for column in _SIGNINGS.columns]
    rows = [{name: getattr(signing, name) for name in columns} for signing in prepared.signings]
    if rows:
        session.connection().execute(_NEW_SIGNINGS, rows)
    return row, is_known_to_work(session, settings_mark)


def note_settings(session: Session, attempt: CertsignJob, settings_mark: str) -> CertsignJob:
    """Note down which settings are about to be tried."""
    return _changed(session, attempt, {"settings_mark": settings_mark})


def note_refusal(session: Session, attempt: CertsignJob, reason: str) -> None:
    """The provider refused these settings and counts that: they are not tried again, by whichever submission."""
    _changed(session, attempt, {"counted": True, "last_error": reason})


def keep_grant(session: Session, attempt: CertsignJob, grant: str, until: datetime) -> CertsignJob:
    """The provider permits what was asked; ``grant`` is sealed."""
    permission = {"grant": grant, "grant_until": until, "session": None, "session_until": None}
    return _changed(session, attempt, permission)


def keep_session(session: Session, attempt: CertsignJob, provider_session: str, until: datetime) -> CertsignJob:
    """The provider wants to be asked later, with this ``provider_session``, which is sealed."""
    return _changed(session, attempt, {"session": provider_session, "session_until": until})


def begin_authorization(session: Session, attempt: CertsignJob) -> CertsignJob:
    """The permission is worth nothing any more: ask for another one."""
    return _changed(session, attempt, _NO_PERMISSION)


def keep_signatures(
    session: Session, attempt: CertsignJob, signatures: Mapping[int, bytes], now: datetime
) -> CertsignJob:
    """These signatures, which were verified, by the numbers of their documents. None takes another's place."""
    row = _changed(session, attempt, _NO_PERMISSION)
    _keep(session, row, signatures, now)
    return row


def finish(
    session: Session, row: CertsignJob, attempt: CertsignJob, signatures: Mapping[int, bytes], now: datetime
) -> None:
    """Everything is signed, with these last signatures: say so, and have the documents finished. Not where the files were
    made anew since, or another permission was asked for: whoever did that goes on."""
    if (row.preparation, row.authorization) != (attempt.preparation, attempt.authorization):
        row.make_due(now)
        return
    with session.no_autoflush:  # the row is written once
        _keep(session, row, signatures, now)
        row.failure, row.order = None, None
        _forget_permission(row)
        _tell(session, row, CertsignStatus.SIGNED, now)
        _go_on(session, row, now)


def wait(
    session: Session,
    row: CertsignJob,
    failure: str,
    now: datetime,
    *,
    away: bool = False,
    unused: int | None = None,
) -> None:
    """The provider did not do it, and will be asked again: say so. ``away``: it did not even tell its certificate. ``unused``:
    nothing was prepared under this number, so the next attempt has the same."""
    row.failure, row.away = failure, away
    if unused is not None and row.preparation == unused:
        row.preparation -= 1
    if row.state != "due":
        return  # it was the last attempt
    _tell(session, row, CertsignStatus.PENDING, now, row.last_error, row.next_attempt_at)


def fail(session: Session, row: CertsignJob, failure: str, now: datetime) -> None:
    """Somebody has to look at it: say so. The seal job keeps waiting, with its request."""
    row.failure, row.away = failure, False
    _forget_permission(row)
    _tell(session, row, CertsignStatus.FAILED, now, row.last_error)


def retry(session: Session, seal_id: str, order: CertsignOrder, now: datetime) -> None:
    """Ask the provider again now, as ``order`` says. Settings that it refused may be tried again."""
    row = _locked_job_of_seal(session, seal_id)
    if row is None or row.state == "done" or row.order is None:
        return
    if row.failure == CERTIFICATE_CHANGED:
        _forget_signings(session, row)
        row.prepared_for = None
    of_provider = CertsignJob.provider == order.provider
    for refused in session.scalars(sa.select(CertsignJob).where(of_provider)):
        refused.counted = False
    marks = sa.select(CertsignJob.settings_mark).where(of_provider, CertsignJob.settings_mark.is_not(None))
    session.execute(sa.update(CertsignTrial).where(CertsignTrial.settings_mark.in_(marks)).values(problem=None))
    row.order, row.provider = order.model_dump(mode="json"), order.provider
    if row.state == "due" and row.leased_until is not None:
        return  # it is being tried just now; the next attempt does as ``order`` says
    _forget_permission(row)
    row.retry(now)
    _tell(session, row, CertsignStatus.PENDING, now)


def waive(session: Session, seal_id: str, waived_by: str, now: datetime) -> None:
    """Seal with the local certificate instead, because a person decided so. Not where everything was signed already."""
    row = _locked_job_of_seal(session, seal_id)
    if row is None or row.state == "done" or row.order is None:
        return
    row.state, row.finished_at, row.leased_until, row.leased_by = "done", now, None, None
    row.waived_by, row.waived_at, row.order = waived_by, now, None
    _forget_permission(row)
    _forget_signings(session, row)
    _tell(session, row, CertsignStatus.FAILED, now, "the provider's signature was waived")
    _go_on(session, row, now)


def hurry(session: Session, provider: str, now: datetime) -> None:
    """The provider answers again: whoever waits for it need not wait any longer."""
    late = (CertsignJob.state == "due", CertsignJob.provider == provider, CertsignJob.next_attempt_at > now)
    free = sa.or_(CertsignJob.leased_until.is_(None), CertsignJob.leased_until <= now)
    session.execute(sa.update(CertsignJob).where(*late, free, CertsignJob.away).values(next_attempt_at=now))
    leave_work(session, CertsignJob.__tablename__)


def hurry_one(session: Session, job_id: int, now: datetime) -> None:
    """Make the job due now: what it waited for is there."""
    row = session.scalar(sa.select(CertsignJob).where(CertsignJob.id == job_id).with_for_update())
    if row is not None and row.state == "due":
        row.next_attempt_at = now


def erase(session: Session, submission_id: int, now: datetime) -> list[str]:
    """Forget what a submission's documents were prepared as, and what the provider was asked for. Returns blobs to remove."""
    keys: list[str] = []
    query = sa.select(CertsignJob).where(CertsignJob.submission_id == submission_id).with_for_update()
    for row in session.scalars(query):
        keys += prepared_keys(row)
        if row.state != "done":
            row.state, row.finished_at, row.last_error, row.failure = "done", now, None, "erased"
        row.order = row.prepared_for = row.assurance = row.waived_by = None
        _forget_permission(row)
        _forget_signings(session, row)
    return keys


def forget(session: Session, job_ids: Sequence[int]) -> None:
    """Nothing is left of the files of these jobs. That and when the provider signed stays known for as long as the seal job
    is."""
    session.execute(sa.delete(CertsignSigning).where(CertsignSigning.job_id.in_(job_ids)))
    cleared = {"preparation": 0, "order": None, "prepared_for": None, "assurance": None, "settings_mark": None}
    session.execute(sa.update(CertsignJob).where(CertsignJob.id.in_(job_ids)).values(**cleared))


# --- parts ----------------------------------------------------------------------------------------------------------------


def _locked_job_of_seal(session: Session, seal_id: str) -> CertsignJob | None:
    return session.scalar(sa.select(CertsignJob).where(CertsignJob.seal_id == seal_id).with_for_update())


_NO_PERMISSION: dict[str, Any] = {
    "authorization": CertsignJob.authorization + 1,
    "grant": None,
    "grant_until": None,
    "session": None,
    "session_until": None,
}
"""The next request is another one."""

# The statements are compiled once: building one costs more than running it.

_WORKS = sa.select(CertsignTrial.works).where(CertsignTrial.settings_mark == sa.bindparam("mark"))
_SIGNINGS = CertsignSigning.metadata.tables[CertsignSigning.__tablename__]
_NEW_SIGNINGS = _SIGNINGS.insert()
_SIGNED = (
    sa.update(CertsignSigning)
    .where(
        CertsignSigning.job_id == sa.bindparam("of_job"),
        CertsignSigning.number == sa.bindparam("of_number"),
        CertsignSigning.signature.is_(None),
    )
    .values(signature=sa.bindparam("given"), signed_at=sa.bindparam("at"))
    .execution_options(synchronize_session=False)
)


def _changed(session: Session, attempt: CertsignJob, values: Mapping[str, Any]) -> CertsignJob:
    """Change the row, in one statement, while it is this attempt's; returns it as it is then. Raises TakenOver when it is
    not."""
    is_still_the_attempts = (
        CertsignJob.id == attempt.id,
        CertsignJob.state == "due",
        CertsignJob.attempts == attempt.attempts,
        CertsignJob.preparation == attempt.preparation,
        CertsignJob.authorization == attempt.authorization,
    )
    change = sa.update(CertsignJob).where(*is_still_the_attempts).values(values).returning(CertsignJob)
    row = session.scalars(change.execution_options(synchronize_session=False)).first()
    if row is None:
        raise TakenOver(f"job {attempt.id}, attempt {attempt.attempts}")
    return row


def _keep(session: Session, row: CertsignJob, signatures: Mapping[int, bytes], now: datetime) -> None:
    signed = [
        {"of_job": row.id, "of_number": number, "given": signature, "at": now}
        for number, signature in signatures.items()
    ]
    if signed:
        session.connection().execute(_SIGNED, signed)


def _forget_permission(row: CertsignJob) -> None:
    """The next request is another one."""
    row.authorization += 1
    row.grant = row.grant_until = row.session = row.session_until = None


def _forget_signings(session: Session, row: CertsignJob) -> None:
    session.execute(sa.delete(CertsignSigning).where(CertsignSigning.job_id == row.id))


_OF_ATTEMPTS = ("leased_until", "leased_by", "finished_at")


def _go_on(session: Session, row: CertsignJob, now: datetime) -> None:
    waits = sa.update(SealJob).where(SealJob.id == row.id, SealJob.state == domain.WAITING)
    due = {"state": "due", "attempts": 0, "next_attempt_at": now, **dict.fromkeys(_OF_ATTEMPTS)}
    if session.scalar(waits.values(**due).returning(SealJob.id).execution_options(synchronize_session=False)):
        leave_work(session, SealJob.__tablename__)


def _tell(
    session: Session,
    row: CertsignJob,
    status: CertsignStatus,
    now: datetime,
    message: str | None = None,
    next_attempt_at: datetime | None = None,
) -> None:
    signatory = (row.prepared_for or {}).get("signatory", {})
    at = news.moment(session, CERTSIGN_CHANGED, row.submission_id, now)
    state = CertsignState(
        status=status,
        provider=row.provider,
        message=message,
        at=at,
        next_attempt_at=next_attempt_at,
        subject=signatory.get("subject"),
        valid_to=signatory.get("valid_to"),
        waived_by=row.waived_by,
    )
    changed = CertsignChanged(submission_id=row.submission_id, seal_id=row.seal_id, state=state)
    emit(session, CERTSIGN_CHANGED, changed, subject=f"submission:{row.submission_id}")
