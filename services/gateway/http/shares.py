"""Limit how many calls that work on documents a user may have under way: the others wait here, where waiting takes nobody's
place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import Counter

from contracts.errors import ServiceError

REFUSED = Counter(
    "gateway_heavy_calls_refused_total", "Calls that were answered with 503 because their user had too many of the kind"
)

WAIT = 20.0
"""Seconds for one of the user's own calls to end: a document takes as long at most."""


@dataclass
class _Share:
    places: asyncio.Semaphore
    users: int = 0


class Shares:
    """``size`` places for each caller. For the event loop only."""

    def __init__(self, size: int, wait: float = WAIT) -> None:
        self._size, self._wait = size, wait
        self._shares: dict[str, _Share] = {}

    @asynccontextmanager
    async def place(self, caller: str) -> AsyncIterator[int]:
        """In the order in which they asked; tells how many are free then. Raises ServiceError("unavailable") when none becomes
        free in time."""
        share = self._shares.setdefault(caller, _Share(asyncio.Semaphore(self._size)))
        share.users += 1
        try:
            try:
                await asyncio.wait_for(share.places.acquire(), self._wait)
            except TimeoutError:
                REFUSED.inc()
                raise ServiceError(
                    "unavailable", "Too many of your documents are being processed. Try again."
                ) from None
            try:
                yield max(0, self._size - share.users)
            finally:
                share.places.release()
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[caller]
