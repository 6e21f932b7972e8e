"""Whose job comes next when there are more jobs than children. Only the standard library: see ``pool``."""

import threading
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class _Waiting:
    caller: str | None


class Turns:
    """At most ``size`` jobs at once, ``share`` of them of one caller; None is no caller and has no share. Of those who may
    begin, whoever has fewest jobs under way comes first, then who has waited longest: a line of one caller's jobs,
    however long, is no longer for others than its first one. Thread-safe, and cooperative under eventlet.
    """

    def __init__(self, size: int, share: int) -> None:
        self._size, self._share = size, share
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._under_way: Counter[str | None] = Counter()

    @property
    def waiting(self) -> int:
        """How many jobs wait for a turn."""
        return len(self._waiting)

    def take(self, caller: str | None, wait: float) -> bool:
        """Wait at most ``wait`` seconds for a turn; True when there was one, which ``give_back`` ends."""
        mine = _Waiting(caller)
        with self._changed:
            self._waiting.append(mine)
            try:
                begun = self._changed.wait_for(lambda: self._next() is mine, wait)
                self._under_way[caller] += begun
            finally:
                self._waiting.remove(mine)
                self._changed.notify_all()
        return begun

    def give_back(self, caller: str | None) -> None:
        with self._changed:
            self._under_way[caller] -= 1
            self._under_way += Counter()  # forgets those who have none
            self._changed.notify_all()

    def has_share_left(self, caller: str | None) -> bool:
        """False when it is the caller's own jobs that keep another one waiting."""
        return caller is None or self._under_way[caller] < self._share

    def _next(self) -> _Waiting | None:
        if self._under_way.total() >= self._size:
            return None
        ready = [one for one in self._waiting if self.has_share_left(one.caller)]
        return min(ready, key=lambda one: 0 if one.caller is None else self._under_way[one.caller], default=None)
