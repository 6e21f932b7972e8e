"""What the columns of a table mean."""

from functools import cache
from typing import Any

import pytest

from contracts.types import Party, Template
from services.gateway.api.requests.batches import columns
from services.gateway.api.requests.batches.columns import Columns, Roles, RowBody
from services.gateway.http.openapi import specification
from tests.support.material.batches import ALONE, LEASE, roles
from tests.support.material.submissions import field


@cache
def schema(name: str) -> dict[str, Any]:
    return specification.schema(name)


def understood(header: str, of: Roles = LEASE) -> tuple[Columns, dict[str, str]]:
    found, problems = columns.understood(header.split("|"), 1, of, schema("BatchRowInput"), schema("NewSubmitter"))
    return found, {problem.field: problem.reason for problem in problems}


def read(header: str, cells: str, of: Roles = LEASE) -> RowBody:
    found, problems = understood(header, of)
    assert not problems
    return found.row(cells.split("|"))


def test_one_signer_needs_no_role() -> None:
    row = read(
        "email|name|values.rent|completed|message.subject|metadata.flat no.", "bob@example.com|Bob|850|yes|Hi|7", ALONE
    )
    signer = {"email": "bob@example.com", "name": "Bob", "values": {"rent": "850"}, "completed": "yes"}
    assert row.body == {"submitters": [{**signer, "message": {"subject": "Hi"}, "metadata": {"flat no.": "7"}}]}
    assert row.places == [""]


def test_several_signers_come_in_the_order_of_the_template() -> None:
    row = read(
        "Landlord.email|tenant.EMAIL|Tenant.values.City|Landlord.values.No. of keys",
        "l@example.com|t@example.com|Lyon|3",
    )
    assert row.body["submitters"] == [
        {"role": "Tenant", "email": "t@example.com", "values": {"City": "Lyon"}},
        {"role": "Landlord", "email": "l@example.com", "values": {"No. of keys": "3"}},
    ]


def test_a_value_without_a_role_is_of_the_role_that_has_the_field() -> None:
    row = read("Tenant.email|Landlord.email|values.No. of keys|values.RENT", "t@example.com|l@example.com|3|850")
    assert [one["values"] for one in row.body["submitters"]] == [{"RENT": "850"}, {"No. of keys": "3"}]


def test_a_signer_whose_cells_are_blank_is_not_there() -> None:
    assert [one["role"] for one in read("Tenant.email|Landlord.email", "t@example.com| ").body["submitters"]] == [
        "Tenant"
    ]
    assert read("Tenant.email|external_id", "|4711").body["submitters"] == []


def test_a_key_of_the_row_is_that_of_each_signer_without_one() -> None:
    row = read("external_id|Tenant.email|Landlord.email|Landlord.external_id", "4711|t@example.com|l@example.com|own")
    assert row.external_id == "4711"
    assert [one["external_id"] for one in row.body["submitters"]] == ["4711", "own"]
    assert read("external_id|email", "4711|bob@example.com", ALONE).body["submitters"][0]["external_id"] == "4711"


def test_the_submission_has_columns_of_its_own() -> None:
    row = read(
        "submission.name|submission.message.body|Submission.order|submission.preferences.keep_days|Tenant.email",
        "Lease|Hi|random|30|t@x.y",
    )
    assert row.body["name"] == "Lease"
    assert row.body["message"] == {"body": "Hi"}
    assert row.body["order"] == "random"
    assert row.body["preferences"] == {"keep_days": "30"}


@pytest.mark.parametrize(
    ("cell", "chosen"),
    [
        ("kitchen; hall", ["kitchen", "hall"]),
        ("kitchen\nhall\n", ["kitchen", "hall"]),
        ("attic; large", ["attic; large"]),
        ("kitchen", ["kitchen"]),
    ],
)
def test_a_field_that_takes_several_options_has_them_in_one_cell(cell: str, chosen: list[str]) -> None:
    assert read("Landlord.values.Rooms", cell).body["submitters"][0]["values"] == {"Rooms": chosen}


def test_text_of_a_field_keeps_its_blanks_and_a_key_does_not() -> None:
    row = read("email|values.City", " bob@example.com |  Lyon\n", ALONE)
    assert row.body["submitters"] == [{"email": "bob@example.com", "values": {"City": "  Lyon\n"}}]


