"""Limit how many requests of visitors that hold a thread for long are under way in this process."""

import collections
import contextlib
import threading
from collections.abc import Iterator

from contracts.errors import ServiceError


class Turns:
    """At most ``size`` at once, and ``share`` of them for one visitor. Nobody waits: that would hold a thread, too."""

    def __init__(self, size: int, share: int) -> None:
        self._size, self._share = size, share
        self._lock = threading.Lock()
        self._under_way = collections.Counter[str]()

    @contextlib.contextmanager
    def turn(self, visitor: str) -> Iterator[None]:
        """Raises ServiceError("unavailable") when all turns are taken, or the visitor's share of them."""
        with self._lock:
            if self._under_way.total() >= self._size or self._under_way[visitor] >= self._share:
                raise ServiceError("unavailable", "Too many files are being checked. Try again in a moment.")
            self._under_way[visitor] += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way[visitor] -= 1
                self._under_way += collections.Counter()  # visitors without any are forgotten
