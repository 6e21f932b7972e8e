"""Calls to services from plain threads and from asyncio: nameko's RPC protocol over pika.

A call either gets its answer, or a ServiceError: the service's own refusal, or ``unavailable``. That comes within 2 s when
nobody serves it, or when the broker is away, silent, or takes nothing; else when the answer takes longer than the call may.
After ``unavailable`` the call may have been executed or not; write calls carry a ``request_id`` and can be repeated.

An answer that is late is no reason to give up: some calls take a minute. It is a reason to look: does the broker answer, and
does anybody take the service's requests? A process that hangs still seems to take them. Its first callers wait for as long as
they may; from then on, until anything is heard from that service, nobody waits for longer than 2 s.
"""

import asyncio
import itertools
import json
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Container, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import pika
from pika.exceptions import ChannelClosedByBroker
from prometheus_client import Counter, Histogram
from pydantic import BaseModel

from contracts.errors import ServiceError
from contracts.rpc import Rpc
from contracts.rpc.callers import may_answer, service_of
from contracts.runtime.bus import caller
from contracts.runtime.bus.broker import Broker, reason_of, user_of
from contracts.runtime.bus.declare import declare_exchange, may_declare
from contracts.runtime.bus.presence import Attendance, Presence
from contracts.runtime.bus.topology import (
    CALLER_HEADER,
    DEADLINE_HEADER,
    HINT_EXCHANGE,
    REQUEST_ID_HEADER,
    RPC_EXCHANGE,
    TIMEOUT_HEADER,
    exclusive_queue_name,
)
from contracts.runtime.monitoring import observe, tracing

log = observe.logger(__name__)

Q = TypeVar("Q", bound=BaseModel)
R = TypeVar("R")


@dataclass(slots=True)
class _Call:
    """A call without an answer yet. Times are monotonic."""

    service: str
    resolve: Callable[[Any], None]
    began: float
    ends: float


CONNECTION_PATIENCE = 1.0
"""Seconds that a call waits for a connection that is just being made again."""

LATE_SECONDS = 0.75
"""An answer that takes longer is a reason to look whether one can come."""

LOOK_EVERY_SECONDS = 0.25
BROKER_PATIENCE = 0.6
"""Seconds that the broker may take to say who is there."""

QUIET_PATIENCE = 1.5
"""Seconds that a call waits for a service of which nothing was heard for as long as some other call could wait."""

_PING_EVERY_SECONDS = 1.0

DURATION = Histogram("countersign_rpc_client_seconds", "Calls to services, as the caller sees them", ["call"])
FAILED = Counter("countersign_rpc_client_failures_total", "Calls without an answer", ["call", "reason"])


