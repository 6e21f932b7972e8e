"""Submitters (specification 4.4)."""

from typing import Any

from contracts.rpc.submissions import api as rpc
from services.gateway.api.requests.bodies import external_id, filters, overrides, pick
from services.gateway.api.requests.context import GatewayContext
from services.gateway.formats import parse_moment
from services.gateway.http.exchange import Exchange


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    chosen = filters(exchange)
    for name in ("completed_after", "completed_before"):
        if name in chosen:
            chosen[name] = parse_moment(chosen[name])
    return await context.ask(rpc.LIST_SUBMITTERS, exchange, **chosen)


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.GET_SUBMITTER, exchange, **exchange.arguments)


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    changes = {**pick(body, *rpc.SubmitterChange.model_fields), **external_id(body), **overrides(body)}
    return await context.ask(
        rpc.UPDATE_SUBMITTER,
        exchange,
        id=exchange.arguments["id"],
        account=await context.account(),
        **changes,
    )
