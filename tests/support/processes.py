"""Processes of one service, started as they are in production: for tests of the runtime on a real service."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from contracts.runtime import declare
from contracts.runtime.process import settings_of
from tests.support.migrated import migrated

ROOT = Path(__file__).resolve().parents[2]


def environment(service: str, amqp_url: str, database_url: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "AMQP_URL": amqp_url,
        f"{service.upper()}_DATABASE_URL": database_url,
        "BLOB_URL": f"file://{folder}/blobs",
        "BASE_URL": "http://localhost",
        "LINK_SECRET": "for-tests",
        "KEY_ENCRYPTION_SECRET": "for-tests",
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
    return subprocess.run(
        [sys.executable, "-m", f"services.{service}", command],
        env=settings,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def start(service: str, command: str, settings: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """A process that stays: ``serve`` or ``background``."""
    return subprocess.Popen(
        [sys.executable, "-m", f"services.{service}", command],
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )


@contextmanager
def running(service: str, command: str, settings: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
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
    return subprocess.run(
        [sys.executable, "-m", "contracts.runtime.main", "check", *services],
        env=settings,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
