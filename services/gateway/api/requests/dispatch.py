"""The innermost layer: calls the handler of the operation that Connexion found, and writes its answer."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from contracts.errors import ServiceError, invalid
from contracts.rpc.unchanged import changed, state_of
from contracts.runtime.bus.caller import acting_for
from contracts.runtime.monitoring import observe
from services.gateway import api
from services.gateway.api.requests import next_page, repeats
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http import rate_limits
from services.gateway.http.answers import entity_tags
from services.gateway.http.connexion_import import ROUTING_CONTEXT
from services.gateway.http.exchange import Download, Exchange, Stream, exchange_of, invalid_with
from services.gateway.http.openapi import ignored_keys
from services.gateway.http.shares import Shares
from services.gateway.http.wsgi import PIECE
from services.gateway.pages.answering.delivery import content_disposition

log = observe.logger(__name__)

_CHECKED_FOR = 1.0
"""Seconds for which a key that was looked up is good: the body of a request may be on its way for hours."""


class Dispatch:
    """An ASGI application. Parameters, body and actor are in the exchange by now; the answer goes there before it is sent,
    so that the layer above can check it as the object that it is."""

    def __init__(
        self, context: GatewayContext, operations: list[str], administering: frozenset[str] = frozenset()
    ) -> None:
        """``administering`` are the operations that change what only admins may: who calls them, and how it went, is a line of
        the log of its own."""
        self._context = context
        self._administering = administering
        self._handlers = {operation: api.handler(operation) for operation in operations}
        self._shares = Shares(context.settings.heavy_calls_per_user)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = scope.get("extensions", {}).get(ROUTING_CONTEXT, {}).get("operation_id")
        if operation is None:
            raise HTTPException(404)
        exchange = exchange_of(scope)
        exchange.operation = operation
        exchange.request = Request(scope, receive)
        try:
            exchange.answer = await self._answer(exchange)
        except ServiceError as refused:
            self._tell(exchange, refused.code)
            raise
        self._tell(exchange, "done")
        if isinstance(exchange.answer, Download):
            await self._send_file(send, exchange.answer, exchange.limits)
        elif isinstance(exchange.answer, Stream):
            await self._send_stream(send, receive, exchange, exchange.answer)
        else:
            ignored_keys.note(exchange.answer, exchange.ignored)
            headers = next_page.header(exchange.answer, scope, self._context.settings.base_url)
            headers += _encoded({**exchange.limits, **ignored_keys.header(exchange.ignored)})
            if operation in api.SECRET:
                headers.append((b"cache-control", b"no-store"))
            status = 201 if operation in api.CREATED else 200
            if operation in api.ACCEPTED and not exchange.dry_run:
                status, place = 202, api.ACCEPTED[operation].format_map(exchange.answer)
                headers.append((b"location", f"{self._context.settings.base_url}/api{place}".encode()))
            await _send_json(send, status, exchange.answer, headers)

    def _tell(self, exchange: Exchange, outcome: str) -> None:
        """Say in the log what an admin did: who, from where, what to which record, and which keys they named, without
        values."""
        if exchange.operation not in self._administering or exchange.actor is None:
            return
        log.info(
            "admin.acted",
            operation=exchange.operation,
            user_id=exchange.actor.user_id,
            key_id=exchange.actor.key_id,
            address=exchange.actor.ip,
            subject={name: value for name, value in exchange.arguments.items() if name in ("id", "key_id")},
            named=sorted(exchange.body) if isinstance(exchange.body, dict) else [],
            outcome=outcome,
        )

    async def _answer(self, exchange: Exchange) -> Any:
        if exchange.actor is None:
            return await self._handlers[exchange.operation](self._context, exchange)
        caller = repeats.of_user(exchange.actor.user_id)
        if exchange.operation not in api.HEAVY:
            return await self._handled(exchange, caller)
        async with self._shares.place(caller) as free:
            most = self._context.settings.heavy_calls_per_user
            exchange.limits = rate_limits.concurrent(rate_limits.DOCUMENTS, most, free)
            return await self._handled(exchange, caller)

    async def _handled(self, exchange: Exchange, caller: str) -> Any:
        if exchange.check_again and time.monotonic() - exchange.checked_at > _CHECKED_FOR:
            await exchange.check_again()

        async def handle(context: GatewayContext, exchange: Exchange) -> Any:
            await self._compare(exchange)
            handler = exchange.handler or self._handlers[exchange.operation]
            return await handler(context, exchange)

        with acting_for(caller):
            if exchange.operation in api.REPEATED:
                return await handle(self._context, exchange)
            if exchange.dry_run:
                return await _answer_dry_run(handle, self._context, exchange)  # may be repeated as it is
            content = [dict(exchange.arguments), exchange.body]
            whose = repeats.of_caller(exchange)
            return await repeats.once(self._context, exchange, whose, content, lambda: handle(self._context, exchange))

    async def _compare(self, exchange: Exchange) -> None:
        """Refuse a change of a record that is not the one that the caller has read, if they say which (``If-Match``)."""
        assert exchange.request is not None
        if_match = ",".join(exchange.request.headers.getlist("if-match"))
        if not if_match or exchange.request.method in ("GET", "HEAD"):
            return
        if (read := api.IF_UNCHANGED.get(exchange.operation)) is None:
            raise invalid("If-Match cannot be checked for this operation", "If-Match", "cannot be checked here")
        which = {name: value for name, value in exchange.arguments.items() if name in ("id", "key_id")}
        question = Exchange(exchange.request_id, read, exchange.actor, exchange.key, arguments=which)
        answer = await self._handlers[read](self._context, question)
        if not entity_tags.names(if_match, entity_tags.entity_tag(orjson.dumps(answer))):
            raise changed()
        if if_match.strip() != "*":
            exchange.expected_state = state_of(answer)

    async def _send_stream(self, send: Send, receive: Receive, exchange: Exchange, stream: Stream) -> None:
        assert exchange.actor is not None
        try:
            with acting_for(repeats.of_user(exchange.actor.user_id)):
                await self._context.streams.run(stream, send, receive)
        finally:
            stream.close()

    async def _send_file(self, send: Send, file: Download, limits: dict[str, str]) -> None:
        """Each piece is read when the one before it is on its way: a slow client holds no thread, and little memory."""
        disposition = content_disposition(file.filename, inline=False)
        headers = {
            "content-type": file.media_type,
            "content-length": str(file.size),
            "content-disposition": disposition,
            **limits,
        }
        await send({"type": "http.response.start", "status": 200, "headers": _encoded(headers)})
        while piece := await self._context.in_thread(_piece, file.chunks):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _answer_dry_run(handle: api.Handler, context: GatewayContext, exchange: Exchange) -> Any:
    """Answer a dry run. What is refused before a service is asked is refused here, with all that the service says of the
    remaining request: nobody mends one fault to be told of the next."""
    try:
        answer = await handle(context, exchange)
    except ServiceError as error:
        if exchange.refused is None:
            raise
        more = error.details if error.code == "invalid" else []
    else:
        if exchange.refused is None:
            return answer
        more = answer["problems"]
    raise invalid_with(exchange.refused, more)


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


def _piece(chunks: Iterator[bytes]) -> bytes:
    """The next bytes, of several chunks where they are small; empty at the end."""
    collected: list[bytes] = []
    size = 0
    for chunk in chunks:
        collected.append(chunk)
        if (size := size + len(chunk)) >= PIECE:
            break
    return b"".join(collected)


async def _send_json(send: Send, status: int, answer: Any, more: Sequence[tuple[bytes, bytes]]) -> None:
    body = orjson.dumps(answer)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
