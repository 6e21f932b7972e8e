"""Steps of a stamp in the database, a transaction each. A step is taken from the stage that it follows only: whatever changed
the row meanwhile (an erasure, another attempt) is not overwritten."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.runtime.data.tables import event_stream
from services.rendering.models import DutyStamp, StampSerial, StatementsSince
from services.rendering.providers.duty_stamps.dutystamp import Serial
from services.rendering.stamping import orders, serials, stages
from services.rendering.stamping.stages import Stage

_SAME_START = timedelta(minutes=10)
"""Between the first steps of a database that is made new."""


class Superseded(Exception):
    """The row is no longer as the attempt knows it."""


def take(session: Session, stamp_id: int, now: datetime, *, from_pool: bool) -> DutyStamp:
    """Take a serial of the pool; where there is none, note that one is about to be bought, or to be looked for first."""
    row = _locked(session, stamp_id, {Stage.PLANNED})
    free = serials.take_free(session, row) if from_pool else None
    if free is not None:
        row.serial, row.price = free.number, free.price
        return _moved(row, Stage.RESERVED)
    if row.asked_at is None and _restored_lately(session, now):
        row.asked_at = now - 2 * stages.SURELY_NOT
        return _moved(row, Stage.UNKNOWN)
    if row.asked_at is not None:
        # What was surely not bought may be listed after all: it must not be taken for this purchase.
        row.key = orders.next_key(row.key)
    row.asked_at = now
    return _moved(row, Stage.BUYING)


def lose(session: Session, attempt: DutyStamp) -> DutyStamp:
    """Nobody knows whether the purchase came about."""
    return _moved(_locked_purchase(session, attempt, {Stage.BUYING}), Stage.UNKNOWN)


def not_bought(session: Session, attempt: DutyStamp) -> DutyStamp | None:
    """It is sure that nothing was bought. None when the stamp is not wanted any more: then its row goes."""
    row = _locked_purchase(session, attempt, set(stages.MAY_BE_PAID))
    if row.erased:
        session.delete(row)
        return None
    return _moved(row, Stage.PLANNED)


def bought(session: Session, attempt: DutyStamp, serial: Serial, now: datetime) -> DutyStamp | None:
    """The purchase came about: for this stamp, unless that has got another one meanwhile or is not wanted any more. Then it is
    free for the next one, and None is returned."""
    row = session.scalar(sa.select(DutyStamp).where(DutyStamp.id == attempt.id).with_for_update())
    waiting = row if row is not None and Stage(row.stage) in stages.MAY_BE_PAID and not row.erased else None
    entered = serials.enter(
        session,
        serial,
        waiting,
        account=attempt.account,
        key=attempt.key,
        code_document=attempt.code_document,
        binds=attempt.binds,
        now=now,
    )
    if row is not None and row.erased:
        session.delete(row)
    if waiting is None:
        return None
    if not entered:
        raise Superseded(f"the stamp {serial.number} is in the books already")
    waiting.serial = serial.number
    waiting.price = serial.price.model_dump(mode="json") if serial.price else None
    return _moved(waiting, Stage.RESERVED)


def serial_of(session: Session, attempt: DutyStamp) -> StampSerial:
    """The serial of a stamp, with its picture."""
    serial = serials.of_stamp(session, attempt)
    if serial is None:
        raise Superseded("its serial is not in the books")
    return serial


def show_serial(session: Session, attempt: DutyStamp, from_provider: Serial) -> StampSerial:
    """Note the picture of a serial that is in the books without one."""
    serial = serial_of(session, attempt)
    if from_provider.number == serial.number:
        serial.picture = from_provider.picture
    return serial


def reassigned(session: Session, attempt: DutyStamp) -> None:
    """A serial of the pool stands for this stamp's document now."""
    row = _locked(session, attempt.id, {Stage.RESERVED})
    if (serial := serials.of_stamp(session, row)) is not None:
        serial.key, serial.code_document = row.key, row.code_document


def refuse_serial(session: Session, attempt: DutyStamp, *, hold: bool) -> DutyStamp:
    """A serial of the pool is not for this stamp: it is held for a person to look at, or free again for another."""
    row = _locked(session, attempt.id, {Stage.RESERVED})
    if hold:
        serials.hold(session, row)
    else:
        serials.give_back(session, row)
    row.serial = row.price = None
    return _moved(row, Stage.PLANNED)


def send(session: Session, attempt: DutyStamp) -> DutyStamp:
    """The stamp is about to be placed, on the file that the attempt knows."""
    row = _locked(session, attempt.id, {Stage.RESERVED, Stage.PLACING})
    if row.source != attempt.source or row.serial != attempt.serial:
        raise Superseded("another file is to be stamped")
    row.sent += 1
    row.stage = Stage.PLACING
    return row


def place(session: Session, attempt: DutyStamp, result: BlobRef, now: datetime) -> DutyStamp:
    """The stamp is on its file; the next one on the same file is due."""
    row = _locked(session, attempt.id, {Stage.PLACING})
    row.result, row.stamped_at = result.model_dump(mode="json"), now
    serials.use(session, row, now)
    following = sa.select(DutyStamp).where(
        DutyStamp.submission_id == row.submission_id,
        DutyStamp.target == row.target,
        DutyStamp.document_index == row.document_index,
        DutyStamp.number == row.number + 1,
    )
    if (after := session.scalar(following.with_for_update())) is not None:
        after.source = row.result
        after.make_due(now)
    return _moved(row, Stage.PLACED)


def _restored_lately(session: Session, now: datetime) -> bool:
    """Return whether the present life of this database began with a restore, and not long ago."""
    begun_at = session.scalar(sa.select(event_stream.c.begun_at))
    made_at = session.scalar(sa.select(StatementsSince.at))
    if begun_at is None or made_at is None:
        return False
    return bool(begun_at > made_at + _SAME_START and begun_at > now - stages.AFTER_RESTORE)


def _moved(row: DutyStamp, following: Stage) -> DutyStamp:
    stages.check(Stage(row.stage), following)
    row.stage = following
    return row


def _locked_purchase(session: Session, attempt: DutyStamp, expected: Iterable[Stage]) -> DutyStamp:
    """The row, if the purchase that the attempt knows of is still its last."""
    row = _locked(session, attempt.id, expected)
    if row.asked_at != attempt.asked_at:
        raise Superseded("it was asked for again meanwhile")
    return row


def _locked(session: Session, stamp_id: int, expected: Iterable[Stage]) -> DutyStamp:
    row = session.scalar(sa.select(DutyStamp).where(DutyStamp.id == stamp_id).with_for_update())
    if row is None or Stage(row.stage) not in expected:
        raise Superseded("it came further, or was erased, meanwhile")
    return row
