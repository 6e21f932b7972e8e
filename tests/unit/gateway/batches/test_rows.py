"""The rows of a file as bodies that the interface takes, and what is wrong with the others."""

import json
from functools import cache
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc.submissions.batches import RowProblem
from services.gateway.api.requests.batches import rows
from services.gateway.api.requests.batches.columns import Roles
from services.gateway.api.requests.batches.rows import Kind, Row, Rows, RowSchemas, read_rows
from services.gateway.http import json_body
from services.gateway.http.openapi import specification
from services.gateway.http.openapi.schemas import BodySchema
from tests.support.material.batches import ALONE, LEASE


@cache
def schemas() -> RowSchemas:
    of_row = specification.schema("BatchRowInput")
    return RowSchemas(BodySchema(of_row), of_row, specification.schema("NewSubmitter"))


def from_csv(text: str, of: Roles = ALONE) -> Rows:
    return read_rows(text.encode(), Kind.CSV, of, 7, schemas())


def from_lines(*lines: Any) -> Rows:
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return read_rows(data.encode(), Kind.NDJSON, ALONE, 7, schemas())


def told(found: Rows) -> list[tuple[int, str, str]]:
    return [(one["row"], one["field"], one["reason"]) for one in found.first_problems()]


def test_cells_become_what_the_interface_says() -> None:
    found = from_csv("email,completed,order,send_email\nbob@example.com,TRUE,2,0\n")
    assert not found.problems
    assert found.read[0].body["submitters"] == [
        {"email": "bob@example.com", "completed": True, "order": 2, "send_email": False}
    ]


def test_what_is_wrong_is_told_with_row_and_column() -> None:
    found = from_csv(
        "Tenant.email,Landlord.email,Landlord.order,submission.expire_at\n"
        "t@example.com,l@example.com,,\n"
        "nobody,l@example.com,,soon\n"
        ",nobody,first,\n",
        LEASE,
    )
    assert told(found) == [
        (3, "submission.expire_at", "must be an ISO 8601 date and time"),
        (3, "Tenant.email", "is invalid"),
        (4, "Landlord.email", "is invalid"),
        (4, "Landlord.order", "must be an Integer"),
    ]
    assert [row.number for row in found.fine()] == [2]


def test_unknown_columns_are_all_that_is_told() -> None:
    found = from_csv("email,mail\nnobody,x\n")
    assert [(row, name) for row, name, _ in told(found)] == [(1, "mail")]
    assert found.read == []


def test_a_value_beyond_the_columns_is_told() -> None:
    assert told(from_csv("email\nbob@example.com,x\n")) == [(2, "", "has a value in a column without a name")]


def test_lines_are_bodies() -> None:
    found = from_lines({"submitters": [{"email": "bob@example.com"}], "external_id": "4711", "name": ""}, "", "{}")
    first, second = found.read
    assert (first.number, first.external_id) == (1, "4711")
    assert first.body == {"submitters": [{"email": "bob@example.com", "external_id": "4711"}], "external_id": "4711"}
    assert told(found) == [(3, "submitters", "is required")]
    assert second.external_id is None


def test_a_signer_keeps_a_key_of_their_own() -> None:
    given = [{"email": "a@b.de", "external_id": "own"}, {"email": "a@b.de", "application_key": "older"}, "nobody"]
    found = from_lines({"submitters": given, "external_id": "4711"})
    assert found.read[0].body["submitters"] == given


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"submitters": [', (1, "", "Malformed JSON: Expecting value (line 1, column 17).")),
        ('["x"', None),
        ("7", (1, "", "is not a JSON object")),
        (
            '{"submitters": [{"email": "a@b.de"}], "template_id": 8}',
            (1, "template_id", "must be that of the whole batch"),
        ),
        ('{"submitters": [{"email": "nobody"}]}', (1, "submitters[0].email", "is invalid")),
        ('{"submitters": [{"name": "\\u0000"}]}', (1, "", "submitters[0].name must not contain NUL characters")),
    ],
)
def test_what_is_wrong_with_a_line_is_told(line: str, problem: tuple[int, str, str] | None) -> None:
    if problem is None:
        with pytest.raises(ServiceError) as caught:
            from_lines(line)
        assert (caught.value.code, "Write one object in each line" in caught.value.message) == ("bad_request", True)
        return
    (row, place, reason) = told(from_lines(line))[0]
    assert (row, place) == problem[:2]
    assert reason.startswith(problem[2])


