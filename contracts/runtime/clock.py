"""The time and time-ordered ids. Only entrypoints and background loops ask; rules get ``now`` as an argument.

The wall clock of a machine can be put forward or back while a process runs: by NTP, by an operator, or because the machine
slept. Whatever asks how long ago something was, and would lose or repeat something when the answer is too long, asks
``without_leaps``; what was due before the clock was put back is found with ``put_back``.
"""

import secrets
import threading
import time
import uuid
from collections import deque
from datetime import UTC, datetime, timedelta

NOTICED_SECONDS = 1.0
"""By how much the wall clock must differ from the monotonic one to have been put somewhere else: less is being kept right."""


def now() -> datetime:
    """The present moment, aware, UTC."""
    return datetime.fromtimestamp(time.time(), UTC)


class Leaps:
    """How the wall clock was put forward and back while this process ran: it is compared with the monotonic one, which nobody
    can set. While a machine sleeps both the process and the monotonic clock stand still, so waking up is a leap, too."""

    def __init__(self) -> None:
        self._difference = time.time() - time.monotonic()
        self._noticed: deque[tuple[float, float]] = deque(maxlen=100)
        self._lock = threading.Lock()

    def without(self, period: timedelta) -> datetime:
        """Now, less what the wall clock was put forward within the last ``period``.

        What was noted down up to ``period`` ago is never taken for older than it is. Those who compare with it later than that
        have waited for ``period`` in any case.
        """
        forward = sum(leap for at, leap in self._look() if leap > 0 and time.monotonic() - at < period.total_seconds())
        return datetime.fromtimestamp(time.time() - forward, UTC)

    def put_back(self) -> timedelta:
        """By how much the wall clock was put back, for as long as something noted down before that can lie ahead."""
        back = (-leap for at, leap in self._look() if leap < 0 and time.monotonic() - at < -leap)
        return timedelta(seconds=sum(back))

    def _look(self) -> list[tuple[float, float]]:
        """Leaps by the monotonic moment at which they were noticed."""
        with self._lock:
            monotonic = time.monotonic()
            difference = time.time() - monotonic
            leap = difference - self._difference
            if abs(leap) >= NOTICED_SECONDS:
                self._difference = difference
                self._noticed.append((monotonic, leap))
            return list(self._noticed)


_leaps = Leaps()


def without_leaps(period: timedelta) -> datetime:
    """See ``Leaps.without``: ``without_leaps(KEPT) - KEPT`` is a moment before which everything is surely older than KEPT."""
    return _leaps.without(period)


def put_back() -> timedelta:
    """See ``Leaps.put_back``."""
    return _leaps.put_back()


def uuid7() -> str:
    """A UUID of version 7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, then a fraction of the millisecond, then chance.

    Ids made by one process sort by the time they were made in, to about a quarter of a microsecond.
    """
    nanoseconds = time.time_ns()
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    fraction = rest * 4096 // 1_000_000
    number = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=number))
