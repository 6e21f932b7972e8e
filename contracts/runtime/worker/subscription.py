"""Handle an event message, try it again later, or park it. One function, ``Subscription.handle``, decides.

A failed message waits in a queue with a time to live and comes back; after the last try it is parked in
``<queue>.parked`` with the reason in its headers, where ``python -m contracts.runtime.operations.parked`` lists and requeues
it. A message that can never be handled (no JSON, wrong shape, unknown major version) is parked at once. What fails because
something else is away (the database, another service) is tried again until that is back, and is never parked for it.

A message that comes a second time was under way when a process died, or when a connection was lost: it is a suspect. Suspects
are handled alone, and ``suspects.py`` records each try, so that only one whose process died each time is parked.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pydantic
from prometheus_client import Counter, Histogram

from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import Event
from contracts.runtime.bus import outbox, topology
from contracts.runtime.bus.publisher import CONFIRMED, Message, Publisher
from contracts.runtime.bus.suspects import Suspects, event_key
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import liveness, observe, tracing
from contracts.runtime.worker.consuming import Delivery
from contracts.runtime.worker.requests import invalid_fields
from contracts.types import iso

log = observe.logger(__name__)

HANDLED = Counter(
    "countersign_events_total", "Event deliveries by outcome: ok, retry, waiting, parked, dropped", ["queue", "outcome"]
)
DURATION = Histogram("countersign_event_seconds", "Event handlers", ["queue"])

SUPPORTED_VERSION = 1

LONGEST_WAIT_SECONDS = 30.0
"""The longest that a message waits for something else that is away: it goes on within two minutes of its return."""

LONGEST_PAUSE_SECONDS = 5.0
"""Between tries to have the broker or the database take what became of a message."""


class _Hopeless(Exception):
    """No try will ever succeed."""


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a try: ``ok``, ``retry``, ``waiting`` (for something else, which is no fault of the event) or
    ``parked``."""

    name: str
    error: Exception | None = None


