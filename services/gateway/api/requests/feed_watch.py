"""Waiting for the end of the event log to move: one look at the service for all callers of this process who wait."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable

LOOK_AGAIN = 1.0
"""Seconds between looks, while anybody waits."""


class FeedWatch:
    """For one event loop. ``seen`` is the end of the log as it was seen last, None before the first look.

    Whoever reads the feed takes ``seen`` before, and waits for another end than that: an end that was seen before the reading
    is never newer than what was read, so no event comes between the two. At worst somebody reads once in vain.
    """

    def __init__(self, look_again: float = LOOK_AGAIN) -> None:
        self.seen: int | None = None
        self._look_again = look_again
        self._waiting: dict[asyncio.Future[None], int | None] = {}
        self._looking: asyncio.Task[None] | None = None
        self._looked_at = 0.0

    async def moved(self, end: int | None, look: Callable[[], Awaitable[int]], seconds: float) -> None:
        """Return when a look finds another end than ``end``, or after so many seconds. Raises what the look raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting[future] = end
        if self._looking is None or self._looking.done():
            # In nobody's name: it goes on when the one who began it has left.
            self._looking = loop.create_task(self._look(look), context=contextvars.Context())
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            pass
        finally:
            del self._waiting[future]

    async def _look(self, look: Callable[[], Awaitable[int]]) -> None:
        """As long as anybody waits, whoever began it."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(max(0.0, self._looked_at + self._look_again - clock()))
            if not self._waiting:
                return
            self._looked_at = clock()
            try:
                self.seen = await look()
            except Exception as error:  # whoever waits is told, as if they had asked themselves
                for future in self._waiting:
                    if not future.done():
                        future.set_exception(error)
                return
            for future, end in self._waiting.items():
                if end != self.seen and not future.done():
                    future.set_result(None)
