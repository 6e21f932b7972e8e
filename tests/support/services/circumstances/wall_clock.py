"""A wall clock that a test puts forward and back, for everything in this process that asks ``contracts.runtime.clock``."""

import time

import pytest

from contracts.runtime import clock


class WallClock:
    """Stands for the module ``time`` in ``clock``. ``stopped``: time passes only by ``pass_by``. ``stopped_at``: the same, with
    what the wall clock and the monotonic one say at first, in nanoseconds."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, stopped: bool = False, stopped_at: tuple[int, int] | None = None
    ) -> None:
        self._leapt, self._passed = 0, 0
        self._stopped_at = stopped_at or ((time.time_ns(), time.monotonic_ns()) if stopped else None)
        monkeypatch.setattr(clock, "time", self)
        monkeypatch.setattr(clock, "_leaps", clock.Leaps())

    def leap(self, seconds: float) -> None:
        """Put it forward, or back when negative."""
        self._leapt += round(seconds * 1e9)

    def pass_by(self, seconds: float) -> None:
        """Both clocks go on by that."""
        self._passed += round(seconds * 1e9)

    def time_ns(self) -> int:
        return (self._stopped_at[0] if self._stopped_at else time.time_ns()) + self._passed + self._leapt

    def monotonic_ns(self) -> int:
        return (self._stopped_at[1] if self._stopped_at else time.monotonic_ns()) + self._passed

    def monotonic(self) -> float:
        return self.monotonic_ns() / 1e9
