"""The outermost layer: one request id, limits on what comes in, which part of the gateway answers, one line in the log."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from prometheus_client import Gauge, Histogram

from contracts.errors import ServiceError
from contracts.runtime.clock import uuid7
from contracts.runtime.monitoring import observe, tracing
from services.gateway.http import errors
from services.gateway.http.answers.cross_origin import CrossOrigin
from services.gateway.http.answers.deprecation import Headers
from services.gateway.http.answers.entity_tags import Tagged
from services.gateway.http.answers.problem_documents import ProblemDocuments
from services.gateway.http.encodings import Encoding
from services.gateway.http.exchange import KEY, Exchange, Stream, exchange_of
from services.gateway.settings import MEGABYTE, Settings

log = observe.logger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api"
AGENTS = "/mcp"
"""Where agents are answered."""
METHODS_OF_AGENTS = ("POST", "OPTIONS")
API_VERSION = "2026-11-29"
"""The day since which the interface is as it is: ``docs/api-versions.md`` says what has changed with each."""
TAGGED_ENDPOINTS = frozenset(f"{prefix}/{name}.json" for prefix in ("", API) for name in ("openapi", "openapi-3.1"))
"""Endpoints of our own whose answers have an entity tag, as the API's have."""
FORM_PATHS = frozenset({"/api/attachments"})
"""Paths under ``/api`` that take a form with a file instead of JSON, from anybody."""
TABLE_PATHS = frozenset({"/api/submissions/batch"})
"""Paths under ``/api`` that take a table of rows, or a form with one."""

DURATION = Histogram("countersign_http_seconds", "HTTP requests", ["operation", "status"])
IN_FLIGHT = Gauge("countersign_http_body_bytes", "Bytes of request bodies that are in memory")

_OF_ENDPOINTS = ("GET", "HEAD", "OPTIONS")
_LONGEST_PATH = 2000
_SERVER_ERROR = 500
_SLOWEST = 8 * 1024  # bytes a second that a body must arrive with on average, once the first seconds are over
_FORM_OVERHEAD = 64 * 1024
_TABLE_OVERHEAD = MEGABYTE
_PAGE_OVERHEAD = 2 * MEGABYTE
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_SECRET_PATH = re.compile(r"^(/(?:s|d|e|h|p|file|preview|prepared)/)([^/]{5})[^/]*")


