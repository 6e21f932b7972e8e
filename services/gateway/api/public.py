"""Paths that need no key: health, readiness, metrics, the OpenAPI document and its reader."""

import asyncio
import mimetypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import swagger_ui_bundle
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from contracts.errors import ServiceError
from contracts.rpc.health import PING, Ping, Pong
from contracts.runtime import process
from contracts.runtime.monitoring import liveness
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.answers import error_codes
from services.gateway.http.answers.entity_tags import entity_tag, names
from services.gateway.reference.files import File, files
from services.gateway.settings import Settings

_READER = Path(swagger_ui_bundle.swagger_ui_path)
_READER_FILES = ("swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png")
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    b"font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_REFERENCE_POLICY = b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_PAGE = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Countersign API</title><link rel="icon" href="docs/favicon-32x32.png"><link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/narrow.css">
</head><body><p class="beside"><a href="reference">Reference with samples in four languages</a></p>
<div id="reader"></div><script src="docs/swagger-ui-bundle.js"></script>
<script type="module" src="docs/start.js"></script>
</body></html>"""
_NARROW = b""".beside { margin: 1rem auto 0; max-width: 1460px; padding: 0 20px; font: 1rem/1.5 system-ui, sans-serif; }
/* Swagger UI is drawn for wide screens: on a phone a path stood in three pieces, and fields beside the page. */
@media (max-width: 640px) {
  .swagger-ui .opblock .opblock-summary-control { flex-wrap: wrap; min-width: 0; }
  .swagger-ui .opblock .opblock-summary-path { flex: 1 0 calc(100% - 100px); max-width: none; }
  .swagger-ui .opblock .opblock-summary-path a { word-break: normal; overflow-wrap: anywhere; }
  .swagger-ui .opblock .opblock-summary-description { flex: 1 1 70%; text-align: left; overflow-wrap: anywhere; }
  .swagger-ui .opblock-section-header { flex-wrap: wrap; gap: 8px; }
  .swagger-ui .opblock-section-header .btn { margin: 0; padding: 5px 12px; }
  .swagger-ui .response-col_links, .swagger-ui table.parameters thead { display: none; }
  .swagger-ui tr.parameters, .swagger-ui tr[data-param-name], .swagger-ui tr[data-property-name],
  .swagger-ui td.parameters-col_name, .swagger-ui td.parameters-col_description {
    display: block; width: auto; max-width: 100%;
  }
  .swagger-ui td.parameters-col_description input, .swagger-ui td.parameters-col_description select {
    width: 100%; max-width: 100%; min-width: 0; margin: 5px 0; box-sizing: border-box;
  }
}"""
_START = b"""// Swagger UI fills in the example of a parameter, or its default. A filter that the caller did not choose is in
// their way, so what may be left out stays empty, and both are shown in its description instead.
const tell = (parameter) => {
  if (!parameter || parameter.required || parameter.example === undefined) return;
  if (parameter.schema.default !== undefined) parameter.description += " `" + parameter.schema.default + "` when absent.";
  parameter.description += " For example `" + parameter.example + "`.";
  delete parameter.schema.default;
  delete parameter.example;
};
const spec = await (await fetch("openapi.json")).json();
Object.values(spec.components.parameters).forEach(tell);
for (const methods of Object.values(spec.paths))
  for (const operation of Object.values(methods)) (operation.parameters || []).forEach(tell);
SwaggerUIBundle({spec, dom_id: "#reader", deepLinking: true, persistAuthorization: false, validatorUrl: null, filter: true,
  defaultModelsExpandDepth: 0, docExpansion: "list", displayRequestDuration: true});"""


class Health:
    """``/healthz``: this process lives."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status, body = liveness.health()
        await answer(send, status, body)


