"""The programs of docs/coming-from-docuseal.md, as they stand there: run with the packages that they name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.clients import published
from tests.support.services.suite import RunningSuite

PAGE = Path(__file__).parents[4] / "docs" / "coming-from-docuseal.md"
PROGRAMS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where npm has put the packages, with the command among the programs."""
    (tmp_path / "node_modules").symlink_to(published.MODULES)
    command = tmp_path / "bin" / "docuseal"
    command.parent.mkdir()
    command.symlink_to(published.MODULES / "docuseal" / "bin" / "run.js")
    return tmp_path


def printed(suite: RunningSuite, folder: Path, *command: str) -> str:
    own = {"COUNTERSIGN_URL": f"{suite.base_url}/api", "COUNTERSIGN_KEY": suite.api_key}
    paths = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(folder)}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **own, **paths},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_python(sqlite_suite: RunningSuite, folder: Path) -> None:
    link, *listed = printed(sqlite_suite, folder, sys.executable, "-c", PROGRAMS["python"]).splitlines()
    assert link.startswith(f"{sqlite_suite.base_url}/s/")
    ids = [int(line.split()[0]) for line in listed]
    assert ids == sorted(ids)
    assert listed[-1].endswith(" pending")


def test_in_javascript_and_on_a_command_line(sqlite_suite: RunningSuite, folder: Path) -> None:
    """Both list the same templates."""
    (folder / "list.mjs").write_text(PROGRAMS["javascript"])
    listed = printed(sqlite_suite, folder, "node", "list.mjs")
    told = printed(sqlite_suite, folder, "sh", "-euc", PROGRAMS["sh"])
    names = [line.partition(" ")[2] for line in listed.splitlines()]
    assert names
    assert all(name in told for name in names)
