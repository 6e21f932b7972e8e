"""The rows of seal jobs whose files get duty stamps (``StampedSeal``): sealed files that are kept until their stamps are there,
and what is ordered for them. One function per step, each in the caller's transaction."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.providers import DutystampOrder, DutystampState, DutystampStatus
from contracts.rpc.rendering import SealRequest
from contracts.runtime.data.database import leave_work
from services.rendering.models import SealJob, StampedSeal
from services.rendering.rules import domain
from services.rendering.stamping import orders
from services.rendering.stamping.accounts import Account

GIVEN_UP_AFTER = timedelta(days=90)
"""After the documents were told without their stamps: then what is needed to make the later version is forgotten, with the
values and addresses that are in it."""

LOOKED_AFTER = timedelta(hours=1)
"""A change of its stamps makes the job due at once; this is for whom it was not told to, as an earlier seal job of the
submission."""


class TakenOver(Exception):
    """Another attempt is at work on the job."""


def seal(session: Session, job_id: int) -> StampedSeal | None:
    """Return what is kept for the seal job with this id, None where nothing is yet."""
    return session.get(StampedSeal, job_id)


def seal_job(session: Session, job_id: int) -> SealJob | None:
    """The seal job that it is kept for."""
    return session.get(SealJob, job_id)


def state(session: Session, row: StampedSeal, now: datetime) -> DutystampState:
    """Return how far the stamps are, whether they were ordered yet or not."""
    provider = DutystampOrder.model_validate(row.order).provider
    if row.state == "done":
        nothing = DutystampState(status=DutystampStatus.STAMPED, provider=provider, at=now)
        return orders.state_of(session, row.submission_id, now) or nothing
    failed = row.state == "parked"
    return DutystampState(
        status=DutystampStatus.FAILED if failed else DutystampStatus.PENDING,
        provider=provider,
        message=row.last_error,
        at=now,
        next_attempt_at=None if failed or row.last_error is None else row.next_attempt_at,
    )


def kept_keys(row: StampedSeal) -> list[str]:
    """Return where sealed files of this job may be kept."""
    return [
        domain.kept_key(row.submission_id, row.id, revision, number)
        for revision in range(1, row.revision + 1)
        for number in range(row.files)
    ]


def over(session: Session, before: datetime) -> list[StampedSeal]:
    """Rows whose seal job ended before that moment and was swept: nothing of them is needed any more."""
    ended = (
        sa.select(StampedSeal)
        .join(SealJob, SealJob.id == StampedSeal.id)
        .where(SealJob.finished_at < before, SealJob.swept)
    )
    return list(session.scalars(ended.order_by(StampedSeal.id).limit(100)))


def without_stamps(session: Session, before: datetime) -> list[StampedSeal]:
    """Seals that were told as sealed before that moment, and whose stamps nobody tries any more."""
    statement = (
        sa.select(StampedSeal)
        .join(SealJob, SealJob.id == StampedSeal.id)
        .where(StampedSeal.told_at < before, SealJob.state == "due", SealJob.leased_by.is_(None))
    )
    rows = session.scalars(statement.order_by(StampedSeal.id).limit(100))
    return [row for row in rows if _is_given_up(session, row)]


def _is_given_up(session: Session, row: StampedSeal) -> bool:
    if row.state != "done":
        return row.state == "parked"
    stamped = all(file.stamped for file in orders.stamped_files(session, row.submission_id))
    return not stamped and orders.is_settled(session, row.submission_id)


def give_up(session: Session, job_id: int, now: datetime) -> list[str]:
    """Forget what the seal job would still need to make the version with stamps, which nobody has asked for in a long time. A
    serial that was bought goes to the pool. Returns blobs to remove."""
    row = session.scalar(sa.select(StampedSeal).where(StampedSeal.id == job_id).with_for_update())
    job = session.scalar(sa.select(SealJob).where(SealJob.id == job_id).with_for_update())
    if row is None or job is None or job.state != "due" or job.leased_by is not None or not _is_given_up(session, row):
        return []
    row.order, row.state, row.finished_at = None, "done", row.finished_at or now
    job.request, job.state, job.finished_at = None, "done", now
    return orders.erase(session, row.submission_id)


def begin(session: Session, job: SealJob, request: SealRequest, now: datetime) -> StampedSeal:
    """Note down that sealed files are about to be kept, so that they are found whatever is killed."""
    assert request.dutystamp is not None
    row = session.scalar(sa.select(StampedSeal).where(StampedSeal.id == job.id).with_for_update())
    if row is None:
        row = StampedSeal(
            id=job.id,
            seal_id=request.seal_id,
            submission_id=request.submission_id,
            request_id=job.request_id,
            order=request.dutystamp.model_dump(mode="json"),
            files=job.files,
            revision=0,
            created_at=now,
            next_attempt_at=now,
            state=domain.WAITING,
            attempts=0,
        )
        session.add(row)
    if row.parts is not None or row.order is None:
        raise TakenOver(f"the files of job {job.id} are kept already")
    row.revision += 1
    return row


def keep(session: Session, attempt: StampedSeal, parts: dict[str, Any], now: datetime) -> StampedSeal:
    """The sealed files are there: they are what is stamped, from now on. Raises TakenOver."""
    row = session.scalar(sa.select(StampedSeal).where(StampedSeal.id == attempt.id).with_for_update())
    if row is None or row.parts is not None or row.order is None or row.revision != attempt.revision:
        raise TakenOver(f"the files of job {attempt.id} are kept already")
    order = DutystampOrder.model_validate(row.order)
    row.parts = parts
    row.wait_until = now + timedelta(seconds=order.wait_seconds) if order.on_failure == "complete" else None
    row.make_due(now)
    leave_work(session, StampedSeal.__tablename__)
    return row


def is_ready(session: Session, row: StampedSeal, now: datetime) -> bool:
    """Return whether the seal job need not wait: all stamps are there, or the documents are told without them for now."""
    placed = row.state == "done" and all(file.stamped for file in orders.stamped_files(session, row.submission_id))
    if placed or row.told_at is not None or row.wait_until is None:
        return placed
    settled = row.state == "parked" or (row.state == "done" and orders.is_settled(session, row.submission_id))
    return settled or now >= row.wait_until


def wait(session: Session, job: SealJob, now: datetime) -> None:
    """The seal job waits for its stamps: until they change, or for as long as it may. This was no attempt."""
    row = session.get(StampedSeal, job.id, populate_existing=True)
    assert row is not None
    limit = row.wait_until if row.told_at is None else None
    job.state, job.finished_at, job.attempts = "due", None, job.attempts - 1
    job.next_attempt_at = now if is_ready(session, row, now) else limit or now + LOOKED_AFTER


def tell(session: Session, row: StampedSeal, now: datetime) -> None:
    """Say how far the ordering is; once it does not go on by itself, the seal job does."""
    settled = row.state == "parked"
    orders.tell(session, row.submission_id, row.seal_id, state(session, row, now), settled=settled)


def _tell_too_late(session: Session, submission_id: int, seal_id: str, order: DutystampOrder, now: datetime) -> None:
    """Nothing is kept any more that stamps could be put onto, unless the seal job is only about to begin."""
    job = session.scalar(sa.select(SealJob).where(SealJob.seal_id == seal_id))
    if job is not None and job.state != "done":
        return
    days = GIVEN_UP_AFTER.days
    failed = DutystampState(
        status=DutystampStatus.FAILED,
        provider=order.provider,
        message=f"It is too late for stamps. Nobody had them tried again within {days} days, and their files are gone.",
        at=now,
    )
    orders.tell(session, submission_id, seal_id, failed, settled=False)


def retry(
    session: Session, submission_id: int, seal_id: str, order: DutystampOrder, account: Account, now: datetime
) -> None:
    """Have what failed tried again now, with the account's settings of today."""
    row = session.scalar(sa.select(StampedSeal).where(StampedSeal.seal_id == seal_id).with_for_update())
    if row is None or row.order is None:
        _tell_too_late(session, submission_id, seal_id, order, now)
        return
    row.order = {**row.order, "settings": order.settings, "provider": order.provider}
    if row.state == "parked":
        row.retry(now)
        leave_work(session, StampedSeal.__tablename__)
        tell(session, row, now)
    elif row.state == "done":
        orders.retry(session, row.submission_id, account, now)


def erase(session: Session, submission_id: int, now: datetime) -> list[str]:
    """Forget what is kept of a submission. Returns blobs to remove."""
    keys: list[str] = []
    for row in session.scalars(
        sa.select(StampedSeal).where(StampedSeal.submission_id == submission_id).with_for_update()
    ):
        keys += kept_keys(row)
        row.order = row.parts = None
        row.state, row.finished_at, row.last_error = "done", row.finished_at or now, None
    return keys


def forget(session: Session, job_id: int) -> None:
    """Nothing is left of what was kept for a job."""
    session.execute(sa.delete(StampedSeal).where(StampedSeal.id == job_id))
