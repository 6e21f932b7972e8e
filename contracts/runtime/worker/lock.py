"""A worker's lock: green threads wait for it cooperatively, real threads really.

On SQLite, database code runs in real threads beside the event loop's green ones. eventlet's own lock knows green threads of
one event loop only: a real thread that waits for it sleeps in an event loop of its own, which nobody wakes, and what that
thread holds is never free again. Libraries take locks where one does not expect it (pydantic completes a model under one,
Babel loads a locale, SQLAlchemy numbers sessions), so that ``patch`` puts this lock in the place of eventlet's everywhere.
"""

import time
from collections import deque
from types import TracebackType

from eventlet import hubs, patcher
from eventlet.support.greenlets import getcurrent

from contracts.runtime.worker.event_loop import event_loop

_thread = patcher.original("_thread")

LONGEST_WAIT_SECONDS = 0.2
"""After so long a green thread looks again by itself, should nobody have woken it: whoever frees a lock wakes the next one, a
real thread through the event loop. Each look is a round of the event loop."""


class Lock:
    """As ``threading.Lock``; those that wait are served in the order in which they came, real threads excepted."""

    green_thread = _thread.get_ident()
    """The real thread in which green threads run: the one that imports this."""

    def __init__(self, _value: int = 1) -> None:
        self._lock = _thread.allocate_lock()
        self._waiting: deque[object] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """True when the lock is ours now. ``timeout`` is in seconds, -1 for as long as it takes."""
        if (not self._waiting or not blocking) and self._lock.acquire(False):
            return True
        if not blocking:
            return False
        if _thread.get_ident() != self.green_thread:
            return bool(self._lock.acquire(True, -1 if timeout is None else timeout))
        return self._wait(None if timeout is None or timeout < 0 else time.monotonic() + timeout)

    def release(self) -> None:
        """Raises RuntimeError when nobody holds the lock."""
        self._lock.release()
        if not self._waiting:
            return
        if _thread.get_ident() == self.green_thread:
            hubs.get_hub().schedule_call_global(0, self._wake)
        else:
            event_loop.call_soon(self._wake)

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def _wait(self, until: float | None) -> bool:
        hub, this = hubs.get_hub(), getcurrent()
        event_loop.open()
        self._waiting.append(this)
        try:
            while not (self._waiting[0] is this and self._lock.acquire(False)):
                delay = LONGEST_WAIT_SECONDS
                if until is not None:
                    delay = min(delay, until - time.monotonic())
                if delay <= 0:
                    return False
                timer = hub.schedule_call_global(delay, this.switch)
                try:
                    hub.switch()
                finally:
                    timer.cancel()
            return True
        finally:
            self._waiting.remove(this)
            if self._waiting and not self._lock.locked():  # given up just when it became free: the next one's turn
                hub.schedule_call_global(0, self._wake)

    def _wake(self) -> None:
        if self._waiting and not self._lock.locked():
            self._waiting[0].switch()  # type: ignore[attr-defined]

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()
        self._waiting.clear()
