"""Uvicorn as we run it: it does not wait for ever, says in JSON that it is full, and ends in good order.

Connections cost file descriptors. Where a process has none left, uvloop resets every new connection, and databases and files go
without as well. So no more are taken than there is room for: above the limit a request is answered 503 and its connection
closed, for which some room is kept, and when that is taken, too, who comes next waits in the system's queue until somebody
leaves.
"""

import asyncio
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from contracts.errors import ServiceError
from contracts.runtime.clock import uuid7
from contracts.runtime.monitoring import observe
from services.gateway.http import errors
from services.gateway.http.answers.problem_documents import ProblemDocuments
from services.gateway.settings import Settings

log = observe.logger(__name__)

KEEP_ALIVE_SECONDS = 75
REFUSED_SECONDS = 1.0
"""The time that a connection above the limit gets to send its request, which is all it is there for; and for how long what a
client still sends is thrown away after it was refused: closing on it at once would take the answer away from it."""

HEAD_LIMIT = 32 * 1024
"""Bytes of a request's head. The parser keeps a head until it is whole, and joins a long line anew with each piece."""

QUEUE_LENGTH = 2048
_AT_ONCE = 100
_PAUSE_SECONDS = 0.5
_DATE_SECONDS = 1.0


def server(application: Any, settings: Settings) -> "Server":
    """A server of the application on the settings' address."""
    room = room_for(settings)
    limits = {"room": room, "header_timeout": settings.header_timeout, "base_url": settings.base_url}
    return Server(
        uvicorn.Config(
            application,
            host=settings.host,
            port=settings.port,
            http=type("Protocol", (_Protocol,), limits),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            backlog=QUEUE_LENGTH,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(settings.drain_seconds),
        ),
        room,
    )


@dataclass
class Room:
    """``limit`` connections are served; ``spare`` more are taken to be told that there are too many."""

    limit: int
    spare: int
    connections: int = 0
    on_leave: Callable[[], None] = lambda: None
    on_request: Callable[[], None] = lambda: None

    @property
    def full(self) -> bool:
        return self.connections >= self.limit + self.spare

    def leave(self) -> None:
        """A connection has ended."""
        self.connections -= 1
        self.on_leave()


