"""What the fields of a party hold: defaults, what the page sends, what is missing."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.types import Area, Condition, FieldDefinition, FieldType
from services.submissions.rules.values import filling
from tests.support.material.submissions import field as a_field

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SIGNING = filling.Signing({"name": "Ann", "email": None}, NOON, "Europe/Vienna")
ATTACHED = {"picture": FieldType.SIGNATURE, "paper": FieldType.FILE}


def field(uuid: str, kind: str = "text", **more: Any) -> FieldDefinition:
    return a_field(uuid=uuid, name=uuid.capitalize(), type=kind, **more)


OWN = [
    field("text"),
    field("number", "number", validation={"min": 5}),
    field("sign", "signature"),
    field("papers", "file"),
    field("fixed", default_value="12", readonly=True),
    field("day", default_value="on {{date}}", readonly=True),
    field("when", "date", default_value="{{date}}"),
    field("proof", "verification"),
    field("title", "heading", default_value="Terms"),
    field("stamp", "stamp"),
]


def test_a_party_is_told_by_its_row() -> None:
    submitter = SimpleNamespace(id=3, role="Buyer", name="Ann", email="a@b.co", phone=None)
    told = {"id": 7, "role": "Buyer", "name": "Ann", "email": "a@b.co", "phone": None}
    assert filling.person(SimpleNamespace(id=7), submitter) == told


def test_defaults_fill_what_nobody_has_touched() -> None:
    filled = {"fixed": "12", "day": "on 03/04/2026", "when": "2026-03-04"}
    assert filling.with_defaults(OWN, {}, SIGNING) == filled
    assert filling.with_defaults(OWN, {"when": None, "text": "x"}, SIGNING) == {
        "when": None,
        "text": "x",
        "fixed": "12",
        "day": "on 03/04/2026",
    }
    odd = [
        field("a", "number", default_value="many"),
        field("b", default_value=""),
        field("c", "payment", default_value="5"),
    ]
    assert filling.with_defaults(odd, {}, SIGNING) == {}
    assert filling.with_defaults([field("a", default_value="{email}")], {}, SIGNING) == {}


def test_an_attachment_may_be_a_default_and_a_placeholder_stands_for_none() -> None:
    attachment = "5f0c3c0e-0000-4000-8000-000000000001"
    fields = [field("a", "image", default_value=attachment), field("b", "image", default_value="{{date}}")]
    assert filling.with_defaults(fields, {}, SIGNING) == {"a": attachment}


def merged(incoming: dict[str, Any], stored: dict[str, Any] | None = None) -> dict[str, Any]:
    return filling.merged(OWN, stored or {}, incoming, ATTACHED, SIGNING)


@pytest.mark.parametrize(
    ("incoming", "kept"),
    [
        ({}, {}),
        ({"text": "a", "number": "7"}, {"text": "a", "number": 7}),
        ({"text": ""}, {"text": None}),
        ({"number": 1}, {"number": 1}),
        ({"sign": "picture", "papers": ["paper"]}, {"sign": "picture", "papers": ["paper"]}),
        ({"papers": ["picture"]}, {"papers": ["picture"]}),
        ({"fixed": "12"}, {}),
        ({"day": "whatever the page shows"}, {}),
        ({"proof": None}, {}),
    ],
)
def test_what_the_page_may_send(incoming: dict[str, Any], kept: dict[str, Any]) -> None:
    assert merged(incoming) == kept
    assert merged(incoming, {"text": "before", "other": 1}) == {"text": "before", "other": 1, **kept}


@pytest.mark.parametrize(
    ("incoming", "message", "uuids"),
    [
        ({"nobody's": 1}, "Invalid field", ["nobody's"]),
        ({"x" * 100: 1}, "Invalid field", ["x" * 64]),
        ({"title": "Other"}, "Invalid field", ["title"]),
        ({"stamp": "picture"}, "Invalid field", ["stamp"]),
        ({"fixed": "13"}, "Read-only field", ["fixed"]),
        ({"fixed": ""}, "Read-only field", ["fixed"]),
        ({"proof": "verified"}, "Proof must be verified with the identity provider", ["proof"]),
        ({"sign": "paper"}, "Sign must be a file that was uploaded for it", ["sign"]),
        ({"sign": "elsewhere"}, "Sign must be a file that was uploaded for it", ["sign"]),
        ({"papers": ["paper", "elsewhere"]}, "Papers must be a file that was uploaded for it", ["papers"]),
        ({"number": "many", "text": "fine", "when": "soon"}, "Number must be a number", ["number", "when"]),
    ],
)
def test_what_the_page_may_not_send(incoming: dict[str, Any], message: str, uuids: list[str]) -> None:
    with pytest.raises(ServiceError) as caught:
        merged(incoming)
    assert caught.value.message == message
    assert [one["field"] for one in caught.value.details] == uuids


def test_a_proof_that_is_there_may_come_back_as_it_is() -> None:
    stored = {"proof": "verified"}
    assert merged({"proof": "verified"}, stored) == merged({"proof": None}, stored) == stored
    with pytest.raises(ServiceError):
        merged({"proof": "otherwise"}, stored)


def test_half_a_value_is_none_yet() -> None:
    stored = {"text": "before", "fixed": "12"}
    shown = filling.with_attempts(
        OWN, stored, {"number": "1.", "when": "2026-0", "text": "a", "fixed": "9", "proof": "x"}, ATTACHED
    )
    assert shown == {"text": "a", "fixed": "12", "number": 1, "when": None}
    assert filling.with_attempts(OWN, stored, {"sign": "elsewhere"}, ATTACHED)["sign"] is None
    with pytest.raises(ServiceError, match="Invalid field"):
        filling.with_attempts(OWN, stored, {"nobody's": 1}, ATTACHED)


def finished(own: list[FieldDefinition], values: dict[str, Any], of_others: Any = None, documents: Any = None) -> Any:
    kept, faults = filling.finished(own, own, documents or {}, values, of_others or {})
    return kept, [(one.uuid, reason) for one, reason in faults]


def test_what_is_hidden_is_not_required_and_loses_its_value() -> None:
    asks = [Condition(field_uuid="theirs", action="checked")]
    own = [
        field("shown", validation={"message": "Please!"}),
        field("spare", required=False),
        field("asked", "number", conditions=asks, validation={"min": 5}),
        field("fixed", "number", readonly=True, validation={"min": 5}),
        field("annexed", areas=[Area(x=0, y=0, w=0.1, h=0.1, attachment_uuid="annex")]),
    ]
    annex = {"annex": asks}
    assert finished(own, {"asked": 1, "fixed": 1}, {}, annex) == ({"fixed": 1}, [("shown", "Please!")])
    assert finished(own, {"asked": 1, "shown": "x"}, {"theirs": True}, annex) == (
        {"asked": 1, "shown": "x"},
        [("asked", "must not be below 5"), ("annexed", "is required")],
    )
    assert finished(own, {"shown": "x", "annexed": "y", "asked": 5}, {"theirs": True}, annex)[1] == []
    assert finished(own, {"shown": "x"}, {"theirs": False}, annex)[1] == [], "their own values count for conditions"


def test_what_a_signer_cannot_see_or_change_is_not_theirs_to_mend() -> None:
    five = {"min": 5}
    own = [field("a", "number", validation=five), field("b", "number", validation=five, readonly=True)]
    assert [one.uuid for one, _ in filling.broken(own, {"a": 1, "b": 1}, set())] == ["a"]
    assert filling.broken(own, {"a": 1, "b": 1}, {"a"}) == []


def test_the_first_fault_is_the_message_and_fifty_are_named() -> None:
    filling.refuse([])
    many = [(field(f"f{number}"), "is required") for number in range(60)]
    with pytest.raises(ServiceError) as caught:
        filling.refuse(many)
    assert caught.value.message == "F0 is required"
    assert [one["field"] for one in caught.value.details] == [f"f{number}" for number in range(50)]


def test_what_a_signer_knows_a_field_by() -> None:
    assert filling.label(field("a", title="**Your** name")) == "Your name"
    assert filling.label(field("a", title=" ")) == "A"
    assert filling.label(a_field(name="", type="date")) == "date"
