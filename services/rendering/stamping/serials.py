"""The books of what was paid for: whose each serial is, and the pool of those that are nobody's."""

from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.providers import LedgerEntry, Price
from contracts.runtime.data.database import insert_into
from contracts.runtime.data.lists.listing import Listing
from contracts.runtime.data.lists.page import page
from contracts.types import Page, PageRequest, Pagination
from services.rendering.models import DutyStamp, StampSerial
from services.rendering.providers.duty_stamps.dutystamp import Serial
from services.rendering.stamping.stages import Stage


class Holding(StrEnum):
    """Where a serial is: assigned to a stamp, free for the next one, used, or held until a person has looked at it."""

    ASSIGNED = "assigned"
    FREE = "free"
    USED = "used"
    HELD = "held"


def enter(
    session: Session,
    serial: Serial,
    row: DutyStamp | None,
    *,
    account: str,
    key: str,
    code_document: str,
    binds: str,
    now: datetime,
) -> bool:
    """Enter what was bought, for the stamp ``row``; without one it is free, unless it stands for one file only. Returns False
    when it was in the books already: then it is left as it is there."""
    if row is not None:
        holding = Holding.ASSIGNED
    else:
        holding = Holding.FREE if binds == "serial" else Holding.HELD
    values = {
        "account": account,
        "number": serial.number,
        "key": key,
        "code_document": code_document,
        "binds": binds,
        "price": serial.price.model_dump(mode="json") if serial.price else None,
        "picture": serial.picture,
        "state": holding,
        "stamp_id": row.id if row is not None else None,
        "submission_id": row.submission_id if row is not None else None,
        "bought_at": now,
    }
    entered = insert_into(session, StampSerial).values(**values).on_conflict_do_nothing().returning(StampSerial.number)
    return session.execute(entered).first() is not None


def take_free(session: Session, row: DutyStamp) -> StampSerial | None:
    """Assign a free serial of the account to a stamp: one of its category if there is any, else another. None: all are used."""
    if row.binds != "serial":
        return None
    free = (
        sa.select(StampSerial)
        .where(StampSerial.account == row.account, StampSerial.state == Holding.FREE)
        .order_by(StampSerial.code_document != row.code_document, StampSerial.bought_at, StampSerial.number)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    serial = session.scalar(free)
    if serial is not None:
        serial.state, serial.stamp_id, serial.submission_id = Holding.ASSIGNED, row.id, row.submission_id
    return serial


def of_stamp(session: Session, row: DutyStamp) -> StampSerial | None:
    """The serial that is assigned to a stamp."""
    if row.serial is None:
        return None
    query = sa.select(StampSerial).where(StampSerial.account == row.account, StampSerial.number == row.serial)
    return session.scalar(query)


def give_back(session: Session, row: DutyStamp) -> None:
    """The stamp is not wanted any more. Its serial is free again, unless it was sent to be placed: then it may be on a file,
    and is held."""
    serial = of_stamp(session, row)
    if serial is None:
        return
    if serial.state == Holding.ASSIGNED:
        unused = Stage(row.stage) is Stage.RESERVED and serial.binds == "serial"
        serial.state = Holding.FREE if unused else Holding.HELD
        serial.stamp_id = None
    serial.submission_id = None


def use(session: Session, row: DutyStamp, now: datetime) -> None:
    """The serial is on its file. Its picture is needed no more."""
    serial = of_stamp(session, row)
    if serial is not None:
        serial.state, serial.used_at, serial.picture = Holding.USED, serial.used_at or now, None


def hold(session: Session, row: DutyStamp) -> None:
    """The provider does not take the serial as one that is free: a person has to look at it."""
    serial = of_stamp(session, row)
    if serial is not None:
        serial.state, serial.stamp_id, serial.submission_id = Holding.HELD, None, None


def ledger(session: Session, request: PageRequest) -> Page[LedgerEntry]:
    """A page of what was bought, of whichever account."""
    rows = page(session, request, [Listing(StampSerial.metadata.tables[StampSerial.__tablename__])], _ALL)
    return Page[LedgerEntry](
        data=[_entry(serial) for (serial,) in rows],
        pagination=Pagination.of([serial.id for (serial,) in rows]),
    )


_ALL = sa.select(StampSerial)


def _entry(serial: StampSerial) -> LedgerEntry:
    return LedgerEntry(
        id=serial.id,
        serial=serial.number,
        state=serial.state,
        price=Price.model_validate(serial.price) if serial.price else None,
        submission_id=serial.submission_id,
        code_document=serial.code_document or None,
        bought_at=serial.bought_at,
        used_at=serial.used_at,
    )
