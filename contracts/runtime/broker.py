"""A connection to RabbitMQ for plain threads and asyncio: one I/O thread that alone touches pika, made again when lost.

What uses the connection is a ``Role``: it gets a channel each time the connection opens, and is told when it is gone.
Other threads hand functions to the I/O thread with ``run``; a burst of them costs one wake-up.
"""

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pika
from pika.adapters.select_connection import IOLoop
from pika.exceptions import AMQPError

from contracts.runtime import observe

log = observe.logger(__name__)

HEARTBEAT_SECONDS = 20
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


class Role(Protocol):
    """Uses a channel of a Broker. All methods are called on the I/O thread and must not wait."""

    def opened(self, channel: Any) -> None: ...
    def lost(self, reason: str) -> None: ...


class Broker:
    """Keeps one connection open while the process lives."""

    def __init__(self, amqp_url: str, roles: Sequence[Role], *, name: str) -> None:
        self._parameters = parameters(amqp_url, name)
        self._roles = roles
        self._loop = IOLoop()
        self._connection: Any = None
        self._closing = False
        self._pause = FIRST_PAUSE
        self._work: deque[Callable[[], None]] = deque()
        self._woken = False
        self.blocked = False
        self._thread = threading.Thread(target=self._main, name=f"amqp-{name}", daemon=True)

    def start(self) -> "Broker":
        self._thread.start()
        return self

    def close(self) -> None:
        """Close the connection and end the I/O thread. Roles are told."""
        self._closing = True
        self.run(self._close)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    def run(self, function: Callable[[], None]) -> None:
        """Have ``function`` called on the I/O thread soon. Never waits; may be called from any thread."""
        self._work.append(function)
        if not self._woken:
            self._woken = True
            self._loop.add_callback_threadsafe(self._do_work)

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        """On the I/O thread only: call ``function`` after that time."""
        self._loop.call_later(seconds, function)

    def reconnect(self, reason: str) -> None:
        """On the I/O thread only: give up this connection, because it no longer does what it should."""
        connection = self._connection
        if connection is not None and connection.is_open:
            log.warning("broker.given_up", reason=reason)
            # An orderly close would wait for an answer of a broker that does not answer.
            connection._terminate_stream(AMQPError(reason))

    def _do_work(self) -> None:
        self._woken = False
        while self._work:
            self._work.popleft()()

    def _main(self) -> None:
        self._connect()
        self._loop.start()

    def _connect(self) -> None:
        if self._closing:
            self._loop.stop()
            return
        pika.SelectConnection(
            self._parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_lost,
            on_close_callback=self._on_lost,
            custom_ioloop=self._loop,
        )

    def _on_open(self, connection: Any) -> None:
        self._connection, self._pause, self.blocked = connection, FIRST_PAUSE, False
        connection.add_on_connection_blocked_callback(lambda *_: self._set_blocked(True))
        connection.add_on_connection_unblocked_callback(lambda *_: self._set_blocked(False))
        for role in self._roles:
            connection.channel(on_open_callback=self._opened(role))

    def _opened(self, role: Role) -> Callable[[Any], None]:
        def opened(channel: Any) -> None:
            channel.add_on_close_callback(lambda _channel, reason: self._on_channel_closed(reason))
            role.opened(channel)

        return opened

    def _on_channel_closed(self, reason: Exception) -> None:
        if self._connection is not None and self._connection.is_open and not self._closing:
            log.error("broker.channel_closed", reason=str(reason))
            self._connection.close()

    def _set_blocked(self, blocked: bool) -> None:
        self.blocked = blocked
        log.warning("broker.blocked" if blocked else "broker.unblocked")

    def _on_lost(self, _connection: Any, reason: Any) -> None:
        self._connection, self.blocked = None, False
        for role in self._roles:
            role.lost(str(reason))
        if self._closing:
            self._loop.stop()
            return
        pause = self._pause * random.uniform(0.8, 1.2)
        log.warning("broker.lost", reason=str(reason), again_in_seconds=round(pause, 2))
        self._pause = min(LONGEST_PAUSE, self._pause * 2)
        self._loop.call_later(pause, self._connect)

    def _close(self) -> None:
        if self._connection is not None and self._connection.is_open:
            self._connection.close()
        else:
            self._loop.stop()


def parameters(amqp_url: str, name: str) -> pika.URLParameters:
    """Connection parameters with our heartbeat and time-outs, and a name for the broker's list of connections."""
    chosen = pika.URLParameters(amqp_url)
    chosen.heartbeat = HEARTBEAT_SECONDS
    chosen.socket_timeout = 5
    chosen.stack_timeout = 10
    chosen.client_properties = {"connection_name": name}
    return chosen
