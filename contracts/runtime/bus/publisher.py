"""Publishes with confirms: a message is CONFIRMED once the broker has it on the disk of a queue.

``mandatory`` means that a message that no queue takes comes back: UNROUTED. Waiting for confirms is bounded: a broker that is
stopped or in a disk alarm takes messages for ever without an answer, and then the outcome is UNKNOWN.
"""

import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pika

from contracts.runtime.bus.broker import Broker, user_of
from contracts.runtime.bus.declare import declare_exchange, may_declare

CONFIRM_SECONDS = 10.0

CONFIRMED, UNROUTED, UNKNOWN = "confirmed", "unrouted", "unknown"


class ReceivedMessage(Protocol):
    """A message that came from a queue."""

    @property
    def headers(self) -> dict[str, Any]: ...
    @property
    def body(self) -> bytes: ...
    @property
    def properties(self) -> Any: ...


@dataclass(frozen=True)
class Message:
    """A message with the place where it is published. ``id`` names it among those that are under way."""

    id: str
    exchange: str
    routing_key: str
    body: bytes
    headers: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def copy(cls, original: ReceivedMessage, exchange: str, routing_key: str, headers: dict[str, Any]) -> "Message":
        """The same message for somewhere else, with further headers. The broker's own marks (``x-...``) are left behind."""
        original_headers = {name: value for name, value in original.headers.items() if not name.startswith("x-")}
        identifier = original.properties.message_id or str(uuid.uuid4())
        return cls(identifier, exchange, routing_key, original.body, {**original_headers, **headers})


@dataclass
class _Batch:
    """Messages on their way. ``outcomes`` by message id."""

    outcomes: dict[str, str]
    finished: threading.Event = field(default_factory=threading.Event)
    refused: bool = False
    tags: dict[int, str] = field(default_factory=dict)

    def settle(self, tag: int, multiple: bool, outcome: str) -> None:
        settled = [number for number in self.tags if number <= tag] if multiple else [tag]
        for number in settled:
            if (message := self.tags.pop(number, None)) is not None and self.outcomes[message] == UNKNOWN:
                self.outcomes[message] = outcome
        if not self.tags:
            self.finished.set()


class Publisher:
    """Publishes batches, one at a time. One for all relays of a process; a worker has one for what it moves or parks."""

    def __init__(self, amqp_url: str, *, name: str) -> None:
        self._channel: Any = None
        self._tag = 0
        self._batch: _Batch | None = None
        self._exchanges: set[str] = set()
        self.losses = 0
        """How often the connection was lost: a broker that was started anew may have lost what it had."""
        self._declares = may_declare(user_of(amqp_url))
        self._one_at_a_time = threading.Lock()
        self._broker = Broker(amqp_url, [self], name=name)

    def start(self) -> "Publisher":
        """Open the connection, in the background."""
        self._broker.start()
        return self

    def publish(self, messages: Sequence[Message]) -> dict[str, str]:
        """The outcome of each by id, after 10 s at the latest."""
        with self._one_at_a_time:
            batch = _Batch({message.id: UNKNOWN for message in messages})
            self._broker.run(lambda: self._send(batch, messages))
            # A broker in an alarm says so, and takes what was sent when it is over. Sent on another connection, it came twice.
            if not batch.finished.wait(CONFIRM_SECONDS) and not self._broker.blocked:
                self._broker.run(lambda: self._broker.reconnect("no confirms"))
                batch.finished.wait(1)
            if batch.refused:
                self._broker.run(lambda: self._broker.reconnect("it refuses what is published"))
            return dict(batch.outcomes)

    @property
    def connected(self) -> bool:
        """Is there a connection that takes messages at this moment?"""
        return self._channel is not None and not self._broker.blocked

    def close(self) -> None:
        self._broker.close()

    # From here on: the I/O thread.

    def _send(self, batch: _Batch, messages: Sequence[Message]) -> None:
        if self._channel is None or self._broker.blocked or not messages:
            batch.finished.set()
            return
        self._batch = batch
        for message in messages:
            if self._declares and message.exchange and message.exchange not in self._exchanges:
                declare_exchange(self._channel, message.exchange)
                self._exchanges.add(message.exchange)
            self._tag += 1
            batch.tags[self._tag] = message.id
            properties = pika.BasicProperties(
                content_type="application/json",
                content_encoding="utf-8",
                delivery_mode=2,
                message_id=message.id,
                headers=message.headers or None,
            )
            self._channel.basic_publish(message.exchange, message.routing_key, message.body, properties, mandatory=True)

    def opened(self, channel: Any) -> None:
        def ready(_frame: Any) -> None:
            self._tag, self._channel = 0, channel

        self._exchanges = set()
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, callback=ready)

    def lost(self, _reason: str) -> None:
        self.losses += 1
        self._channel = None
        if (batch := self._batch) is not None:
            self._batch = None
            batch.finished.set()

    def _on_return(self, _channel: Any, _method: Any, properties: Any, _body: bytes) -> None:
        if self._batch is not None and properties.message_id in self._batch.outcomes:
            self._batch.outcomes[properties.message_id] = UNROUTED

    def _on_confirm(self, frame: Any) -> None:
        if self._batch is not None:
            # To a queue whose leader has died RabbitMQ 3.10 may refuse all of this channel until that node is back.
            self._batch.refused |= (refused := isinstance(frame.method, pika.spec.Basic.Nack))
            outcome = UNKNOWN if refused else CONFIRMED
            self._batch.settle(frame.method.delivery_tag, frame.method.multiple, outcome)