class RpcClient:
    """Thread-safe. Make one per process, after any fork; the connection is opened in the background."""

    def __init__(self, amqp_url: str, *, name: str = "client", loads: Callable[[bytes], Any] = json.loads) -> None:
        """``loads`` reads the answers: a faster one, where the process has one."""
        self._loads = loads
        self._pending: dict[str, _Call] = {}
        self._unsent: deque[tuple[float, str, Callable[[], None]]] = deque()
        self._mailboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Mailbox] = weakref.WeakKeyDictionary()
        self._hints: set[tuple[str, str]] = set()
        self._numbers = itertools.count()
        self._channel: Any = None
        self._sending: Any = None
        """The channel by which requests leave: that of the replies, until it seems to lose them."""
        self._presence = Presence()
        self._looking = False
        self._asked_at: dict[str, float] = {}
        self._met: set[str] = set()
        """Services that something was sent to by the present channel. One that publishes for the first time to a queue whose
        leader has just died is of no use for it until that node is back: RabbitMQ 3.10 drops all that it publishes there. So
        nothing is sent before the broker has found somebody there, which it does not while there is no leader."""
        self._absent: dict[str, dict[str, _Call]] = {}
        self._held: dict[str, dict[str, Callable[[], None]]] = {}
        self._heard: dict[str, float] = {}
        self._quiet: dict[str, float] = {}
        self._reply_to = ""
        self._user = user_of(amqp_url)
        self._broker = Broker(amqp_url, [self], name=name).start()

    def call(self, rpc: Rpc[Q, R], request: Q) -> R:
        """The response model. Waits at most ``rpc.timeout`` seconds."""
        return rpc.decode(self.call_json(rpc, request))

    def call_json(self, rpc: Rpc[Q, R], request: Q) -> Any:
        """The response as plain JSON values, not validated again."""
        started = time.perf_counter()
        future: Future[Any] = Future()
        with _span(rpc):
            number = self._send(rpc, request, lambda outcome: None if future.done() else future.set_result(outcome))
            try:
                outcome = future.result(rpc.timeout)
            except TimeoutError:
                outcome = self._timed_out(rpc)
            finally:
                self._pending.pop(number, None)
            return _answer(rpc, outcome, started, self._loads)

    async def call_async(self, rpc: Rpc[Q, R], request: Q) -> R:
        """As ``call``, for asyncio."""
        return rpc.decode(await self.call_json_async(rpc, request))

    async def call_json_async(self, rpc: Rpc[Q, R], request: Q) -> Any:
        """As ``call_json``, for asyncio."""
        started = time.perf_counter()
        loop = asyncio.get_running_loop()
        if (mailbox := self._mailboxes.get(loop)) is None:
            mailbox = self._mailboxes[loop] = _Mailbox(loop)
        future: asyncio.Future[Any] = loop.create_future()
        with _span(rpc):
            number = self._send(rpc, request, lambda outcome: mailbox.post(future, outcome))
            late = loop.call_later(rpc.timeout, _resolve, future, None)
            try:
                outcome = await future
            finally:
                late.cancel()
                self._pending.pop(number, None)
            return _answer(rpc, self._timed_out(rpc) if outcome is None else outcome, started, self._loads)

    def hint(self, service: str, tables: Iterable[str]) -> None:
        """Tell the service's background process to look at these tables now. Never waits, never fails, may be lost."""
        self._hints.update((service, table) for table in tables)
        self._broker.run(self._send_hints)

    @property
    def connected(self) -> bool:
        """Is there a usable connection at this moment?"""
        return self._channel is not None and not self._broker.blocked

    def close(self) -> None:
        """Calls under way fail; the I/O thread ends."""
        self._broker.close()

    def _timed_out(self, rpc: Rpc[Any, Any]) -> "_NoAnswer":
        """Was it the service, or has the broker gone silent?"""
        began = time.monotonic() - rpc.timeout

        def doubt() -> None:
            if self._channel is not None:
                self._broker.probe(self._channel)
                if self._heard.get(rpc.service, 0.0) < began and rpc.service not in self._quiet:
                    self._quiet[rpc.service] = 0.0
                    self._send_by_another_channel()

        self._broker.run(doubt)
        return _unavailable(f"The service {rpc.service} did not answer in time.", "timeout")

    def _send(self, rpc: Rpc[Any, Any], request: BaseModel, resolve: Callable[[Any], None]) -> str:
        number = f"{rpc.service}.{next(self._numbers):x}"
        body = json.dumps({"args": [], "kwargs": request.model_dump(mode="json", exclude_unset=True)}).encode()
        headers = {DEADLINE_HEADER: f"{time.time() + rpc.timeout:.3f}", TIMEOUT_HEADER: f"{rpc.timeout:g}"}
        if identifier := observe.request_id():
            headers[REQUEST_ID_HEADER] = identifier
        if asking := caller.current():
            headers[CALLER_HEADER] = asking
        if trace := tracing.traceparent():
            headers[tracing.HEADER] = trace
        began = time.monotonic()
        self._pending[number] = _Call(rpc.service, resolve, began, began + rpc.timeout)

        def publish() -> None:
            properties = pika.BasicProperties(
                content_type="application/json",
                content_encoding="utf-8",
                reply_to=self._reply_to,
                correlation_id=number,
                expiration=str(int(rpc.timeout * 1000)),
                headers=headers,
                user_id=self._user,
            )
            self._sending.basic_publish(RPC_EXCHANGE, f"{rpc.service}.{rpc.method}", body, properties, mandatory=True)

        self._broker.run(lambda: self._publish_when_open(number, publish))
        return number

    # From here on: the I/O thread.

    def _send_hints(self) -> None:
        """One for each table, however many were asked for; without a connection, when it is there."""
        while self._hints and self._channel is not None and not self._broker.blocked:
            service, table = self._hints.pop()
            self._channel.basic_publish(HINT_EXCHANGE, service, table.encode())

    def _publish_when_open(self, number: str, publish: Callable[[], None]) -> None:
        if (call := self._pending.get(number)) is None:
            return
        if not self._looking:
            self._looking = True
            self._broker.call_later(LOOK_EVERY_SECONDS, self._look)
        if self._broker.blocked:
            self._finish(number, _blocked())
        elif self._channel is None:
            self._unsent.append((time.monotonic() + CONNECTION_PATIENCE, number, publish))
            self._broker.call_later(CONNECTION_PATIENCE, self._give_up_unsent)
        elif call.service in self._absent or call.service not in self._met:
            # Not sent before somebody is there to take it.
            self._held.setdefault(call.service, {})[number] = publish
            self._ask_for(call.service)
        else:
            publish()

    def _give_up_unsent(self) -> None:
        while self._unsent and self._unsent[0][0] <= time.monotonic():
            _, number, _ = self._unsent.popleft()
            self._finish(number, _unavailable("The message broker is not available.", "no_broker"))

    def _look(self) -> None:
        """Now and then while calls are under way: can those that are late still be answered?"""
        self._looking = bool(self._pending)
        if not self._looking:
            return
        self._broker.call_later(LOOK_EVERY_SECONDS, self._look)
        moment = time.monotonic()
        late = [item for item in list(self._pending.items()) if item[1].began <= moment - LATE_SECONDS]
        if self._channel is None or not (late or self._held):
            return
        for service in {call.service for _, call in late} | self._held.keys():
            self._ask_for(service)
            if service in self._met:
                self._ping_if_quiet(service)
        silent = any(asked_at <= moment - BROKER_PATIENCE for asked_at in self._asked_at.values())
        if silent:
            self._broker.probe(self._channel)
        for number, call in late:
            if self._broker.blocked:
                self._finish(number, _blocked())
            elif silent:
                self._finish(number, _unavailable("The message broker does not answer.", "silent"))
            elif call.service in self._quiet and call.began <= moment - QUIET_PATIENCE:
                self._finish(number, _unavailable(f"The service {call.service} does not answer.", "quiet"))

    def _ask_for(self, service: str) -> None:
        if service not in self._asked_at:
            self._asked_at[service] = time.monotonic()
            self._presence.ask(service, lambda attendance: self._on_attendance(service, attendance))

    def _on_attendance(self, service: str, attendance: Attendance | None) -> None:
        del self._asked_at[service]
        held = {number: publish for number, publish in self._held.pop(service, {}).items() if number in self._pending}
        if attendance is not None and attendance.consumers == 0:
            if held and service not in self._met and service not in self._absent and not self._any_late(held):
                # Asked again at the next look: what is just starting, or gets a leader, comes within a moment.
                self._held[service] = held
                return
            self._absent.setdefault(service, {})
            for number in [*self._untaken(service, attendance.waiting, held), *held]:
                self._finish(number, _not_running(service))
            return
        self._absent.pop(service, None)
        for publish in held.values():
            self._met.add(service)
            publish()
        self._ping_if_quiet(service)

    def _any_late(self, numbers: Iterable[str]) -> bool:
        since = time.monotonic() - LATE_SECONDS
        pending = (self._pending.get(number) for number in numbers)
        return any(call is not None and call.began <= since for call in pending)

    def _untaken(self, service: str, waiting: float, held: Container[str]) -> list[str]:
        """Calls to a service that takes none any more. One that is being ended in good order still answers what it took; what
        was sent last waits in the queue, and so does what was given up before, until it expires."""
        moment = time.monotonic()
        given_up = self._absent[service]
        for number in [number for number, call in given_up.items() if call.ends <= moment]:
            del given_up[number]
        sent = {number: call for number, call in list(self._pending.items()) if call.service == service}
        calls = sorted((call.began, number) for number, call in (sent | given_up).items() if number not in held)
        untaken = {number for _, number in calls[int(max(0, len(calls) - waiting)) :]}
        late = [number for number in untaken & sent.keys() if sent[number].began <= moment - LATE_SECONDS]
        given_up.update((number, sent[number]) for number in late)
        return late

    def _ping_if_quiet(self, service: str) -> None:
        """Anything it answers shows that it is there again. Not to be answered late: that would be one more to answer."""
        moment = time.monotonic()
        if self._quiet.get(service, moment) > moment - _PING_EVERY_SECONDS:
            return
        self._quiet[service] = moment
        self._met.add(service)
        properties = pika.BasicProperties(
            content_type="application/json",
            content_encoding="utf-8",
            reply_to=self._reply_to,
            correlation_id=f"{service}.ping",
            expiration=str(int(_PING_EVERY_SECONDS * 1000)),
            user_id=self._user,
        )
        self._sending.basic_publish(RPC_EXCHANGE, f"{service}.ping", b'{"args": [], "kwargs": {}}', properties)

    def _send_by_another_channel(self) -> None:
        """Nothing came of a request: perhaps because a leader died between the question who is there and the request."""

        def ready(channel: Any) -> None:
            if self._channel is not None and channel.connection is self._channel.connection:
                channel.add_on_return_callback(self._on_return)
                channel.add_on_close_callback(self._sending_closed)
                before, self._sending = self._sending, channel
                self._met.clear()
                if before is not self._channel and before.is_open:
                    before.close()

        self._channel.connection.channel(on_open_callback=ready)

    def _sending_closed(self, channel: Any, reason: Exception) -> None:
        if channel is self._sending and isinstance(reason, ChannelClosedByBroker):
            self._broker.reconnect(reason_of(reason))

    def opened(self, channel: Any) -> None:
        """The broker connection is there: make a reply queue."""
        queue = exclusive_queue_name("reply", self._user)

        def ready(_frame: Any) -> None:
            self._reply_to, self._channel, self._sending = queue, channel, channel
            while self._unsent:
                _, number, publish = self._unsent.popleft()
                self._publish_when_open(number, publish)
            self._send_hints()

        self._presence.opened(channel.connection)
        channel.add_on_return_callback(self._on_return)
        if may_declare(self._user):
            for exchange in (RPC_EXCHANGE, HINT_EXCHANGE):
                declare_exchange(channel, exchange)
        channel.queue_declare(queue, exclusive=True, auto_delete=True)
        channel.queue_bind(queue, RPC_EXCHANGE, queue)
        channel.basic_consume(queue, self._on_reply, auto_ack=True, callback=ready)

    def lost(self, reason: str) -> None:
        """Every pending call fails at once, except those that were not sent yet and may still be in time."""
        self._presence.lost()
        self._asked_at.clear()
        self._held.clear()
        self._met.clear()
        self._quiet.clear()
        if self._channel is None:
            return
        self._channel = self._sending = None
        unsent = {number for _, number, _ in self._unsent}
        for number in [number for number in self._pending if number not in unsent]:
            self._finish(number, _unavailable("The connection to the message broker was lost.", "lost"))

    def _on_reply(self, _channel: Any, _method: Any, properties: Any, body: bytes) -> None:
        number = properties.correlation_id
        service = number.partition(".")[0]
        if service_of(self._user) is not None and not may_answer(properties.user_id, service):
            log.warning("rpc.reply_refused", service=service, user=properties.user_id)
            return
        self._heard[service] = time.monotonic()
        self._quiet.pop(service, None)
        self._finish(number, body)

    def _on_return(self, _channel: Any, method: Any, properties: Any, _body: bytes) -> None:
        self._finish(properties.correlation_id, _not_running(method.routing_key.partition(".")[0]))

    def _finish(self, number: str, outcome: Any) -> None:
        if (call := self._pending.pop(number, None)) is not None:
            call.resolve(outcome)