def test_the_template_of_the_batch_may_be_named_again() -> None:
    assert not from_lines({"submitters": [{"email": "a@b.de"}], "template_id": "7"}).problems


def test_there_may_be_so_many_lines_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 2)
    line = {"submitters": [{"email": "a@b.de"}]}
    assert len(from_lines(line, line).read) == 2
    for lines in ([line, line, line], ["x", line, line]):
        with pytest.raises(ServiceError, match="must not have more than 2 rows"):
            from_lines(*lines)
    with pytest.raises(ServiceError, match="must not have more than 2 rows"):
        from_csv("email\na@b.de\na@b.de\na@b.de\n")


def test_there_may_be_so_many_values_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "MOST_VALUES", 10)
    with pytest.raises(ServiceError, match="more than 10 values"):
        from_lines(*({"submitters": [{"email": "a@b.de"}]} for _ in range(5)))


def test_a_key_that_an_earlier_row_has_is_a_warning() -> None:
    """Both rows are made: whoever looks for the key finds two."""
    table = from_csv(
        "external_id,email\n1,a@example.com\n,b@example.com\n1,c@example.com\n,d@example.com\n1,e@example.com\n"
    )
    first = table.read[0].number
    assert [(one.row, one.field, one.reason) for one in table.warnings] == [
        (table.read[2].number, "external_id", f"is that of row {first}, too"),
        (table.read[4].number, "external_id", f"is that of row {first}, too"),
    ]
    assert (len(table.read), table.problems) == (5, [])
    person = {"submitters": [{"email": "a@example.com"}]}
    many = from_lines(*({**person, "external_id": "same"} for _ in range(rows.MOST_TOLD + 5)))
    assert len(many.warnings) == rows.MOST_TOLD


def test_keys_that_a_row_does_not_have_are_warnings() -> None:
    own = {"external_id": "4711", "template_id": 7}
    found = from_lines(
        {"submitters": [{"email": "a@b.de"}], **own},
        {"submitters": [{"email": "a@b.de", "emial": "x"}], "mesage": {}, **own, "external_id": "4712"},
    )
    assert not found.problems
    assert [(one.row, one.field, one.reason) for one in found.warnings] == [
        (2, "submitters[0].emial", "is not a key of this request"),
        (2, "mesage", "is not a key of this request"),
    ]


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_lines_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match=r"The file has no rows\."):
        from_lines(text)


def test_a_row_may_be_so_large_and_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LARGEST_ROW", 100)
    assert told(from_lines({"submitters": [{"email": "a@b.de", "values": {"City": "x" * 100}}]})) == [
        (1, "", "must not have more than 100 bytes: give files as URLs")
    ]
    assert not from_lines({"submitters": [{"email": "a@b.de", "values": {"City": "x"}}]}).problems


def test_the_first_hundred_problems_are_told_and_all_are_counted() -> None:
    found = from_csv("email\n" + "nobody\n" * 150)
    with pytest.raises(ServiceError) as caught:
        found.refuse()
    assert caught.value.message == "row 2, email: is invalid (and 149 more problems)"
    assert [detail["row"] for detail in caught.value.details] == list(range(2, 102))


def test_problems_are_told_in_the_order_of_the_file() -> None:
    found = Rows([Row(2, {}), Row(3, {})])
    found.problems = [RowProblem(row=3, reason="is odd"), RowProblem(row=2, field="email", reason="is invalid")]
    with pytest.raises(ServiceError, match=r"^.*row 2, email: is invalid \(and 1 more problem\)"):
        found.refuse()
    found.problems = [RowProblem(row=3, reason="is odd")]
    with pytest.raises(ServiceError, match="row 3 is odd"):
        found.refuse()
    Rows([Row(2, {})]).refuse()


def test_a_refusal_without_a_place_is_about_the_row() -> None:
    found = Rows([row := Row(2, {}, places=[""])])
    found.fault(row, ServiceError("invalid", "Something is wrong"))
    found.fault(row, ServiceError("invalid", "", [{"reason": "is wrong, too"}]))
    assert told(found) == [(2, "", "Something is wrong"), (2, "", "is wrong, too")]
