"""Measure how late an event loop is: ask it for a wake-up and look how much later that comes."""

import time

from prometheus_client import Gauge

TICK_SECONDS = 0.05
"""The pause between two wake-ups. Whatever measures sleeps this long in its own kind of loop and calls ``slept``. What keeps a
loop for less may fall between two ticks and is not seen; five times as often takes half of what an idle suite takes of a
processor."""

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

    def slept(self, asked_at: float) -> None:
        """A sleep of TICK_SECONDS that began at ``asked_at`` (monotonic) is over."""
        late = time.monotonic() - asked_at - TICK_SECONDS
        if late > _NOTICEABLE_SECONDS:
            # Only what is not outdone by something later and worse can ever be the maximum.
            while self._worst and self._worst[-1][1] <= late:
                self._worst.pop()
            self._worst.append((asked_at, late))

    def worst(self) -> float:
        """Seconds."""
        since = time.monotonic() - _WINDOW_SECONDS
        self._worst = [(at, late) for at, late in self._worst if at >= since]
        return max((late for _, late in self._worst), default=0.0)
