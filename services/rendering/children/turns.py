"""Whose job comes next when there are more jobs than children. Only the standard library: see ``pool``."""

import threading
import time
from dataclasses import dataclass, field

QUICK = 1.0
"""Seconds that a quick job takes at most."""

_BOUND_FOR = 10
"""A caller is held to their share for that many times as long as their slow job took: they cannot often exceed it with one."""

_TRUSTED_FOR = 60.0
"""Seconds for which a quick job speaks for those of the same task that follow."""


@dataclass(eq=False)
class Turn:
    """One job of a caller; ``begun`` is when it began (monotonic seconds), None while it waits."""

    caller: str | None
    task: str
    begun: float | None = None


@dataclass
class _Caller:
    under_way: list[Turn] = field(default_factory=list)
    quick_until: dict[str, float] = field(default_factory=dict)
    bound_until: float = 0.0


class Turns:
    """At most ``size`` jobs at once. Of those who may begin, whoever has fewest jobs under way comes first, then who has waited
    longest: a line of one caller's jobs, however long, is no longer for others than its first one.

    A caller has ``share`` jobs at once, and more only while their jobs are known to be quick: they had one of the same task a
    moment ago, none under way has taken longer than ``QUICK``, and the last slow one is long ago. None is no caller and has
    no share. Thread-safe, and cooperative under eventlet.
    """

    def __init__(self, size: int, share: int) -> None:
        self._size, self._share = size, share
        self._changed = threading.Condition()
        self._waiting: list[Turn] = []
        self._callers: dict[str | None, _Caller] = {}
        self._under_way = 0

    @property
    def waiting(self) -> int:
        """Return how many jobs wait for a turn."""
        return len(self._waiting)

    def take(self, caller: str | None, wait: float, task: str = "") -> Turn | None:
        """Wait at most ``wait`` seconds for a turn, which ``give_back`` ends; None when there was none."""
        mine = Turn(caller, task)
        with self._changed:
            self._waiting.append(mine)
            try:
                if not self._changed.wait_for(lambda: self._next() is mine, wait):
                    return None
                mine.begun = time.monotonic()
                self._under_way += 1
                self._callers.setdefault(caller, _Caller()).under_way.append(mine)
                return mine
            finally:
                self._waiting.remove(mine)
                self._changed.notify_all()

    def give_back(self, turn: Turn) -> None:
        with self._changed:
            self._under_way -= 1
            state, moment = self._callers[turn.caller], time.monotonic()
            state.under_way.remove(turn)
            duration = moment - (turn.begun or moment)
            if duration <= QUICK:
                state.quick_until[turn.task] = moment + _TRUSTED_FOR
            else:
                state.bound_until = max(state.bound_until, moment + _BOUND_FOR * duration)
            self._forget(moment)
            self._changed.notify_all()

    def has_share_left(self, caller: str | None, task: str = "") -> bool:
        """False when it is the caller's own jobs that keep another one waiting."""
        state = self._callers.get(caller)
        if caller is None or state is None or len(state.under_way) < self._share:
            return True
        moment = time.monotonic()
        slow = any(moment - (turn.begun or moment) > QUICK for turn in state.under_way)
        return state.bound_until <= moment < state.quick_until.get(task, 0.0) and not slow

    def _next(self) -> Turn | None:
        if self._under_way >= self._size:
            return None
        ready = [turn for turn in self._waiting if self.has_share_left(turn.caller, turn.task)]
        return min(ready, key=lambda turn: self._count(turn.caller), default=None)

    def _count(self, caller: str | None) -> int:
        state = self._callers.get(caller)
        return 0 if caller is None or state is None else len(state.under_way)

    def _forget(self, moment: float) -> None:
        """Those of whom nothing is known that counts."""
        self._callers = {
            caller: state
            for caller, state in self._callers.items()
            if state.under_way or max([state.bound_until, *state.quick_until.values()]) > moment
        }
