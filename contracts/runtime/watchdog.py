"""Cuts off what takes too long: one thread for all that is watched. A timer of its own for each call to somebody's server is a
thread that is made and ended for each of them."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contracts.runtime.monitoring import observe

log = observe.logger(__name__)


class Watchdog:
    """Starts its thread when something is to be watched first; a process that forks has none in its copy."""

    def __init__(self) -> None:
        self._watched: list[tuple[float, int, list[Callable[[], None]]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def within(self, seconds: float, cut: Callable[[], None]) -> Iterator[None]:
        """Call ``cut``, in another thread, unless this is left within so many seconds. It must not wait for anything. Raises
        RuntimeError when there can be no thread."""
        # Emptied when it is over: what is kept until then shall not keep connections.
        todo = [cut]
        with self._changed:
            if self._thread is None or not self._thread.is_alive():
                self._thread = thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
                thread.start()
            first = self._watched[0][0] if self._watched else None
            ends = time.monotonic() + seconds
            heapq.heappush(self._watched, (ends, next(self._numbers), todo))
            if first is None or ends < first:
                self._changed.notify()
        try:
            yield
        finally:
            todo.clear()

    def _watch(self) -> None:
        while True:
            for cut in self._next_over():
                try:
                    cut()
                except Exception:
                    log.exception("watchdog.failed")

    def _next_over(self) -> list[Callable[[], None]]:
        """Wait until something has to be cut off, or may have."""
        with self._changed:
            while self._watched and not self._watched[0][2]:
                heapq.heappop(self._watched)
            now = time.monotonic()
            if not self._watched:
                self._changed.wait()
            elif self._watched[0][0] > now:
                self._changed.wait(self._watched[0][0] - now)
            else:
                # A copy: whoever is done with it meanwhile empties the list.
                return list(heapq.heappop(self._watched)[2])
        return []


watchdog = Watchdog()
"""The one of this process."""