class _Mailbox:
    """Carries outcomes into an asyncio loop; a burst of them wakes it once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop_ref = weakref.ref(loop)
        self._items: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._scheduled = False

    def post(self, future: "asyncio.Future[Any]", outcome: Any) -> None:
        self._items.append((future, outcome))
        loop = self._loop_ref()
        if not self._scheduled and loop is not None and not loop.is_closed():
            self._scheduled = True
            loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        while self._items:
            _resolve(*self._items.popleft())


def _resolve(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if not future.done():
        future.set_result(outcome)


class _NoAnswer(ServiceError):
    """``unavailable``, with the reason for the metrics."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__("unavailable", message)
        self.reason = reason


def _unavailable(message: str, reason: str) -> _NoAnswer:
    return _NoAnswer(message, reason)


def _blocked() -> _NoAnswer:
    return _unavailable("The message broker accepts nothing at the moment.", "blocked")


def _not_running(service: str) -> _NoAnswer:
    return _unavailable(f"The service {service} is not running.", "no_service")


def _span(rpc: Rpc[Any, Any]) -> tracing.Span:
    """Return the caller's span of a call; a refusal is a failure of it, as OpenTelemetry's conventions for RPC have it."""
    if not tracing.on():
        return tracing.NOTHING
    method = f"{rpc.service}/{rpc.method}"
    return tracing.span(method, tracing.CLIENT, {"rpc.system.name": "nameko", "rpc.method": method})


