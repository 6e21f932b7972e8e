"""Processes of services that begin as copies of one that has imported already what services import.

A run starts some hundred processes, and importing is most of what it takes to start one. So a *template* imports once, for all
workers of a run, and then waits to be copied (fork): a copy takes its arguments, environment, folder and outputs from whoever
asked, and runs its module as ``python -m`` does. From then on it is a process like any other. There are two templates, because
a worker makes the standard library cooperative before it imports anything.

Commands, the suite on PostgreSQL that the stories share, the images, and all else where STARTED_ANEW is set, are started as they
are deployed.
"""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.log_pipe import LoggedProcess
from tests.support.judges.operations import spending

ROOT = Path(__file__).resolve().parents[3]
FOLDER = "TEMPLATE_PROCESSES"
"""The variable that names the folder with the templates' sockets; where it is not set, every process is started anew."""
_MODULES = ("contracts.runtime.main", "services.", "tests.support.services.specimens")
"""How the names of the modules begin that are run in copies."""
_TEMPLATE = "tests.support.services.template_process"
_READY_WITHIN = 600
_WORD = struct.Struct("!i")

_going_on: set["ForkedProcess"] = set()
_templates: list[subprocess.Popen[bytes]] = []
"""Those that this process started. Without a name, Python would complain that nobody has waited for them."""


def going_on() -> list[str]:
    """What copies of this test process run still, by their arguments."""
    return [" ".join(process.arguments) for process in list(_going_on) if process.poll() is None]


def can_be_forked(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a copy would do the same: not where the loader, the kernel's filters or Python itself are told otherwise."""
    return (
        FOLDER in os.environ
        and "STARTED_ANEW" not in os.environ
        and list(arguments[:2]) == [sys.executable, "-m"]
        and arguments[2].startswith(_MODULES)
        and "LD_PRELOAD" not in environment
        and "Seccomp:\t0" in Path("/proc/thread-self/status").read_text()
    )


class ForkedProcess(LoggedProcess):
    """A process of a service: a copy of a template where that is the same, else started anew."""

    def begin(self, arguments: Sequence[str], output: int, errors: int, **options: Any) -> None:
        self._status: socket.socket | None = None
        self.arguments = list(arguments)
        if not can_be_forked(arguments, options["env"]):
            super().begin(arguments, output, errors, **options)
            return
        self.args = self.arguments
        self.stdin = self.stdout = self.stderr = None
        self.returncode: int | None = None
        self._asking = threading.Lock()
        self._status = _connected("worker" if _is_worker(arguments) else "plain")
        request = json.dumps(
            {
                "arguments": self.arguments[2:],
                "environment": dict(options["env"]),
                "folder": str(options["cwd"] or Path.cwd()),
                "new_session": options["start_new_session"],
            }
        ).encode()
        socket.send_fds(self._status, [_WORD.pack(len(request))], [output, errors])
        self._status.sendall(request)
        (self.pid,) = _WORD.unpack(_exactly(self._status, _WORD.size))
        _going_on.add(self)
        spending.entered(self.pid)

    def poll(self) -> int | None:
        if self._status is None:
            return super().poll()
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._status is None:
            return super().wait(timeout)
        status = self._ended(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return status

    def _ended(self, timeout: float | None) -> int | None:
        """The exit status, as Popen has it; None when the process did not end within the time."""
        assert self._status is not None
        if not self._asking.acquire(timeout=-1 if timeout is None else timeout):
            return None  # another thread waits
        try:
            if self.returncode is None:
                self._status.settimeout(timeout)
                (self.returncode,) = _WORD.unpack(_exactly(self._status, _WORD.size))
                self._status.close()
                _going_on.discard(self)
        except (BlockingIOError, TimeoutError):
            return None
        finally:
            self._asking.release()
        self.reader.finish()
        return self.returncode


def _is_worker(arguments: Sequence[str]) -> bool:
    """Whether the process will make the standard library cooperative."""
    return "serve" in arguments[3:] and arguments[2] != "services.gateway"


def _connected(kind: str) -> socket.socket:
    """A connection to the run's template of this kind; the first who asks starts it."""
    folder = Path(os.environ[FOLDER])
    path = folder / kind
    with (folder / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            command = [sys.executable, "-m", _TEMPLATE, str(path), (folder / "pid").read_text(), kind]
            with (folder / f"{kind}.log").open("ab") as log:
                template = subprocess.Popen(
                    command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            _templates.append(template)
            deadline = time.monotonic() + _READY_WITHIN
            while not path.exists():
                said = (folder / f"{kind}.log").read_text()
                assert template.poll() is None, f"the template of processes ended: {said}"
                assert time.monotonic() < deadline, f"the template of processes is not ready: {said}"
                time.sleep(0.05)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes. They come in one piece, or the other side is gone."""
    received = connection.recv(size)
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise ConnectionError("the template of processes has ended")
        received += piece
    return received


def open_folder() -> Path:
    """From now on, processes of services are copies until ``close_folder``, also those of the processes started from here."""
    folder = Path(tempfile.mkdtemp(prefix="templates-"))
    (folder / "pid").write_text(str(os.getpid()))
    os.environ[FOLDER] = str(folder)
    return folder


def close_folder() -> None:
    """The templates end with this process; their folder goes now."""
    shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)
