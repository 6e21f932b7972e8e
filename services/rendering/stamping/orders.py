"""What others call to have a submission's files stamped, and to know how far that is.

The seal job, once the files are sealed and it is known where each stamp goes::

    account = accounts.opened(order.settings, link_secret)
    database.write(orders.place_order, order, account, binds=offer.binds, seal_id=..., submission_id=..., stamps=[...], ...)

Then it waits (``Retry(counts=False, ...)``): ``StampWork`` calls its ``on_change`` in the transaction of each change, the last
one with ``settled=True``, and ``wake_seal_job`` is there for that. ``state_of`` says how far it is, ``stamped_files`` what came
out. Everything here runs in the caller's transaction, and may be done twice.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.events import DUTYSTAMP_CHANGED
from contracts.providers import (
    DutystampChanged,
    DutystampOrder,
    DutystampState,
    Price,
    StampPosition,
    StampState,
    StampTarget,
)
from contracts.runtime.bus.outbox import emit
from contracts.runtime.data.database import insert_into, leave_work
from services.rendering.models import DutyStamp, SealJob, StampAccount
from services.rendering.providers.duty_stamps.dutystamp import Box
from services.rendering.stamping import serials, stages
from services.rendering.stamping.accounts import Account
from services.rendering.stamping.stages import Progress, Stage
from services.rendering.storage import news

OUR_KEYS = "cs-"


@dataclass(frozen=True)
class PlannedStamp:
    """One stamp of a file. ``source`` is the sealed file, the same for all stamps on it; ``number`` counts them from 0, in the
    order in which they are put onto it. ``document_index`` is None for the target ``combined``. ``position`` is the same place
    as ``box``, as people see it, with ``width`` and ``height``; its ``code_document`` is the stamp's, else the order's."""

    target: StampTarget
    document_index: int | None
    number: int
    source: BlobRef
    box: Box
    position: StampPosition
    width: float
    height: float


@dataclass(frozen=True)
class StampedFile:
    """A file and how far its stamps are. ``source`` is the sealed file that they are put onto; ``stamped`` has all of them, and
    is None until then."""

    target: StampTarget
    document_index: int | None
    source: BlobRef
    stamped: BlobRef | None
    serials: tuple[str, ...]
    stamped_at: datetime | None


class OnChange(Protocol):
    """Told of a change to a submission's stamps, in its transaction. ``settled``: nothing goes on by itself any more, all
    stamps are placed or given up."""

    def __call__(
        self, session: Session, submission_id: int, seal_id: str, state: DutystampState, *, settled: bool
    ) -> None: ...


def place_order(
    session: Session,
    order: DutystampOrder,
    account: Account,
    *,
    binds: Literal["serial", "hash"],
    seal_id: str,
    submission_id: int,
    stamps: Sequence[PlannedStamp],
    installation: str,
    now: datetime,
    request_id: str | None = None,
) -> bool:
    """Order stamps, each once per submission, file and number, whatever ``seal_id`` comes with them.

    A stamp that an earlier seal job had ordered and that nothing was put onto yet goes onto the new file. Returns False when
    one was put onto an earlier file already, or may have been: then nothing is changed, and the caller has to go on with that
    file (``stamped_files`` has it as ``source``). ``installation``: ``accounts.installation(link_secret)``."""
    row_by_place = {
        (row.target, row.document_index, row.number): row for row in _rows(session, submission_id, lock=True)
    }
    for stamp in stamps:
        row = row_by_place.get((stamp.target, stamp.document_index or 0, stamp.number))
        if row is not None and row.number == 0 and not _may_have(row, stamp.source):
            return False
    remember_account(session, account)
    for stamp in stamps:
        row = row_by_place.get((stamp.target, stamp.document_index or 0, stamp.number))
        if row is None:
            session.add(
                _new_row(
                    stamp,
                    order,
                    account,
                    binds=binds,
                    seal_id=seal_id,
                    submission_id=submission_id,
                    installation=installation,
                    now=now,
                    request_id=request_id,
                )
            )
            continue
        row.seal_id = seal_id
        if Stage(row.stage) in stages.UNTOUCHED:
            row.box, row.position = asdict(stamp.box), _position(stamp)
            if stamp.number == 0:
                row.source = stamp.source.model_dump(mode="json")
    leave_work(session, DutyStamp.__tablename__)
    return True


def state_of(session: Session, submission_id: int, now: datetime) -> DutystampState | None:
    """Return how far a submission's stamps are; None when none were ordered."""
    rows = _rows(session, submission_id)
    return stages.summary(progress_of(rows), rows[0].provider, now) if rows else None


