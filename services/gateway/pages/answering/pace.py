"""Limit how often the scripts of a page may ask for what costs work and is not kept.

Counted in this process alone: it keeps one visitor from taking the machine, nothing depends on the exact number.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from contracts.errors import ServiceError

_MOST_KEYS = 10_000


class Pace:
    """``burst`` at once, then ``per_second``; for each key of its own."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_second, self._clock = burst, per_second, clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def _limit(self) -> dict[str, int]:
        """Return how many are allowed at once, and the seconds that it takes to have as many again."""
        return {"quota": self._burst, "window": max(1, round(self._burst / self._per_second))}

    def count(self, key: str) -> None:
        """Raises ServiceError("rate_limited") when it is too early, with ``retry_after`` in the details."""
        with self._lock:
            now = self._clock()
            tokens, before = self._buckets.pop(key, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - before) * self._per_second)
            is_early = tokens < 1
            self._buckets[key] = (tokens if is_early else tokens - 1, now)
            if len(self._buckets) > _MOST_KEYS:
                self._buckets.popitem(last=False)
        if is_early:
            seconds = max(1, round((1 - tokens) / self._per_second))
            reason = f"may be asked for again in {seconds} second{'' if seconds == 1 else 's'}"
            details = [{"field": "request", "reason": reason, "retry_after": seconds, **self._limit()}]
            raise ServiceError("rate_limited", "Too many requests. Wait a moment.", details)
