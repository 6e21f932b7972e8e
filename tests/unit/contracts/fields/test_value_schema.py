"""What the schema of a template's values allows, judged by validators that others wrote: it is what our own readers take."""

from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings

from contracts.fields import values
from contracts.fields.kinds import ATTACHED, KINDS
from contracts.fields.value_schema import template_schema, value_schema
from contracts.types import FieldDefinition, FieldType, Party
from tests.unit.contracts.fields.test_field_doors import at_template, definition
from tests.unit.contracts.fields.test_generated_fields import anything, kinds, said

always_the_same = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
TENANT, LANDLORD = Party(uuid="t", name="Tenant"), Party(uuid="l", name="Landlord")


def allows(schema: dict[str, Any], value: Any) -> bool:
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return bool(jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(value))


def made(kind: FieldType, said: dict[str, Any]) -> FieldDefinition:
    found = at_template(said, kind)
    assume(not isinstance(found, list))
    assert isinstance(found, dict)
    return definition(kind).model_copy(update=found)


def field(name: str, kind: str = "text", party: Party = TENANT, **more: Any) -> FieldDefinition:
    return FieldDefinition(
        uuid=f"{party.uuid}-{name}-{kind}", name=name, type=kind, submitter_uuid=party.uuid, role=party.name, **more
    )


def refusal(it: FieldDefinition, value: Any) -> str | None:
    """Return why our own reader does not take the value, or None."""
    try:
        return values.violation(it, values.coerce(it, value))
    except values.BadValue as bad:
        return bad.reason


def read_alike_by_python(pattern: str) -> bool:
    """Return whether Python's validator reads the pattern as RE2 does: it knows no ``[[:alpha:]]``, and ``\\d`` is wider there."""
    return not any(odd in pattern for odd in ("[[:", "\\d", "\\w", "\\s", "$", "^", "\\u"))


@always_the_same
@given(kinds, said, anything)
def test_what_the_schema_allows_is_taken(kind: FieldType, said: dict[str, Any], value: Any) -> None:
    it = made(kind, said)
    schema = value_schema(it)
    assume(schema is not None and kind not in ATTACHED and kind is not FieldType.HEADING)
    assert schema is not None
    assume(read_alike_by_python(it.validation.get("pattern") or ""))
    if allows(schema, value) and not values.awaits(it, value):
        reason = refusal(it, value)
        # Characters that cannot be written, and years that no clock can show: the schema does not say them.
        assert reason is None or "character U+" in reason or "years" in reason, (schema, value, reason)


@always_the_same
@given(kinds, said, anything)
def test_what_is_stored_is_what_the_schema_allows(kind: FieldType, said: dict[str, Any], value: Any) -> None:
    it = made(kind, said)
    schema = value_schema(it)
    assume(schema is not None and kind not in ATTACHED and kind is not FieldType.HEADING)
    assert schema is not None
    assume(read_alike_by_python(it.validation.get("pattern") or ""))
    assume(refusal(it, value) is None)
    stored = values.coerce(it, value)
    assert allows(schema, stored), (schema, stored)


@always_the_same
@given(kinds, said)
def test_every_schema_is_one(kind: FieldType, said: dict[str, Any]) -> None:
    schema = template_schema([TENANT], [made(kind, said).model_copy(update={"submitter_uuid": "t"})])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema_rs.meta.validate(schema | {"$schema": "https://json-schema.org/draft/2020-12/schema"})


def test_every_type_that_takes_a_value_has_a_schema() -> None:
    without = {kind for kind in FieldType if value_schema(definition(kind)) is None}
    assert without == {kind for kind in FieldType if KINDS[kind].value in ("nothing", "proof")} - {FieldType.HEADING}


