"""The innermost layer: calls the handler of the operation that Connexion found, and writes its answer."""

from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from contracts.runtime.caller import acting_for
from services.gateway import api, exchange, repeats
from services.gateway.api.bodies import dry_run
from services.gateway.connexion_import import ROUTING_CONTEXT
from services.gateway.context import GatewayContext
from services.gateway.shares import Shares


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


async def _send_json(send: Send, status: int, answer: Any) -> None:
    body = orjson.dumps(answer)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
