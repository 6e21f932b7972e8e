"""Records which event was being handled when a process died.

RabbitMQ counts how often a message was delivered, but not why it came back: connections are lost without any fault of the
event. Therefore each try of an event that came back is a row of ``leases``, written before the handler begins and removed when
it ends. A row that is left behind is a death: its process is known to be dead, or its lease ran out. The usual event, which
is delivered once, costs nothing.
"""

import hashlib
import threading
from collections.abc import Callable
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.holder import is_dead, own_name
from contracts.runtime.data.tables import leases
from contracts.runtime.monitoring import liveness, observe

log = observe.logger(__name__)

LEASE = timedelta(seconds=60)
"""Longer than a handler takes, whose statements and locks have time limits. One elsewhere counts as dead then."""

KEPT = timedelta(days=1)
"""The time for which a death is remembered."""

_PREFIX = "event "


class Suspects:
    """The events that came back to one worker process. ``alone`` is held while one of them is tried, so that a death is put
    down to one event only. ``database`` is called when it is first needed."""

    def __init__(self, database: Callable[[], Database]) -> None:
        self._database = database
        self.alone = threading.Lock()

    def begin(self, key: str) -> int:
        """Record that this process begins to handle the event; return how many processes died while they handled it.

        Raises ServiceError("unavailable") when that cannot be recorded, or when another process may be handling it now: then it
        must not be begun.
        """
        with liveness.under_way("the record of a suspect"):
            return self._database().write(_begin, key, own_name())

    def end(self, key: str) -> bool:
        """Record that this process has ended its try alive; False when the database does not take it now."""
        return self._removed(_end, key)

    def forget(self, key: str) -> bool:
        """Remove what is known of the event, because it is done with; False when the database does not take it now. What is
        left behind is removed after a day."""
        return self._removed(_forget, key)

    def _removed(self, statement: Callable[[Session, str], None], key: str) -> bool:
        try:
            with liveness.under_way("the record of a suspect"):
                self._database().write(statement, key)
        except ServiceError as error:
            log.warning("suspect.not_recorded", suspect=key, reason=error.message)
            return False
        return True


def event_key(queue: str, body: bytes) -> str:
    """The name of an event among the leases: by its bytes, which need not be readable."""
    return f"{_PREFIX}{queue} {hashlib.sha256(body).hexdigest()}"


def remove_old(session: Session) -> None:
    """Remove what was left behind more than a day ago."""
    over = without_leaps(KEPT) - KEPT
    session.execute(leases.delete().where(leases.c.name.startswith(_PREFIX), leases.c.until < over))


def _begin(session: Session, key: str, holder: str) -> int:
    _end(session, key)  # an earlier try of this process: it lives, whatever kept it from saying so
    tries = session.execute(sa.select(leases).where(_of(key))).all()
    over = without_leaps(LEASE)
    if any(row.until > over and not is_dead(row.holder) for row in tries):
        raise ServiceError("unavailable", "Another process may be handling this event.")
    session.execute(leases.insert().values(name=f"{key} {holder}", holder=holder, until=now() + LEASE))
    return len(tries)


def _end(session: Session, key: str) -> None:
    session.execute(leases.delete().where(leases.c.name == f"{key} {own_name()}"))


def _forget(session: Session, key: str) -> None:
    session.execute(leases.delete().where(_of(key)))


def _of(key: str) -> sa.ColumnElement[bool]:
    return leases.c.name.startswith(f"{key} ", autoescape=True)
