"""Processes of services as tests start them: copies (``deploy.processes.forked``), with fork servers that all workers of a run share.

``countersign up``, the suite on PostgreSQL that the stories share, the images, and all else where STARTED_ANEW is set, are started as
they are deployed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.processes.forked import ForkedProcess, ForkServers
from deploy.services import ROOT
from tests.support.judges.operations import spending

FOLDER = "FORK_SERVERS"
"""The variable that names the folder with the fork servers' sockets; where it is not set, every process is started anew."""
_MODULES = (
    "contracts.runtime.main",
    "services.",
    "tests.support.services.specimens",
    "tests.support.rendering.providers.",
)

_going_on: set["CopiedProcess"] = set()


def going_on() -> list[str]:
    """What copies of this test process run still, by their arguments."""
    return [" ".join(process.arguments) for process in list(_going_on) if process.poll() is None]


class CopiedProcess(ForkedProcess):
    """A process of a service: a copy of a fork server's where that is the same, else started anew."""

    modules: tuple[str, ...] = _MODULES

    def __init__(self, arguments: Sequence[str], log: Path, **options: Any) -> None:
        super().__init__(arguments, log, servers=_shared(), **options)

    def begin(self, arguments: Sequence[str], output: int, errors: int, **options: Any) -> None:
        self.arguments = list(arguments)
        super().begin(arguments, output, errors, **options)
        if self.is_copy:
            _going_on.add(self)
            spending.entered(self.pid)

    def can_be_copied(self, arguments: Sequence[str], environment: dict[str, str]) -> bool:
        """Also not where the kernel's filters of this thread would be missing, the code is another folder's, or STARTED_ANEW is
        set."""
        ours = environment.get("PYTHONPATH", str(ROOT)).split(os.pathsep)[-1] == str(ROOT)
        unfiltered = "Seccomp:\t0" in Path("/proc/thread-self/status").read_text()
        return (
            ours and unfiltered and "STARTED_ANEW" not in os.environ and super().can_be_copied(arguments, environment)
        )

    def _ended(self, timeout: float | None) -> int | None:
        status = super()._ended(timeout)
        if status is not None:
            _going_on.discard(self)
        return status


class _Command(CopiedProcess):
    """A process whose outputs are files of whoever starts it. ``countersign`` may be one, and so may what it hands over to: they
    import what services import."""

    modules = (*_MODULES, "deploy.command", "deploy.reconcile", "deploy.restore")

    def __init__(self, arguments: Sequence[str], outputs: tuple[int, int], **options: Any) -> None:
        self._outputs = outputs
        super().__init__(arguments, Path(os.devnull), **options)

    def begin(self, arguments: Sequence[str], output: int, errors: int, **options: Any) -> None:
        super().begin(arguments, *self._outputs, **options)


def completed(
    module: str, *arguments: str, environment: Mapping[str, str], timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """What a command has said, and how it ended: ``python -m module arguments``."""
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as errors:
        process = _Command(command, (told.fileno(), errors.fileno()), env=environment)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        said = []
        for file in (told, errors):
            file.seek(0)
            said.append(file.read().decode())
    return subprocess.CompletedProcess(command, status, *said)


_servers: dict[str, ForkServers] = {}
"""By their folder: those who start one have to keep it."""


def _shared() -> ForkServers | None:
    """Return the run's, None where there are none."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return None
    if folder not in _servers:
        run = int((Path(folder) / "pid").read_text())
        _servers[folder] = ForkServers(Path(folder), run, "tests.support.services.fork_server")
    return _servers[folder]


def open_folder() -> Path:
    """From now on, processes of services are copies until ``close_folder``, also those of the processes started from here."""
    folder = Path(tempfile.mkdtemp(prefix="fork-servers-"))
    (folder / "pid").write_text(str(os.getpid()))
    os.environ[FOLDER] = str(folder)
    return folder


def close_folder() -> None:
    """The fork servers end with this process; their folder goes now."""
    shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)
