"""A machine whose kernel has not all that holds strangers' files back."""

import requests

from tests.e2e.conftest import Equipped
from tests.support.material.agreement import agreement_pdf


def test_without_landlock_everything_works_and_it_is_said(equipped: Equipped) -> None:
    """That everything works, the other tests of this suite show."""
    suite = equipped.suite
    ready = requests.get(f"{suite.base_url}/readyz", timeout=120)
    assert ready.status_code == 200
    assert set(ready.json()["services"].values()) == {"ready"}
    (note,) = ready.json()["notes"]["rendering"]
    assert note.startswith("there is no Landlock")
    assert ready.json()["notes"].keys() == {"rendering"}
    assert suite.template(agreement_pdf())["fields"]
    assert any("children.not_held_back" in log.read_text() for log in (suite.var_dir / "log").iterdir())
