"""The outbox relay: publishes what ``emit`` wrote, in the order of ``seq``, and moves a row to ``told`` once the broker has it.

Confirmed means on the disk of a queue; ``mandatory`` means that an event that no queue takes comes back: it stays in the
outbox, is tried again later, and raises an alarm (``countersign_outbox_unroutable``). Waiting for confirms is bounded: a
broker that is stopped or in a disk alarm takes messages for ever without an answer.

One relay at a time per database, by an advisory lock on PostgreSQL and a lease on SQLite, or the order would be lost.
Events may be published twice, never zero times.
"""

import contextlib
import itertools
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from prometheus_client import Counter, Gauge
from sqlalchemy.engine import Row
from sqlalchemy.orm import Session

from contracts.runtime.bus.outbox import with_epoch
from contracts.runtime.bus.publisher import CONFIRMED, UNROUTED, Message, Publisher
from contracts.runtime.bus.topology import event_exchange, span_destination
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database, UtcDateTime
from contracts.runtime.data.due_work.background import Loop
from contracts.runtime.data.due_work.holder import is_dead, own_name
from contracts.runtime.data.tables import leases, outbox, told
from contracts.runtime.monitoring import observe, tracing

log = observe.logger(__name__)

WAITING = Gauge("countersign_outbox_waiting", "Events that are not published yet", ["service"])
OLDEST = Gauge("countersign_outbox_oldest_seconds", "Age of the oldest of them", ["service"])
UNROUTABLE = Gauge(
    "countersign_outbox_unroutable", "Events that no queue takes: a consumer was never declared", ["service"]
)
PUBLISHED = Counter("countersign_outbox_published_total", "Events published and confirmed", ["service"])

BATCH = 200
LEASE = timedelta(seconds=20)
UNROUTABLE_PAUSE = timedelta(seconds=15)
_numbers = itertools.count(1)
_ADVISORY_LOCK = 0x72656C61  # "rela"


