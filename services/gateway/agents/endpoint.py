"""``POST /mcp``: who calls, and whether from where they may; then the protocol answers.

Streamable HTTP of the Model Context Protocol, every version that the SDK knows. There is no stream that a client may open (GET)
and nothing to delete (DELETE): both are 405, as the protocol allows.
"""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import orjson

from contracts.errors import ServiceError, not_found
from contracts.types import Agent
from services.gateway.accounts.auth import Authenticator, address, api_key_of
from services.gateway.agents import messages
from services.gateway.agents.operations import CALLER, Caller
from services.gateway.agents.sending import Sending
from services.gateway.agents.sessions import Sessions, agent_of
from services.gateway.api.requests import repeats
from services.gateway.http import errors
from services.gateway.http.client_address import Network
from services.gateway.http.edge import METHODS_OF_AGENTS
from services.gateway.http.exchange import exchange_of
from services.gateway.http.openapi.validation import LARGE, read_body
from services.gateway.pages.answering.pace import Pace
from services.gateway.settings import MEGABYTE

SESSION = b"mcp-session-id"
VERSION = b"mcp-protocol-version"
HANDSHAKES = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
"""Versions in which a client introduces itself once, with ``initialize``; in later ones it does so with every request."""
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_BURST, _PER_SECOND = 120, 5.0


class Endpoint:
    """The ASGI application of ``/mcp``."""

    def __init__(self, work: Sending, authenticator: Authenticator, trusted: Sequence[Network]) -> None:
        settings = work.context.settings
        self._work = work
        self._authenticator = authenticator
        self._trusted = trusted
        self._origins = frozenset({_origin(settings.base_url), *settings.cors_origin_list})
        self._sessions = Sessions(settings.link_secret.get_secret_value())
        self._pace = Pace(_BURST, _PER_SECOND)
        self._protocol: Any = None
        self._starting = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        exchange = exchange_of(scope)
        exchange.operation = "mcp"
        try:
            self._check_origin(scope)
            if scope["method"] != "POST":
                raise errors.MethodNotAllowed(METHODS_OF_AGENTS)
            api_key = api_key_of(scope) or _bearer(scope)
            actor, key = await self._authenticator.caller(api_key, address(scope, self._trusted))
            exchange.actor, exchange.key = actor, key
            self._pace.count(f"{repeats.of_user(actor.user_id)}/{key.id}")
            if not _is_json(scope):
                raise ServiceError("unsupported_media_type", "Send the message as application/json.")
            body = await read_body(receive)
            try:
                message = await self._read(body)
            except ServiceError as error:
                await _send_json(send, 400, orjson.dumps(messages.error_object(error)))
                return
            agent, begins = self._introduced(scope, message, key.id)
        except ServiceError as error:
            await _refuse(send, error, exchange.request_id)
            return
        caller = Caller(agent, actor, key, api_key, scope)
        protocol = await self._started()
        if begins:
            send = _with_session(send, self._sessions.issue(agent).encode())
        inner = {**scope, CALLER: caller}
        await protocol(inner, _replaying(body, receive), send)

    def _check_origin(self, scope: Any) -> None:
        """A page that has made its name lead to us (DNS rebinding) sends its own origin: only ours and those of CORS_ORIGINS
        are answered. Programs send none."""
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if any(origin not in self._origins for origin in origins):
            raise ServiceError("forbidden", "Requests from this origin are not answered.")

    async def _read(self, body: bytes) -> dict[str, Any]:
        if len(body) > LARGE:
            return await self._work.context.in_thread(messages.read, body)
        return messages.read(body)

    def _introduced(self, scope: Any, message: dict[str, Any], key_id: str) -> tuple[Agent, bool]:
        """Return which agent calls, and whether it begins a session by that. Raises ServiceError("not_found") for a session
        that is none of this key, whereupon a client begins another one."""
        version = _header(scope, VERSION)
        if message.get("method") == "initialize":
            return agent_of(_within(message, "params").get("clientInfo"), key_id), True
        if version is not None and version not in HANDSHAKES:
            return agent_of(_within(_within(message, "params"), "_meta").get(_CLIENT_INFO), key_id), False
        session_id = _header(scope, SESSION)
        if session_id is None:
            raise ServiceError("bad_request", "Mcp-Session-Id is missing: send initialize first")
        agent = self._sessions.agent(session_id, key_id)
        if agent is None:
            raise not_found("Session")
        return agent, False

    async def _started(self) -> Any:
        async with self._starting:
            if self._protocol is None:
                module = await self._work.context.in_thread(import_module, "services.gateway.agents.protocol")
                protocol = module.Protocol(self._work, MEGABYTE)
                await protocol.start()
                self._protocol = protocol
        return self._protocol


def _origin(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


def _is_json(scope: Any) -> bool:
    media_type = (_header(scope, b"content-type") or "").partition(";")[0]
    return media_type.strip().lower() == "application/json"


def _bearer(scope: Any) -> str:
    """Return the key of an ``Authorization: Bearer`` (RFC 6750), as clients of the protocol send it; empty where there is
    none."""
    scheme, _, key = (_header(scope, b"authorization") or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _header(scope: Any, header_name: bytes) -> str | None:
    header_value: bytes | None = next((value for name, value in scope["headers"] if name == header_name), None)
    return None if header_value is None else header_value.decode("latin-1")


def _within(message: dict[str, Any], key: str) -> dict[str, Any]:
    inner = message.get(key)
    return inner if isinstance(inner, dict) else {}


def _replaying(body: bytes, receive: Any) -> Any:
    """Return a ``receive`` that gives the body again."""
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Any:
        return pending.pop() if pending else await receive()

    return give


def _with_session(send: Any, session_id: bytes) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message = {**message, "headers": [*message.get("headers", ()), (SESSION, session_id)]}
        await send(message)

    return sending


async def _refuse(send: Any, error: ServiceError, request_id: str) -> None:
    status, more, body = errors.answer(error, request_id)
    headers = [(name.lower().encode(), value.encode()) for name, value in more.items()]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="Countersign"'))
    await _send_json(send, status, body, headers)


async def _send_json(send: Any, status: int, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