class Edge:
    """An ASGI application around the API (under ``/api``), the pages, and a few paths of our own."""

    def __init__(
        self,
        settings: Settings,
        *,
        endpoints: Mapping[str, Application],
        pages: Application,
        is_page: Callable[[str], bool],
        api: Application,
        methods: Callable[[str], list[str]],
        agents: Application | None = None,
        routes: Mapping[str, str] | None = None,
        deprecated: Mapping[str, Headers] | None = None,
    ) -> None:
        """``methods`` tells which ones a path of the API has; ``agents`` is what answers them; ``routes`` has the path of each
        operation, with names for what is different each time; ``deprecated`` has what answers of those operations say that
        are."""
        self._settings = settings
        self._endpoints = endpoints
        self._pages = pages
        self._is_page = is_page
        self._api = api
        self._methods = methods
        self._agents = agents
        self._routes = routes or {}
        self._deprecated = deprecated or {}
        self._cross_origin = CrossOrigin(settings.cors_origin_list) if settings.cors_origin_list else None
        self._in_flight = _Memory(settings.max_bodies_in_flight)
        # What needs no key gets half, so that strangers cannot keep the callers out.
        self._of_strangers = _Memory(settings.max_bodies_in_flight // 2, self._in_flight)
        self._common = _common_headers(secure=settings.base_url.startswith("https://"))
        self._common_of_api = [*self._common, (b"api-version", API_VERSION.encode())]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        identifier = _request_id_of(scope) or uuid7()
        with observe.request(identifier), self._span(scope) as span:
            scope[KEY] = Exchange(identifier)
            await self._serve(scope, receive, send, span)

    def _span(self, scope: Scope) -> tracing.Span:
        """Return the span of the request; probes, and the few other paths of our own, are no news."""
        if not tracing.on() or scope["path"] in self._endpoints:
            return tracing.NOTHING
        trusted = self._settings.trace_sampling_by_callers
        return tracing.answering(scope["method"], scope["headers"], trusted=trusted)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, span: tracing.Span) -> None:
        began = time.perf_counter()
        exchange = exchange_of(scope)
        is_page = self._is_page(scope["path"])
        common = self._common if is_page else self._common_of_api
        written = _Written(
            send,
            (b"x-request-id", exchange.request_id.encode()),
            common,
            lambda: self._deprecated.get(exchange.operation, ()),
        )
        outside = written.send
        if self._cross_origin is not None and not is_page:
            outside = self._cross_origin.sending(outside, scope)
        body = _Body(receive, scope["headers"], self._settings, self._in_flight)
        # Connexion rewrites neither, but what is logged is what was asked for.
        method, path = scope["method"], scope["path"]
        try:
            encoding = Encoding(outside, scope["headers"], method)
            await self._answer(scope, body, self._problems(encoding.send, scope).send)
        except Exception as error:
            if written.status:
                raise
            problems = self._problems(outside, scope)
            await _answer_error(problems.send, errors.as_service_error(error), exchange.request_id)
        finally:
            body.forget()
            duration = time.perf_counter() - began
            # A stream lasts as long as it may; how soon it began is what tells of us.
            seconds = written.began - began if isinstance(exchange.answer, Stream) and written.began else duration
            DURATION.labels(exchange.operation or exchange.page or "other", written.status).observe(seconds)
            self._tell(span, method, exchange.operation, written.status)
            log.info(
                "http.handled",
                method=method,
                path=_SECRET_PATH.sub(r"\1\2...", path[:_LONGEST_PATH]),
                operation=exchange.operation or None,
                user_id=exchange.actor.user_id if exchange.actor else None,
                key_id=exchange.key.id if exchange.key else None,
                status=written.status,
                bytes_in=body.counted,
                bytes_out=written.bytes,
                duration_ms=round(duration * 1000, 2),
            )

    def _tell(self, span: tracing.Span, method: str, operation: str, status: int) -> None:
        """Note in the span what became of the request. The route stands for the path, in which there are links and ids."""
        if (route := self._routes.get(operation)) is not None:
            span.rename(f"{method} {route}")
            span.set({"http.route": route, "countersign.operation": operation})
        span.set({"http.response.status_code": status or None})
        if status >= _SERVER_ERROR or not status:
            span.fail(str(status or "disconnected"))

    def _problems(self, send: Send, scope: Scope) -> ProblemDocuments:
        return ProblemDocuments(send, scope["headers"], exchange_of(scope).request_id, self._settings.base_url)

    async def _answer(self, scope: Scope, body: "_Body", send: Send) -> None:
        path: str = scope["path"]
        if len(path) > _LONGEST_PATH:
            raise ServiceError("not_found", "Not found")
        if not scope["query_string"].isascii():
            raise ServiceError("bad_request", "The query string is not valid.")
        if (endpoint := self._endpoints.get("/docs" if path.startswith("/docs/") else path)) is not None:
            await self._answer_endpoint(endpoint, scope, body, send)
        elif path == AGENTS and self._agents is not None:
            await self._answer_agents(self._agents, scope, body, send)
        elif self._is_page(path):
            body.limit, body.memory = self._settings.max_file_size + _PAGE_OVERHEAD, self._of_strangers
            await self._pages(scope, body.receive, send)
        else:
            _as_api(scope, path)
            if scope["method"] == "OPTIONS":
                await self._answer_options(scope, body, send)
                return
            if scope["path"] in FORM_PATHS:
                body.limit, body.memory = self._settings.max_file_size + _FORM_OVERHEAD, self._of_strangers
            elif scope["path"] in TABLE_PATHS:
                body.limit = self._settings.max_batch_size + _TABLE_OVERHEAD
            body.check()
            if scope["method"] in ("GET", "HEAD"):
                send = Tagged(send, scope["headers"]).send
            await self._api(scope, body.receive, send)

    async def _answer_endpoint(self, endpoint: Application, scope: Scope, body: "_Body", send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await self._answer_options(scope, body, send, _OF_ENDPOINTS)
            return
        if scope["method"] not in _OF_ENDPOINTS:
            raise errors.MethodNotAllowed(_OF_ENDPOINTS)
        if scope["path"] in TAGGED_ENDPOINTS:
            send = Tagged(send, scope["headers"]).send
        await endpoint(scope, body.receive, send)

    async def _answer_agents(self, agents: Application, scope: Scope, body: "_Body", send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await self._answer_options(scope, body, send, METHODS_OF_AGENTS)
            return
        body.limit, body.memory = MEGABYTE, self._of_strangers
        body.check()
        await agents(scope, body.receive, send)

    async def _answer_options(self, scope: Scope, body: "_Body", send: Send, methods: Sequence[str] = ()) -> None:
        """Say which methods a path has, or to a browser whether a script of another site may send what it wants to send. Both
        need no key: the interface is public."""
        if self._cross_origin is not None and (answer := self._cross_origin.preflight_answer(scope)) is not None:
            await answer(scope, body.receive, send)
            return
        if not (methods := methods or self._methods(scope["path"])):
            raise ServiceError("not_found", "Not found")
        headers = [(b"allow", ", ".join(methods).encode())]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


class _Memory:
    """Bytes of bodies that are in memory now, at most ``limit``; what is counted here is counted in ``parent`` too."""

    def __init__(self, limit: int, parent: "_Memory | None" = None) -> None:
        self._limit = limit
        self._parent = parent
        self._used = 0

    def take(self, size: int) -> None:
        """ServiceError ``unavailable`` when all requests together have too much; it is counted all the same."""
        self._used += size
        if self._parent is None:
            IN_FLIGHT.set(self._used)
        else:
            self._parent.take(size)
        if self._used > self._limit:
            raise ServiceError("unavailable", "Too many large requests at once. Try again in a moment.")

    def give_back(self, size: int) -> None:
        self._used -= size
        if self._parent is None:
            IN_FLIGHT.set(self._used)
        else:
            self._parent.give_back(size)


class _Body:
    """Receives the request's body: counted, limited, and with patience for so long."""

    def __init__(
        self, receive: Receive, headers: list[tuple[bytes, bytes]], settings: Settings, memory: _Memory
    ) -> None:
        self._receive = receive
        self._patience = settings.body_timeout
        self._length, self._encoding, self._chunked = b"", b"", False
        for name, value in headers:
            if name == b"content-length":
                self._length = value
            elif name == b"content-encoding":
                self._encoding = value.strip().lower()
            elif name == b"transfer-encoding":
                self._chunked = True
        self._complete = self._length in (b"", b"0") and not self._chunked
        self._began = 0.0
        self.limit = settings.max_request_size
        self.memory = memory
        self.counted = 0

    def check(self) -> None:
        """Refuse by its headers a body that would be refused later anyway."""
        if self._encoding not in (b"", b"identity"):
            raise ServiceError(
                "unsupported_media_type",
                "The Content-Encoding is not supported. Send the body without Content-Encoding.",
            )
        if self._length.isdigit() and int(self._length) > self.limit:
            raise self._too_large()

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        if not self.counted:
            self.check()
        message = await self._in_time()
        if message["type"] == "http.disconnect":
            raise ServiceError("bad_request", "The body of the request is not complete.")
        size = len(message.get("body", b""))
        self.counted += size
        self.memory.take(size)
        if self.counted > self.limit:
            raise self._too_large()
        self._complete = not message.get("more_body", False)
        return message

    def forget(self) -> None:
        """The request is over."""
        if self.counted:
            self.memory.give_back(self.counted)

    async def _in_time(self) -> Message:
        now = time.monotonic()
        self._began = self._began or now
        remaining = self._began + self._patience + self.counted / _SLOWEST - now
        try:
            async with asyncio.timeout(min(self._patience, remaining)):
                return await self._receive()
        except TimeoutError:
            raise ServiceError("timeout", "The body of the request did not arrive in time.") from None

    def _too_large(self) -> ServiceError:
        return ServiceError("too_large", f"The request is larger than {self.limit / MEGABYTE:.4g} MB.")


class _Written:
    """Passes the answer on with the headers that every answer has, and those ``of_operation``, which is known by then."""

    def __init__(
        self,
        send: Send,
        request_id: tuple[bytes, bytes],
        common: Headers,
        of_operation: Callable[[], Iterable[tuple[bytes, bytes]]],
    ) -> None:
        self._send = send
        self._request_id = request_id
        self._common = common
        self._of_operation = of_operation
        self.status = 0
        self.bytes = 0
        self.began = 0.0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.began = time.perf_counter()
            headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            headers += [self._request_id, *self._of_operation()]
            headers.extend(header for header in self._common if header[0] not in names)
            message["headers"] = headers
        else:
            self.bytes += len(message.get("body", b""))
        await self._send(message)


def _common_headers(*, secure: bool) -> list[tuple[bytes, bytes]]:
    """Return the headers that an answer gets unless it says otherwise. ``secure``: the outside uses https."""
    headers = [
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    ]
    if secure:
        headers.append((b"strict-transport-security", b"max-age=31536000"))
    return headers


def _as_api(scope: Scope, path: str) -> None:
    """Both path forms lead to the same operation; PATCH is PUT; a body is JSON whatever it says, except files and tables."""
    if not path.startswith(API + "/"):
        path = API + path
    if path.endswith("/"):
        path = path.rstrip("/")
        if path == API:
            raise ServiceError("not_found", "Not found")  # the router would send the caller back here
    scope["path"] = path
    scope["raw_path"] = path.encode("utf-8", "surrogateescape")
    if scope["method"] == "PATCH":
        scope["method"] = "PUT"
    if path not in FORM_PATHS | TABLE_PATHS:
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
        scope["headers"] = [*headers, (b"content-type", b"application/json")]


def _request_id_of(scope: Scope) -> str | None:
    identifier = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return identifier if _REQUEST_ID.fullmatch(identifier) else None


async def _answer_error(send: Send, error: ServiceError, identifier: str) -> None:
    status, more, body = errors.answer(error, identifier)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
