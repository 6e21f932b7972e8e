"""Is there anybody who takes a service's requests? The broker knows at once; its request queue alone says nothing, because it
is durable and takes requests for hours while nobody serves them."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pika.exceptions import ChannelClosedByBroker

from contracts.runtime.bus.topology import rpc_queue


@dataclass(frozen=True)
class Attendance:
    """The load of a service's request queue: so many consumers, and so many requests that nobody has taken yet."""

    consumers: int
    waiting: float


_NO_QUEUE = Attendance(0, math.inf)


class Presence:
    """Asks for the attendance of services, on a channel of its own, which the broker closes when it cannot say. Used on the
    I/O thread of a Broker only."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._channel: Any = None
        self._questions: deque[tuple[str, Callable[[Attendance | None], None]]] = deque()

    def opened(self, connection: Any) -> None:
        """There is a connection to ask by."""
        self._connection = connection
        connection.channel(on_open_callback=self._ready)

    def lost(self) -> None:
        """There is none: what was asked is not answered."""
        self._connection = self._channel = None
        self._questions.clear()

    def ask(self, service: str, on_answer: Callable[[Attendance | None], None]) -> None:
        """``on_answer`` is called with the answer, None when the broker does not know; never when it is silent."""
        self._questions.append((service, on_answer))
        if len(self._questions) == 1:
            self._next()

    def _ready(self, channel: Any) -> None:
        if channel.connection is self._connection:
            channel.add_on_close_callback(self._closed)
            self._channel = channel
            self._next()

    def _next(self) -> None:
        if self._questions and self._channel is not None and self._channel.is_open:
            queue = rpc_queue(self._questions[0][0]).name
            self._channel.queue_declare(queue, passive=True, callback=self._declared)

    def _declared(self, frame: Any) -> None:
        self._answered(Attendance(frame.method.consumer_count, frame.method.message_count))

    def _answered(self, attendance: Attendance | None) -> None:
        _, on_answer = self._questions.popleft()
        self._next()
        on_answer(attendance)

    def _closed(self, channel: Any, reason: Exception) -> None:
        if channel is not self._channel or not isinstance(reason, ChannelClosedByBroker):
            return  # the connection is going down
        self._channel = None
        self._connection.channel(on_open_callback=self._ready)
        if self._questions:
            self._answered(_NO_QUEUE if reason.reply_code == 404 else None)