def room_for(settings: Settings) -> Room:
    """The limit that was set, or less where the process has too few file descriptors for it."""
    threads = settings.page_threads + settings.fetch_threads + settings.work_threads
    # A connection to SQLite is three files; a thread may have one file and one connection to elsewhere open.
    elsewhere = len(list(Path("/proc/self/fd").iterdir())) + 3 * 2 * settings.database_pool_size + 2 * threads + 10
    available = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - elsewhere
    spare = max(8, min(200, available // 5))
    room = Room(max(8, min(settings.max_connections, available - spare)), spare)
    if room.limit < settings.max_connections:
        log.warning("gateway.fewer_connections", wanted=settings.max_connections, possible=room.limit, hint="ulimit -n")
    return room


class Server(uvicorn.Server):
    """Uvicorn's own raises the signal again after it has stopped in good order, and the process would end by it; it takes
    connections without end; and it looks ten times a second whether it is to stop."""

    def __init__(self, config: uvicorn.Config, room: Room) -> None:
        super().__init__(config)
        self._room = room
        self._to_stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_shutdown: Callable[[], None] = lambda: None
        """Called when it is to stop, before it waits for what is under way."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()
        try:
            listening = sockets or await _listening(self.config.host, self.config.port)
        except OSError:
            log.exception("gateway.cannot_listen", host=self.config.host, port=self.config.port)
            sys.exit(1)

        def protocol() -> asyncio.Protocol:
            instance: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return instance

        self.servers: list[Any] = [_Door(loop, listening, protocol, self._room)]
        self.started = True

    def call_on_request(self, function: Callable[[], None]) -> None:
        """Have ``function`` called whenever a request begins."""
        self._room.on_request = function

    async def main_loop(self) -> None:
        """Wait until it is to stop. The time that answers tell (``Date``) is written anew each second."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._to_stop.wait(), _DATE_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._to_stop.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.on_shutdown()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


async def _listening(host: str, port: int) -> list[socket.socket]:
    addresses = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return [
        socket.create_server(address[:2], family=family, backlog=QUEUE_LENGTH)
        for family, _, _, _, address in dict.fromkeys(addresses)
    ]


class _Door:
    """Takes connections while there is room. The others wait in the system's queue."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: list[socket.socket],
        protocol: Callable[[], asyncio.Protocol],
        room: Room,
    ) -> None:
        self.sockets = sockets
        self._loop = loop
        self._protocol = protocol
        self._room = room
        self._open = False
        self._closed = False
        self._beginning: set[asyncio.Task[None]] = set()
        for listener in sockets:
            listener.setblocking(False)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room.on_leave = self._let_in
        self._let_in()

    def close(self) -> None:
        """Take no more."""
        self._shut()
        self._closed = True
        for listener in self.sockets:
            listener.close()

    async def wait_closed(self) -> None:
        """Nothing is left to wait for."""

    def _let_in(self) -> None:
        if not self._open and not self._closed and not self._room.full:
            self._open = True
            for listener in self.sockets:
                self._loop.add_reader(listener, self._take, listener)

    def _shut(self) -> None:
        if self._open:
            self._open = False
            for listener in self.sockets:
                self._loop.remove_reader(listener)

    def _take(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            if self._room.full:
                self._shut()
                return
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptors, or no memory: the connection stays in the queue
                log.exception("gateway.cannot_accept")
                self._shut()
                self._loop.call_later(_PAUSE_SECONDS, self._let_in)
                return
            self._room.connections += 1
            task = self._loop.create_task(self._begin(connection))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError as error:
            log.info("gateway.connection_failed", reason=str(error))
            connection.close()
            self._room.leave()


class _Protocol(HttpToolsProtocol):
    """One connection. The head of a request has so long to arrive and may be so large; above so many connections a request
    gets 503."""

    room: Room
    header_timeout: float
    base_url: str
    _head_is_due: asyncio.TimerHandle | None = None
    _in_head = False
    _without_body = 0
    """Bytes that the parser was given since the last head, message or piece of a body was whole: those of a head, a trailer,
    or what is written beside the size of a chunk."""
    _refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.room.limit:
            self.app = partial(_full, base_url=self.base_url)
            self.header_timeout = min(self.header_timeout, REFUSED_SECONDS)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)
        self.room.leave()

    def on_message_begin(self) -> None:
        self._in_head = True
        self.room.on_request()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Else it is a trailer, behind the body: no header of a request that is being answered already.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._without_body = 0
        self._head_came()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._without_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._without_body = 0
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._refused and not self.transport.is_closing():
            piece, rest = rest[: HEAD_LIMIT - self._without_body], rest[HEAD_LIMIT - self._without_body :]
            if not piece:
                self._refuse_head()
                return
            self._without_body += len(piece)
            super().data_received(piece)  # type: ignore[arg-type]
        if self._in_head and self._head_is_due is None:
            self._expect_head()

    def _refuse_head(self) -> None:
        """Answer 431 and close the connection. What still arrives until then is thrown away."""
        self._refused = True
        self._in_head = False
        self._head_came()
        log.info("gateway.head_refused", client=self.client[0] if self.client else None)
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # an answer is on its way, which this one must not be mixed into
            return
        self._unset_keepalive_if_required()
        self.transport.write(_too_large_a_head())
        self.transport.write_eof()
        self._head_is_due = self.loop.call_later(REFUSED_SECONDS, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the form that all errors have."""
        self.transport.write(_refusal(ServiceError("bad_request", msg)))
        self.transport.close()

    def _expect_head(self) -> None:
        self._head_is_due = self.loop.call_later(self.header_timeout, self._give_up)

    def _head_came(self) -> None:
        if self._head_is_due is not None:
            self._head_is_due.cancel()
            self._head_is_due = None

    def _give_up(self) -> None:
        self._head_is_due = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_head()  # the request before it is still being answered
        elif not self.transport.is_closing():
            self.transport.close()


def _too_large_a_head() -> bytes:
    return _refusal(ServiceError("head_too_large", f"The head of the request is larger than {HEAD_LIMIT // 1024} KB."))


def _refusal(error: ServiceError) -> bytes:
    """Return the whole answer to a request of which nothing is known yet; the connection is closed after it."""
    identifier = uuid7()
    status, more, body = errors.answer(error, identifier)
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), "X-Request-Id": identifier}
    headers |= {**more, "Connection": "close"}
    lines = "".join(f"{name.lower()}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[status] + lines.encode() + b"\r\n" + body


async def _full(scope: Any, receive: Any, send: Any, *, base_url: str) -> None:
    # What lies there unread when a connection is closed makes a reset of it.
    with suppress(TimeoutError):
        async with asyncio.timeout(REFUSED_SECONDS):
            while (await receive()).get("more_body"):
                pass
    identifier = uuid7()
    refusal = ServiceError("unavailable", "Too many connections. Try again in a moment.")
    status, more, body = errors.answer(refusal, identifier)
    headers = [
        (b"x-request-id", identifier.encode()),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *((name.lower().encode(), value.encode()) for name, value in more.items()),
    ]
    send = ProblemDocuments(send, scope["headers"], identifier, base_url).send
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
