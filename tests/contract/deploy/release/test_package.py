"""The package, built and installed as ``pipx install .`` and ``uv tool install .`` have it done, away from the checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from contracts.runtime.monitoring.build import version
from deploy.services import ROOT, SERVICES

HOLDS = f"""
import importlib.resources, json
from services.gateway.reference import guides
migrations = {{name: len(list(importlib.resources.files(f"services.{{name}}.migrations.versions").iterdir()))
               for name in {sorted(SERVICES)!r}}}
print(json.dumps([len(guides.names()), min(migrations.values()), guides.__file__]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of its own, with the package and, of this environment, what it needs."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*pip, *wheels], check=True)
    venv.create(folder / "venv", symlinks=True)
    (wheel,) = folder.glob("countersign-*.whl")
    python = str(folder / "venv/bin/python")
    subprocess.run([*pip, "--python", python, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def run(installed: Path, *command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [installed / "venv/bin" / command[0], *command[1:]],
        cwd=installed, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_says_its_version_and_what_it_does(installed: Path) -> None:
    assert version() in run(installed, "countersign", "--version")
    said = run(installed, "countersign", "--help")
    assert all(
        command in said for command in ("up", "demo", "check", "migrate", "backup", "restore", "stuck", "doctor")
    )


def test_it_holds_guides_and_migrations(installed: Path) -> None:
    guides, fewest, file = json.loads(run(installed, "python", "-c", HOLDS))
    assert guides > 20
    assert fewest > 5
    assert Path(file).is_relative_to(installed)
