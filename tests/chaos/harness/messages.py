"""Messages behind everybody's back: some are lost, some come twice.

Copies of what is published come from RabbitMQ's own tracing (``rabbitmqctl trace_on``): a queue of ours on the services'
exchanges would make routable what no service takes, and hide a fault.
"""

import collections
import contextlib
import json
import random
import threading
import time
from collections.abc import Callable

import pika
from pika.exceptions import AMQPError

KEPT = 400
TRACE = "amq.rabbitmq.trace"


class Messages:
    """Listens in a thread of its own, and again after every loss of the broker."""

    def __init__(self, amqp_url: str, trace_on: Callable[[], object] | None = None) -> None:
        self._parameters = pika.URLParameters(amqp_url)
        self._parameters.heartbeat = 10
        self._trace_on = trace_on
        self._kept: collections.deque[tuple[str, str, pika.BasicProperties, bytes]] = collections.deque(maxlen=KEPT)
        self._closing = threading.Event()
        self.lost: list[str] = []
        """What was taken away, as ``queue event-id``."""
        self.doubled = 0
        self._thread = threading.Thread(target=self._listen, name="trace", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join(10)

    def lose(self, service: str, random: random.Random, most: int, *, within: float) -> list[str]:
        """Take up to ``most`` messages that wait for a service and forget them. Waits ``within`` seconds for the first to come,
        and a moment for others."""
        from contracts.events import REGISTRY
        from contracts.runtime.bus.topology import event_queue_name

        queues = [event_queue_name(event, service) for event in REGISTRY.values()]
        lost: list[str] = []
        deadline = time.monotonic() + within
        with contextlib.suppress(AMQPError, OSError):
            connection = pika.BlockingConnection(self._parameters)
            try:
                while len(lost) < most and time.monotonic() < deadline:
                    random.shuffle(queues)
                    for queue in queues:
                        lost += self._taken(connection, queue, most - len(lost))
                    if lost:
                        deadline = min(deadline, time.monotonic() + 1)
                    time.sleep(0.1)
            finally:
                connection.close()
        return lost

    def double(self, random: random.Random, *, within: float) -> int:
        """Publish again what was published lately: everything once, shuffled, and one message a hundred times. Waits ``within``
        seconds for something to be published."""
        deadline = time.monotonic() + within
        while not (kept := [each for each in list(self._kept) if each[0].endswith(".events")]):
            if time.monotonic() > deadline:
                return 0
            time.sleep(0.1)
        again = [*kept, *[random.choice(kept)] * 100]
        random.shuffle(again)
        published = 0
        with contextlib.suppress(AMQPError, OSError):
            connection = pika.BlockingConnection(self._parameters)
            try:
                channel = connection.channel()
                for exchange, key, properties, body in again:
                    channel.basic_publish(exchange, key, body, properties)
                    published += 1
            finally:
                connection.close()
        self.doubled += published
        return published

    def _taken(self, connection: pika.BlockingConnection, queue: str, most: int) -> list[str]:
        taken: list[str] = []
        channel = connection.channel()
        try:
            channel.queue_declare(queue, passive=True)
            while len(taken) < most:
                method, _, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    break
                taken.append(f"{queue} {json.loads(body)['id']}")
        except AMQPError:
            pass  # nobody subscribed there
        finally:
            if channel.is_open:
                channel.close()
        return taken

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                self._follow()
            except Exception:
                self._closing.wait(1)

    def _follow(self) -> None:
        connection = pika.BlockingConnection(self._parameters)
        try:
            channel = connection.channel()
            queue = channel.queue_declare("", exclusive=True, auto_delete=True).method.queue
            channel.queue_bind(queue, TRACE, "publish.#")
            if self._trace_on is not None:
                self._trace_on()
            for method, properties, body in channel.consume(queue, auto_ack=True, inactivity_timeout=1):
                if self._closing.is_set():
                    return
                if method is not None:
                    self._keep(method.routing_key.removeprefix("publish."), properties.headers or {}, body)
        finally:
            with contextlib.suppress(AMQPError):
                connection.close()

    def _keep(self, exchange: str, headers: dict[str, object], body: bytes) -> None:
        said = headers.get("properties")
        keys = headers.get("routing_keys")
        if isinstance(said, dict) and isinstance(keys, list) and keys:
            properties = pika.BasicProperties(
                **{
                    name: said[name]
                    for name in ("content_type", "content_encoding", "message_id", "headers", "delivery_mode")
                    if name in said
                }
            )
            self._kept.append((exchange, str(keys[0]), properties, body))
