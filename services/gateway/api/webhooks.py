"""Webhooks (specification 4.6)."""

from typing import Any

from contracts.rpc import webhooks as rpc
from services.gateway.api.requests.bodies import pick
from services.gateway.api.requests.context import GatewayContext
from services.gateway.formats import parse_moment
from services.gateway.http.exchange import Exchange

_SETTINGS = ("url", "events", "secret", "payload", "file_link_minutes")


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.LIST, exchange, **exchange.arguments)


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.GET, exchange, id=exchange.arguments["id"])


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.CREATE, exchange, **pick(exchange.body, *_SETTINGS))


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.UPDATE, exchange, id=exchange.arguments["id"], **pick(exchange.body, *_SETTINGS))


async def remove(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.REMOVE, exchange, id=exchange.arguments["id"])


async def test(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.TEST, exchange, id=exchange.arguments["id"])


async def replace_secret(context: GatewayContext, exchange: Exchange) -> Any:
    hours = exchange.body.get("overlap_hours")
    overlap = {} if hours is None else {"overlap_hours": hours}
    return await context.ask(rpc.REPLACE_SECRET, exchange, id=exchange.arguments["id"], **overlap)


async def replay(context: GatewayContext, exchange: Exchange) -> Any:
    since, until = exchange.body["from"], exchange.body.get("to")
    span = {"since": parse_moment(since), "until": parse_moment(until) if until else None}
    more = pick(exchange.body, "kinds", "after")
    return await context.ask(rpc.REPLAY, exchange, id=exchange.arguments["id"], **span, **more)


async def deliveries(context: GatewayContext, exchange: Exchange) -> Any:
    chosen = dict(exchange.arguments)
    return await context.ask(rpc.DELIVERIES, exchange, webhook_id=chosen.pop("id"), **chosen)


async def resend(context: GatewayContext, exchange: Exchange) -> Any:
    arguments = exchange.arguments
    return await context.ask(rpc.RESEND, exchange, webhook_id=arguments["id"], id=arguments["delivery_id"])
