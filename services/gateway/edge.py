"""The outermost layer: one request id, limits on what comes in, which part of the gateway answers, one line in the log."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from contracts.errors import ServiceError
from contracts.runtime import observe
from contracts.runtime.clock import uuid7
from services.gateway import errors, exchange
from services.gateway.settings import MEGABYTE, Settings

log = observe.logger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api"
_REQUEST_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_SECRET_PATH = re.compile(r"^(/(?:s|d|file)/)([^/]{5})[^/]*")


class Edge:
    """An ASGI application around the API (under ``/api``), the pages, and a few paths of our own."""

    def __init__(
        self,
        settings: Settings,
        *,
        own: Mapping[str, Application],
        pages: Application,
        is_page: Callable[[str], bool],
        api: Application,
    ) -> None:
        self._settings = settings
        self._own = own
        self._pages = pages
        self._is_page = is_page
        self._api = api
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        identifier = _given_request_id(scope) or uuid7()
        with observe.request(identifier):
            scope[exchange.KEY] = exchange.Exchange(identifier)
            await self._serve(scope, receive, send, identifier)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, identifier: str) -> None:
        began = time.perf_counter()
        answered: dict[str, Any] = {"status": 0, "bytes": 0}
        body = _Body(self, scope, receive)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered["status"] = message["status"]
                message["headers"] = [*message.get("headers", []), *_headers(identifier)]
            else:
                answered["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            self._check(scope)
            await self._target(scope)(scope, body.receive, sending)
        except Exception as error:
            if answered["status"]:
                raise
            await _answer_error(sending, errors.as_service_error(error), identifier)
        finally:
            self._in_flight -= body.counted
            log.info(
                "http.handled",
                method=scope["method"],
                path=_SECRET_PATH.sub(r"\1\2...", scope["path"]),
                operation=exchange.of(scope).operation or None,
                status=answered["status"],
                bytes_out=answered["bytes"],
                duration_ms=round((time.perf_counter() - began) * 1000, 2),
            )

    def _target(self, scope: Scope) -> Application:
        path: str = scope["path"]
        if (own := self._own.get(path)) is not None:
            return own
        if path.startswith("/docs/"):
            return self._own["/docs"]
        if self._is_page(path):
            return self._pages
        _as_api(scope, path)
        return self._api

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
            raise ServiceError("unsupported_media_type", "Send the body without Content-Encoding")
        length = headers.get(b"content-length", b"")
        if length.isdigit():
            self.check_size(int(length))

    def check_size(self, size: int) -> None:
        """Refuse a body of that many bytes when it is over the limit of one request."""
        limit = self._settings.max_request_size
        if size > limit:
            raise ServiceError("too_large", f"A request may have at most {limit / MEGABYTE:g} MB")

    def take(self, size: int) -> None:
        """Count bytes that are in memory now; ``unavailable`` when all requests together have too many."""
        self._in_flight += size
        if self._in_flight > self._settings.max_bodies_in_flight:
            raise ServiceError("unavailable", "Too many large requests at once, try again in a moment")

    @property
    def patience(self) -> float:
        """Seconds that a client may be silent in the middle of its body."""
        return self._settings.body_timeout


class _Body:
    """Receives the request's body, counted and with patience for so long."""

    def __init__(self, edge: Edge, scope: Scope, receive: Receive) -> None:
        self._edge = edge
        self._receive = receive
        self._complete = False
        self._has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        self.counted = 0

    async def receive(self) -> Message:
        if self._complete or not self._has_body:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._edge.patience)
        except TimeoutError:
            raise ServiceError("timeout", "The request's body did not arrive in time") from None
        size = len(message.get("body", b""))
        self.counted += size
        self._edge.take(size)
        self._edge.check_size(self.counted)
        self._complete = not message.get("more_body", False)
        return message


def _as_api(scope: Scope, path: str) -> None:
    """Both path forms lead to the same operation; PATCH is PUT; a body is JSON whatever it says, except files."""
    if path != API and not path.startswith(API + "/"):
        path = API + path
    path = path.rstrip("/") if path.count("/") > 1 else path
    scope["path"] = path
    scope["raw_path"] = path.encode("utf-8", "surrogateescape")
    if scope["method"] == "PATCH":
        scope["method"] = "PUT"
    if path != "/api/attachments":
        kept = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
        scope["headers"] = [*kept, (b"content-type", b"application/json")]


def _given_request_id(scope: Scope) -> str | None:
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else None


def _headers(identifier: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-request-id", identifier.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    ]


async def _answer_error(send: Send, error: ServiceError, identifier: str) -> None:
    status, more, body = errors.answer(error, identifier)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