CASES: list[tuple[str, dict[str, Any], list[Any], list[Any]]] = [
    ("text", {"validation": {"pattern": "[A-Z]{2}"}}, ["AT", None], ["ATT", "at", 7, ["AT"]]),
    ("cells", {"validation": {"pattern": "[0-9]*"}}, ["12", ""], ["1a"]),
    ("phone", {"validation": {"pattern": r"\+43[0-9]+"}}, ["+4312345"], ["+4912345", "4312345", "+43 1 2345"]),
    ("number", {"validation": {"min": 5, "max": 20, "step": 5}}, [5, 20, 10.0, None], [4, 21, 12, "5", True]),
    ("number", {"validation": {"min": 1, "step": 5}}, [1, 6], [0]),
    ("date", {}, ["2026-11-28"], ["28.11.2026", 1, "2026-02-30"]),
    ("date", {"preferences": {"format": "DD/MM/YYYY HH:mm"}}, ["2026-11-28T10:00:00Z"], ["2026-11-28"]),
    ("checkbox", {}, [True, False, None], ["yes", 1]),
    ("radio", {"options": ["A", "B"]}, ["A", None], ["C", "", ["A"]]),
    ("select", {"options": ["A", "B"]}, ["B"], ["b"]),
    ("multiple", {"options": ["A", "B"]}, [["A", "B"], [], None], [["C"], "A", ["A", "A"]]),
    ("signature", {}, ["Ann", "https://a.example/a.png", None], [7, ["a"]]),
    ("file", {}, [["https://a.example/a.pdf"], []], ["https://a.example/a.pdf"]),
]


@pytest.mark.parametrize(("kind", "more", "right", "wrong"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_types(kind: str, more: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    schema = template_schema([TENANT], [field("It", kind, **more)])
    strict = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for value in right:
        assert allows(schema, {"Tenant": {"It": value}}), value
        assert strict.is_valid({"Tenant": {"It": value}}), value
    for value in wrong:
        assert not allows(schema, {"Tenant": {"It": value}}), value
        assert not strict.is_valid({"Tenant": {"It": value}}), value


def test_bounds_of_dates_are_said_as_ajv_reads_them() -> None:
    bounded: dict[str, Any] = {"validation": {"min": "2026-01-01", "max": "2026-12-31"}}
    schema = value_schema(field("Day", "date", **bounded))
    assert schema == {
        "type": ["string", "null"],
        "format": "date",
        "formatMinimum": "2026-01-01",
        "formatMaximum": "2026-12-31",
    }
    timed = value_schema(field("Day", "date", **bounded, preferences={"format": "DD/MM/YYYY HH:mm"}))
    assert timed is not None
    assert timed["formatMaximum"] == "2026-12-31T23:59:59Z"


def test_steps_that_validators_reckon_wrong_are_only_told() -> None:
    assert value_schema(field("Rent", "number", validation={"step": 0.01})) == {
        "type": ["number", "null"],
        "minimum": -(2**53),
        "maximum": 2**53,
        "x-step": 0.01,
    }


def test_names_and_roles_are_those_of_submissions() -> None:
    fields = [field("Rent", "number"), field("", "text"), field("", "text", LANDLORD), field("", "payment")]
    schema = template_schema([TENANT, LANDLORD], fields)
    assert [*schema["properties"]] == ["Tenant", "Landlord"]
    assert [*schema["properties"]["Tenant"]["properties"]] == ["Rent", "Text Field 1"]
    assert [*schema["properties"]["Landlord"]["properties"]] == ["Text Field 2"]
    assert not allows(schema, {"Tenant": {"rent": 5}})
    assert not allows(schema, {"Guest": {}})


def test_fields_of_one_name_all_get_the_value() -> None:
    schema = template_schema([TENANT], [field("It"), field("It", "number")])
    assert allows(schema, {"Tenant": {"It": None}})
    assert not allows(schema, {"Tenant": {"It": 5}})
    assert not allows(schema, {"Tenant": {"It": "5"}})


def test_what_a_field_says_of_itself_is_told() -> None:
    told = field("Rent", "number", title="Monthly rent", description="In euro", default_value=700)
    assert template_schema([TENANT], [told])["properties"]["Tenant"]["properties"]["Rent"] == {
        "title": "Monthly rent",
        "description": "In euro",
        "default": 700,
        "x-type": "number",
        "type": ["number", "null"],
        "minimum": -(2**53),
        "maximum": 2**53,
    }
