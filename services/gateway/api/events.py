"""Polling of events (specification 6.3), and all of them as one feed: by pages, or as a stream."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import orjson

from contracts.errors import ServiceError, invalid
from contracts.rpc import webhooks as rpc
from services.gateway.api.requests import repeats
from services.gateway.api.requests.context import GatewayContext, actor
from services.gateway.api.requests.feed_watch import FeedWatch
from services.gateway.http import rate_limits
from services.gateway.http.answers.accepted import prefers
from services.gateway.http.exchange import Exchange, Stream

STREAM = "text/event-stream"
PAGE_OF_STREAM = 100
HEARTBEAT = 15.0
"""Seconds of silence after which a stream sends a comment: proxies and clients take longer ones for the end."""
COMES_BACK = 2000
"""Milliseconds after which a client whose stream has ended is to open another."""

MOST_WAITING = 100
_places = asyncio.Semaphore(MOST_WAITING)
_reading = asyncio.Semaphore(4)
"""Streams read the log by turns: a thousand events that come at once are a thousand for each of them."""
_watch = FeedWatch()


async def form(context: GatewayContext, exchange: Exchange) -> Any:
    return await _page(context, exchange)


async def submission(context: GatewayContext, exchange: Exchange) -> Any:
    return await _page(context, exchange)


async def feed(context: GatewayContext, exchange: Exchange) -> Any:
    """With ``wait``, an answer that would be empty waits for the next event: the service is asked again when its log has grown.
    Whose key was taken away meanwhile is told nothing. Whoever would rather have a stream gets one.

    No longer than work may go on when this process is to stop, and for MOST_WAITING callers at a time: others are answered at
    once.
    """
    chosen = dict(exchange.arguments)
    seconds = min(chosen.pop("wait"), max(0.0, context.settings.drain_seconds - 5))
    kinds = [kind.strip() for kind in chosen.pop("kinds", "").split(",")]
    chosen["kinds"] = [kind for kind in kinds if kind]
    if (last := chosen.pop("Last-Event-ID", None)) is None:
        return await _feed(context, exchange, chosen, seconds)
    with _of_header():
        return await _feed(context, exchange, {**chosen, "after": last}, seconds)


@contextmanager
def _of_header() -> Iterator[None]:
    """Say of refusals of ``after`` that they are about ``Last-Event-ID``, which is what was sent."""
    try:
        yield
    except ServiceError as error:
        for detail in error.details:
            if detail.get("field") == "after":
                raise invalid(f"Last-Event-ID {detail['reason']}", "Last-Event-ID", detail["reason"]) from error
        raise


async def _feed(context: GatewayContext, exchange: Exchange, chosen: dict[str, Any], seconds: float) -> Any:
    if _wants_stream(exchange):
        return await _stream(context, exchange, {**chosen, "limit": PAGE_OF_STREAM})
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    seen = _watch.seen
    page = await context.ask(rpc.FEED, exchange, **chosen)
    if page["data"] or _places.locked():
        return page
    async with _places:
        while not page["data"] and (left := end - clock()) > 0:
            await _watch.moved(seen, partial(_look, context), left)
            if exchange.check_again:
                await exchange.check_again()
            seen = _watch.seen
            page = await context.ask(rpc.FEED, exchange, **chosen)
    return page


async def _look(context: GatewayContext) -> int:
    return (await context.bus.call_async(rpc.FEED_END, rpc.ReadFeedEnd())).sequence


def _wants_stream(exchange: Exchange) -> bool:
    request = exchange.request
    if request is None or request.method != "GET":
        return False
    return prefers(",".join(request.headers.getlist("accept")), STREAM)


async def _stream(context: GatewayContext, exchange: Exchange, chosen: dict[str, Any]) -> Stream:
    """The feed as server-sent events. What cannot be asked for is refused before it begins."""
    caller, most = repeats.of_user(actor(exchange).user_id), context.settings.event_streams_per_user
    left = context.streams.take(caller, most)
    try:
        seen = _watch.seen
        page = await _read(context, exchange, chosen)
    except BaseException:
        context.streams.leave(caller)
        raise
    headers = {
        "X-Accel-Buffering": "no",
        **rate_limits.concurrent(rate_limits.STREAMS, most, left),
    }  # nginx hands it on at once
    pieces = _events(context, exchange, chosen, page, seen)
    return Stream(STREAM, pieces, headers, partial(context.streams.leave, caller))


async def _events(
    context: GatewayContext, exchange: Exchange, chosen: dict[str, Any], page: dict[str, Any], seen: int | None
) -> AsyncGenerator[bytes, None]:
    """The pieces of a stream that begins with ``page``; ``seen`` is the end of the log as it was seen before that was read."""
    clock = asyncio.get_running_loop().time
    end = clock() + context.settings.event_stream_seconds
    yield f"retry: {COMES_BACK}\n\n".encode()
    while True:
        if rows := page["data"]:
            chosen["after"] = rows[-1]["sequence"]
            yield b"".join(b"id: %d\ndata: %s\n\n" % (row["sequence"], orjson.dumps(row)) for row in rows)
        if (left := end - clock()) <= 0:
            return
        try:
            if len(rows) < PAGE_OF_STREAM:
                await _watch.moved(seen, partial(_look, context), min(left, HEARTBEAT))
                if _watch.seen == seen:
                    yield b":\n\n"
                    page = {"data": []}
                    continue
            if exchange.check_again:
                await exchange.check_again()
            seen = _watch.seen
            page = await _read(context, exchange, chosen)
        except ServiceError:
            return  # whoever comes back is told why


async def _read(context: GatewayContext, exchange: Exchange, chosen: dict[str, Any]) -> dict[str, Any]:
    async with _reading:
        page: dict[str, Any] = await context.ask(rpc.FEED, exchange, **chosen)
    return page


async def _page(context: GatewayContext, exchange: Exchange) -> Any:
    chosen = dict(exchange.arguments)
    return await context.ask(rpc.EVENTS, exchange, event_type=chosen.pop("type"), **chosen)
