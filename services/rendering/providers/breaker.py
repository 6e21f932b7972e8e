"""One home for who may call a provider that does not answer: nobody, for a few seconds, then one.

Hundreds of submissions wait for the same provider. When it is away each of them would wait for its own time-out and call again;
so after a few failures in a row all calls fail at once, and one after the other tries whether it is back. Each process knows
its own; a provider that is away has at most one call each ``LONGEST_PAUSE`` from each.
"""

import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

FAILURES = 3
"""In a row, after which nobody calls for a while."""

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 20.0
"""Seconds; it doubles with each failure."""

LONGEST_HOLD = 60.0
_TRIED_FOR = 60.0
"""Seconds after which whoever tried must have come back: a call takes less."""


class Open(Exception):
    """Not to be called now."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Breaker:
    """Thread-safe. ``admit`` before each call, then one of the others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0
        self._trying_since: float | None = None

    def admit(self) -> None:
        """Raises Open when the call is not to be made."""
        with self._lock:
            now = self._clock()
            if now < self._closed_until:
                raise Open(self._closed_until - now)
            if self._failures < FAILURES:
                return
            if self._trying_since is not None and now < self._trying_since + _TRIED_FOR:
                raise Open(self._trying_since + _TRIED_FOR - now)
            self._trying_since = now

    def succeeded(self) -> None:
        """It answered, whatever it said."""
        with self._lock:
            self._failures, self._trying_since, self._closed_until = 0, None, 0.0

    def failed(self) -> None:
        """It did not answer, or with a fault of its own."""
        with self._lock:
            self._failures += 1
            self._trying_since = None
            if self._failures >= FAILURES:
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures - FAILURES, 10))
                self._closed_until = max(self._closed_until, self._clock() + pause)

    def left(self) -> None:
        """It was not called after all."""
        with self._lock:
            self._trying_since = None

    def hold(self, seconds: float) -> None:
        """It answered that it wants fewer calls: none for that long, at most ``LONGEST_HOLD``."""
        with self._lock:
            self._trying_since = None
            self._closed_until = max(self._closed_until, self._clock() + min(seconds, LONGEST_HOLD))


_breakers: dict[str, Breaker] = {}
_lock = threading.Lock()


def breaker_of(url: str) -> Breaker:
    """The one of the provider at this URL, by scheme, host and port; of this process."""
    parts = urlsplit(url)
    with _lock:
        return _breakers.setdefault(f"{parts.scheme}://{parts.netloc}".lower(), Breaker())
