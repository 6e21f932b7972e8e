"""A connection to RabbitMQ for plain threads and asyncio: one I/O thread that alone touches pika, made again when lost.

What uses the connection is a ``Role``: it gets a channel each time the connection opens, and is told when it is gone.
Other threads hand functions to the I/O thread with ``run``; a burst of them costs one wake-up.
"""

import random
import re
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import pika
from pika.adapters.select_connection import IOLoop
from pika.adapters.utils.connection_workflow import AMQPConnectorStackTimeout
from pika.exceptions import (
    AMQPError,
    AuthenticationError,
    ConnectionClosed,
    ConnectionOpenAborted,
    IncompatibleProtocolError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)
from prometheus_client import Gauge

from contracts.runtime.monitoring import liveness, observe

log = observe.logger(__name__)

CONNECTED = Gauge("countersign_broker_connected", "Whether a connection to the broker is open (1, 0)", ["connection"])
BLOCKED = Gauge("countersign_broker_blocked", "Whether the broker takes nothing, in an alarm (1, 0)", ["connection"])

HEARTBEAT_SECONDS = 20
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
PROBE_SECONDS = 2.0
BEAT_SECONDS = 5.0
LONGEST_ATTEMPT = 60.0
"""Seconds until an attempt to connect has certainly succeeded or failed: ``stack_timeout`` for each of the host's addresses."""

call_soon: Callable[[Callable[[], None]], Any] | None = None
"""Set by the worker, where the I/O thread is a green one: every green thread may then touch pika, which never waits, and what
is to be run on the I/O thread is run in the event loop's next round, without waking that thread by a system call."""


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
        self._probing = False
        self.blocked = False
        self._connected, self._in_alarm = CONNECTED.labels(name), BLOCKED.labels(name)
        self._settled_by = 0.0
        self._watched = liveness.Watched(f"the I/O thread amqp-{name}")
        self._thread = threading.Thread(target=self._watched.run, args=(self._main,), name=f"amqp-{name}", daemon=True)

    def start(self) -> "Broker":
        self._thread.start()
        return self

    def close(self) -> None:
        """Close the connection and end the I/O thread. Roles are told."""
        self._closing = True
        self._watched.finish()
        self.run(self._close)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    def run(self, function: Callable[[], None]) -> None:
        """Have ``function`` called on the I/O thread soon. Never waits; may be called from any thread."""
        self._work.append(function)
        if not self._woken:
            self._woken = True
            (call_soon or self._loop.add_callback_threadsafe)(self._do_work)

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        """On the I/O thread only: call ``function`` after that time."""
        if call_soon is None:
            self._loop.call_later(seconds, function)
        else:  # other green threads stand for it, and it may be waiting for something that comes later
            self._loop.add_callback_threadsafe(partial(self._loop.call_later, seconds, function))

    def reconnect(self, reason: str) -> None:
        """On the I/O thread only: give up this connection, because it no longer does what it should."""
        connection = self._connection
        if connection is not None and connection.is_open:
            log.warning("broker.given_up", reason=reason)
            # An orderly close would wait for an answer of a broker that does not answer.
            connection.give_up(reason)

    def probe(self, channel: Any) -> None:
        """On the I/O thread only: give the connection up when the broker does not answer within PROBE_SECONDS. A broker that
        is stopped, or behind a dead network, keeps its connections; the heartbeat finds that out a minute later."""
        if self._probing or not channel.is_open:
            return
        self._probing = True
        connection = self._connection
        answers: list[Any] = []
        channel.basic_qos(prefetch_count=0, callback=answers.append)

        def check() -> None:
            self._probing = False
            if not answers and self._connection is connection:
                self.reconnect("the broker does not answer")

        self._loop.call_later(PROBE_SECONDS, check)

    def _do_work(self) -> None:
        """Run what was handed over meanwhile: one wake-up and one system call for all of it."""
        self._woken = False
        connection = self._connection
        if connection is not None:
            connection.gather()
        while self._work:
            function = self._work.popleft()
            try:
                function()
            except AMQPError as error:
                # The connection is just going down; whoever waits for an answer is told when it is gone.
                log.warning("broker.not_sent", reason=reason_of(error))
            except Exception:
                # Raised further, it would be the end of the I/O thread's loop, or of what else was handed over.
                log.exception("broker.callback_failed")
                self._loop.call_later(0, self._start_anew)
        if connection is not None and not connection.send_gathered():
            self._loop.add_callback_threadsafe(self._do_work)

    def _main(self) -> None:
        self._beat()
        self._connect_in(0)
        while not self._closing:
            try:
                self._loop.start()
            except Exception:
                log.exception("broker.loop_failed")
                self._start_anew()

    def _start_anew(self) -> None:
        """After a mistake in a callback nobody knows what state the connection is in."""
        connection, self._connection = self._connection, None
        self._connected.set(0)
        try:
            if connection is not None and connection.is_open:
                connection.give_up("a callback failed")
                return
        except Exception:
            log.exception("broker.not_given_up")
        self._connect_in(LONGEST_PAUSE)

    def _beat(self) -> None:
        """The loop comes round. Without a connection that is no progress, unless one is about to be made."""
        self._loop.call_later(BEAT_SECONDS, self._beat)
        if self._connection is not None or time.monotonic() < self._settled_by:
            self._watched.beat()

    def _connect_in(self, seconds: float) -> None:
        self._settled_by = time.monotonic() + seconds + LONGEST_ATTEMPT
        self._loop.call_later(seconds, self._connect)

    def _connect(self) -> None:
        if self._closing:
            self._loop.stop()
            return
        _Connection(
            self._parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_lost,
            on_close_callback=self._on_lost,
            custom_ioloop=self._loop,
        )

    def _on_open(self, connection: Any) -> None:
        self._connection, self._pause, self.blocked = connection, FIRST_PAUSE, False
        self._connected.set(1)
        connection.add_on_connection_blocked_callback(lambda *_: self._set_blocked(True))
        connection.add_on_connection_unblocked_callback(lambda *_: self._set_blocked(False))
        for role in self._roles:
            connection.channel(on_open_callback=self._opened(role))

    def _opened(self, role: Role) -> Callable[[Any], None]:
        def opened(channel: Any) -> None:
            channel.add_on_close_callback(lambda _channel, reason: self._on_channel_closed(reason))
            # Its queue was deleted: it is declared again with a new connection, as after a broker that was wiped.
            channel.add_on_cancel_callback(lambda _frame: self.reconnect("the broker ended a subscription"))
            role.opened(channel)

        return opened

    def _on_channel_closed(self, reason: Exception) -> None:
        if self._connection is not None and self._connection.is_open and not self._closing:
            log.error("broker.channel_closed", reason=reason_of(reason))
            self._connection.close()

    def _set_blocked(self, blocked: bool) -> None:
        self.blocked = blocked
        self._in_alarm.set(blocked)
        log.warning("broker.blocked" if blocked else "broker.unblocked")

    def _on_lost(self, _connection: Any, reason: Any) -> None:
        self._connection, self.blocked = None, False
        self._connected.set(0)
        self._in_alarm.set(0)
        words = reason_of(reason)
        for role in self._roles:
            role.lost(words)
        if self._closing:
            self._loop.stop()
            return
        pause = self._pause * random.uniform(0.8, 1.2)
        log.warning("broker.lost", reason=words, again_in_seconds=round(pause, 2))
        self._pause = min(LONGEST_PAUSE, self._pause * 2)
        self._connect_in(pause)

    def _close(self) -> None:
        if self._connection is not None and self._connection.is_open:
            self._connection.close()
        else:
            self._loop.stop()


