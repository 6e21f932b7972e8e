"""The innermost layer: calls the handler of the operation that Connexion found, and writes its answer."""

from collections.abc import Iterator
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from contracts.runtime.bus.caller import acting_for
from services.gateway import api
from services.gateway.api.requests import repeats
from services.gateway.api.requests.bodies import dry_run
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http import exchange
from services.gateway.http.connexion_import import ROUTING_CONTEXT
from services.gateway.http.exchange import Download
from services.gateway.http.shares import Shares
from services.gateway.http.wsgi import PIECE
from services.gateway.pages.answering.delivery import content_disposition


class Dispatch:
    """An ASGI application. Parameters, body and actor are in the exchange by now; the answer goes there before it is sent,
    so that the layer above can check it as the object that it is."""

    def __init__(self, context: GatewayContext, operations: list[str]) -> None:
        self._context = context
        self._handlers = {operation: api.handler(operation) for operation in operations}
        self._shares = Shares(context.settings.heavy_calls_per_user)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = scope.get("extensions", {}).get(ROUTING_CONTEXT, {}).get("operation_id")
        if operation is None:
            raise HTTPException(404)
        found = exchange.of(scope)
        found.operation = operation
        found.request = Request(scope, receive)
        found.answer = await self._answer(found)
        if isinstance(found.answer, Download):
            await self._send_file(send, found.answer)
        else:
            await _send_json(send, 201 if operation in api.CREATED else 200, found.answer)

    async def _answer(self, found: exchange.Exchange) -> Any:
        if found.actor is None:
            return await self._handlers[found.operation](self._context, found)
        caller = repeats.of_user(found.actor.user_id)
        if found.operation not in api.HEAVY:
            return await self._handled(found, caller)
        async with self._shares.place(caller):
            return await self._handled(found, caller)

    async def _handled(self, found: exchange.Exchange, caller: str) -> Any:
        handle = self._handlers[found.operation]
        with acting_for(caller):
            if dry_run(found):
                return await handle(self._context, found)  # may be repeated as it is
            said = [dict(found.arguments), found.body]
            return await repeats.once(self._context, found, caller, said, lambda: handle(self._context, found))

    async def _send_file(self, send: Send, file: Download) -> None:
        """Each piece is read when the one before it is on its way: a slow client holds no thread, and little memory."""
        disposition = content_disposition(file.filename, inline=False)
        headers = [
            ("content-type", file.media_type),
            ("content-length", str(file.size)),
            ("content-disposition", disposition),
        ]
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        while piece := await self._context.in_thread(_piece, file.chunks):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _piece(chunks: Iterator[bytes]) -> bytes:
    """The next bytes, of several chunks where they are small; empty at the end."""
    found: list[bytes] = []
    size = 0
    for chunk in chunks:
        found.append(chunk)
        if (size := size + len(chunk)) >= PIECE:
            break
    return b"".join(found)


async def _send_json(send: Send, status: int, answer: Any) -> None:
    body = orjson.dumps(answer)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
