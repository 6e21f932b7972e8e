"""Polling of events (specification 6.3)."""

from typing import Any

from contracts.rpc import webhooks as rpc
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.exchange import Exchange


async def form(context: GatewayContext, exchange: Exchange) -> Any:
    return await _page(context, exchange)


async def submission(context: GatewayContext, exchange: Exchange) -> Any:
    return await _page(context, exchange)


async def _page(context: GatewayContext, exchange: Exchange) -> Any:
    chosen = dict(exchange.arguments)
    return await context.ask(rpc.EVENTS, exchange, event_type=chosen.pop("type"), **chosen)
