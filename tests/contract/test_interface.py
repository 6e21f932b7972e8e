"""docs/interface.md: every row of the specification has its operations and the tests that prove it, and the page says so."""

from pathlib import Path

import pytest

from docs import make_interface, tests_said
from docs.make_interface import Row

ROWS = make_interface.rows()
TEST = "tests/e2e/test_submitters.py::test_completed_by_the_api"
SAMPLE = """
from tests.support.agreement import send

def make(suite, **more):
    return suite.api("POST", "/submissions", more)

def test_other_call(suite):
    send(suite, 1)
    suite.api("PUT", "/submitters/1", {"completed_redirect_url": "x"})

def test_same_call(suite):
    suite.api("POST", "/submissions", {"completed_redirect_url": "x"})

def test_handed_on(suite):
    make(suite, completed_redirect_url="x")

def test_no_call(desk):
    desk.send(completed_redirect_url="x")

WAYS = [("POST", "/submissions")]
OPTIONS = {"completed_redirect_url": "x"}

def test_named_elsewhere(suite):
    for method, path in WAYS:
        suite.api(method, path, OPTIONS)

def test_another_client():
    requests.post(f"{base_url}/api/submissions", json={"completed_redirect_url": "x"})
"""


def test_the_page_is_what_the_list_says() -> None:
    made = make_interface.page()
    assert make_interface.PAGE.read_text() == made, "make it anew: .venv/bin/python -m docs.make_interface"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_tests_that_call_its_operations_with_its_key(row: Row) -> None:
    assert list(make_interface.faults(row)) == []


def test_rows_are_listed_once_and_every_operation_is_in_one() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert make_interface.without_row() == set()


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row("x", ("users.vanish",), None, (TEST,)), "no operation users.vanish"),
        (Row("x", ("submitters.update",), "shoe_size", (TEST,)), "takes no shoe_size"),
        (Row("x", ("submitters.update",), "completed"), "no test"),
        (Row("x", (), None, ("tests/e2e/test_submitters.py::test_nothing",)), "is not there"),
        (Row("x", (), None, ("tests/e2e/test_nothing.py::test_nothing",)), "is not there"),
        (Row("x", ("users.remove",), None, (TEST,)), "calls users.remove"),
        (Row("x", ("submitters.update",), "go_to_last", (TEST,)), "calls submitters.update with go_to_last"),
        (Row("x", ("submitters.update", "submitters.get"), None, (TEST,)), "calls submitters.get"),
        (Row("x", ("account.get",), None, ("tests/e2e/test_generated_calls.py::test_it",)), "calls account.get"),
    ],
)
def test_what_is_wrong_with_a_row_is_found(row: Row, fault: str) -> None:
    assert any(fault in found for found in make_interface.faults(row)), list(make_interface.faults(row))
    assert list(make_interface.faults(Row("y", ("submitters.update",), "completed", (TEST,)))) == []


def test_an_operation_without_a_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    less = [row for row in ROWS if "tools.merge" not in row.operations]
    monkeypatch.setattr(make_interface, "rows", lambda: less)
    assert make_interface.without_row() == {"tools.merge"}


def test_a_key_counts_for_the_call_it_is_written_for_and_a_name_means_what_its_own_module_means(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(SAMPLE)
    functions = tests_said.module(tmp_path / "test_x.py").functions
    create, key = make_interface.operation("submissions.create"), "completed_redirect_url"
    said = {name: make_interface.says(tests_said.reached(functions[name]), create, key) for name in functions}
    assert said == {
        "test_other_call": False,
        "test_same_call": True,
        "test_handed_on": True,
        "test_no_call": False,
        "test_named_elsewhere": True,
        "test_another_client": True,
        "make": False,
    }
