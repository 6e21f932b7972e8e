"""How large images are, the pages say in one voice, and `tests/deployed/test_images.py` allows no more than a little above it."""

import re

import pytest

from deploy.release.make_images import IMAGES, TRIAL
from deploy.services import ROOT, SERVICES
from tests.deployed.test_images import MOST

PAGE = (ROOT / "docs/install.md").read_text()
SAID = {name: int(size) for name, size in re.findall(r"^\| ([a-z]+) \| (\d+) \|$", PAGE, re.MULTILINE)}
MARGIN = 1.08
"""What an image may grow before somebody looks, in parts of what it was measured with."""


def test_the_table_has_every_image() -> None:
    assert {*SAID} == {*IMAGES}


@pytest.mark.parametrize("service", SERVICES)
def test_the_limit_is_a_little_above_what_was_measured(service: str) -> None:
    assert SAID[service] <= MOST[service] <= SAID[service] * MARGIN


def test_other_places_say_the_same_of_the_image_for_trying() -> None:
    (in_readme,) = re.findall(r"One image has everything \((\d+) MB;", (ROOT / "README.md").read_text())
    (beside_its_times,) = re.findall(r"It has (\d+) MB\.", PAGE)
    assert {int(in_readme), int(beside_its_times)} == {SAID[TRIAL]}
