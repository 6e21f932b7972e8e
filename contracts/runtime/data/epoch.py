"""The epoch of a service's events: which life of its database they were stated in.

A database that was restored numbers its events, and whatever else it counts, from an earlier moment on: it lives another
life, and the epoch says so to everybody who hears of it. ``emit`` puts it into each event.
"""

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import for_update
from contracts.runtime.data.tables import event_stream
from contracts.runtime.monitoring import observe

log = observe.logger(__name__)

on_new_epoch: list[Callable[[Session], None]] = []
"""Called in the transaction in which an epoch begins: what must not be given out twice is moved on here."""


def epoch_of(session: Session) -> str:
    """The present epoch: a UUIDv7, so that a younger life's sorts after an older one's."""
    return str(session.execute(_PRESENT).scalar_one())


def begin_epoch(session: Session, *, instead_of: str | None = None) -> str:
    """Begin another life in the caller's transaction; returns the epoch that is in force then.

    ``instead_of``: only if this is still the present one; of several who find out at once, the first one begins it.
    """
    present = session.execute(for_update(_PRESENT)).scalar_one()
    if instead_of is not None and present != instead_of:
        return str(present)
    begun = later_than(present)
    session.execute(event_stream.update().values(epoch=begun, begun_at=now()))
    for react in on_new_epoch:
        react(session)
    log.warning("epoch.begun", epoch=begun, instead_of=present)
    return begun


def later_than(epoch: str) -> str:
    """A new epoch that sorts after ``epoch``, also when the clock was put back meanwhile."""
    fresh = uuid7()
    if fresh > epoch:
        return fresh
    milliseconds = int(epoch.replace("-", "")[:12], 16) + 1
    digits = f"{milliseconds:012x}"
    return f"{digits[:8]}-{digits[8:]}{fresh[13:]}"


_PRESENT = sa.select(event_stream.c.epoch).where(event_stream.c.id == 1)
