"""Uvicorn as we run it: it does not wait for ever, says in JSON that it is full, and ends in good order."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from contracts.errors import ServiceError
from services.gateway import errors
from services.gateway.settings import Settings

KEEP_ALIVE_SECONDS = 75


def server(application: Any, settings: Settings) -> "Server":
    """A server of the application on the settings' address."""
    limits = {"max_connections": settings.max_connections, "header_timeout": settings.header_timeout}
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
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(settings.drain_seconds),
        )
    )


class Server(uvicorn.Server):
    """Uvicorn's own raises the signal again after it has stopped in good order, and the process would end by it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Protocol(HttpToolsProtocol):
    """One connection. The head of a request has so long to arrive; above so many connections a request gets 503."""

    max_connections: int
    header_timeout: float
    _head_is_due: asyncio.TimerHandle | None = None
    _in_head = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self.app = _full
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_came()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and self._head_is_due is None:
            self._expect_head()

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


async def _full(_scope: Any, _receive: Any, send: Any) -> None:
    status, more, body = errors.answer(ServiceError("unavailable", "Too many connections, try again in a moment"), "")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *((name.lower().encode(), value.encode()) for name, value in more.items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
