"""Polling of events (specification 6.3), and all of them as one feed."""

import asyncio
from typing import Any

from contracts.rpc import webhooks as rpc
from services.gateway.api.requests.context import GatewayContext
from services.gateway.api.requests.feed_watch import FeedWatch
from services.gateway.http.exchange import Exchange

MOST_WAITING = 100
_places = asyncio.Semaphore(MOST_WAITING)
_watch = FeedWatch()


async def form(context: GatewayContext, exchange: Exchange) -> Any:
    return await _page(context, exchange)


async def submission(context: GatewayContext, exchange: Exchange) -> Any:
    return await _page(context, exchange)


async def feed(context: GatewayContext, exchange: Exchange) -> Any:
    """With ``wait``, an answer that would be empty waits for the next event: the service is asked again when its log has grown.
    Whose key was taken away meanwhile is told nothing.

    No longer than work may go on when this process is to stop, and for MOST_WAITING callers at a time: others are answered at
    once.
    """
    chosen = dict(exchange.arguments)
    seconds = min(chosen.pop("wait"), max(0.0, context.settings.drain_seconds - 5))
    kinds = [kind.strip() for kind in chosen.pop("kinds", "").split(",")]
    chosen["kinds"] = [kind for kind in kinds if kind]
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    seen = _watch.seen
    page = await context.ask(rpc.FEED, exchange, **chosen)
    if page["data"] or _places.locked():
        return page

    async def look() -> int:
        return (await context.bus.call_async(rpc.FEED_END, rpc.ReadFeedEnd())).sequence

    async with _places:
        while not page["data"] and (left := end - clock()) > 0:
            await _watch.moved(seen, look, left)
            if exchange.check_again:
                await exchange.check_again()
            seen = _watch.seen
            page = await context.ask(rpc.FEED, exchange, **chosen)
    return page


async def _page(context: GatewayContext, exchange: Exchange) -> Any:
    chosen = dict(exchange.arguments)
    return await context.ask(rpc.EVENTS, exchange, event_type=chosen.pop("type"), **chosen)
