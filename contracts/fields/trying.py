"""What a template makes of values: which fields are shown, which must be filled in, what is computed. Nothing is kept; a table
of cases says what is expected, as a test of conditions and formulas.

The parties fill in their fields one after the other, in the order of their roles, as they do where a submission keeps it:
whoever comes later has nothing yet when an earlier one's formulas are computed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Definition:
    """A template as far as its values are concerned: ``documents`` are their names by uuid, ``conditions`` those that they
    have."""

    parties: Sequence[Party]
    fields: Sequence[FieldDefinition]
    documents: Mapping[str, str]
    conditions: OfDocuments


@dataclass
class Outcome:
    """Of the fields by uuid; documents by theirs. A field is shown and required as its party sees it who fills it in."""

    values: dict[str, Any] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)


def tried(definition: Definition, cases: Sequence[Mapping[str, Any]], paths: Sequence[str]) -> list[dict[str, Any]]:
    """Return what becomes of each case (``values`` by field name, ``expect`` by field name): ``fields``, ``documents`` and
    ``mismatches``. ``paths`` say where in the request each stands. Raises ServiceError naming what is no field and no value."""
    long = sum(len(str(one.preferences.get(key) or "")) for one in definition.fields for key in EXPRESSIONS)
    count = len(definition.fields) * len(definition.parties) + long // 20
    most = max(1, min(MOST_CASES, MOST_DECISIONS // max(count, 1)))
    if len(cases) > most:
        raise invalid(
            f"cases must not have more than {most} entries for this template",
            "cases",
            f"must not have more than {most} entries",
        )
    names, called = Names(definition.fields), labels(definition.fields)
    by_uuid = {one.uuid: one for one in definition.fields}
    problems = Problems()
    given, expected = [], []
    for case, path in zip(cases, paths, strict=True):
        given.append(_given(case.get("values") or {}, names, by_uuid, f"{path}values", problems))
        expected.append(_expected(case.get("expect") or {}, names, by_uuid, f"{path}expect", problems))
    problems.refuse()
    outcomes = [outcome(definition, one) for one in given]
    return [
        {
            "fields": [_field(one, called[one.uuid], found) for one in definition.fields],
            "documents": [
                {"uuid": uuid, "name": name, "shown": uuid in found.documents}
                for uuid, name in definition.documents.items()
            ],
            "mismatches": list(_mismatches(wanted, by_uuid, found)),
        }
        for wanted, found in zip(expected, outcomes, strict=True)
    ]


def outcome(definition: Definition, given: Mapping[str, Any]) -> Outcome:
    """Return what the parties leave when one after the other fills in ``given`` (by field uuid; None empties a default)."""
    found = Outcome()
    for party in definition.parties:
        own_fields = [one for one in definition.fields if one.submitter_uuid == party.uuid]
        values_now = {**found.values, **_filled(own_fields, given)}
        decided = conditions.decided(
            definition.fields, definition.conditions, values_now, conditions.computing(own_fields)
        )
        for one in own_fields:
            if one.uuid in decided.hidden:
                continue
            found.shown.add(one.uuid)
            value = decided.values.get(one.uuid)
            if value is not None:
                found.values[one.uuid] = value
            if not one.readonly and one.type not in STATIC_TYPES and decided.requires(one):
                found.required.add(one.uuid)
    hidden = conditions.hidden(definition.fields, definition.conditions, found.values)
    found.documents = {uuid for uuid in definition.documents if uuid not in hidden}
    return found


def _filled(own_fields: Iterable[FieldDefinition], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a party has, with its defaults; what these say of the day or the party nobody knows here."""
    filled = {}
    for one in own_fields:
        value = given.get(one.uuid)
        if one.uuid not in given and not values.awaits(one, one.default_value):
            try:
                value = values.coerce(one, one.default_value)
            except values.BadValue:
                continue
        if value is not None and not is_computed(one):
            filled[one.uuid] = value
    return filled


def _given(
    raw: Mapping[str, Any], names: Names, fields: Mapping[str, FieldDefinition], path: str, problems: Problems
) -> dict[str, Any]:
    given = {}
    for name, value in raw.items():
        try:
            one = fields[names.uuid_of(name)]
            if is_computed(one):
                raise values.BadValue("is computed by a formula and takes no value")
            given[one.uuid] = values.coerce(one, value)
        except values.BadValue as bad:
            problems.add(f"{path}.{name[:100]}", bad.reason)
    return given


def _expected(
    raw: Mapping[str, Mapping[str, Any]],
    names: Names,
    fields: Mapping[str, FieldDefinition],
    path: str,
    problems: Problems,
) -> list[tuple[str, str, str, Any]]:
    """Return (name, uuid, what is expected of it, what it should be)."""
    expected = []
    for name, wanted in raw.items():
        for key in wanted:
            if key not in EXPECTED:  # ignored, the case would pass whatever comes of it
                problems.add(f"{path}.{name[:100]}.{key[:100]}", f"must be one of {', '.join(EXPECTED)}")
        try:
            one = fields[names.uuid_of(name)]
            for key in EXPECTED:
                if key in wanted:
                    value = wanted[key] if key != "value" else values.coerce(one, wanted[key])
                    expected.append((name, one.uuid, key, value))
        except values.BadValue as bad:
            problems.add(f"{path}.{name[:100]}", bad.reason)
    return expected


def _field(one: FieldDefinition, name: str, found: Outcome) -> dict[str, Any]:
    return {
        "uuid": one.uuid,
        "name": name,
        "role": one.role,
        "shown": one.uuid in found.shown,
        "required": one.uuid in found.required,
        "computed": is_computed(one),
        "value": found.values.get(one.uuid),
    }


def _mismatches(
    expected: Iterable[tuple[str, str, str, Any]], fields: Mapping[str, FieldDefinition], found: Outcome
) -> Iterable[dict[str, Any]]:
    for name, uuid, key, wanted in expected:
        one = _field(fields[uuid], name, found)
        if one[key] != wanted:
            yield {"field": name, "what": key, "expected": wanted, "actual": one[key]}
