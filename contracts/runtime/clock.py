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

NOTICED = 1_000_000_000
"""Nanoseconds by which the wall clock must differ from the monotonic one to have been put somewhere else: less is being kept
right."""

_EPOCH, _MICROSECOND = datetime.fromtimestamp(0, UTC), timedelta(microseconds=1)


def now() -> datetime:
    """The present moment, aware, UTC."""
    return _moment(time.time_ns())


class Leaps:
    """The leaps by which the wall clock was put forward and back while this process ran: it is compared with the monotonic one,
    which nobody can set. While a machine sleeps both the process and the monotonic clock stand still, so waking up is a leap,
    too.

    All in whole nanoseconds: in floating point, whether a period is over would depend on how long the machine has been up.
    """

    def __init__(self) -> None:
        self._difference = time.time_ns() - time.monotonic_ns()
        self._noticed: deque[tuple[int, int]] = deque(maxlen=100)
        self._put_back_in_all = 0
        self._lock = threading.Lock()

    def without(self, period: timedelta) -> datetime:
        """Now, less what the wall clock was put forward within the last ``period``.

        What was noted down up to ``period`` ago is never taken for older than it is. Those who compare with it later than that
        have waited for ``period`` in any case.
        """
        wall, since = time.time_ns(), time.monotonic_ns() - period // _MICROSECOND * 1000
        return _moment(wall - sum(leap for at, leap in self._look() if leap > 0 and at > since))

    def put_back(self) -> timedelta:
        """By how much the wall clock was put back, for as long as something noted down before that can lie ahead."""
        back = (-leap for at, leap in self._look() if leap < 0 and time.monotonic_ns() - at < -leap)
        return timedelta(microseconds=sum(back) // 1000)

    def put_back_in_all(self) -> timedelta:
        """By how much the wall clock was put back since this process was started: it grows with each time."""
        self._look()
        return timedelta(microseconds=self._put_back_in_all // 1000)

    def _look(self) -> list[tuple[int, int]]:
        """Leaps by the monotonic moment at which they were noticed."""
        with self._lock:
            monotonic = time.monotonic_ns()
            difference = time.time_ns() - monotonic
            leap = difference - self._difference
            if abs(leap) >= NOTICED:
                self._difference = difference
                self._noticed.append((monotonic, leap))
                self._put_back_in_all += max(0, -leap)
            return list(self._noticed)


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


_leaps = Leaps()


def without_leaps(period: timedelta) -> datetime:
    """See ``Leaps.without``: ``without_leaps(KEPT) - KEPT`` is a moment before which everything is surely older than KEPT."""
    return _leaps.without(period)


def put_back() -> timedelta:
    """See ``Leaps.put_back``."""
    return _leaps.put_back()


def put_back_in_all() -> timedelta:
    """See ``Leaps.put_back_in_all``."""
    return _leaps.put_back_in_all()


def uuid7() -> str:
    """A UUID of version 7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, then a fraction of the millisecond, then chance.

    Ids made by one process sort by the time they were made in, to about a quarter of a microsecond.
    """
    nanoseconds = time.time_ns()
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    fraction = rest * 4096 // 1_000_000
    number = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=number))
