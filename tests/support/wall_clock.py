"""A wall clock that a test puts forward and back, for everything in this process that asks ``contracts.runtime.clock``."""

import time

import pytest

from contracts.runtime import clock


class WallClock:
    """Stands for the module ``time`` in ``clock``. ``stopped``: time passes only by ``pass_by``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, stopped: bool = False) -> None:
        self._leapt, self._passed = 0.0, 0.0
        self._stopped_at = (time.time(), time.monotonic()) if stopped else None
        monkeypatch.setattr(clock, "time", self)
        monkeypatch.setattr(clock, "_leaps", clock.Leaps())

    def leap(self, seconds: float) -> None:
        """Put it forward, or back when negative."""
        self._leapt += seconds

    def pass_by(self, seconds: float) -> None:
        """Both clocks go on by that."""
        self._passed += seconds

    def time(self) -> float:
        return (self._stopped_at[0] if self._stopped_at else time.time()) + self._passed + self._leapt

    def time_ns(self) -> int:
        return int(self.time() * 1e9)

    def monotonic(self) -> float:
        return (self._stopped_at[1] if self._stopped_at else time.monotonic()) + self._passed