def is_settled(session: Session, submission_id: int) -> bool:
    """True when all stamps of a submission are placed or given up."""
    return stages.is_settled(progress_of(_rows(session, submission_id)))


def stamped_files(session: Session, submission_id: int) -> list[StampedFile]:
    """The files that stamps were ordered for, in the order of the documents, the combined one last."""
    files: list[StampedFile] = []
    rows = _rows(session, submission_id)
    for first in (row for row in rows if row.number == 0):
        rows_of_file = [row for row in rows if (row.target, row.document_index) == (first.target, first.document_index)]
        is_stamped = all(Stage(row.stage) in stages.STAMPED for row in rows_of_file)
        files.append(
            StampedFile(
                target=cast(StampTarget, first.target),
                document_index=_shown_index(first),
                source=BlobRef.model_validate(first.source),
                stamped=BlobRef.model_validate(rows_of_file[-1].result) if is_stamped else None,
                serials=tuple(row.serial for row in rows_of_file if row.serial is not None),
                stamped_at=rows_of_file[-1].stamped_at if is_stamped else None,
            )
        )
    return sorted(files, key=lambda file: (file.target == "combined", file.document_index or 0))


def retry(session: Session, submission_id: int, account: Account, now: datetime) -> bool:
    """Have stamps that failed tried again now, and those that wait for their next attempt, with the account's settings of
    today. What was asked of another account stays there. Returns False when nothing had failed."""
    remember_account(session, account)
    had_failed = False
    rows = _rows(session, submission_id, lock=True)
    for row in rows:
        if row.state not in ("parked", "due") or Stage(row.stage) in stages.STAMPED:
            continue
        had_failed = had_failed or row.state == "parked" or row.problem is not None
        if row.account == account.id or Stage(row.stage) is Stage.PLANNED:
            row.account, row.lane = account.id, account.lane
            row.settings, row.provider = account.sealed, account.name
        if row.leased_by is None or row.state == "parked":
            row.make_due(now)
    leave_work(session, DutyStamp.__tablename__)
    state = state_of(session, submission_id, now)
    if had_failed and state is not None:
        tell(session, submission_id, rows[0].seal_id, state, settled=False)
    return had_failed


def erase(session: Session, submission_id: int) -> list[str]:
    """Forget a submission's stamps, not what was paid for: a serial that was not put onto a file goes to the account's pool.
    Returns blobs to remove. What may have been bought is looked for until that is known."""
    keys: list[str] = []
    for row in _rows(session, submission_id, lock=True):
        keys += blobs_of(row)
        serials.give_back(session, row)
        if Stage(row.stage) in stages.MAY_BE_PAID:
            row.erased, row.source, row.result, row.position, row.box = True, None, None, {}, {}
            if row.state == "parked":
                row.state, row.finished_at = "due", None
        else:
            session.delete(row)
    return keys


def tell(session: Session, submission_id: int, seal_id: str, state: DutystampState, *, settled: bool) -> None:
    """Say how far a submission's stamps are; once nothing goes on by itself, its seal job does. An OnChange."""
    if settled:
        wake_seal_job(session, seal_id, state.at)
    at = news.moment(session, DUTYSTAMP_CHANGED, submission_id, state.at)
    state_told = state.model_copy(update={"at": at})
    changed = DutystampChanged(submission_id=submission_id, seal_id=seal_id, state=state_told)
    emit(session, DUTYSTAMP_CHANGED, changed, subject=f"submission:{submission_id}")


def wake_seal_job(session: Session, seal_id: str, now: datetime) -> None:
    """Have the seal job go on at once that waits for its stamps."""
    waiting = sa.update(SealJob).where(SealJob.seal_id == seal_id, SealJob.state == "due")
    session.execute(waiting.values(next_attempt_at=now))
    leave_work(session, SealJob.__tablename__)


def remember_account(session: Session, account: Account) -> None:
    """Note the settings of an account, for what is asked without an order: balance and list of serials."""
    values = {"id": account.id, "provider": account.name, "settings": account.sealed, "strangers": []}
    newer = {"provider": account.name, "settings": account.sealed}
    session.execute(
        insert_into(session, StampAccount).values(**values).on_conflict_do_update(index_elements=["id"], set_=newer)
    )


