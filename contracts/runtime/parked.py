"""For operators: event messages that were given up, with the reason, to be handled again or dropped.

    python -m contracts.runtime.parked list
    python -m contracts.runtime.parked requeue QUEUE      (all messages of that parking queue go back)
    python -m contracts.runtime.parked drop QUEUE         (they count as dealt with, and what waits for them goes on)

Needs AMQP_URL. QUEUE is a name as ``list`` prints it.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pika
from pika.exceptions import AMQPError, ChannelClosedByBroker

from contracts.events import REGISTRY
from contracts.rpc.health import SERVICES
from contracts.runtime.bus import topology
from contracts.runtime.bus.broker import parameters
from contracts.runtime.settings import SecretFileFaults, given


def main(arguments: list[str], *, program: str = "python -m contracts.runtime.parked") -> int:
    """Run one of the commands above; 0 when it was done. ``program`` is what the caller calls it."""
    if (
        not arguments
        or arguments[0] not in ("list", "requeue", "drop")
        or len(arguments) != (1 if arguments[0] == "list" else 2)
    ):
        print((__doc__ or "").replace("python -m contracts.runtime.parked", program), file=sys.stderr)  # noqa: T201
        return 2
    try:
        connection = pika.BlockingConnection(parameters(_amqp_url(), "parked"))
    except (SecretFileFaults, AMQPError, ValueError) as error:
        print(f"The broker cannot be reached; is AMQP_URL right? {error!r}", file=sys.stderr)  # noqa: T201
        return 1
    try:
        if arguments[0] == "list":
            for line in listed(connection):
                print(line)  # noqa: T201
        else:
            print(f"{moved(connection, arguments[1], again=arguments[0] == 'requeue')} messages")  # noqa: T201
    except ChannelClosedByBroker as error:
        print(f"{error.reply_text}", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        connection.close()
    return 0


def _amqp_url() -> str:
    if not (url := given("AMQP_URL")):
        raise ValueError("AMQP_URL is not set")
    return url


def listed(connection: Any, queues: Sequence[str] | None = None) -> Iterator[str]:
    """Yield a line per parking queue that is not empty, and one per message: event id, when, how often tried, why."""
    for queue in _queues() if queues is None else queues:
        try:
            channel = connection.channel()
            waiting = channel.queue_declare(queue, passive=True).method.message_count
        except ChannelClosedByBroker:
            continue  # nobody ever subscribed there
        if waiting:
            yield f"{queue}: {waiting}"
        messages = [channel.basic_get(queue) for _ in range(waiting)]
        for _, properties, body in messages:
            headers = (properties.headers or {}) if properties else {}
            when, tries = headers.get(topology.PARKED_AT_HEADER), headers.get(topology.FAILURES_HEADER)
            yield f"  {_event_id(body)} parked {when} after {tries} tries: {_reason(headers)}"
        channel.close()  # gives back what was looked at


def moved(connection: Any, queue: str, *, again: bool) -> int:
    """Empty a parking queue, back to the queue it came from: with a clean slate (``again``), or marked as dropped, so that its
    consumer notes that it is dealt with and nobody fetches it again. Returns how many.

    A message is removed only once the broker has confirmed it elsewhere.
    """
    channel = connection.channel()
    channel.confirm_delivery()
    waiting: int = channel.queue_declare(queue, passive=True).method.message_count
    for _ in range(waiting):
        method, properties, body = channel.basic_get(queue)
        if method is None:
            break
        headers = (properties.headers or {}).items()
        properties.headers = {name: value for name, value in headers if not name.startswith(("x-", "countersign-"))}
        if not again:
            properties.headers[topology.DROPPED_HEADER] = True
        target = queue.removesuffix(topology.parked_queue_name(""))
        channel.basic_publish("", target, body, properties, mandatory=True)
        channel.basic_ack(method.delivery_tag)
    return waiting


def _queues() -> list[str]:
    queues = [topology.event_queue_name(event, service) for event in REGISTRY.values() for service in SERVICES]
    return [topology.parked_queue_name(queue) for queue in queues]


def _reason(headers: dict[str, Any]) -> Any:
    if headers.get("x-first-death-reason") == "delivery_limit":
        return "the broker gave up on it: connections or processes were lost with each delivery; requeue it"
    return headers.get(topology.REASON_HEADER)


def _event_id(body: bytes) -> str:
    try:
        return str(json.loads(body)["id"])
    except (ValueError, TypeError, KeyError):
        return "(no event)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