class Subscription:
    """One event kind, taken by one service. ``stopping`` tells whether the process finishes what is under way and ends."""

    def __init__(
        self,
        event: Event,
        service: str,
        ladder: tuple[float, ...],
        publisher: Publisher,
        slots: Any,
        suspects: Suspects,
        stopping: Callable[[], bool],
    ) -> None:
        self._event = event
        self._service = service
        self._queue = topology.event_queue_name(event, service)
        self._ladder = ladder
        self._publisher = publisher
        self._slots = slots
        self._suspects = suspects
        self._stopping = stopping

    def handle(self, handler: Callable[[Envelope, Any], None], delivery: Delivery) -> None:
        """Never raises. When it returns the message is acknowledged, moved, or back in its queue."""
        if not _is_suspect(delivery):
            with self._slots:
                outcome = self._try(handler, delivery)
            self._finish(delivery, outcome)
        elif self._is_copied_in_time(delivery) and self._suspects.alone.acquire(blocking=False):
            key = event_key(self._queue, delivery.body)
            try:
                outcome = self._try(handler, delivery, partial(self._begin, key))
                record = self._suspects.end if outcome.name in ("retry", "waiting") else self._suspects.forget
                # Before the next suspect is tried: if that one ends the process, this one is not to blame.
                recorded = record(key)
            finally:
                self._suspects.alone.release()
            # Before it is moved, too: it may be with another process at once, or with an operator.
            if recorded or outcome.name == "ok" or self._insist(delivery, lambda: record(key)):
                self._finish(delivery, outcome)
        else:
            # Another suspect is being tried. This one comes back in a moment.
            self._move(delivery, self._waiting(delivery, 0.0))

    def drop(self, database: Database, delivery: Delivery) -> None:
        """Note that an operator dropped the event: nobody fetches it again, and what waits for it goes on."""
        try:
            event_id = str(json.loads(delivery.body)["id"])
            with liveness.under_way(f"the dropped event {event_id}"):
                database.write(outbox.drop, event_id)
        except ServiceError as error:
            self._move(delivery, self._waiting(delivery, LONGEST_WAIT_SECONDS, error.message))
            return
        except (ValueError, RecursionError, TypeError, KeyError):
            event_id = ""  # it was none
        HANDLED.labels(self._queue, "dropped").inc()
        log.warning("event.dropped", queue=self._queue, event_id=event_id)
        delivery.ack()

    def _is_copied_in_time(self, delivery: Delivery) -> bool:
        """The broker parks a message by its own count of deliveries, whatever they ended with. A copy is counted anew."""
        return _count(delivery, "x-delivery-count") < topology.COPIED_AFTER

    def _begin(self, key: str) -> None:
        deaths = self._suspects.begin(key)
        if deaths >= topology.CRASH_LIMIT:
            raise _Hopeless(f"{deaths} processes died while they handled it: its handler ends the process")

    def _try(
        self, handler: Callable[[Envelope, Any], None], delivery: Delivery, begin: Callable[[], None] = lambda: None
    ) -> _Outcome:
        started = time.monotonic()
        envelope: Envelope | None = None
        span = tracing.NOTHING
        try:
            begin()
            envelope, data = self._read(delivery.body)
            with (
                observe.request(envelope.request_id),
                self._span(delivery, envelope) as span,
                liveness.under_way(f"the event {self._event.type} {envelope.id}"),
            ):
                handler(envelope, data)
            outcome = _Outcome("ok")
        except _Hopeless as reason:
            outcome = _Outcome("parked", reason)
        except Exception as error:
            outcome = _Outcome(self._after(error, delivery), error)
        self._report(delivery, envelope, outcome, time.monotonic() - started, span)
        return outcome

    def _span(self, delivery: Delivery, envelope: Envelope) -> tracing.Span:
        """Return the span of one try, within that of publishing, or of the cause where the message was fetched again. An event
        whose cause was in no trace begins one."""
        if not tracing.on():
            return tracing.NOTHING
        attributes: tracing.Attributes = {
            "messaging.system": "rabbitmq",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": topology.span_destination(self._event.source, self._event.type, self._queue),
            "messaging.rabbitmq.destination.routing_key": self._event.type,
            "messaging.message.id": envelope.id,
            "countersign.failures": self._failures(delivery),
        }
        parent = delivery.headers.get(tracing.HEADER) or envelope.traceparent
        return tracing.span(f"process {self._queue}", tracing.CONSUMER, attributes, parent=parent, root=True)

    def _after(self, error: Exception, delivery: Delivery) -> str:
        if isinstance(error, ServiceError) and error.code == "unavailable":
            return "waiting"
        return "parked" if self._failures(delivery) >= len(self._ladder) else "retry"

    def _read(self, body: bytes) -> tuple[Envelope, Any]:
        try:
            envelope = Envelope.model_validate(json.loads(body))
            if envelope.version != SUPPORTED_VERSION:
                raise _Hopeless(f"version {envelope.version} of the event is unknown here")
            return envelope, self._event.model.model_validate(envelope.data)
        except pydantic.ValidationError as error:
            raise _Hopeless(f"wrong shape: {invalid_fields(error).message}") from error
        except (ValueError, RecursionError) as error:
            raise _Hopeless("no JSON") from error

    def _failures(self, delivery: Delivery) -> int:
        return _count(delivery, topology.FAILURES_HEADER)

    def _finish(self, delivery: Delivery, outcome: _Outcome) -> None:
        if outcome.error is None:
            delivery.ack()
        elif outcome.name == "parked":
            self._move(delivery, self._parked(delivery, outcome.error))
        elif outcome.name == "retry":
            self._move(delivery, self._retried(delivery, outcome.error))
        else:
            self._move(delivery, self._waiting(delivery, LONGEST_WAIT_SECONDS, _reason(outcome.error)))

    def _move(self, delivery: Delivery, message: Message) -> None:
        if self._insist(delivery, lambda: self._publisher.publish([message])[message.id] == CONFIRMED):
            delivery.ack()

    def _insist(self, delivery: Delivery, attempt: Callable[[], bool]) -> bool:
        """Hold the message until ``attempt`` succeeds. To give it back instead would count as a delivery, for no fault of its
        own. False when it is in its queue again: because the connection was lost, or because the process is to stop."""
        pause = 0.2
        while not attempt():
            if not delivery.is_held:
                return False
            if self._stopping():
                delivery.give_back()
                return False
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
        return True

    def _retried(self, delivery: Delivery, error: Exception) -> Message:
        failures = self._failures(delivery)
        headers = {topology.FAILURES_HEADER: failures + 1, topology.REASON_HEADER: _reason(error)}
        return self._copy_for(delivery, self._ladder[failures], headers)

    def _waiting(self, delivery: Delivery, longest: float, reason: str | None = None) -> Message:
        """A copy that comes back after the longest wait of the ladder up to ``longest`` seconds, and counts for nothing."""
        seconds = max((step for step in self._ladder if step <= longest), default=min(self._ladder))
        return self._copy_for(delivery, seconds, {topology.REASON_HEADER: reason} if reason else {})

    def _copy_for(self, delivery: Delivery, seconds: float, headers: dict[str, Any]) -> Message:
        """For the retry queue. A suspect stays one: the broker counts the deliveries of a copy anew."""
        suspect = {topology.SUSPECT_HEADER: True} if _is_suspect(delivery) else {}
        key = topology.retry_key(seconds, self._queue)
        return Message.copy(delivery, topology.own_exchange(self._service), key, headers | suspect)

    def _parked(self, delivery: Delivery, error: Exception) -> Message:
        headers = {
            topology.FAILURES_HEADER: self._failures(delivery) + 1,
            topology.REASON_HEADER: _reason(error),
            topology.EXCEPTION_HEADER: type(error.__cause__ or error).__name__,
            topology.PARKED_AT_HEADER: iso(now()),
        }
        parked = topology.parked_queue_name(self._queue)
        return Message.copy(delivery, topology.own_exchange(self._service), parked, headers)

    def _report(
        self, delivery: Delivery, envelope: Envelope | None, outcome: _Outcome, seconds: float, span: tracing.Span
    ) -> None:
        HANDLED.labels(self._queue, outcome.name).inc()
        DURATION.labels(self._queue).observe(seconds)
        error = outcome.error
        expected = error is None or isinstance(error, ServiceError | _Hopeless)
        record = log.error if outcome.name == "parked" else log.info if error is None else log.warning
        record(
            "event.handled",
            event_type=self._event.type,
            event_id=envelope.id if envelope else None,
            subject=envelope.subject if envelope else None,
            request_id=envelope.request_id if envelope else None,
            outcome=outcome.name,
            failures=self._failures(delivery),
            reason=_reason(error) if error else None,
            duration_ms=round(seconds * 1000, 2),
            exc_info=None if expected else error,
            **span.ids(),
        )


def _is_suspect(delivery: Delivery) -> bool:
    """It was delivered before, without an outcome: its process died, or a connection was lost."""
    again = delivery.redelivered or _count(delivery, "x-delivery-count") > 0
    return again or topology.SUSPECT_HEADER in delivery.headers


def _count(delivery: Delivery, header: str) -> int:
    """Read a count that anybody may have written: 0 unless it is one, so that the message is handled or parked all the same."""
    value = delivery.headers.get(header)
    return value if isinstance(value, int) and value >= 0 else 0


def _reason(error: Exception) -> str:
    text = error.message if isinstance(error, ServiceError) else str(error)
    return (text or type(error).__name__)[:500]