def progress_of(rows: Sequence[DutyStamp]) -> list[Progress]:
    """Return what the rows of a submission say, in their order. What waits behind a stamp that was given up goes on as
    little as that one."""
    progress: list[Progress] = []
    for row in rows:
        moving = progress[-1].moving if row.state == "waiting" and progress else row.state != "parked"
        progress.append(_progress(row, moving=moving))
    return progress


def _progress(row: DutyStamp, *, moving: bool) -> Progress:
    stage = Stage(row.stage)
    place = row.position
    shown = StampState(
        target=cast(StampTarget, row.target),
        document_index=_shown_index(row),
        page=place.get("page"),
        x=place.get("x"),
        y=place.get("y"),
        w=place.get("w"),
        h=place.get("h"),
        code_document=row.code_document or None,
        serial=row.serial,
        state=stages.shown_as(stage, moving=moving),
        price=Price.model_validate(row.price) if row.price else None,
        stamped_at=row.stamped_at,
        error=row.last_error if stage not in stages.STAMPED else None,
    )
    return Progress(stage, moving, shown, shown.error, row.next_attempt_at)


def blobs_of(row: DutyStamp) -> list[str]:
    """Keys under which attempts of this row may have written."""
    return [stamped_key(row.submission_id, row.id, sent) for sent in range(1, row.sent + 1)]


def new_key(installation: str, submission_id: int, target: str, document_index: int, number: int) -> str:
    """A file name that a stamp is bought under: the same for the same stamp, also when the database was lost in between. Its
    end counts purchases, of which all but the last came to nothing."""
    return f"{OUR_KEYS}{installation}-{submission_id}-{target[0]}{document_index}-{number}-1.pdf"


def next_key(key: str) -> str:
    """The name for one purchase more of the same stamp."""
    number = int(key.removesuffix(".pdf").rpartition("-")[2])
    return f"{stem(key)}-{number + 1}.pdf"


def stem(key: str) -> str:
    """Return what all purchases of the same stamp have in common."""
    return key.rpartition("-")[0]


def stamped_key(submission_id: int, stamp_id: int, sent: int) -> str:
    """Return where the file goes that comes back when a stamp is asked to be placed for the ``sent``-th time."""
    return f"submissions/{submission_id}/stamp-{stamp_id}-{sent}"


def _may_have(row: DutyStamp, source: BlobRef) -> bool:
    """Return whether the first stamp of a file may be put onto this one."""
    return Stage(row.stage) in stages.UNTOUCHED or (row.source or {}).get("sha256") == source.sha256


def _new_row(
    stamp: PlannedStamp,
    order: DutystampOrder,
    account: Account,
    *,
    binds: str,
    seal_id: str,
    submission_id: int,
    installation: str,
    now: datetime,
    request_id: str | None,
) -> DutyStamp:
    return DutyStamp(
        submission_id=submission_id,
        seal_id=seal_id,
        target=stamp.target,
        document_index=stamp.document_index or 0,
        number=stamp.number,
        request_id=request_id,
        key=new_key(installation, submission_id, stamp.target, stamp.document_index or 0, stamp.number),
        account=account.id,
        lane=account.lane,
        provider=account.name,
        settings=account.sealed,
        binds=binds,
        code_document=stamp.position.code_document or order.code_document or account.settings.code_document or "",
        box=asdict(stamp.box),
        position=_position(stamp),
        source=stamp.source.model_dump(mode="json") if stamp.number == 0 else None,
        stage=Stage.PLANNED,
        sent=0,
        swept=False,
        erased=False,
        created_at=now,
        state="due" if stamp.number == 0 else "waiting",
        attempts=0,
        next_attempt_at=now,
    )


def _position(stamp: PlannedStamp) -> dict[str, object]:
    place = stamp.position
    return {"page": place.page, "x": place.x, "y": place.y, "w": stamp.width, "h": stamp.height}


def _shown_index(row: DutyStamp) -> int | None:
    return None if row.target == "combined" else row.document_index


def _rows(session: Session, submission_id: int, *, lock: bool = False) -> list[DutyStamp]:
    of_submission = sa.select(DutyStamp).where(DutyStamp.submission_id == submission_id, DutyStamp.erased.is_(False))
    ordered = of_submission.order_by(DutyStamp.target.desc(), DutyStamp.document_index, DutyStamp.number)
    return list(session.scalars(ordered.with_for_update() if lock else ordered))
