"""Test mode as a whole (docs/testing.md): what there is of it, its clock, its mails."""

from typing import Any

from contracts.errors import invalid
from contracts.rpc import notifications
from contracts.rpc.submissions import test_mode as rpc
from services.gateway.api.requests.context import GatewayContext
from services.gateway.formats import parse_moment
from services.gateway.http.exchange import Exchange

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.IN_TEST_MODE, exchange)


async def wipe(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.WIPE, exchange)


async def advance(context: GatewayContext, exchange: Exchange) -> Any:
    duration, moment = exchange.body.get("advance"), exchange.body.get("now")
    if (duration is None) == (moment is None):
        reason = "is required, or now" if duration is None else "must not be combined with now"
        raise invalid(f"advance {reason}", "advance", reason)
    if duration is None:
        return await context.ask(rpc.ADVANCE, exchange, until=parse_moment(moment))
    seconds = int(duration[:-1]) * SECONDS[duration[-1]]
    if seconds > rpc.LONGEST_ADVANCE:
        reason = "must be ten years at most"
        raise invalid(f"advance {reason}", "advance", reason)
    return await context.ask(rpc.ADVANCE, exchange, seconds=seconds)


async def mails(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(notifications.TEST_MAILS, exchange, **exchange.arguments, test=True)


async def text_messages(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(notifications.LIST_PHONE_MESSAGES, exchange, **exchange.arguments, test=True)
