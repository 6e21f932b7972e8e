"""What a real thread wants done in the event loop of the green threads, which belongs to one thread and sleeps."""

import os
import posix
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from eventlet import hubs


class EventLoop:
    """One for a process, and for a copy of it another: see ``open``. The pipe never blocks, so that nothing patched is used."""

    def __init__(self) -> None:
        self._hub: Any = None
        self._calls: deque[Callable[[], None]] = deque()
        self._reader = self._writer = -1

    def open(self) -> None:
        """Take calls from now on. Called in the event loop, before anything may be asked of it."""
        hub = hubs.get_hub()
        if hub is self._hub:
            return
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        hub.add(hub.READ, self._reader, self._woken, lambda *_: None, lambda: None)
        self._hub = hub

    def call_soon(self, function: Callable[[], None]) -> None:
        """Have ``function`` called in the event loop. May be called from any thread."""
        self._calls.append(function)
        with suppress(BlockingIOError):  # full: it has been woken, and has yet to look
            posix.write(self._writer, b"\0")

    def _woken(self, _fileno: int) -> None:
        posix.read(self._reader, 4096)
        while self._calls:
            self._hub.schedule_call_global(0, self._calls.popleft())


event_loop = EventLoop()
