"""docs/faults.md: every fault that is expected has tests that are there, and says what was taken out to see them fail."""

import re
from pathlib import Path

import pytest

from docs.programs.make_interface import functions

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "faults.md"
_ROW = re.compile(r"^\| F(\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
ROWS = {int(number): cells for number, *cells in _ROW.findall(PAGE.read_text())}


def named(text: str) -> list[tuple[str, str]]:
    """File and function of each test in a cell; no function when the whole file is meant."""
    return _TEST.findall(text)


def is_there(file: str, test: str) -> bool:
    return test in functions(ROOT / file) if test else (ROOT / file).is_file()


def test_all_are_there_in_order() -> None:
    assert list(ROWS) == list(range(1, 37))


@pytest.mark.parametrize("number", ROWS)
def test_a_fault_names_tests_that_are_there_and_what_was_taken_out(number: int) -> None:
    _fault, _holds, tests, taken_out = ROWS[number]
    assert named(tests), "no test"
    assert [each for each in named(tests) if not is_there(*each)] == []
    assert len(taken_out) > 20, "it says nothing of what was taken out"


def test_a_test_that_is_not_there_is_noticed() -> None:
    assert named("`tests/contract/docs/test_faults.py::test_all_are_there_in_order`, `tests/chaos/test_x.py`") == [
        ("tests/contract/docs/test_faults.py", "test_all_are_there_in_order"),
        ("tests/chaos/test_x.py", ""),
    ]
    assert is_there("tests/contract/docs/test_faults.py", "test_all_are_there_in_order")
    assert is_there("tests/contract/docs/test_faults.py", "")
    assert not is_there("tests/contract/docs/test_faults.py", "test_of_nothing")
    assert not is_there("tests/contract/test_nothing.py", "")
