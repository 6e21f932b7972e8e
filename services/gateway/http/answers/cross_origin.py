"""Leave for scripts of other sites to call the API (CORS), where the operator names the sites.

Nothing is said of credentials: the key is in a header that a script must have, and no cookie of ours means anything to the API.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_SENT = (
    "X-Auth-Token",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "X-Request-Id",
    "traceparent",
    "tracestate",
    # what agents send to /mcp
    "Authorization",
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
)
_READ = (
    "API-Version",
    "Allow",
    "Content-Disposition",
    "Deprecation",
    "ETag",
    "Link",
    "Mcp-Session-Id",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "Sunset",
    "X-Ignored-Keys",
    "X-Request-Id",
)


class CrossOrigin:
    """What is said to scripts of ``allowed`` origins."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._rules = CORSMiddleware(
            _nothing, allow_origins=allowed, allow_methods=_METHODS, allow_headers=_SENT, expose_headers=_READ
        )

    def sending(self, send: Any, scope: Any) -> Any:
        """Return a ``send`` that adds to an answer who may read it."""
        return partial(self._rules.send, send=send, request_headers=Headers(scope=scope))

    def preflight_answer(self, scope: Any) -> Any | None:
        """Return the answer, an ASGI application, to a browser that asks before it sends a request; None for other requests."""
        headers = Headers(scope=scope)
        if scope["method"] != "OPTIONS" or "origin" not in headers or "access-control-request-method" not in headers:
            return None
        return self._rules.preflight_response(headers)


async def _nothing(_scope: Any, _receive: Any, _send: Any) -> None:
    """The application that Starlette's class goes around; here the edge does."""
