"""Declares a service's exchanges and queues, durable, before anything is published: what is declared loses no event.

Where each service has a user of its own, the broker has them from its definitions (``deploy.broker_roles``), and a service may
not declare any: then it is only looked whether they are there.
"""

import importlib
import importlib.util
from collections.abc import Iterable, Iterator
from typing import Any

import pika
from pika.exceptions import AMQPError, ChannelClosedByBroker

from contracts.errors import CannotStart
from contracts.events import REGISTRY
from contracts.rpc.callers import service_of
from contracts.runtime.bus.broker import parameters, user_of
from contracts.runtime.bus.marks import subscriptions_of
from contracts.runtime.bus.topology import QueuePlan, event_queue_name, event_queues, retry_queues, rpc_queue
from contracts.runtime.settings import ServiceSettings
from contracts.runtime.waiting import wait_for

_NOT_FOUND = 404
"""The broker's code for a queue that there is not, and for one whose only node is down."""
IMPORT = "the broker's definitions are not those of this version, or of other EVENT_RETRY_SECONDS; have an operator import them"


ON_ONE_NODE = (
    "is on one node of the broker's cluster only, which is down; have an operator give it replicas (deploy/RUNBOOK.md)"
)


class NodeDown(AMQPError):  # type: ignore[misc]  # pika has no types
    """The only node that has the queue is down; the message says so."""


def service_class(name: str) -> type | None:
    """The class in ``services/<name>/service.py`` whose ``name`` is the service's; None for the gateway."""
    if importlib.util.find_spec(f"services.{name}.service") is None:
        return None
    module = importlib.import_module(f"services.{name}.service")
    for candidate in vars(module).values():
        if (
            isinstance(candidate, type)
            and candidate.__module__ == module.__name__
            and getattr(candidate, "name", None) == name
        ):
            return candidate
    raise LookupError(f"services.{name}.service has no class with name = {name!r}")


def plans(service: type, name: str, ladder: tuple[float, ...]) -> list[QueuePlan]:
    """Every queue of the service."""
    queues = [rpc_queue(name)]
    subscriptions = subscriptions_of(service)
    for event in subscriptions.values():
        queues += event_queues(event, name)
    if subscriptions:
        queues += retry_queues(name, ladder)
    return queues


def declare(name: str, settings: ServiceSettings) -> None:
    """Declare the queues of ``services.<name>``. Waits a minute for the broker.

    Raises CannotStart when one is missing and this user may declare none.
    """
    service = service_class(name)
    if service is None:
        return
    wait_for("broker", lambda: _declare(settings.amqp_url, plans(service, name, settings.retry_ladder)), patience=60)


def orphans(name: str, settings: ServiceSettings) -> dict[str, int]:
    """Event queues of the service that it no longer reads, with the messages in them: a subscription was removed. They are
    bound and grow for ever, and only an operator knows whether an older version is still to read them."""
    service = service_class(name)
    subscribed = subscriptions_of(service).values() if service is not None else ()
    unread = [event_queue_name(event, name) for event in REGISTRY.values() if event not in subscribed]
    connection = pika.BlockingConnection(parameters(settings.amqp_url, "declare"))
    try:
        return {queue: messages for queue, messages in messages_by_queue(connection, unread) if messages is not None}
    finally:
        connection.close()


def messages_by_queue(connection: pika.BlockingConnection, queues: Iterable[str]) -> Iterator[tuple[str, int | None]]:
    """Yield each queue with the number of messages in it; None when there is no such queue. Nothing is declared or read.

    Raises NodeDown when the queue's only node is down, ChannelClosedByBroker for any other refusal. On one channel, which takes
    a tenth of what one for each queue takes of the broker; but when there is no such queue, the broker closes it.
    """
    channel = connection.channel()
    for queue in queues:
        try:
            messages: int | None = channel.queue_declare(queue, passive=True).method.message_count
        except ChannelClosedByBroker as closed:
            if is_on_lost_node(closed):
                raise NodeDown(f"{queue} {ON_ONE_NODE}") from None
            if closed.reply_code != _NOT_FOUND:
                raise
            messages, channel = None, connection.channel()
        yield queue, messages
    channel.close()


def is_on_lost_node(closed: ChannelClosedByBroker) -> bool:
    """Tell if the broker refuses because the queue's only node is down, in the words of RabbitMQ 3 or 4; otherwise there is no
    such queue."""
    return any(words in closed.reply_text for words in ("is down or inaccessible", "due to timeout"))


def _declare(amqp_url: str, queues: list[QueuePlan]) -> None:
    connection = pika.BlockingConnection(parameters(amqp_url, "declare"))
    try:
        if may_declare(user_of(amqp_url)):
            channel = connection.channel()
            for plan in queues:
                declare_on(channel, plan)
            return
        for queue, messages in messages_by_queue(connection, [plan.name for plan in queues]):
            if messages is None:
                raise CannotStart(f"{queue} is missing: {IMPORT}")
    finally:
        connection.close()


def may_declare(user: str) -> bool:
    """Does this user of the broker declare what it needs? A service's own has it declared."""
    return service_of(user) is None


def declare_on(channel: Any, plan: QueuePlan) -> None:
    """Declare one queue with its exchanges and bindings on a pika channel."""
    channel.queue_declare(plan.name, durable=True, arguments=plan.arguments)
    for exchange, key in plan.bindings:
        declare_exchange(channel, exchange)
        channel.queue_bind(plan.name, exchange, key)


def declare_exchange(channel: Any, exchange: str) -> None:
    """Declare one exchange on a pika channel: all are alike."""
    channel.exchange_declare(exchange, "topic", durable=True)
