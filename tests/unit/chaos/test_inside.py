"""What runs within the processes of a suite under test: clocks that leap, and kill -9 at a named step."""

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from deploy.services import ROOT
from tests.chaos.harness.world import INSIDE
from tests.support.services import forking


@pytest.fixture(params=["anew", "copied"], autouse=True)
def begun(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the process begins."""
    if request.param == "anew":
        monkeypatch.setenv("STARTED_ANEW", "1")
    else:
        monkeypatch.delenv("STARTED_ANEW", raising=False)


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{INSIDE}:{ROOT}", "PYTHONSAFEPATH": "1", **settings}
    return forking.completed("tests.support.services.specimens.treated", *arguments, environment=environment)


@pytest.mark.parametrize(("step", "kept"), [("commit:3", 2), ("before-commit:3", 1)])
def test_a_process_ends_at_its_step(tmp_path: Path, step: str, kept: int) -> None:
    """The first commit is the table's."""
    file = tmp_path / "notes.sqlite"
    done = run("commits", str(file), CHAOS_KILL_AT=step)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (kept,)


def test_without_a_step_it_goes_on(tmp_path: Path) -> None:
    assert run("commits", str(tmp_path / "notes.sqlite")).returncode == 0


@pytest.mark.parametrize("ahead", [3600, -600])
def test_a_clock_leaps(tmp_path: Path, ahead: int) -> None:
    (tmp_path / "clock").write_text(f"{ahead:+d}\n")
    begun = time.time()
    said = run("clock", CHAOS_CLOCK=str(tmp_path / "clock"))
    ended = time.time()
    seconds, nanoseconds = said.stdout.split()
    assert begun + ahead <= float(seconds) <= ended + ahead
    assert begun + ahead <= int(nanoseconds) / 1e9 <= ended + ahead