class Relay(Loop):
    """The relay of one service. ``apart``: so many seconds at least are between what it publishes, for events that nobody waits
    for."""

    def __init__(self, service: str, database: Database, publisher: Publisher, *, apart: float = 0.0) -> None:
        super().__init__(f"{service} relay")
        self._service = service
        self._name = f"{own_name()}#{next(_numbers)}"
        self._database = database
        self._publisher = publisher
        self.table = outbox.name
        self._apart = apart
        self._renew_at = datetime.min.replace(tzinfo=UTC)
        self._next_survey = 0.0

    def turn(self) -> float:
        hinted, self._hinted = self._hinted, False
        changes = self._database.changes()
        if not hinted and (pause := self.rests_for(changes)) > 0:
            return pause
        self.resting = None
        if self._database.sqlite:
            published = self._turn_with_lease()
        else:
            published = self._database.write_unsynced(self._turn_with_lock)
        self.gathers = self._apart if published else 0.0
        if self._measure() == 0:
            self.rest(changes)
        return 0.0 if published == BATCH else self.rests_for(changes) or self.poll_seconds

    def first_due(self) -> sa.ScalarSelect[Any]:
        return sa.select(outbox.c.created_at).limit(1).scalar_subquery()

    def _turn_with_lock(self, session: Session) -> int:
        alone = session.scalar(sa.text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        if not alone:
            return 0
        rows = _waiting(session, now())
        outcomes = self._publish(rows)
        _settle(session, rows, outcomes, now())
        return _confirmed(outcomes)

    def _turn_with_lease(self) -> int:
        """The database is not held while the broker is waited for: SQLite has one write lock for everybody."""
        moment = now()
        rows = self._database.read(_waiting, moment)
        if not rows:
            return 0
        if moment >= self._renew_at:
            # Another relay may have published these rows meanwhile, so they are read again once nobody else may.
            if not self._database.write_unsynced(_take_lease, self._name, moment):
                return 0
            self._renew_at = moment + LEASE / 2
            rows = self._database.read(_waiting, now())
        outcomes = self._publish(rows)
        self._database.write_unsynced(_settle, rows, outcomes, now())
        return _confirmed(outcomes)

    def _publish(self, rows: Sequence[Row[Any]]) -> dict[str, str]:
        if not rows:
            return {}
        with contextlib.ExitStack() as spans:
            outcomes = self._publisher.publish([_message(row, spans) for row in rows])
        confirmed = _confirmed(outcomes)
        PUBLISHED.labels(self._service).inc(confirmed)
        unrouted = sorted({row.type for row in rows if outcomes[row.event_id] == UNROUTED})
        if unrouted:
            log.error("outbox.unroutable", service=self._service, types=unrouted)
        if confirmed < len(rows):
            log.warning("outbox.not_confirmed", service=self._service, events=len(rows) - confirmed)
        return outcomes

    def _measure(self) -> int | None:
        """For the metrics, once a second is often enough; returns how many wait, if it looked."""
        if time.monotonic() < self._next_survey:
            return None
        self._next_survey = time.monotonic() + 1
        waiting, oldest, unroutable = self._database.read(_survey)
        WAITING.labels(self._service).set(waiting)
        OLDEST.labels(self._service).set(max(0.0, (now() - oldest).total_seconds()) if oldest else 0.0)
        UNROUTABLE.labels(self._service).set(unroutable)
        return waiting


def _message(row: Row[Any], spans: contextlib.ExitStack) -> Message:
    headers = {}
    if tracing.on() and (cause := json.loads(row.body).get(tracing.HEADER)) is not None:
        attributes = {
            "messaging.system": "rabbitmq",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": span_destination(row.source, row.type),
            "messaging.rabbitmq.destination.routing_key": row.type,
            "messaging.message.id": row.event_id,
        }
        spans.enter_context(tracing.span(f"send {row.type}", tracing.PRODUCER, attributes, parent=cause))
        if (trace := tracing.traceparent()) is not None:
            headers[tracing.HEADER] = trace
    body = with_epoch(row.body, row.epoch).encode()
    return Message(row.event_id, event_exchange(row.source), row.type, body, headers)


def _confirmed(outcomes: dict[str, str]) -> int:
    return sum(outcome == CONFIRMED for outcome in outcomes.values())


# Compiled once: building a statement costs more than running it.
_PAUSING = sa.select(outbox.c.type).where(
    outbox.c.retry_at > sa.bindparam("moment", type_=UtcDateTime),
    # A longer pause than there is comes of a clock that was put back.
    outbox.c.retry_at <= sa.bindparam("longest", type_=UtcDateTime),
)
_NEXT = sa.select(outbox).where(outbox.c.type.not_in(_PAUSING)).order_by(outbox.c.seq).limit(BATCH)
_CONFIRMED = outbox.c.seq.in_(sa.bindparam("confirmed", expanding=True))
_REMOVE = outbox.delete().where(_CONFIRMED)
_KEPT = ("event_id", "type", "subject", "sequence", "epoch", "body")
_KEEP = told.insert().from_select(
    [*_KEPT, "told_at"],
    sa.select(*(outbox.c[name] for name in _KEPT), sa.bindparam("moment", type_=UtcDateTime))
    .where(_CONFIRMED, outbox.c.keep)
    .order_by(outbox.c.seq),
)


def _waiting(session: Session, moment: datetime) -> list[Row[Any]]:
    """The next events in order, without the kinds that came back unrouted a moment ago."""
    return list(session.execute(_NEXT, {"moment": moment, "longest": moment + UNROUTABLE_PAUSE}).all())


def _settle(session: Session, rows: Sequence[Row[Any]], outcomes: dict[str, str], moment: datetime) -> None:
    confirmed = [row.seq for row in rows if outcomes[row.event_id] == CONFIRMED]
    unrouted = [row.seq for row in rows if outcomes[row.event_id] == UNROUTED]
    if confirmed:
        _name_subjects(session, [row for row in rows if row.subject is None])
        session.execute(_KEEP, {"confirmed": confirmed, "moment": moment})
        session.execute(_REMOVE, {"confirmed": confirmed})
    if unrouted:
        session.execute(
            outbox.update()
            .where(outbox.c.seq.in_(unrouted))
            .values(attempts=outbox.c.attempts + 1, retry_at=moment + UNROUTABLE_PAUSE, error="no queue takes it")
        )


def _name_subjects(session: Session, rows: Sequence[Row[Any]]) -> None:
    """Of events that a version wrote which did not say in the row what they are about."""
    for row in rows:
        envelope = json.loads(row.body)
        named = {"subject": envelope.get("subject", ""), "sequence": envelope.get("sequence")}
        session.execute(outbox.update().where(outbox.c.seq == row.seq).values(**named))


def _take_lease(session: Session, holder: str, moment: datetime) -> bool:
    """Become the one relay, or stay it, until ``moment + LEASE``. A clock that is put forward ends nobody's lease."""
    over = without_leaps(LEASE)
    lease = session.execute(sa.select(leases).where(leases.c.name == "relay")).first()
    if lease is not None and lease.holder != holder and lease.until > over and not is_dead(lease.holder):
        return False
    values = {"holder": holder, "until": moment + LEASE}
    if lease is None:
        session.execute(leases.insert().values(name="relay", **values))
    else:
        session.execute(leases.update().where(leases.c.name == "relay").values(**values))
    return True


def _survey(session: Session) -> tuple[int, datetime | None, int]:
    waiting, oldest = session.execute(sa.select(sa.func.count(), sa.func.min(outbox.c.created_at))).one()
    unroutable = session.scalar(sa.select(sa.func.count()).select_from(outbox).where(outbox.c.error.is_not(None)))
    return waiting, oldest, unroutable or 0
