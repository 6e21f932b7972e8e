"""Names of exchanges, queues and headers, and what they are declared with: the wire's map, described in contracts/README.md."""

import re
import uuid
from dataclasses import dataclass, replace
from typing import Any

from contracts.events import Event

RPC_EXCHANGE = "nameko-rpc"
HINT_EXCHANGE = "countersign.due"
"""'Look at your due rows now', by service name. Losing a hint costs the polling interval."""

EXCLUSIVE = ("reply", "echo", "hints", "check")
"""The purposes of queues that belong to one connection alone."""

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
"""Deaths of a process during a recorded try of one message, after which the worker parks it (``suspects.py``)."""

DELIVERY_LIMIT = 10
"""Where the broker itself gives up on a message, counting lost connections as well. It cannot be changed: the argument of a
queue that exists is fixed, and services of another version declare it with this one."""

COPIED_AFTER = DELIVERY_LIMIT // 2
"""Deliveries after which the worker puts a copy, which is counted anew, in the place of a message."""


@dataclass(frozen=True)
class QueuePlan:
    """A queue to be declared durable with ``arguments``; ``bindings`` are pairs of a topic exchange, durable, and a key."""

    name: str
    arguments: dict[str, Any]
    bindings: tuple[tuple[str, str], ...]


def exclusive_queue_name(purpose: str, user: str) -> str:
    """A new name for a queue of one connection, which is its routing key, too: ``<purpose>.<user>.<uuid>``.

    New each time, because the broker may still hold the queue of a connection that it has not yet found dead.
    """
    return f"{exclusive_prefix(purpose, user)}{uuid.uuid4()}"


def exclusive_prefix(purpose: str, user: str) -> str:
    """Return the prefix of the names of this user's exclusive queues; what means something in a binding key is replaced."""
    return f"{purpose}.{re.sub(r'[^A-Za-z0-9_-]', '_', user)[:100]}."


def rpc_queue(service: str) -> QueuePlan:
    """Return the queue in which requests to a service wait, as nameko names it."""
    return QueuePlan(f"rpc-{service}", {}, ((RPC_EXCHANGE, f"{service}.*"),))


def replicated(plan: QueuePlan) -> QueuePlan:
    """Return a plan of the same queue with replicas on the nodes of a cluster. A queue of calls has none otherwise: with them
    each call waits for disks, for which one node gives nothing in return."""
    return replace(plan, arguments={**plan.arguments, "x-queue-type": "quorum"})


def event_exchange(source: str) -> str:
    """The topic exchange of a service's events, as nameko names it."""
    return f"{source}.events"


def span_destination(source: str, kind: str, queue: str | None = None) -> str:
    """Name in a trace where an event goes, or with ``queue`` where it was taken from, as OpenTelemetry's conventions for
    RabbitMQ have it: exchange, routing key, queue."""
    return ":".join(filter(None, (event_exchange(source), kind, queue)))


def own_exchange(service: str) -> str:
    """By it a service puts messages into its own queues, by their names: nobody else may publish there, and it publishes to no
    queue by the default exchange, where whoever may publish reaches every queue of the broker."""
    return f"{service}.queues"


def again_exchange(service: str) -> str:
    """By it the broker brings back what has waited in a retry queue. No service publishes there."""
    return f"{service}.again"


def event_queue_name(event: Event, service: str) -> str:
    """``evt-<source>-<type>--<service>``."""
    return f"evt-{event.source}-{event.type}--{service}"


def parked_queue_name(queue: str) -> str:
    return f"{queue}.parked"


def retry_queue_name(service: str, seconds: float) -> str:
    return f"{service}.retry-{seconds:g}s"


def retry_key(seconds: float, queue: str) -> str:
    """Routing key at the service's own exchange of a message that is to come back to ``queue`` after ``seconds``."""
    return f"retry.{seconds:g}s.{queue}"


def event_queues(event: Event, service: str) -> list[QueuePlan]:
    """The queue of a subscription, and the one its hopeless messages are parked in.

    What exceeds the broker's own delivery limit goes to the parking queue too, by dead-lettering at least once: through the
    default exchange, because the arguments of a queue that exists cannot be changed.
    """
    name = event_queue_name(event, service)
    parked = parked_queue_name(name)
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT, **_dead_letters("")}
    return [
        QueuePlan(parked, {"x-queue-type": "quorum"}, ((own_exchange(service), parked),)),
        QueuePlan(
            name,
            {**arguments, "x-dead-letter-routing-key": parked},
            (
                (event_exchange(event.source), event.type),
                (own_exchange(service), name),
                (again_exchange(service), f"#.{name}"),
            ),
        ),
    ]


def retry_queues(service: str, ladder: tuple[float, ...]) -> list[QueuePlan]:
    """One waiting queue per step and service. When the time of a message is over it goes back with the routing key that it came
    with, which ends with the name of its queue (``retry_key``)."""
    return [
        QueuePlan(
            retry_queue_name(service, seconds),
            {
                "x-queue-type": "quorum",
                "x-message-ttl": int(seconds * 1000),
                **_dead_letters(again_exchange(service)),
            },
            ((own_exchange(service), retry_key(seconds, "#")),),
        )
        for seconds in dict.fromkeys(ladder)
    ]


def _dead_letters(exchange: str) -> dict[str, Any]:
    return {
        "x-dead-letter-exchange": exchange,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
