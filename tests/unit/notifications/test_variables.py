"""What stands for a variable of a message; and whose it is."""

from typing import Any

import pytest

from services.notifications.messages.variables import Value, Variables
from tests.support.material.letters import context, party

BO = party(1, name="Bo Buyer", values={"Fruit": ["apple", None, True], "Note": "x" * 1001, "Full": "x" * 1000})
CY = party(2, name=None)
NOBODY = party(3, name=None, role="Witness").model_copy(update={"email": None})


def variables(**more: Any) -> Variables:
    return Variables(context(BO, CY, NOBODY, **more), BO)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Submission.Link", Value("https://sign.example.com/e/sub", link=True)),
        ("documents.link", Value("", link=True)),
        ("account.name", Value("Acme Ltd")),
        ("template.id", Value("7")),
        ("submission.submitters", Value("Bo Buyer, signer2@example.com, Witness")),
        ("submitter.link", Value("https://sign.example.com/s/slug1", link=True)),
        ("submitter.fruit", Value("apple, , yes")),
        ("submitter.Full", Value("x" * 1000)),
        ("submitter.Note", Value("x" * 999 + "…")),
        ("submitters[1].name", Value("Bo Buyer")),
        ("submitters[2].email", Value("signer2@example.com")),
        ("submitters[2].first_name", Value("")),
        ("submitters[4].name", Value("")),
        ("submitters[0].name", Value("")),
    ],
)
def test_the_value_of_a_variable(name: str, value: Value) -> None:
    assert variables().find(name) == value


@pytest.mark.parametrize("attribute", ["link", "slug", "id"])
def test_nobody_is_told_how_another_party_signs(attribute: str) -> None:
    assert variables().find(f"submitter.{attribute}") is not None
    assert variables().find(f"submitters[2].{attribute}") is None


def test_what_somebody_else_reads_names_no_party_of_theirs() -> None:
    of_nobody = Variables(context(BO), None)
    assert of_nobody.find("submitter.link") == Value("", link=True)
    assert [of_nobody.find(f"submitter.{name}") for name in ("name", "id", "Fruit")] == [Value(""), Value(""), None]


def test_what_a_submission_does_not_have_is_blank() -> None:
    without = variables(template_id=None, template_name=None, sender_name=None, sender_email=None)
    for name in ("template.id", "template.name", "sender.name", "sender.first_name", "sender.email"):
        assert without.find(name) == Value("")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Dear {{submitter.first_name}}, sign", "Dear Bo, sign"),
        ("Dear {{submitters[2].name}}, sign", "Dear, sign"),
        ("Dear {{nobody}}, sign", "Dear {{nobody}}, sign"),
    ],
)
def test_a_gap_is_closed_only_where_there_is_one(text: str, line: str) -> None:
    assert variables().in_line(text) == line