class _Connection(pika.SelectConnection):  # type: ignore[misc]
    """Sends with one system call what belongs together. pika makes one of every frame, three for a message, and a system
    call is the dearest part of a call from service to service."""

    _gathered: list[bytes] | None = None

    def gather(self) -> None:
        """Keep back what is published from now on."""
        self._gathered = []

    def send_gathered(self) -> bool:
        """Send it. False when the socket does not take everything now: then the loop has to look at it again."""
        gathered, self._gathered = self._gathered, None
        if gathered and self._transport is not None:
            super()._output_marshaled_frames([b"".join(gathered)])
            self._transport._on_socket_writable()
            return self._transport is None or self._transport.get_write_buffer_size() == 0
        return True

    def give_up(self, reason: str) -> None:
        """End it without waiting for the broker's part in it."""
        self._terminate_stream(AMQPError(reason))

    def _output_marshaled_frames(self, marshaled_frames: Sequence[bytes]) -> None:
        if self._gathered is None:
            super()._output_marshaled_frames([b"".join(marshaled_frames)])
        else:
            self._gathered += marshaled_frames


def parameters(amqp_url: str, name: str) -> pika.URLParameters:
    """Connection parameters with our heartbeat and time-outs, and a name for the broker's list of connections."""
    chosen = pika.URLParameters(amqp_url)
    chosen.heartbeat = HEARTBEAT_SECONDS
    chosen.socket_timeout = 5
    chosen.stack_timeout = 10
    chosen.client_properties = {"connection_name": name}
    return chosen


def user_of(amqp_url: str) -> str:
    """The name of the broker's user in a URL."""
    return str(pika.URLParameters(amqp_url).credentials.username)


def reason_of(error: BaseException) -> str:
    """Return why a connection failed or was lost, in words for an operator: pika hides the cause in other exceptions, most of
    which have no text. Never empty."""
    causes = list(_causes(error))
    for cause in causes:
        for kinds, words in _WORDS:
            if isinstance(cause, kinds):
                match = _SAID_BY_BROKER.search(str(cause))
                return f"{words} ({match[1]})" if match else words
    innermost = causes[-1]
    if isinstance(innermost, socket.gaierror):
        return f"the host's name cannot be resolved ({innermost.strerror})"
    if isinstance(innermost, ssl.SSLError):
        return f"TLS failed: {innermost.reason or innermost}"
    if isinstance(innermost, ConnectionClosed):
        return f"{innermost.reply_text} ({innermost.reply_code})"
    return str(innermost) or type(innermost).__name__


_SAID_BY_BROKER = re.compile(r"ConnectionClosedByBroker: \(\d+\) '(.*)'")
_WORDS: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((ProbableAuthenticationError, AuthenticationError), "authentication failed"),
    ((ProbableAccessDeniedError,), "access to the virtual host was refused"),
    ((IncompatibleProtocolError,), "the connection was closed before anything was said in AMQP"),
    ((ConnectionRefusedError,), "connection refused"),
    ((AMQPConnectorStackTimeout, ConnectionOpenAborted, TimeoutError), "no answer in time"),
)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and those within it, from the outside in; of several attempts the last."""
    yield error
    within = [*getattr(error, "exceptions", ()), getattr(error, "exception", None), *error.args, error.__cause__]
    inner = [cause for cause in within if isinstance(cause, BaseException)]
    if inner:
        yield from _causes(inner[-1])
