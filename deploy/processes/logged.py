"""Processes whose log is a pipe, as in a container, and the thread that writes what comes through it to a file."""

import contextlib
import fcntl
import os
import random
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FINISH_SECONDS = 5.0
"""How long the end of a log is waited for: a process that outlives its parent may hold the pipe open."""


class LoggedProcess(subprocess.Popen[bytes]):
    """A process with stdout and stderr in one pipe. Once its end was seen, ``log`` is complete.

    ``pause`` makes the reader slow: after each read it sleeps, for a random time of so many seconds at most.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        new_session: bool = False,
        pause: float = 0.0,
    ) -> None:
        read_end, write_end = os.pipe()
        self.reader = LogReader(read_end, log, pause)
        try:
            self.begin(arguments, write_end, write_end, env=env, cwd=cwd, start_new_session=new_session)
        finally:
            os.close(write_end)
            self.reader.start()

    def begin(self, arguments: Sequence[str], output: int, errors: int, **options: Any) -> None:
        """Start the process. Tests have other ways."""
        super().__init__(arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, **options)

    def poll(self) -> int | None:
        status = super().poll()
        if status is not None:
            self.reader.finish()
        return status

    def wait(self, timeout: float | None = None) -> int:
        status = super().wait(timeout)
        self.reader.finish()
        return status


class LogReader(threading.Thread):
    """Reads a pipe until its end and appends to a file. A file that cannot be written loses lines and stops nobody."""

    def __init__(self, pipe: int, log: Path, pause: float) -> None:
        super().__init__(name=f"log-{log.stem}", daemon=True)
        self._pipe = pipe
        self._log = log
        self._pause = pause
        self._chance = random.Random()  # its own: others count on theirs being left alone
        self._reading = threading.Lock()
        self._finishing = False

    def run(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        begun = b""
        with self._log.open("ab", buffering=0) as file:
            while True:
                poll.poll()
                with self._reading:
                    piece = os.read(self._pipe, 65536)
                    # Whole lines, because several processes may share a file.
                    whole, end, rest = (begun + piece).rpartition(b"\n")
                    begun = rest if piece else b""
                    with contextlib.suppress(OSError):
                        file.write(whole + end if piece else rest)
                if not piece:
                    break
                if self._pause and not self._finishing:
                    time.sleep(self._chance.uniform(0, self._pause))
        os.close(self._pipe)

    def finish(self) -> None:
        """Wait until everything is in the file, when nobody writes any more."""
        if not self._finishing:
            self._finishing = True
            self.join(FINISH_SECONDS)

    def catch_up(self) -> None:
        """Wait until what is in the pipe by now is in the file."""
        while self.is_alive():
            with self._reading:
                if not self.is_alive() or self._unread() == 0:
                    return
            time.sleep(0.002)

    def _unread(self) -> int:
        try:
            (size,) = struct.unpack("i", fcntl.ioctl(self._pipe, termios.FIONREAD, b"\0\0\0\0"))
        except OSError:
            return 0
        return int(size)
