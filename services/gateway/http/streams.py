"""Answers that go on: how many may be open, when they end, and that none outlives its client.

A stream is a task that waits, and a connection. So that they take nothing from other calls, each user has a few, and this
process a limit for all of them; their reading of the log takes turns (see ``api.events``).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import Gauge

from contracts.errors import ServiceError
from contracts.runtime.monitoring import observe
from services.gateway.http import rate_limits
from services.gateway.http.exchange import Stream

log = observe.logger(__name__)

OPEN = Gauge("gateway_event_streams", "Streams of events that are open in this process")

MOST = 100
"""Streams of all users in this process."""
PATIENCE = 30.0
"""Seconds that a client may leave what it was sent untaken; then it is taken for gone."""
TRY_AGAIN = 30

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass
class Streams:
    """Those that are open in this process. For one event loop."""

    _open: Counter[str] = field(default_factory=Counter)
    _ending: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, caller: str, per_user: int) -> int:
        """Take a place for a stream of this caller, and return how many are left to them. Raises ServiceError: ``rate_limited``
        when they have as many as they may, ``unavailable`` when all callers together do, or the process ends."""
        if self._ending.is_set() or self._open.total() >= MOST:
            raise ServiceError("unavailable", "Too many event streams are open. Try again in a moment.")
        if self._open[caller] >= per_user:
            reason = f"must not be repeated while {per_user} streams of this user are open"
            detail = {"field": "request", "reason": reason, "retry_after": TRY_AGAIN, "quota": per_user}
            details = [{**detail, "policy": rate_limits.STREAMS}]
            raise ServiceError("rate_limited", "You have too many event streams open.", details)
        self._open[caller] += 1
        OPEN.set(self._open.total())
        return per_user - self._open[caller]

    def leave(self, caller: str) -> None:
        """Give the place back."""
        self._open[caller] -= 1
        if not self._open[caller]:
            del self._open[caller]
        OPEN.set(self._open.total())

    def end(self) -> None:
        """Have all streams end in good order: the process is to stop, and clients go on elsewhere."""
        self._ending.set()

    async def run(self, stream: Stream, send: Send, receive: Receive) -> None:
        """Send a stream until it is over, its client leaves or takes nothing any more, or the process is to stop."""
        head = {"content-type": stream.media_type, **{name.lower(): value for name, value in stream.headers.items()}}
        endings = [
            asyncio.ensure_future(_wait_until_client_leaves(receive)),
            asyncio.ensure_future(self._ending.wait()),
        ]
        try:
            headers = [(name.encode(), value.encode("latin-1")) for name, value in head.items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while (piece := await _next(stream.pieces, endings)) is not None:
                async with asyncio.timeout(PATIENCE):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            log.info("stream.untaken")  # the server closes the connection of an answer that has no end
        finally:
            for ending in endings:
                ending.cancel()
            with suppress(RuntimeError):
                await stream.pieces.aclose()


async def _next(pieces: AsyncGenerator[bytes, None], endings: Sequence["asyncio.Future[Any]"]) -> bytes | None:
    """The next piece; None when there is none, or one of the others has come first."""
    coming = asyncio.ensure_future(anext(pieces, None))
    try:
        await asyncio.wait([coming, *endings], return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        if not coming.done():
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await coming


async def _wait_until_client_leaves(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
