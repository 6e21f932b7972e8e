"""What runs within the processes of a suite under test: clocks that leap, and kill -9 at a named step."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.services import ROOT
from tests.chaos.harness.world import INSIDE

THREE_COMMITS = """
import sys
import sqlalchemy as sa
from contracts.runtime.data.database import Database

database = Database(f"sqlite:///{sys.argv[1]}")
database.write(lambda session: session.execute(sa.text("CREATE TABLE notes (number INTEGER)")))
for number in range(3):
    database.write(lambda session: session.execute(sa.text("INSERT INTO notes VALUES (1)")))
"""
CLOCK = "import time; print(time.time(), time.time_ns())"


def run(program: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{INSIDE}:{ROOT}", **settings}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("step", "kept"), [("commit:3", 2), ("before-commit:3", 1)])
def test_a_process_ends_at_its_step(tmp_path: Path, step: str, kept: int) -> None:
    """The first commit is the table's."""
    import sqlite3

    file = tmp_path / "notes.sqlite"
    done = run(THREE_COMMITS, str(file), CHAOS_KILL_AT=step)
    assert done.returncode == -signal.SIGKILL, done.stderr
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM notes").fetchone() == (kept,)
    connection.close()


def test_without_a_step_it_goes_on(tmp_path: Path) -> None:
    assert run(THREE_COMMITS, str(tmp_path / "notes.sqlite")).returncode == 0


@pytest.mark.parametrize("ahead", [3600, -600])
def test_a_clock_leaps(tmp_path: Path, ahead: int) -> None:
    import time

    (tmp_path / "clock").write_text(f"{ahead:+d}\n")
    begun = time.time()
    said = run(CLOCK, CHAOS_CLOCK=str(tmp_path / "clock"))
    ended = time.time()
    seconds, nanoseconds = said.stdout.split()
    assert begun + ahead <= float(seconds) <= ended + ahead
    assert begun + ahead <= int(nanoseconds) / 1e9 <= ended + ahead
