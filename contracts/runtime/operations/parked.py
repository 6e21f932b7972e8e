"""For operators: event messages that were given up, with the reason, to be handled again or dropped.

    python -m contracts.runtime.operations.parked list
    python -m contracts.runtime.operations.parked requeue QUEUE      (all messages of that parking queue go back)
    python -m contracts.runtime.operations.parked drop QUEUE         (they count as dealt with, and what waits for them goes on)

Needs AMQP_URL. QUEUE is a name as ``list`` prints it.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pika
from pika.exceptions import AMQPError, ChannelClosedByBroker

from contracts.events import REGISTRY
from contracts.rpc.health import SERVICES
from contracts.rpc.operating import ParkedEvent
from contracts.runtime.bus import topology
from contracts.runtime.bus.broker import parameters
from contracts.runtime.bus.declare import NodeDown, messages_by_queue
from contracts.runtime.settings import SecretFileFaults, secret_setting

_GIVEN_BACK_WITHIN = 5.0
"""Seconds."""


def main(arguments: list[str], *, program: str = "python -m contracts.runtime.operations.parked") -> int:
    """Run one of the commands above; 0 when it was done. ``program`` is what the caller calls it."""
    if (
        not arguments
        or arguments[0] not in ("list", "requeue", "drop")
        or len(arguments) != (1 if arguments[0] == "list" else 2)
    ):
        print((__doc__ or "").replace("python -m contracts.runtime.operations.parked", program), file=sys.stderr)  # noqa: T201
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
        print(error.reply_text, file=sys.stderr)  # noqa: T201
        return 1
    except NodeDown as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    finally:
        connection.close()
    return 0


def _amqp_url() -> str:
    if not (url := secret_setting("AMQP_URL")):
        raise ValueError("AMQP_URL is not set")
    return url


def listed(connection: Any, queues: Sequence[str] | None = None) -> Iterator[str]:
    """Yield a line per parking queue that is not empty, and one per message: event id, when, how often tried, why."""
    for queue, waiting in counted(connection, _queues() if queues is None else queues).items():
        yield f"{queue}: {waiting}"
        for event in read(connection, queue):
            name = event.event_id or "(no event)"
            yield f"  {name} parked {event.parked_at} after {event.tries} tries: {event.reason}"


def counted(connection: Any, queues: Iterable[str]) -> dict[str, int]:
    """Count the messages of the parking queues that have any; where nobody ever subscribed, there is no queue. Raises what
    ``messages_by_queue`` raises."""
    return {queue: waiting for queue, waiting in messages_by_queue(connection, queues) if waiting}


def read(connection: Any, queue: str, most: int | None = None) -> list[ParkedEvent]:
    """Return what is known of the messages of a parking queue, of the first ``most`` where that is given. Raises
    ChannelClosedByBroker for a queue that there is not.

    Each look counts as a delivery, which some brokers limit: nothing looks without being asked to.
    """
    channel = connection.channel()
    waiting = channel.queue_declare(queue, passive=True).method.message_count
    events = []
    for _ in range(waiting if most is None else min(waiting, most)):
        method, properties, body = channel.basic_get(queue)
        if method is None:
            break
        headers = (properties.headers or {}) if properties else {}
        when, tries = headers.get(topology.PARKED_AT_HEADER), headers.get(topology.FAILURES_HEADER)
        events.append(ParkedEvent(event_id=_event_id(body), parked_at=when, tries=tries, reason=_reason(headers)))
    _give_back(channel, queue, len(events))
    return events


def moved(connection: Any, queue: str, *, again: bool, event_id: str | None = None, exchange: str = "") -> int:
    """Take messages out of a parking queue, back to the queue it came from: with a clean slate (``again``), or marked as
    dropped, so that its consumer notes that it is dealt with and nobody fetches it again. All of them, or the one of this
    event. Returns how many.

    A message is removed only once the broker has confirmed it elsewhere. ``exchange`` brings messages to queues by their names:
    the default one, or a service's own (``topology.own_exchange``).
    """
    channel = connection.channel()
    channel.confirm_delivery()
    waiting: int = channel.queue_declare(queue, passive=True).method.message_count
    target = queue.removesuffix(topology.parked_queue_name(""))
    done = left = 0
    for _ in range(waiting):
        method, properties, body = channel.basic_get(queue)
        if method is None:
            break
        if event_id is not None and _event_id(body) != event_id:
            left += 1
            continue
        headers = (properties.headers or {}).items()
        properties.headers = {name: value for name, value in headers if not name.startswith(("x-", "countersign-"))}
        if not again:
            properties.headers[topology.DROPPED_HEADER] = True
        channel.basic_publish(exchange, target, body, properties, mandatory=True)
        channel.basic_ack(method.delivery_tag)
        done += 1
    _give_back(channel, queue, left)
    return done


def _give_back(channel: Any, queue: str, looked_at: int) -> None:
    """Have the broker take back so many messages, and wait until they can be looked at again: a quorum queue gets to it later
    than it says so, and who asks next would find nothing. Not for ever: somebody else may look at them meanwhile."""
    if looked_at:
        channel.basic_nack(0, multiple=True)
        deadline = time.monotonic() + _GIVEN_BACK_WITHIN
        while (
            channel.queue_declare(queue, passive=True).method.message_count < looked_at and time.monotonic() < deadline
        ):
            time.sleep(0.01)
    channel.close()


def _queues() -> list[str]:
    queues = [topology.event_queue_name(event, service) for event in REGISTRY.values() for service in SERVICES]
    return [topology.parked_queue_name(queue) for queue in queues]


def _reason(headers: dict[str, Any]) -> str:
    if headers.get("x-first-death-reason") == "delivery_limit":
        return "the broker gave up on it: connections or processes were lost with each delivery; requeue it"
    return str(headers.get(topology.REASON_HEADER) or "no reason kept")


def _event_id(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["id"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
