"""The specimen in processes of its own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

import services
from deploy.processes.logged import LoggedProcess
from tests.support.services import processes


def environment(amqp_url: str, database_url: str, folder: Path, **more: str) -> dict[str, str]:
    return processes.environment("specimen", amqp_url, database_url, folder, **more)


def migrated(settings: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "__path__", [*services.__path__, str(Path(__file__).parent)])
        processes.migrate("specimen", settings)


def start(command: str, settings: dict[str, str], log: IO[bytes]) -> LoggedProcess:
    return processes.logged(_command(command), settings, log)


@contextmanager
def running(command: str, settings: dict[str, str], log: Path) -> Iterator[LoggedProcess]:
    """``serve`` or ``background`` for the time of a test; killed at the end if it is still there."""
    with log.open("ab") as file:
        process = start(command, settings, file)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def _command(command: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.services.specimens", command]
