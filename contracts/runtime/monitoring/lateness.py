"""Measure how late an event loop is.

A loop that can say when it waits is measured in each of its rounds (``Rounds``). Besides, it is asked for a wake-up, to see how
much later that comes: of a process that has too little of a processor, the waiting is late. That is done often while the loop
is in use, and hardly ever while nothing happens: twenty wake-ups a second took a third of what an idle suite takes.
"""

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import Gauge

TICK_SECONDS = 0.05
"""The pause between two wake-ups while a loop is in use. Whatever measures sleeps this long in its own kind of loop and calls
``slept``. What keeps a loop for less may fall between two ticks and is not seen."""

IDLE_TICK_SECONDS = 2.0
"""The pause while nothing happens."""

_IDLE_ROUNDS = 10
"""So many rounds a second, besides that of the wake-up itself, are no use of a loop: timers and heartbeats make some."""

_NOTICEABLE_SECONDS = 0.0025

_WINDOW_SECONDS = 60.0


class Lateness:
    """The maximum of the last minute, as the gauge ``countersign_event_loop_late_seconds``. One per process."""

    def __init__(self) -> None:
        self._worst: list[tuple[float, float]] = []
        gauge = Gauge(
            "countersign_event_loop_late_seconds", "The latest that the event loop was within the last minute"
        )
        gauge.set_function(self.worst)

    def slept(self, asked_at: float, seconds: float = TICK_SECONDS) -> None:
        """A sleep of so many seconds that began at ``asked_at`` (monotonic) is over."""
        self.note(asked_at, time.monotonic() - asked_at - seconds)

    def note(self, at: float, late: float) -> None:
        """Something at that moment (monotonic) came ``late`` seconds late."""
        if late > _NOTICEABLE_SECONDS:
            # Only what is not outdone by something later and worse can ever be the maximum.
            while self._worst and self._worst[-1][1] <= late:
                self._worst.pop()
            self._worst.append((at, late))

    def worst(self) -> float:
        """Seconds."""
        since = time.monotonic() - _WINDOW_SECONDS
        self._worst = [(at, late) for at, late in self._worst if at >= since]
        return max((late for _, late in self._worst), default=0.0)


class Rounds:
    """Stands for the function by which an event loop waits until something is ready, for ``seconds`` at most, and measures the
    loop's rounds: what becomes ready while one is under way waits for its end. None is missed."""

    def __init__(self, lateness: Lateness, wait: Callable[[float], Any]) -> None:
        self._lateness, self._wait = lateness, wait
        self._began = time.monotonic()
        self._count = self._seen = 0
        self._pause = IDLE_TICK_SECONDS

    def __call__(self, seconds: float) -> Any:
        self._lateness.note(self._began, time.monotonic() - self._began)
        self._count += 1
        try:
            return self._wait(seconds)
        finally:
            self._began = time.monotonic()

    def pause(self) -> float:
        """Return after how many seconds the loop is to be asked for the next wake-up."""
        rounds, self._seen = self._count - self._seen, self._count
        self._pause = IDLE_TICK_SECONDS if rounds <= 1 + _IDLE_ROUNDS * self._pause else TICK_SECONDS
        return self._pause
