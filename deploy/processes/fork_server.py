"""What processes of services are copies of, see ``forked``: it imports, waits, and in each copy becomes a process of a service.

Little is imported here: a worker makes the standard library cooperative before it imports anything.

    python -m deploy.processes.fork_server SOCKET PID worker | plain
"""

import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contracts.runtime import garbage
from deploy.services import SERVICES, WORKERS

_IMPORTS = {
    "worker": ("contracts.runtime.worker.serve", *(f"services.{name}.service" for name in WORKERS)),
    "plain": (
        "contracts.runtime.process",
        "contracts.runtime.operations.checking",
        "alembic.command",
        *(f"services.{name}.background" for name in SERVICES),
        *(f"services.{name}.service" for name in WORKERS),  # which say what is to be declared
        "services.gateway.app",
        "uvicorn.protocols.http.httptools_impl",
        "uvicorn.loops.uvloop",
    ),
}
_MAKE: dict[str, tuple[tuple[str, str], ...]] = {
    "worker": (),
    "plain": (
        ("services.gateway.http.openapi.specification", "version"),
        ("services.gateway.pages.answering.static_files", "StaticFiles"),
    ),
}
"""Functions that keep, once they were called, what they read or made, on which no setting has a bearing."""
_WORD = struct.Struct("!i")
_Socket, _select = socket.socket, select.select
"""As they are before anything is made cooperative."""


class ForkServer:
    """Waits to be copied. It ends with the process ``run``."""

    def __init__(self, path: Path, run: int) -> None:
        self._path = path
        self._copies: dict[int, socket.socket] = {}
        self._listening = socket.socket(socket.AF_UNIX)
        self._run = os.pidfd_open(run)
        self._woken, self._wakes = socket.socketpair()
        for end in (self._woken, self._wakes):
            end.setblocking(False)

    def listen(self) -> None:
        """From now on it can be asked."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno())
        being_made = self._path.with_suffix(".new")
        self._listening.bind(str(being_made))
        self._listening.listen(64)
        being_made.rename(self._path)

    def wait(self) -> dict[str, Any] | None:
        """What a copy is to do, in the copy; None when the run is over."""
        watched: list[Any] = [self._listening, self._woken, self._run]
        while True:
            ready, _, _ = _select(watched, [], [])
            if self._woken in ready:
                self._woken.recv(4096)
                self._tell_ended()
            if self._listening in ready:
                descriptor, _ = self._listening._accept()  # type: ignore[attr-defined]
                request = self._copied(_Socket(fileno=descriptor))
                if request is not None:
                    return request
            if self._run in ready:
                return None

    def _copied(self, connection: socket.socket) -> dict[str, Any] | None:
        """What the copy is to do, in the copy; None in the fork server, which tells whoever asked the copy's number."""
        try:
            size, outputs, _, _ = socket.recv_fds(connection, _WORD.size, 2)
            (length,) = _WORD.unpack(size)
            request = json.loads(connection.recv(length, socket.MSG_WAITALL))
        except (OSError, ValueError, struct.error):  # whoever asked was killed
            connection.close()
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # eventlet warns of forks, for what runs; nothing does yet
            pid = os.fork()
        if pid == 0:
            os.close(self._run)
            for left in (connection, self._listening, self._woken, self._wakes, *self._copies.values()):
                left.close()
            become(request, outputs)
            return request  # type: ignore[no-any-return]
        for output in outputs:
            os.close(output)
        self._copies[pid] = connection
        self._tell(connection, pid)
        return None

    def _tell_ended(self) -> None:
        while self._copies:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with self._copies.pop(pid) as connection:
                self._tell(connection, os.waitstatus_to_exitcode(status))

    def _tell(self, connection: socket.socket, word: int) -> None:
        """Whoever asked may be gone."""
        try:
            connection.sendall(_WORD.pack(word))
        except OSError:
            return


def become(request: dict[str, Any], outputs: list[int]) -> None:
    """Be as the process would be that was started anew."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if request["new_session"]:
        os.setsid()
    for target, output in zip((1, 2), outputs, strict=True):
        os.dup2(output, target)
        os.close(output)
    # What is read when the database's and the cooperative library's modules are imported stays as it was then.
    kept = {name: os.environ[name] for name in ("PSYCOPG_WAIT_FUNC", "EVENTLET_NO_GREENDNS") if name in os.environ}
    os.environ.clear()
    os.environ.update(kept | request["environment"])
    time.tzset()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None  # type: ignore[attr-defined]
    os.chdir(request["folder"])
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through="PYTHONUNBUFFERED" in os.environ)  # type: ignore[union-attr]
    sys.argv = request["arguments"]
    Path("/proc/self/comm").write_text(_name(*sys.argv))
    garbage.begin_again()
    if "eventlet" in sys.modules:
        # The loop of green threads waits by epoll. A copy shares the fork server's with all others, and each would wake all
        # for ever.
        sys.modules["eventlet.hubs"].use_hub()


def _name(module: str, *arguments: str) -> str:
    """Return what ``top`` and ``ps -e`` call the process: its service, or what it does for several; 15 characters at most."""
    return module.rpartition(".")[2] if module.startswith("services.") or not arguments else arguments[0]


def main(
    path: Path,
    run: int,
    kind: str,
    prepare: Callable[[str], None] = lambda _: None,
    begin_copy: Callable[[], None] = lambda: None,
) -> None:
    """Import, wait, and be the module that a copy is to be. ``prepare``: what is to be done with what was imported;
    ``begin_copy``: what each copy is to do before that, with its own environment."""
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # as contracts.runtime.main does
    garbage.seldom()
    server = ForkServer(path, run)
    if kind == "worker":
        from contracts.runtime.worker.patch import patch

        patch()
    for module in _IMPORTS[kind]:
        importlib.import_module(module)
    for module, function in _MAKE[kind]:
        getattr(importlib.import_module(module), function)()
    importlib.import_module("sqlalchemy.orm").configure_mappers()  # else each copy does, for all services
    prepare(kind)
    gc.collect()
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a thread would be missing in every copy"
    server.listen()
    if server.wait() is None:
        shutil.rmtree(path.parent, ignore_errors=True)  # who was killed has not removed it
    else:
        begin_copy()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
