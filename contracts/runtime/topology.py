"""Names of exchanges, queues and headers, and what they are declared with: the wire's map, described in contracts/README.md."""

from dataclasses import dataclass
from typing import Any

from contracts.events import Event

RPC_EXCHANGE = "nameko-rpc"
HINT_EXCHANGE = "countersign.hints"
"""Direct, not durable: 'look at your due rows now', by service name. Losing a hint costs the polling interval."""

REQUEST_ID_HEADER = "countersign-request-id"
CALLER_HEADER = "countersign-caller"
DEADLINE_HEADER = "countersign-deadline"
TIMEOUT_HEADER = "countersign-timeout"
FAILURES_HEADER = "countersign-failures"
REASON_HEADER = "countersign-reason"
EXCEPTION_HEADER = "countersign-exception"
DROPPED_HEADER = "countersign-dropped"
"""On a message that an operator dropped (``parked drop``): its consumer notes that it is dealt with, and handles nothing."""

PARKED_AT_HEADER = "countersign-parked-at"

SUSPECT_HEADER = "countersign-suspect"
"""Set on the copies of a message that was delivered before without an outcome: it is handled alone until it has one."""

CRASH_LIMIT = 5
"""Deaths of a process during a recorded try of one message, after which the worker parks it (``worker/suspects.py``)."""

DELIVERY_LIMIT = 10
"""Where the broker itself gives up on a message, counting lost connections as well. It cannot be changed: the argument of a
queue that exists is fixed, and services of another version declare it with this one."""

COPIED_AFTER = DELIVERY_LIMIT // 2
"""Deliveries after which the worker puts a copy, which is counted anew, in the place of a message."""


@dataclass(frozen=True)
class QueuePlan:
    """A queue to be declared durable with ``arguments``, and bound by ``key`` to ``exchange`` when there is one."""

    name: str
    arguments: dict[str, Any]
    exchange: str | None = None
    key: str | None = None
    exchange_type: str = "topic"


def rpc_queue(service: str) -> QueuePlan:
    """Where the requests of a service wait, as nameko names it."""
    return QueuePlan(f"rpc-{service}", {}, RPC_EXCHANGE, f"{service}.*")


def event_exchange(source: str) -> str:
    """The topic exchange of a service's events, as nameko names it."""
    return f"{source}.events"


def event_queue_name(event: Event, service: str) -> str:
    """``evt-<source>-<type>--<service>``."""
    return f"evt-{event.source}-{event.type}--{service}"


def parked_queue_name(queue: str) -> str:
    return f"{queue}.parked"


def retry_queue_name(service: str, seconds: float) -> str:
    return f"retry-{service}-{seconds:g}s"


def event_queues(event: Event, service: str) -> list[QueuePlan]:
    """The queue of a subscription, and the one its hopeless messages are parked in.

    What exceeds the broker's own delivery limit goes to the parking queue too, by dead-lettering at least once.
    """
    name = event_queue_name(event, service)
    dead_letters = _dead_letters(parked_queue_name(name))
    return [
        QueuePlan(parked_queue_name(name), {"x-queue-type": "quorum"}),
        QueuePlan(
            name,
            {"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT, **dead_letters},
            event_exchange(event.source),
            event.type,
        ),
    ]


def retry_queues(service: str, ladder: tuple[float, ...]) -> list[QueuePlan]:
    """One waiting queue per step and service. A message is published here with its own queue's name as routing key, and
    goes back there by the default exchange when its time is over."""
    return [
        QueuePlan(
            retry_queue_name(service, seconds),
            {"x-queue-type": "quorum", "x-message-ttl": int(seconds * 1000), **_dead_letters(None)},
            retry_exchange(service, seconds),
            exchange_type="fanout",
        )
        for seconds in dict.fromkeys(ladder)
    ]


def retry_exchange(service: str, seconds: float) -> str:
    """Fanout: the routing key is kept for the way back."""
    return retry_queue_name(service, seconds)


def _dead_letters(queue: str | None) -> dict[str, Any]:
    arguments = {
        "x-dead-letter-exchange": "",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    return arguments if queue is None else {**arguments, "x-dead-letter-routing-key": queue}
