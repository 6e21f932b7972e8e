"""Loops of a background process, run in threads of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from contracts.runtime.data.due_work.background import Loop


@contextmanager
def running(*loops: Loop, poll: float = 0.05) -> Iterator[None]:
    """They look every ``poll`` seconds, and have all come to their end when this is over."""
    threads = [threading.Thread(target=loop.run, daemon=True) for loop in loops]
    for loop, thread in zip(loops, threads, strict=True):
        loop.poll_seconds = poll
        thread.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.stop()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
