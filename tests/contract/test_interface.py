"""docs/interface.md: every row of the specification has an operation and a test, and the page says what is so."""

import re
from pathlib import Path

import pytest

from docs import make_interface, tests_said
from services.gateway import specification

ROWS = make_interface.rows()
NOT_TESTED_YET: set[str] = set()
"""Rows that no test names by its operation and key yet; take a row out when its test is there."""
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
"""


def test_the_page_is_what_the_list_the_document_and_the_tests_say() -> None:
    made = make_interface.page()
    assert make_interface.PAGE.read_text() == made, "make it anew: .venv/bin/python -m docs.make_interface"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_that_is_there_has_a_test(row: make_interface.Row) -> None:
    if make_interface.is_there(row) and row.name not in NOT_TESTED_YET:
        assert make_interface.covering(row), "no test calls this operation with this key"
    elif make_interface.is_there(row):
        assert not make_interface.covering(row), "it has a test now: take it out of NOT_TESTED_YET"
    for name in row.tests:
        path, _, function = name.partition("::")
        assert re.search(rf"^(?:async )?def {function}\(", (make_interface.ROOT / path).read_text(), re.MULTILINE), name


def test_rows_are_listed_once_and_every_operation_is_in_one() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    listed = {operation for row in ROWS for operation in row.operations}
    assert {one.id for one in specification.operations(specification.document())} <= listed


def test_a_key_counts_for_the_call_it_is_written_for_and_a_name_means_what_its_own_module_means(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(SAMPLE)
    functions = tests_said.module(tmp_path / "test_x.py").functions
    create = make_interface.Row("x", ("submissions.create",), "completed_redirect_url")
    said = {name: make_interface.says(tests_said.reached(functions[name]), create) for name in functions}
    assert said == {
        "test_other_call": False,
        "test_same_call": True,
        "test_handed_on": True,
        "test_no_call": False,
        "make": False,
    }


def test_a_row_without_its_operation_or_key_would_be_found() -> None:
    rows = make_interface.Row("x", ("users.vanish",)), make_interface.Row("y", ("users.create",), "shoe_size")
    assert not any(map(make_interface.is_there, rows))
    assert make_interface.is_there(make_interface.Row("z", ("submissions.create",), "submitters[].role"))
    assert make_interface.covering(make_interface.Row("y", ("users.create",), "shoe_size")) == ()