class Metrics:
    """``/metrics`` for Prometheus, where no health port serves it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, 200, generate_latest(REGISTRY), CONTENT_TYPE_LATEST.encode())


class Readiness:
    """``/readyz``: 200 only when every service answers on the bus that it is ready. ``notes`` says what an operator should
    know of a service although it is; there is none as a rule.

    Anybody may ask, so the services are asked once for all who ask meanwhile, and at most once a second when all is well.
    """

    def __init__(self, context: GatewayContext) -> None:
        self._context = context
        self._asking: asyncio.Future[dict[str, Pong]] | None = None
        self._good_until = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._asking is None or (self._asking.done() and time.monotonic() > self._good_until):
            self._asking = asyncio.ensure_future(self._all())
        pongs = await asyncio.shield(self._asking)
        ready = all(pong.ready for pong in pongs.values())
        services = {
            name: "ready" if pong.ready else "; ".join(pong.problems) or "not ready" for name, pong in pongs.items()
        }
        notes = {name: pong.notes for name, pong in pongs.items() if pong.notes}
        body = {"ready": ready, "services": services, **({"notes": notes} if notes else {})}
        await answer(send, 200 if ready else 503, orjson.dumps(body))

    async def _all(self) -> dict[str, Pong]:
        pongs = dict(zip(PING, await asyncio.gather(*map(self._ask, PING)), strict=True))
        pongs["gateway"] = await self._own()
        self._good_until = time.monotonic() + 1 if all(pong.ready for pong in pongs.values()) else 0.0
        return pongs

    async def _ask(self, service: str) -> Pong:
        try:
            return await self._context.bus.call_async(PING[service], Ping())
        except ServiceError as error:
            return Pong(ready=False, problems=[error.message])

    async def _own(self) -> Pong:
        try:
            problems = await self._context.in_thread(self._problems_of_database)
        except ServiceError as error:
            problems = [error.message]
        return Pong(ready=not problems, problems=problems)

    def _problems_of_database(self) -> list[str]:
        return process.problems_of(self._context.database, "gateway", background=False)


class OpenApi:
    """``/openapi.json`` and ``/openapi-3.1.json``: the interface with this installation's limits. It is made for the first who
    asks: it takes a third of what it takes to put the gateway together, and few ever do."""

    def __init__(self, context: GatewayContext, make: Callable[[], Mapping[str, Any]]) -> None:
        self._context = context
        self._make, self._making = make, threading.Lock()
        self._body: bytes | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = self._body
        if body is None:
            body = await self._context.in_thread(self._made)
        await answer(send, 200, body, headers=[(b"access-control-allow-origin", b"*")])

    def _made(self) -> bytes:
        """Make it once, however many ask at first."""
        with self._making:
            if self._body is None:
                self._body = orjson.dumps(self._make(), option=orjson.OPT_NON_STR_KEYS)
            return self._body


class Docs:
    """``/docs``: the OpenAPI document to read and to try with one's key, and what the codes of errors mean. Swagger UI from its
    package, nothing from outside."""

    def __init__(self) -> None:
        self._files = {name: (_READER / name).read_bytes() for name in _READER_FILES}
        self._files |= {"start.js": _START, "narrow.css": _NARROW, "errors.css": error_codes.STYLE}
        self._pages = {"": _PAGE, "errors": error_codes.page()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        name = scope["path"].removeprefix("/docs").lstrip("/")
        headers = [(b"content-security-policy", _POLICY), (b"cache-control", b"max-age=3600")]
        if scope["path"] == "/docs/":
            await answer(send, 308, b"", headers=[(b"location", b"../docs")])
        elif name in self._pages:
            await answer(send, 200, self._pages[name], b"text/html; charset=utf-8", headers)
        elif name in self._files:
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            await answer(send, 200, self._files[name], media_type.encode(), headers)
        else:
            raise ServiceError("not_found", "Not found")


class Reference:
    """``/reference`` and ``/llms.txt``: the OpenAPI document as pages without a script, and as Markdown. They are made for the
    first reader, in a thread, and kept."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._making: asyncio.Future[dict[str, File]] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._making is None or (self._making.done() and self._making.exception() is not None):
            self._making = asyncio.ensure_future(asyncio.to_thread(files, self._settings))
        file = (await asyncio.shield(self._making))[scope["path"]]
        tag = entity_tag(file.body)
        headers = [
            (b"content-security-policy", _REFERENCE_POLICY),
            (b"cache-control", b"max-age=3600"),
            (b"etag", tag.encode()),
        ]
        if_none_match = b",".join(value for name, value in scope["headers"] if name == b"if-none-match").decode(
            "latin-1"
        )
        if if_none_match and names(if_none_match, tag):
            headers.append((b"vary", b"Accept-Encoding"))  # a 304 passes no encoder that would say so
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            await answer(send, 200, file.body, file.media_type, headers)


async def answer(
    send: Any,
    status: int,
    body: bytes,
    media_type: bytes = b"application/json",
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """One whole answer."""
    common = [(b"content-type", media_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*common, *headers]})
    await send({"type": "http.response.body", "body": body})
