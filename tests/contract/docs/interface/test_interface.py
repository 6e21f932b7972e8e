"""docs/interface.md: every row of the specification has its operations and the tests that prove it, and the page says so.

Whether these tests send what the row is about, the end of the run says: tests/support/judges/interfaces/recording.py."""

import pytest

from docs.programs import make_interface
from docs.programs.make_interface import Request, Row

ROWS = make_interface.rows()
TEST = "tests/e2e/sending/test_submitters.py::test_completed_by_the_api"


def test_the_page_is_what_the_list_says() -> None:
    made = make_interface.page()
    assert make_interface.PAGE.read_text() == made, "make it anew: .venv/bin/python -m docs.programs.make_interface"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_operations_that_take_its_key_and_tests(row: Row) -> None:
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
        (Row("x", (), None, ("tests/e2e/sending/test_submitters.py::test_nothing",)), "is not there"),
        (Row("x", (), None, ("tests/e2e/test_nothing.py::test_nothing",)), "is not there"),
        (
            Row(
                "x",
                ("account.get",),
                None,
                ("tests/e2e/calls/test_generated_calls.py::test_the_documented_call_works",),
            ),
            "only tests made for all",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_found(row: Row, fault: str) -> None:
    assert any(fault in found for found in make_interface.faults(row)), list(make_interface.faults(row))
    assert list(make_interface.faults(Row("y", ("submitters.update",), "completed", (TEST,)))) == []


def test_an_operation_without_a_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    less = [row for row in ROWS if "tools.merge" not in row.operations]
    monkeypatch.setattr(make_interface, "rows", lambda: less)
    assert make_interface.without_row() == {"tools.merge"}


UPDATE = Request("PUT", "/api/submitters/7", frozenset({"fields", "fields[].name"}))


@pytest.mark.parametrize(
    ("operations", "key", "test", "missing"),
    [
        (("submitters.update",), "fields[].name", TEST, ""),
        (("submitters.update",), None, TEST, ""),
        (("submitters.update",), "name", TEST, "submitters.update with name was sent by none of"),
        (("submitters.update", "submitters.get"), None, TEST, "submitters.get was sent by none of"),
        (
            ("submitters.update",),
            None,
            "tests/e2e/sending/test_submitters.py::test_other",
            "submitters.update was sent by none of",
        ),
        (
            ("submitters.update",),
            None,
            "tests/e2e/calls/test_generated_calls.py::test_it",
            "submitters.update was sent by none of",
        ),
        ((), None, TEST, ""),
    ],
)
def test_what_the_tests_of_a_row_did_not_send_is_found(
    operations: tuple[str, ...], key: str | None, test: str, missing: str
) -> None:
    sent = {TEST: {UPDATE}, "tests/e2e/calls/test_generated_calls.py::test_it": {UPDATE}}
    missed = list(make_interface.not_sent(Row("x", operations, key, (test,)), sent))
    assert missed == [f"{missing} {test}"] if missing else missed == []


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("PUT", "/api/submitters/7", "submitters.update"),
        ("PATCH", "/submitters/7", "submitters.update"),
        ("HEAD", "/api/submitters/7", "submitters.get"),
        ("POST", "/api/submissions/init", "submissions.init"),
        ("POST", "/api/submissions", "submissions.create"),
        ("GET", "/api/submitters/7/8", None),
        ("GET", "/s/abc", None),
    ],
)
def test_which_operation_a_request_calls(method: str, path: str, operation: str | None) -> None:
    assert make_interface.operation_of(Request(method, path)) == operation
