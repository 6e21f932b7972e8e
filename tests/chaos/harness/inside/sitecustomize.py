"""Python runs this at the start of each process of a suite under test, when ``PYTHONPATH`` begins with this folder.
A copy of a fork server imports it when it begins.

CHAOS_CLOCK: a file with the seconds that the wall clock is ahead (or behind, negative), looked at every half second. Only the
wall clock leaps; what waits, waits by the other one, as on a real machine.

CHAOS_KILL_AT: ``kind:number``, such as ``commit:3``: kill -9 just before (``before-commit``) or after (``commit``) the n-th such
step of this process. Steps are commits, publishing to the broker and acknowledging a delivery, with ``before-`` and without.
"""

import os
import signal
import sys
import time
from collections import Counter
from typing import Any, ClassVar


def leap(file: str) -> None:
    true_time, true_time_ns, monotonic = time.time, time.time_ns, time.monotonic
    ahead, look_at = 0.0, 0.0

    def seconds() -> float:
        nonlocal ahead, look_at
        if monotonic() >= look_at:
            look_at = monotonic() + 0.5
            try:
                with open(file) as kept:  # noqa: PTH123 - nothing more is imported than must be
                    ahead = float(kept.read() or 0)
            except (OSError, ValueError):
                pass
        return ahead

    time.time = lambda: true_time() + seconds()
    time.time_ns = lambda: true_time_ns() + int(seconds() * 1e9)


class Steps:
    """Counts the steps of this process, and ends it at the one that was named."""

    def __init__(self, kill_at: str) -> None:
        self._kind, _, number = kill_at.partition(":")
        self._number = int(number or 0)
        self._counts: Counter[str] = Counter()

    def reached(self, kind: str) -> None:
        self._counts[kind] += 1
        if kind == self._kind and self._counts[kind] == self._number:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str, kind: str) -> None:
        done = getattr(owner, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            self.reached(f"before-{kind}")
            result = done(*arguments, **more)
            self.reached(kind)
            return result

        setattr(owner, name, counted)


class Watch:
    """Wraps what a step is as soon as its module has been imported: importing it here would be too early for eventlet. In a copy
    it has been imported already."""

    PLACES: ClassVar = {
        "sqlalchemy.engine.default": [("DefaultDialect", "do_commit", "commit")],
        "pika.channel": [("Channel", "basic_publish", "publish"), ("Channel", "basic_ack", "ack")],
    }

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        for name in self.PLACES.keys() & sys.modules.keys():
            self._wrap(sys.modules[name])

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.PLACES:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def then_wrapped(module: Any) -> None:
            execute(module)
            self._wrap(module)

        loader.exec_module = then_wrapped  # type: ignore[method-assign]
        return spec

    def _wrap(self, module: Any) -> None:
        for owner, function, kind in self.PLACES[module.__name__]:
            self._steps.around(getattr(module, owner), function, kind)


if clock := os.environ.get("CHAOS_CLOCK"):
    leap(clock)
if kill_at := os.environ.get("CHAOS_KILL_AT"):
    sys.meta_path.insert(0, Watch(Steps(kill_at)))