def test_somebody_who_only_approves_has_a_role_that_no_document_knows() -> None:
    row = read("Tenant.email|Boss.acts_as|Boss.email", "t@example.com|approver|b@example.com")
    assert row.body["submitters"][1] == {"role": "Boss", "acts_as": "approver", "email": "b@example.com"}


def test_the_longest_role_counts() -> None:
    of = roles("A", "A.B", fields=[])
    assert read("A.B.email|A.email", "x@y.z|a@b.c", of).body["submitters"] == [
        {"role": "A", "email": "a@b.c"},
        {"role": "A.B", "email": "x@y.z"},
    ]


@pytest.mark.parametrize(
    ("header", "of", "name", "words"),
    [
        ("email|e-mail", ALONE, "e-mail", "must be one of external_id"),
        ("Tenant.email|Owner.email", LEASE, "Owner.email", "(“Tenant”, “Landlord”)"),
        ("Tenant.email|email", LEASE, "email", "must name its role: write Tenant.email"),
        ("Tenant.email|values.City", LEASE, "values.City", "write Tenant.values.City or Landlord.values.City"),
        ("Tenant.email|values.Town", LEASE, "values.Town", "is not a field of the template"),
        ("email|values.Rooms", LEASE, "values.Rooms", "is not a field of the role Tenant"),
        ("Tenant.email|Tenant.values.Rooms", LEASE, "Tenant.values.Rooms", "is not a field of the role Tenant"),
        ("email|Email", ALONE, "Email", "is the same as email"),
        ("email|email", ALONE, "email", "must not appear twice"),
        ("email|values", ALONE, "values", "must be one of external_id"),
        ("email|values.", ALONE, "values.", "must be one of external_id"),
        ("email|fields", ALONE, "fields", "must be one of external_id"),
        ("email|role", ALONE, "role", "must be one of external_id"),
        ("email|message", ALONE, "message", "must be one of external_id"),
        ("email|message.text", ALONE, "message.text", "must be one of external_id"),
        ("email|submission.submitters", ALONE, "submission.submitters", "is not a key of a submission"),
        ("email|submission.colour", ALONE, "submission.colour", "is not a key of a submission"),
        ("email|name.first", ALONE, "name.first", "must be one of external_id"),
    ],
)
def test_a_column_that_is_not_known_is_named_with_the_reason(header: str, of: Roles, name: str, words: str) -> None:
    _, problems = understood(header, of)
    assert list(problems) == [name]
    assert words in problems[name]


def test_a_column_without_a_name_must_be_blank() -> None:
    found, problems = understood("email||name", ALONE)
    assert not problems
    assert not found.beyond(["bob@example.com", " ", "Bob"])
    assert found.beyond(["bob@example.com", "x", "Bob"])
    assert found.beyond(["bob@example.com", "", "Bob", "x"])
    assert not found.beyond(["bob@example.com", "", "Bob", " "])


@pytest.mark.parametrize(
    ("place", "column"),
    [
        ("submitters[0].email", "Tenant.email"),
        ("submitters[1].values.City", "values.City"),
        ("submitters[1]", ""),
        ("submitters", "submitters"),
        ("expire_at", "submission.expire_at"),
        ("", ""),
    ],
)
def test_what_is_wrong_is_told_of_the_column(place: str, column: str) -> None:
    assert columns.column_of(place, ["Tenant.", ""]) == column


def test_roles_and_their_fields_are_those_of_the_template() -> None:
    definitions = [field("Tenant", "Rent"), field("Tenant", ""), field("Nobody", "X")]
    given: dict[str, Any] = {
        "submitters": [Party(name="Tenant", uuid="uuid of Tenant"), Party(name="Landlord", uuid="u")],
        "fields": definitions,
    }
    template = Template.model_construct(**given)
    found = Roles.of(template)
    assert found.names == ["Tenant", "Landlord"]
    assert [name for name, _ in found.fields["Tenant"]] == ["Rent", "Text Field 2"]
    assert found.field_of_name("Tenant", "rent") is definitions[0]
    assert found.field_of_name("Landlord", "Rent") is None
    assert found.field_of_name("Nobody", "X") is None
