"""Calls of the API in an agent's name, through the very layers that a request from outside goes through: routing, key, role and
scope, validation, the handler, and the sentences in which something is refused."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from contracts.errors import ServiceError
from contracts.types import Actor, Agent
from services.gateway.http.exchange import KEY, Exchange, exchange_of
from services.gateway.http.openapi.specification import Operation
from services.gateway.rights import CallersKey, Scope

API = "/api"
CALLER = "countersign.agents.caller"
"""Where in an ASGI scope the ``Caller`` is."""
_KEPT_HEADERS = frozenset({b"x-forwarded-for"})


@dataclass(frozen=True)
class Caller:
    """Who calls: the agent, the user in whose name, with which key; ``scope`` is the ASGI scope of the request that it came
    with."""

    agent: Agent
    actor: Actor
    key: CallersKey
    api_key: str
    scope: Mapping[str, Any]


class Operations:
    """The operations of the API, by their ids. ``api`` is the ASGI application that answers them."""

    def __init__(self, api: Callable[..., Awaitable[None]], operations: Iterable[Operation]) -> None:
        self._api = api
        self.by_id = {operation.id: operation for operation in operations}

    async def call(
        self,
        caller: Caller,
        operation_id: str,
        arguments: Mapping[str, Any],
        body: Any = None,
        *,
        scopes: frozenset[Scope] | None = None,
        handler: Callable[..., Awaitable[Any]] | None = None,
    ) -> Any:
        """Return the answer, as plain JSON values. ``arguments`` are those of path and query; ``scopes`` and ``handler`` as in
        ``Exchange``. Raises ServiceError with what the API says when it refuses."""
        operation = self.by_id[operation_id]
        query = {name: value for name, value in arguments.items() if f"{{{name}}}" not in operation.path}
        path = operation.path
        for name in arguments.keys() - query.keys():
            path = path.replace(f"{{{name}}}", quote(_word(arguments[name]), safe=""))
        around = exchange_of(caller.scope)
        exchange = Exchange(around.request_id, agent=caller.agent, scopes=scopes, handler=handler)
        content = b"" if body is None else orjson.dumps(body)
        headers = [(name, value) for name, value in caller.scope["headers"] if name in _KEPT_HEADERS]
        headers += [
            (b"x-auth-token", caller.api_key.encode("latin-1")),
            (b"accept", b"application/json"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
        ]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": caller.scope.get("scheme", "http"),
            "method": operation.method.upper(),
            "path": API + path,
            "raw_path": (API + path).encode(),
            "root_path": "",
            "query_string": urlencode({name: _word(value) for name, value in query.items()}).encode(),
            "headers": headers,
            "client": caller.scope.get("client"),
            "server": caller.scope.get("server"),
            KEY: exchange,
        }
        answer = _Answer(content)
        await self._api(scope, answer.receive, answer.send)
        return answer.read()


class _Answer:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._status = 0
        self._body = bytearray()

    async def receive(self) -> dict[str, Any]:
        content, self._content = self._content, b""
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        else:
            self._body += message.get("body", b"")

    def read(self) -> Any:
        content = orjson.loads(bytes(self._body)) if self._body else {}
        if self._status < 400:
            return content
        raise ServiceError(
            content.get("code", "internal"), content.get("error", "Internal error"), content.get("details", [])
        )


def _word(value: Any) -> str:
    """Return a value as it is written into a path or a query; what is wrong there is for the API to refuse."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
