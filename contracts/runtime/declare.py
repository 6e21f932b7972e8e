"""Declares a service's exchanges and queues, durable, before anything is published: what is declared loses no event."""

import importlib
import importlib.util
from typing import Any

import pika
from pika.exceptions import ChannelClosedByBroker

from contracts.events import REGISTRY
from contracts.runtime.broker import parameters
from contracts.runtime.settings import ServiceSettings
from contracts.runtime.topology import QueuePlan, event_queue_name, event_queues, retry_queues, rpc_queue
from contracts.runtime.worker.marks import subscriptions_of


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


def plans(service: type, name: str, settings: ServiceSettings) -> list[QueuePlan]:
    """Every queue that the service reads."""
    found = [rpc_queue(name)]
    subscriptions = subscriptions_of(service)
    if subscriptions:
        found += retry_queues(name, settings.retry_ladder)
    for event in subscriptions.values():
        found += event_queues(event, name)
    return found


def declare(name: str, settings: ServiceSettings) -> None:
    """Declare the queues of ``services.<name>``. Waits a minute for the broker."""
    service = service_class(name)
    if service is None:
        return
    from contracts.runtime.process import wait_for

    wait_for("broker", lambda: _declare(settings.amqp_url, plans(service, name, settings)), patience=60)


def orphans(name: str, settings: ServiceSettings) -> dict[str, int]:
    """Event queues of the service that it no longer reads, with the messages in them: a subscription was removed. They are
    bound and grow for ever, and only an operator knows whether an older version is still to read them."""
    service = service_class(name)
    read = subscriptions_of(service).values() if service is not None else ()
    unread = [event_queue_name(event, name) for event in REGISTRY.values() if event not in read]
    connection = pika.BlockingConnection(parameters(settings.amqp_url, "declare"))
    try:
        waiting = {queue: _waiting(connection, queue) for queue in unread}
    finally:
        connection.close()
    return {queue: messages for queue, messages in waiting.items() if messages is not None}


def _waiting(connection: pika.BlockingConnection, queue: str) -> int | None:
    """Messages in a queue; None when there is no such queue."""
    channel = connection.channel()
    try:
        messages: int = channel.queue_declare(queue, passive=True).method.message_count
    except ChannelClosedByBroker:
        return None
    channel.close()
    return messages


def _declare(amqp_url: str, queues: list[QueuePlan]) -> None:
    connection = pika.BlockingConnection(parameters(amqp_url, "declare"))
    try:
        channel = connection.channel()
        for plan in queues:
            declare_on(channel, plan)
    finally:
        connection.close()


def declare_on(channel: Any, plan: QueuePlan) -> None:
    """Declare one queue with its exchange and binding on a pika channel."""
    channel.queue_declare(plan.name, durable=True, arguments=plan.arguments)
    if plan.exchange is not None:
        channel.exchange_declare(plan.exchange, plan.exchange_type, durable=True)
        channel.queue_bind(plan.name, plan.exchange, plan.key or "")
