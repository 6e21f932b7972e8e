"""A machine whose kernel has not all that holds strangers' files back."""

from pathlib import Path

import requests

from tests.support.material.agreement import agreement_pdf
from tests.support.services.circumstances.kernels import without_landlock
from tests.support.services.suite import RunningSuite, start_suite


def test_without_landlock_everything_works_and_it_is_said(workspace: Path) -> None:
    suite = without_landlock(lambda: start_suite(workspace / "suite-without-landlock", one_worker=True))
    try:
        ready = requests.get(f"{suite.base_url}/readyz", timeout=120)
        assert ready.status_code == 200
        assert set(ready.json()["services"].values()) == {"ready"}
        (note,) = ready.json()["notes"]["rendering"]
        assert note.startswith("there is no Landlock")
        assert ready.json()["notes"].keys() == {"rendering"}
        assert suite.template(agreement_pdf())["fields"]
        assert any("children.not_held_back" in log.read_text() for log in (suite.var_dir / "log").iterdir())
    finally:
        suite.stop()


def test_with_all_walls_nothing_is_said(sqlite_suite: RunningSuite) -> None:
    assert "notes" not in requests.get(f"{sqlite_suite.base_url}/readyz", timeout=120).json()
