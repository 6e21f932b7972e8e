"""Processes of one service, started as they are in production: for tests of the runtime on a real service.

Their log is a pipe, as in a container, and its reader is slow.
"""

import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from contracts.runtime.bus import declare
from contracts.runtime.process import settings_of
from deploy.processes.logged import LoggedProcess
from tests.support.services.forking import CopiedProcess, completed
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

ROOT = Path(__file__).resolve().parents[3]
LOG_PAUSE = 0.05
"""Seconds: how slow a log's reader is, at most, between two reads."""

_started: weakref.WeakSet[LoggedProcess] = weakref.WeakSet()


def environment(service: str, amqp_url: str, database_url: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "AMQP_URL": amqp_url,
        f"{service.upper()}_DATABASE_URL": database_url,
        "BLOB_URL": f"file://{folder}/blobs",
        "BASE_URL": "http://localhost",
        "LINK_SECRET": LINK_SECRET,
        "KEY_ENCRYPTION_SECRET": KEY_ENCRYPTION_SECRET,
        "VAR_DIR": str(folder),
        "CERTIFICATE_DIR": str(folder / "certificates"),
        "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
        "PYTHONPATH": str(ROOT),
        **more,
    }


def migrate(service: str, settings: dict[str, str]) -> None:
    """What the command of this name does, without the second that a process takes to start; tests of the command run it."""
    migrated(service, settings[f"{service.upper()}_DATABASE_URL"])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        declare.declare(service, settings_of(service))


def run(service: str, command: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself: ``migrate`` or ``check``."""
    # RabbitMQ 4 takes a minute to say that a queue is on a node that is down.
    return completed(f"services.{service}", command, environment=settings, timeout=600)


def start(service: str, command: str, settings: dict[str, str], log: IO[bytes]) -> LoggedProcess:
    """A process that stays: ``serve`` or ``background``. ``log`` is the file that its log ends up in."""
    return logged([sys.executable, "-m", f"services.{service}", command], settings, log)


def logged(arguments: list[str], settings: dict[str, str], log: IO[bytes]) -> LoggedProcess:
    """Any process, with its log in a pipe."""
    process = CopiedProcess(arguments, Path(log.name), env=settings, pause=LOG_PAUSE)
    _started.add(process)
    return process


def log_of(path: Path) -> str:
    """What a process has logged until now: what is still in its pipe is waited for."""
    for process in list(_started):
        process.reader.catch_up()
    return path.read_text()


@contextmanager
def running(service: str, command: str, settings: dict[str, str], log: Path) -> Iterator[LoggedProcess]:
    """A process for the time of a test; killed at the end if it is still there."""
    with log.open("ab") as file:
        process = start(service, command, settings, file)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def checked(*services: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """``check`` of several services in one process."""
    return completed("contracts.runtime.main", "check", *services, environment=settings)