def _answer(rpc: Rpc[Any, Any], outcome: Any, started: float, loads: Callable[[bytes], Any]) -> Any:
    call = f"{rpc.service}.{rpc.method}"
    DURATION.labels(call).observe(time.perf_counter() - started)
    if isinstance(outcome, _NoAnswer):
        FAILED.labels(call, outcome.reason).inc()
        raise outcome
    reply = loads(outcome)
    if error := reply["error"]:
        raise refusal(call, error)
    return reply["result"]


def refusal(call: str, error: dict[str, Any]) -> ServiceError:
    """The exception that came over the wire: our own, or one of nameko's or a bug's, whose text is not for users."""
    if error.get("exc_type") == "ServiceError" and len(error.get("exc_args", ())) == 3:
        return ServiceError(*error["exc_args"])
    if error.get("exc_type") == "MethodNotFound":
        return ServiceError("unavailable", f"{call} is not served by the version that is running")
    observe.logger(__name__).error("rpc.strange_error", call=call, error_type=error.get("exc_type"))
    return ServiceError("internal", "Internal error")


_shared: dict[str, RpcClient] = {}
_shared_lock = threading.Lock()


def shared_client(amqp_url: str) -> RpcClient:
    """The process's client for this broker: background loops of several services share one connection."""
    with _shared_lock:
        if amqp_url not in _shared:
            _shared[amqp_url] = RpcClient(amqp_url, name="background")
        return _shared[amqp_url]
