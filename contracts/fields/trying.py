"""What a template makes of values: which fields are shown, which must be filled in, what is computed. Nothing is kept; a table
of cases says what is expected, as a test of conditions and formulas.

The parties fill in their fields one after the other, in the order of their roles, as they do where a submission keeps it:
whoever comes later has nothing yet when an earlier one's formulas are computed.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from contracts.errors import invalid
from contracts.fields import conditions, values
from contracts.fields.conditions import OfDocuments
from contracts.fields.formulas.references import EXPRESSIONS, Names, is_computed
from contracts.fields.labels import labels
from contracts.problems import Problems
from contracts.types import STATIC_TYPES, FieldDefinition, Party

MOST_CASES = 200
MOST_DECISIONS = 200_000
"""Fields times roles, and every twenty characters of expressions, in all cases: some seconds."""

EXPECTED = ("value", "shown", "required")
"""What a case may expect of a field."""


@dataclasses.dataclass(frozen=True)
class Definition:
    """A template as far as its values are concerned: ``documents`` are their names by uuid, ``conditions`` those that they
    have."""

    parties: Sequence[Party]
    fields: Sequence[FieldDefinition]
    documents: Mapping[str, str]
    conditions: OfDocuments


@dataclasses.dataclass
class Outcome:
    """Of the fields by uuid; documents by theirs. A field is shown and required as its party sees it who fills it in."""

    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    shown: set[str] = dataclasses.field(default_factory=set)
    required: set[str] = dataclasses.field(default_factory=set)
    documents: set[str] = dataclasses.field(default_factory=set)


def run_cases(definition: Definition, cases: Sequence[Mapping[str, Any]], paths: Sequence[str]) -> list[dict[str, Any]]:
    """Return what becomes of each case (``values`` by field name, ``expect`` by field name): ``fields``, ``documents`` and
    ``mismatches``. ``paths`` say where in the request each stands. Raises ServiceError naming what is no field and no value."""
    long = sum(len(str(field.preferences.get(key) or "")) for field in definition.fields for key in EXPRESSIONS)
    count = len(definition.fields) * len(definition.parties) + long // 20
    most = max(1, min(MOST_CASES, MOST_DECISIONS // max(count, 1)))
    if len(cases) > most:
        raise invalid(
            f"cases must not have more than {most} entries for this template",
            "cases",
            f"must not have more than {most} entries",
        )
    names, name_by_uuid = Names(definition.fields), labels(definition.fields)
    by_uuid = {field.uuid: field for field in definition.fields}
    problems = Problems()
    values_by_case, expected = [], []
    for case, path in zip(cases, paths, strict=True):
        values_by_case.append(_values_of_case(case.get("values") or {}, names, by_uuid, f"{path}values", problems))
        expected.append(_expectations_of_case(case.get("expect") or {}, names, by_uuid, f"{path}expect", problems))
    problems.refuse()
    outcomes = [outcome(definition, filled_in) for filled_in in values_by_case]
    return [
        {
            "fields": [_field(field, name_by_uuid[field.uuid], result) for field in definition.fields],
            "documents": [
                {"uuid": uuid, "name": name, "shown": uuid in result.documents}
                for uuid, name in definition.documents.items()
            ],
            "mismatches": list(_mismatches(expectations, by_uuid, result)),
        }
        for expectations, result in zip(expected, outcomes, strict=True)
    ]


def outcome(definition: Definition, filled_in: Mapping[str, Any]) -> Outcome:
    """Return what the parties leave when one after the other fills in ``filled_in`` (by field uuid; None empties a default)."""
    result = Outcome()
    for party in definition.parties:
        own_fields = [party_field for party_field in definition.fields if party_field.submitter_uuid == party.uuid]
        values_now = {**result.values, **_filled(own_fields, filled_in)}
        decided = conditions.decided(
            definition.fields, definition.conditions, values_now, conditions.computing(own_fields)
        )
        for party_field in own_fields:
            if party_field.uuid in decided.hidden:
                continue
            result.shown.add(party_field.uuid)
            value = decided.values.get(party_field.uuid)
            if value is not None:
                result.values[party_field.uuid] = value
            if not party_field.readonly and party_field.type not in STATIC_TYPES and decided.requires(party_field):
                result.required.add(party_field.uuid)
    hidden = conditions.hidden(definition.fields, definition.conditions, result.values)
    result.documents = {uuid for uuid in definition.documents if uuid not in hidden}
    return result


def _filled(own_fields: Iterable[FieldDefinition], filled_in: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a party has, with its defaults; what these say of the day or the party nobody knows here."""
    values_of_party = {}
    for party_field in own_fields:
        value = filled_in.get(party_field.uuid)
        if party_field.uuid not in filled_in and not values.awaits(party_field, party_field.default_value):
            try:
                value = values.coerce(party_field, party_field.default_value)
            except values.BadValue:
                continue
        if value is not None and not is_computed(party_field):
            values_of_party[party_field.uuid] = value
    return values_of_party


def _values_of_case(
    raw: Mapping[str, Any], names: Names, fields: Mapping[str, FieldDefinition], path: str, problems: Problems
) -> dict[str, Any]:
    values_by_uuid = {}
    for name, value in raw.items():
        try:
            named_field = fields[names.uuid_of(name)]
            if is_computed(named_field):
                raise values.BadValue("is computed by a formula and takes no value")
            values_by_uuid[named_field.uuid] = values.coerce(named_field, value)
        except values.BadValue as bad:
            problems.add(f"{path}.{name[:100]}", bad.reason)
    return values_by_uuid


def _expectations_of_case(
    raw: Mapping[str, Mapping[str, Any]],
    names: Names,
    fields: Mapping[str, FieldDefinition],
    path: str,
    problems: Problems,
) -> list[tuple[str, str, str, Any]]:
    """Return (name, uuid, what is expected of it, what it should be)."""
    expected = []
    for name, expectation in raw.items():
        for key in expectation:
            if key not in EXPECTED:  # ignored, the case would pass whatever comes of it
                problems.add(f"{path}.{name[:100]}.{key[:100]}", f"must be one of {', '.join(EXPECTED)}")
        try:
            named_field = fields[names.uuid_of(name)]
            for key in EXPECTED:
                if key in expectation:
                    value = expectation[key] if key != "value" else values.coerce(named_field, expectation[key])
                    expected.append((name, named_field.uuid, key, value))
        except values.BadValue as bad:
            problems.add(f"{path}.{name[:100]}", bad.reason)
    return expected


def _field(form_field: FieldDefinition, name: str, result: Outcome) -> dict[str, Any]:
    return {
        "uuid": form_field.uuid,
        "name": name,
        "role": form_field.role,
        "shown": form_field.uuid in result.shown,
        "required": form_field.uuid in result.required,
        "computed": is_computed(form_field),
        "value": result.values.get(form_field.uuid),
    }


def _mismatches(
    expectations: Iterable[tuple[str, str, str, Any]], fields: Mapping[str, FieldDefinition], result: Outcome
) -> Iterable[dict[str, Any]]:
    for name, uuid, key, expected_value in expectations:
        actual = _field(fields[uuid], name, result)
        if actual[key] != expected_value:
            yield {"field": name, "what": key, "expected": expected_value, "actual": actual[key]}
