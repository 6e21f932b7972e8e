"""What is told of a changed template, and what counts as breaking."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.fields.value_schema import template_schema
from contracts.types import FieldDefinition, Party
from services.templates.rules import contract
from services.templates.rules.domain import Definition

TENANT, LANDLORD = Party(uuid="t", name="Tenant"), Party(uuid="l", name="Landlord")


def field(name: str, kind: str = "text", party: Party = TENANT, **more: Any) -> FieldDefinition:
    return FieldDefinition(uuid=name, name=name, type=kind, submitter_uuid=party.uuid, role=party.name, **more)


def told(before: Definition, after: Definition) -> list[tuple[str, str | None, str, bool]]:
    return [(one.role, one.field, one.change, one.breaking) for one in contract.changes(before, after)]


def of(*fields: FieldDefinition, parties: list[Party] | None = None) -> Definition:
    return Definition(parties or [TENANT], list(fields))


def test_nothing_changed_is_nothing_told() -> None:
    same = of(field("Rent", "number"), field("Signature", "signature"))
    assert contract.changes(same, same) == []


def test_what_is_gone_comes_first() -> None:
    assert told(of(field("Rent"), field("Flat")), of(field("Monthly rent"), field("Flat"))) == [
        ("Tenant", "Rent", "removed", True),
        ("Tenant", "Monthly rent", "added", False),
    ]


def test_roles() -> None:
    renamed = Party(uuid="t", name="Lessee")
    assert told(of(field("Rent")), of(field("Rent", party=renamed), parties=[renamed])) == [
        ("Tenant", None, "removed", True),
        ("Lessee", None, "added", False),
    ]
    moved = told(
        of(field("Rent"), parties=[TENANT, LANDLORD]), of(field("Rent", party=LANDLORD), parties=[TENANT, LANDLORD])
    )
    assert moved == [("Tenant", "Rent", "removed", True), ("Landlord", "Rent", "added", False)]


NARROWER: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"kind": "text"}, {"kind": "number"}, "takes another kind of value: number"),
    ({"kind": "text"}, {"kind": "payment"}, "is no longer a field of this role"),
    ({"kind": "text"}, {"kind": "radio", "options": ["A"]}, "takes only the options A"),
    ({"kind": "radio", "options": ["A", "B"]}, {"kind": "radio", "options": ["A", "C"]}, "no longer has the options B"),
    (
        {"kind": "multiple", "options": ["A", "B"]},
        {"kind": "multiple", "options": ["B"]},
        "no longer has the options A",
    ),
    ({"kind": "number"}, {"kind": "number", "validation": {"min": 1}}, "must not be below 1"),
    ({"kind": "number"}, {"kind": "number", "validation": {"max": 9}}, "must not be above 9"),
    ({"kind": "number"}, {"kind": "number", "validation": {"step": 5}}, "must be a multiple of 5"),
    ({"kind": "number"}, {"kind": "number", "validation": {"step": 0.5}}, "must be in steps of 0.5"),
    ({"kind": "text"}, {"kind": "text", "validation": {"pattern": "A"}}, "must match ^(?:A)$"),
    ({"kind": "text"}, {"kind": "phone"}, "must match ^\\+[1-9][0-9]{4,14}$"),
    ({"kind": "phone"}, {"kind": "phone", "validation": {"pattern": "\\+4.*"}}, "must follow other rules"),
    ({"kind": "text"}, {"kind": "date"}, "must be written as date"),
    ({"kind": "date"}, {"kind": "date", "validation": {"min": "2026-01-01"}}, "must not be before 2026-01-01"),
    ({"kind": "date"}, {"kind": "date", "validation": {"max": "2026-01-01"}}, "must not be after 2026-01-01"),
]


@pytest.mark.parametrize(("was", "is_now", "reason"), NARROWER, ids=[reason for _, _, reason in NARROWER])
def test_what_takes_less_is_breaking(was: dict[str, Any], is_now: dict[str, Any], reason: str) -> None:
    before, after = of(field("It", **was)), of(field("It", **is_now))
    (change,) = contract.changes(before, after)
    assert (change.breaking, change.field) == (True, "It")
    assert reason in change.reason
    with pytest.raises(ServiceError) as refused:
        contract.refuse_breaking([change])
    assert refused.value.code == "invalid"
    assert refused.value.details == [{"field": "Tenant.It", "reason": change.reason}]


WIDER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "radio", "options": ["A"]}, {"kind": "radio", "options": ["B", "A"]}),
    ({"kind": "number", "validation": {"min": 1, "max": 9}}, {"kind": "number", "validation": {"min": 0, "max": 10}}),
    ({"kind": "number", "validation": {"step": 10}}, {"kind": "number", "validation": {"step": 5}}),
    ({"kind": "text", "validation": {"pattern": "A"}}, {"kind": "text"}),
    ({"kind": "date", "validation": {"min": "2026-01-02"}}, {"kind": "date", "validation": {"min": "2026-01-01"}}),
    ({"kind": "text"}, {"kind": "text", "title": "Otherwise"}),
]


@pytest.mark.parametrize(("was", "is_now"), WIDER, ids=range(len(WIDER)))
def test_what_takes_more_is_told_and_not_breaking(was: dict[str, Any], is_now: dict[str, Any]) -> None:
    found = contract.changes(of(field("It", **was)), of(field("It", **is_now)))
    assert [(one.change, one.breaking) for one in found] == [("changed", False)]
    contract.refuse_breaking(found)


def test_only_so_many_changes_are_told_and_none_that_breaks_is_left_out_for_one_that_does_not() -> None:
    before = of(*(field(f"Old {number}") for number in range(10)))
    after = of(*(field(f"New {number}") for number in range(contract.MOST_TOLD)))
    found = contract.changes(before, after)
    assert len(found) == contract.MOST_TOLD
    assert sum(one.breaking for one in found) == 10


def test_the_rules_are_those_of_the_schema() -> None:
    """Whatever a schema says is compared: a new keyword gets a row."""
    kinds = ("text", "number", "date", "checkbox", "radio", "multiple", "phone", "signature", "file", "cells")
    fields = [
        field(
            kind,
            kind,
            options=["A"] if kind in ("radio", "multiple") else [],
            validation={
                "number": {"min": 1, "max": 10, "step": 0.5},
                "date": {"min": "2026-01-01", "max": "2026-12-31"},
                "phone": {"pattern": "\\+4.*"},
                "text": {"pattern": "A"},
            }.get(kind, {}),
        )
        for kind in kinds
    ]
    fields.append(field("Whole", "number", validation={"step": 5}))
    schema = template_schema([TENANT], fields)["properties"]["Tenant"]["properties"]
    said = {key for one in schema.values() for key in one}
    assert said - {"x-type", "type", "enum", "items", "uniqueItems"} == contract.RULES.keys()
