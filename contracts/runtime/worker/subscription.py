"""What becomes of an event message: handled, tried again later, or parked. One function, ``Subscription.handle``, decides.

A failed message waits in a queue with a time to live and comes back; after the last try it is parked in
``<queue>.parked`` with the reason in its headers, where ``python -m contracts.runtime.parked`` lists and requeues it. A
message that can never be handled (no JSON, wrong shape, unknown major version) is parked at once. One whose handler kills
the process is parked after CRASH_LIMIT deliveries; so that its neighbours do not go with it, what was under way when a
process died is handled alone.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pydantic
from prometheus_client import Counter, Histogram

from contracts.errors import ServiceError
from contracts.events import Envelope, Event
from contracts.runtime import observe, topology
from contracts.runtime.clock import now
from contracts.runtime.publisher import CONFIRMED, Message, Publisher
from contracts.runtime.worker.consuming import Delivery
from contracts.runtime.worker.requests import invalid_fields
from contracts.types import iso

log = observe.logger(__name__)

HANDLED = Counter("countersign_events_total", "Event deliveries by outcome: ok, retry, parked", ["queue", "outcome"])
DURATION = Histogram("countersign_event_seconds", "Event handlers", ["queue"])

SUPPORTED_VERSION = 1


class _Hopeless(Exception):
    """No try will ever succeed."""


class Subscription:
    """One event kind, taken by one service."""

    def __init__(self, event: Event, service: str, ladder: tuple[float, ...], publisher: Publisher, slots: Any) -> None:
        self._event = event
        self._service = service
        self._queue = topology.event_queue_name(event, service)
        self._ladder = ladder
        self._publisher = publisher
        self._slots = slots
        self._alone = threading.Lock()

    def handle(self, handler: Callable[[Envelope, Any], None], delivery: Delivery) -> None:
        """Never raises. When it returns the message is acknowledged, moved, or back in its queue."""
        deliveries = _count(delivery, "x-delivery-count")
        if not deliveries:
            with self._slots:
                self._handle(handler, delivery)
        elif self._alone.acquire(blocking=deliveries > 1):
            try:
                self._handle(handler, delivery)
            finally:
                self._alone.release()
        else:
            # Another one of those that were under way is being tried. This one comes back in a moment with a clean slate,
            # so that only the one that is tried can be found guilty.
            self._move(delivery, self._waiting(delivery, 0, {}))

    def _handle(self, handler: Callable[[Envelope, Any], None], delivery: Delivery) -> None:
        started = time.monotonic()
        envelope: Envelope | None = None
        error: Exception | None = None
        try:
            self._refuse_killer(delivery)
            envelope, data = self._read(delivery.body)
            with observe.request(envelope.request_id):
                handler(envelope, data)
            outcome = "ok"
        except _Hopeless as reason:
            outcome, error = "parked", reason
        except Exception as raised:
            outcome = "parked" if self._failures(delivery) >= len(self._ladder) else "retry"
            error = raised
        self._finish(delivery, outcome, error)
        self._report(delivery, envelope, outcome, error, time.monotonic() - started)

    def _refuse_killer(self, delivery: Delivery) -> None:
        deliveries = _count(delivery, "x-delivery-count")
        if deliveries >= topology.CRASH_LIMIT:
            raise _Hopeless(f"delivered {deliveries} times without an outcome: its handler ends the process")

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

    def _finish(self, delivery: Delivery, outcome: str, error: Exception | None) -> None:
        if outcome == "ok":
            delivery.ack()
            return
        assert error is not None
        self._move(delivery, self._retried(delivery, error) if outcome == "retry" else self._parked(delivery, error))

    def _move(self, delivery: Delivery, message: Message) -> None:
        if self._publisher.publish([message])[message.id] == CONFIRMED:
            delivery.ack()
        else:
            # The broker does not take it elsewhere: then it stays where it is, and comes again.
            time.sleep(1)
            delivery.give_back()

    def _retried(self, delivery: Delivery, error: Exception) -> Message:
        failures = self._failures(delivery)
        headers = {topology.FAILURES_HEADER: failures + 1, topology.REASON_HEADER: _reason(error)}
        return self._waiting(delivery, failures, headers)

    def _waiting(self, delivery: Delivery, step: int, headers: dict[str, Any]) -> Message:
        exchange = topology.retry_exchange(self._service, self._ladder[step])
        return Message.copy(delivery, exchange, self._queue, headers)

    def _parked(self, delivery: Delivery, error: Exception) -> Message:
        headers = {
            topology.FAILURES_HEADER: self._failures(delivery) + 1,
            topology.REASON_HEADER: _reason(error),
            topology.EXCEPTION_HEADER: type(error.__cause__ or error).__name__,
            topology.PARKED_AT_HEADER: iso(now()),
        }
        return Message.copy(delivery, "", topology.parked_queue_name(self._queue), headers)

    def _report(
        self, delivery: Delivery, envelope: Envelope | None, outcome: str, error: Exception | None, seconds: float
    ) -> None:
        HANDLED.labels(self._queue, outcome).inc()
        DURATION.labels(self._queue).observe(seconds)
        expected = error is None or isinstance(error, ServiceError | _Hopeless)
        record = log.error if outcome == "parked" else log.warning if outcome == "retry" else log.info
        record(
            "event.handled",
            event_type=self._event.type,
            event_id=envelope.id if envelope else None,
            subject=envelope.subject if envelope else None,
            request_id=envelope.request_id if envelope else None,
            outcome=outcome,
            failures=self._failures(delivery),
            reason=_reason(error) if error else None,
            duration_ms=round(seconds * 1000, 2),
            exc_info=None if expected else error,
        )


def _count(delivery: Delivery, header: str) -> int:
    """What anybody may have written there: a message that nobody can judge would be neither handled nor parked."""
    value = delivery.headers.get(header)
    return value if isinstance(value, int) and value >= 0 else 0


def _reason(error: Exception) -> str:
    text = error.message if isinstance(error, ServiceError) else str(error)
    return (text or type(error).__name__)[:500]
