"""Writes lines to a file descriptor that may be anything: a file, a pipe whose reader is slow, stopped or gone, a terminal.

Writing never raises, never waits and never switches green threads. A line that cannot be written now waits in a bounded
buffer, which a thread of the operating system empties; what does not fit is dropped, counted and told of. Lines keep their
order, and those of several processes that write into one pipe are never mixed: each is written with one system call of at
most ``LONGEST_LINE`` bytes, which a pipe takes wholly or not at all.
"""

import contextlib
import os
import posix
import stat
from collections import deque
from collections.abc import Callable
from typing import Any

from contracts.runtime import unpatched

LONGEST_LINE = 4096
"""Bytes with the line's end: what Linux writes to a pipe at once (PIPE_BUF)."""

MOST_WAITING = 5000
"""Lines."""


class LineWriter:
    """Writes to ``descriptor``. ``tell_dropped(n)`` returns the line that says that ``n`` lines were dropped."""

    def __init__(
        self, descriptor: int, tell_dropped: Callable[[int], bytes], *, most_waiting: int = MOST_WAITING
    ) -> None:
        self.dropped = 0
        """Lines, since the process began."""
        self._descriptor = descriptor
        self._tell_dropped = tell_dropped
        self._reported = 0
        self._cut_off = False
        """The disk was full in the middle of a line: the next one must not be mixed with it."""
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._emptying = unpatched.allocate_lock()
        self._target = _Target(descriptor)

    def write(self, line: bytes) -> None:
        """Write ``line`` and a line's end. What is longer than LONGEST_LINE is cut into several lines."""
        for start in range(0, len(line) or 1, LONGEST_LINE - 1):
            self._write(line[start : start + LONGEST_LINE - 1] + b"\n")

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written, for ``seconds`` at most. This does block: for the end of a process."""
        end = unpatched.monotonic() + seconds
        while self._waiting or self._emptying.locked():
            if unpatched.monotonic() > end:
                return False
            unpatched.sleep(0.005)
        return True

    def _write(self, line: bytes) -> None:
        if self._waiting or self._emptying.locked():
            self._hand_over(line)
            return
        try:
            descriptor = self._current_target().ready()
            if descriptor is None or self._cut_off:
                self._hand_over(line)
                return
            written = posix.write(descriptor, line)
        except BlockingIOError:
            self._hand_over(line)
        except OSError:
            self.dropped += 1  # nobody reads, or the disk is full
        else:
            if written < len(line):
                self._hand_over(line[written:], rest=True)
            elif self.dropped > self._reported:
                self._begin_emptying()

    def _hand_over(self, line: bytes, *, rest: bool = False) -> None:
        if len(self._waiting) >= self._most_waiting:
            self.dropped += 1
            return
        self._waiting.append((line, rest))
        self._begin_emptying()

    def _begin_emptying(self) -> None:
        if self._emptying.acquire(False):
            try:
                unpatched.start_new_thread(self._empty, ())
            except RuntimeError:  # no thread to be had: the next line asks again
                self._emptying.release()

    def _empty(self) -> None:
        while True:
            while self._waiting:
                if not self._write_out(*self._waiting.popleft()):
                    self.dropped += 1
            dropped = self.dropped - self._reported
            if dropped and self._write_out(self._tell_dropped(dropped) + b"\n", rest=False):
                self._reported += dropped
                continue
            self._emptying.release()
            # Somebody may have left a line since the last look, and seen that it is being emptied.
            if not self._waiting or not self._emptying.acquire(False):
                return

    def _write_out(self, line: bytes, rest: bool) -> bool:
        """Write all of it, however long that takes: on a thread that nobody waits for. False when it cannot be written."""
        if self._cut_off and not rest:
            line = b"\n" + line
        size = len(line)
        while line:
            try:
                target = self._current_target()
                descriptor = self._descriptor if target.takes_at_once is None else target.takes_at_once
                line = line[posix.write(descriptor, line) :]
            except BlockingIOError:
                poll = unpatched.poll()
                poll.register(descriptor, unpatched.POLLOUT)
                poll.poll(1000)
            except OSError:
                self._cut_off = self._cut_off or rest or len(line) < size
                return False
        self._cut_off = False
        return True

    def _current_target(self) -> "_Target":
        if not self._target.is_still_meant():
            self._target = _Target(self._descriptor)
        return self._target


class _Target:
    """The file behind a descriptor: ``takes_at_once`` is a descriptor on which writing never waits, None when there is none.

    A pipe may belong to somebody else and not be opened anew: that of a container does. A pipe that is ready takes PIPE_BUF
    bytes without a wait (``man 7 pipe``, ``man 2 poll``), so it is asked before each line.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._own: int | None = None
        self._identity: tuple[int, int] | None = None
        self.takes_at_once: int | None = None
        self._pipe: Any = None
        with contextlib.suppress(OSError):
            self._look()

    def _look(self) -> None:
        status = posix.fstat(self._descriptor)
        self._identity = status.st_dev, status.st_ino
        if stat.S_ISREG(status.st_mode):
            self.takes_at_once = self._descriptor
        elif stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode):
            if stat.S_ISFIFO(status.st_mode):
                self._pipe = unpatched.poll()
                self._pipe.register(self._descriptor, unpatched.POLLOUT)
            # Opened anew, because O_NONBLOCK would else apply to every process that shares the pipe or the terminal.
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            self.takes_at_once = self._own = posix.open(f"/proc/self/fd/{self._descriptor}", flags)

    def ready(self) -> int | None:
        """The descriptor on which a line can be written now without a wait, None when there is none."""
        if self.takes_at_once is None and self._pipe is not None and self._pipe.poll(0):
            return self._descriptor
        return self.takes_at_once

    def is_still_meant(self) -> bool:
        """False when the descriptor was pointed at something else meanwhile. Raises OSError when it is closed."""
        status = posix.fstat(self._descriptor)
        return self._identity == (status.st_dev, status.st_ino)

    def __del__(self) -> None:
        if self._own is not None:
            with contextlib.suppress(OSError):
                posix.close(self._own)
