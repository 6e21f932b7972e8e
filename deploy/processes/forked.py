"""Processes of services that begin as copies of one that has imported already what services import.

Importing is most of what it takes to start one, and what was imported is a third of the memory that it needs. So a *fork
server* imports once, and then waits to be copied (fork): a copy takes its arguments, environment, folder and outputs from
whoever asked, and runs its module as ``python -m`` does. From then on it is a process like any other, and shares with the
others what none of them changes. There are two fork servers, because a worker makes the standard library cooperative before it
imports anything.

This is for services that run side by side on one machine (``make up``). In containers each is started by itself.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.processes.logged import LoggedProcess
from deploy.services import ROOT

KINDS = ("worker", "plain")
_READY_WITHIN = 600.0
_LONGEST_PARENT = 74
"""Bytes. A socket's address may have 107, and the folder's name and the socket's own come after it (unix(7))."""
_WORD = struct.Struct("!i")


class ForkServerFailed(Exception):
    """A fork server ended while it imported, or was not ready in time; the message names it and has the end of its log."""


class ForkServers:
    """The fork servers of ``run``, a process with whose end they end. Several processes may share them by their folder."""

    def __init__(self, folder: Path, run: int, module: str = "deploy.processes.fork_server") -> None:
        self.folder = folder
        self._run = run
        self._module = module
        self._started: list[subprocess.Popen[bytes]] = []
        """Those that this process started. Without a name, Python would complain that nobody has waited for them."""

    @classmethod
    def of_this_process(cls) -> "ForkServers":
        """Return those that end with this process, in a folder that nobody else may enter. It is in TMPDIR, unless the address
        of a socket there would be longer than the system takes."""
        parent = tempfile.gettempdir()
        short = parent if len(os.fsencode(parent)) <= _LONGEST_PARENT else "/tmp"  # noqa: S108 - nobody else may enter it
        return cls(Path(tempfile.mkdtemp(prefix="fork-servers-", dir=short)), os.getpid())

    def close(self) -> None:
        """End those that this process has started, and remove their folder. Copies that run go on."""
        for server in self._started:
            server.terminate()
            server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pids(self) -> list[int]:
        """The processes of those that this process has started."""
        return [server.pid for server in self._started]

    def begin(self) -> None:
        """Have them import already. Who asks for a copy then waits less."""
        for kind in KINDS:
            threading.Thread(target=self._begin, args=(kind,), name=f"fork server, {kind}", daemon=True).start()

    def _begin(self, kind: str) -> None:
        with contextlib.suppress(ForkServerFailed, OSError):  # the first who asks for a copy hears of it
            self._ready(kind)

    def start(self, arguments: Sequence[str], log: Path, **options: Any) -> "ForkedProcess":
        """Start a process, as LoggedProcess does."""
        return ForkedProcess(arguments, log, servers=self, **options)

    def connect(self, kind: str) -> socket.socket:
        """Return a connection to the fork server of this kind; who asks first starts it. Raises ForkServerFailed when it does
        not start, and OSError when it is gone."""
        path = self._ready(kind)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            raise
        return connection

    def _ready(self, kind: str) -> Path:
        """Return the path of its socket, when it is there."""
        path = self.folder / kind
        with (self.folder / f"{kind}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                self._start(path)
        return path

    def _start(self, path: Path) -> None:
        command = [sys.executable, "-m", self._module, str(path), str(self._run), path.name]
        log = path.with_suffix(".log")
        with log.open("ab") as output:
            server = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._started.append(server)
        deadline = time.monotonic() + _READY_WITHIN
        while not path.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                raise ForkServerFailed(f"the fork server of {path.name} did not start.\n{log.read_text()[-3000:]}")
            time.sleep(0.02)


class ForkedProcess(LoggedProcess):
    """A process of a service: a copy of a fork server's where that is the same, else started anew."""

    modules: tuple[str, ...] = ("contracts.runtime.main", "services.")
    """How the names of the modules begin that are run in copies."""

    def __init__(self, arguments: Sequence[str], log: Path, *, servers: ForkServers | None, **options: Any) -> None:
        self._servers = servers
        self._status: socket.socket | None = None
        super().__init__(arguments, log, **options)

    @property
    def is_copy(self) -> bool:
        return self._status is not None

    def can_be_copied(self, arguments: Sequence[str], environment: dict[str, str]) -> bool:
        """Whether a copy would do the same: not where the loader or Python itself are told otherwise."""
        return (
            self._servers is not None
            and list(arguments[:2]) == [sys.executable, "-m"]
            and arguments[2].startswith(self.modules)
            and "LD_PRELOAD" not in environment
        )

    def begin(self, arguments: Sequence[str], output: int, errors: int, **options: Any) -> None:
        if not self.can_be_copied(arguments, options["env"]) or not self._copy(arguments, output, errors, **options):
            super().begin(arguments, output, errors, **options)

    def _copy(self, arguments: Sequence[str], output: int, errors: int, **options: Any) -> bool:
        """Become a copy; False when its fork server is gone."""
        assert self._servers is not None
        request = json.dumps(
            {
                "arguments": list(arguments[2:]),
                "environment": dict(options["env"]),
                "folder": str(options["cwd"] or Path.cwd()),
                "new_session": options["start_new_session"],
            }
        ).encode()
        with contextlib.ExitStack() as left:
            try:
                status = left.enter_context(self._servers.connect("worker" if _is_worker(arguments) else "plain"))
                socket.send_fds(status, [_WORD.pack(len(request))], [output, errors])
                status.sendall(request)
                (pid,) = _WORD.unpack(_exactly(status, _WORD.size))
            except OSError:
                return False
            left.pop_all()
        self.args = list(arguments)
        self.stdin = self.stdout = self.stderr = None
        self.pid = pid
        self.returncode: int | None = None
        self._status, self._asking = status, threading.Lock()
        self._end: int | None = None
        with contextlib.suppress(ProcessLookupError):  # it has ended, and its fork server knows how
            self._end = os.pidfd_open(pid)
        return True

    def poll(self) -> int | None:
        return self._ended(0) if self.is_copy else super().poll()

    def wait(self, timeout: float | None = None) -> int:
        if not self.is_copy:
            return super().wait(timeout)
        status = self._ended(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return status

    def _ended(self, timeout: float | None) -> int | None:
        """Return the exit status, as Popen has it; None when the process did not end within the time."""
        assert self._status is not None
        if not self._asking.acquire(timeout=-1 if timeout is None else timeout):
            return None  # another thread waits
        try:
            if self.returncode is None:
                if not self._has_ended(timeout):
                    return None
                self.returncode = self._exit_status()
        finally:
            self._asking.release()
        self.reader.finish()
        return self.returncode

    def _has_ended(self, timeout: float | None) -> bool:
        """Ask the process itself: a fork server may be killed, and its copies go on."""
        if self._end is None:
            return True
        waiting = select.poll()
        waiting.register(self._end, select.POLLIN)
        if not waiting.poll(None if timeout is None else timeout * 1000):
            return False
        os.close(self._end)
        self._end = None
        return True

    def _exit_status(self) -> int:
        """Return what the fork server says of it. When that is gone nobody knows how its copy ended: as if it was killed."""
        assert self._status is not None
        with self._status:
            self._status.settimeout(None)
            try:
                (status,) = _WORD.unpack(_exactly(self._status, _WORD.size))
            except OSError:
                return -signal.SIGKILL
        return int(status)


def _is_worker(arguments: Sequence[str]) -> bool:
    """Whether the process will make the standard library cooperative."""
    return "serve" in arguments[3:] and arguments[2] != "services.gateway"


def _exactly(connection: socket.socket, size: int) -> bytes:
    """Return so many bytes. They come in one piece, or the other side is gone."""
    received = connection.recv(size)
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise ConnectionError("the fork server has ended")
        received += piece
    return received
