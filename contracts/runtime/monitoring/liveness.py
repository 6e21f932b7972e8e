"""Ends a process that cannot work any more, so that whoever started it starts it anew.

Each thread that a process cannot live without is watched: it says ``beat`` each time it comes round, ``rest`` when it waits to
be woken. One that has ended, or has not come round for its limit, ends the process with status 70 and its reason in the log.

The watcher is a thread of the operating system, also in a worker, where it notices an event loop that stands still. It counts
its own looks and reads no clock: while the whole process is stopped, or the machine asleep, it does not look either, and
nobody is found to be late for that.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from contracts.runtime import unpatched
from contracts.runtime.monitoring import observe

log = observe.logger(__name__)

LOOK_SECONDS = 5.0

ROUND_SECONDS = 90.0
"""The limit of an event loop or an I/O thread, whose rounds take milliseconds; its longest wait is an attempt to connect."""

TURN_SECONDS = 600.0
"""The limit of one turn of a background loop: it may wait for a database that is locked or restored and a broker that confirms
nothing, each for a bounded time, several times in a row. The limit also of what is ``under_way``."""

STATUS = 70

green_thread: Callable[[], Any] | None = None
"""Set by the worker: gives the green thread that runs."""

_watched: list["Watched"] = []


class Watched:
    """One thread that the process cannot live without, or something else that has to come round again and again."""

    _has_to = "come round"

    def __init__(self, name: str, limit: float | None = None) -> None:
        """``limit``: seconds, ROUND_SECONDS unless said otherwise."""
        self.name = name
        self._limit = ROUND_SECONDS if limit is None else limit
        self._rounds = self._seen = self._looks = 0
        self._resting = self._ended = False
        _watched.append(self)

    def beat(self) -> None:
        """It has come round. Costs next to nothing; may be called from any thread."""
        self._resting = False
        self._rounds += 1

    def rest(self) -> None:
        """It waits for somebody, which is as good as coming round, until the next ``beat``."""
        self._resting = True

    def run(self, function: Callable[[], None]) -> None:
        """Run the thread's function. Its return, or an exception, is a reason to end the process, unless ``finish`` was
        called."""
        try:
            function()
        finally:
            self._ended = True

    def finish(self) -> None:
        """It ends as it should, and is watched no longer."""
        if self in _watched:
            _watched.remove(self)

    def look(self) -> None:
        """Called by the watcher."""
        rounds = self._rounds
        self._looks = 0 if self._resting or rounds != self._seen else self._looks + 1
        self._seen = rounds

    @property
    def problem(self) -> str | None:
        """Return why the process cannot go on, if so."""
        if self._ended:
            return f"{self.name} has ended"
        if self._looks * LOOK_SECONDS >= self._limit:
            return f"{self.name} has not {self._has_to} for {self._limit:g} s"
        return None


class _Work(Watched):
    """Something that has an end."""

    _has_to = "ended"

    def __init__(self, name: str) -> None:
        super().__init__(name, TURN_SECONDS)
        self._green = green_thread() if green_thread is not None else None

    @property
    def stack(self) -> str:
        """Return where its green thread waits; empty when that is the one that runs, which the stack of a thread tells."""
        frame = getattr(self._green, "gr_frame", None)
        return "" if frame is None else _lines(frame)


@contextmanager
def under_way(name: str) -> Iterator[None]:
    """Watch a piece of work that ends by itself, within TURN_SECONDS: the handler of a call or an event, whose statements,
    locks and calls all have time limits. One that never ends keeps its message, and those that wait for its place, from
    everybody."""
    work = _Work(name)
    try:
        yield
    finally:
        work.finish()


def problems() -> list[str]:
    """List what is wrong with this process itself, whether or not database and broker are there. Empty when it lives."""
    return [problem for watched in tuple(_watched) if (problem := watched.problem) is not None]


def start(host: str, port: int, not_ready: Callable[[], list[str]]) -> observe.Health | None:
    """Begin to watch, for the rest of the process's life, and open the health port, unless ``port`` is 0."""
    unpatched.start_new_thread(_watch, ())
    return observe.Health(host, port, health, lambda: problems() + not_ready()).start() if port else None


def health() -> tuple[int, bytes]:
    """The answer to ``/healthz``: a status and JSON."""
    faults = problems()
    return (503, json.dumps({"status": "dead", "problems": faults}).encode()) if faults else (200, b'{"status": "ok"}')


def _watch() -> None:
    while True:
        unpatched.sleep(LOOK_SECONDS)
        for watched in tuple(_watched):
            watched.look()
        if faults := problems():
            _end(faults)


def _end(faults: list[str]) -> None:
    """Nothing here may keep the process from ending."""
    try:
        for thread, stack in _stacks():
            log.error("thread.stack", thread=thread, stack=stack)
        for work in [watched for watched in _watched if isinstance(watched, _Work) and watched.problem]:
            log.error("thread.stack", thread=work.name, stack=work.stack)
        log.critical("process.cannot_go_on", problems=faults)
        observe.flush()
    finally:
        os._exit(STATUS)


def _stacks() -> list[tuple[int, str]]:
    """Return where every thread of the operating system is at this moment."""
    current = unpatched.get_ident()
    frames = sys._current_frames().items()
    return [(thread, _lines(frame)) for thread, frame in frames if thread != current]


def _lines(frame: FrameType) -> str:
    return "".join(traceback.format_stack(frame, limit=-12))
