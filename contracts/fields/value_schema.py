"""What may be given as the values of a template, as a JSON Schema (draft 2020-12) that any validator and any generator of types
reads.

What it allows is accepted, apart from what only our own readers know: whether a font draws the characters, whether a picture
can be read, whether texts fit into their boxes. The reverse does not hold: a number may be written as text as well, a date as
its format says, a file alone in place of a list of one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contracts.fields.date_formats import has_time
from contracts.fields.formulas.references import is_computed
from contracts.fields.kinds import KINDS, Field, Value
from contracts.fields.labels import labels
from contracts.fields.rules import LARGEST_NUMBER, LONGEST_TEXT, is_empty
from contracts.fields.values import as_day, as_number
from contracts.formats.phone_number import E164
from contracts.types import FieldDefinition, FieldType, Party

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def template_schema(parties: Sequence[Party], fields: Sequence[FieldDefinition]) -> Schema:
    """Return the schema of an object that has, by the name of each role, its ``values`` as ``submitters`` of a new submission
    have them. Nothing is required: whoever signs fills in what the program leaves out."""
    names = labels(fields)
    by_role = {
        party.name: _role_schema([field for field in fields if field.submitter_uuid == party.uuid], names)
        for party in parties
    }
    return _closed(by_role)


def value_schema(field: Field) -> Schema | None:
    """The schema of one field's value, null for a blank one; None where the API takes none, as where a formula computes it."""
    if is_computed(field):
        return None
    if field.type is FieldType.HEADING:
        return _or_blank(_text(field))
    writer = _WRITERS.get(KINDS[field.type].value)
    return None if writer is None else _or_blank(writer(field))


def _role_schema(fields: Sequence[FieldDefinition], names: Mapping[str, str]) -> Schema:
    """Of several fields with one name each gets the value."""
    properties: dict[str, list[Schema]] = {}
    for field in fields:
        if (schema := value_schema(field)) is not None:
            properties.setdefault(names[field.uuid], []).append({**_annotations(field), **schema})
    merged = {name: schemas[0] if len(schemas) == 1 else {"allOf": schemas} for name, schemas in properties.items()}
    return _closed(merged)


def _closed(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _annotations(field: FieldDefinition) -> Schema:
    """Return what a reader, or a form that is made of the schema, wants to know beside the rules."""
    annotations = {"title": field.title, "description": field.description, "default": field.default_value}
    return {key: value for key, value in annotations.items() if not is_empty(value)} | {"x-type": field.type.value}


def _or_blank(schema: Schema) -> Schema:
    blank: Schema = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        blank["enum"] = [*schema["enum"], None]
    return blank


def _text(_field: Field) -> Schema:
    return {"type": "string", "maxLength": LONGEST_TEXT}


def _with_pattern(schema: Schema, field: Field) -> Schema:
    """HTML's pattern attribute, which is JavaScript's, has to match all of the value; JSON Schema's need not."""
    pattern = field.validation.get("pattern")
    if not pattern:
        return schema
    whole = f"^(?:{pattern})$"
    if "pattern" in schema:
        return {**schema, "allOf": [{"pattern": whole}]}
    return {**schema, "pattern": whole}


def _phone(field: Field) -> Schema:
    return _with_pattern({"type": "string", "pattern": f"^{E164}$"}, field)


def _number(field: Field) -> Schema:
    """A step that is no whole number, or that does not begin at zero, JSON Schema cannot say: validators reckon in binary."""
    low, high, step = (as_number(field.validation.get(key)) for key in ("min", "max", "step"))
    schema: Schema = {
        "type": "number",
        "minimum": -LARGEST_NUMBER if low is None else max(low, -LARGEST_NUMBER),
        "maximum": LARGEST_NUMBER if high is None else min(high, LARGEST_NUMBER),
    }
    if not step or step <= 0:
        return schema
    if step == int(step) and (low or 0) % step == 0:
        return {**schema, "multipleOf": int(step)}
    return {**schema, "x-step": step}


def _date(field: Field) -> Schema:
    """With ``formatMinimum`` and ``formatMaximum``, which JSON Schema does not have and ajv-formats reads."""
    timed = has_time(field.preferences.get("format"))
    schema: Schema = {"type": "string", "format": "date-time" if timed else "date"}
    for key, bound, time in (("formatMinimum", "min", "T00:00:00Z"), ("formatMaximum", "max", "T23:59:59Z")):
        if (day := as_day(field.validation.get(bound))) is not None:
            schema[key] = day + time if timed else day
    return schema


def _boolean(_field: Field) -> Schema:
    return {"type": "boolean"}


def _option(field: Field) -> Schema:
    return {"type": "string", "enum": [*dict.fromkeys(field.options)]}


def _options(field: Field) -> Schema:
    return {"type": "array", "items": _option(field), "uniqueItems": True}


def _picture(_field: Field) -> Schema:
    """A URL, a data URI, base64 or, for a signature or initials, the text to draw."""
    return {"type": "string"}


def _files(field: Field) -> Schema:
    return {"type": "array", "items": _picture(field)}


_WRITERS: Mapping[Value, Callable[[Field], Schema]] = {
    "text": lambda field: _with_pattern(_text(field), field),
    "line": lambda field: _with_pattern(_text(field), field),
    "phone": _phone,
    "number": _number,
    "date": _date,
    "boolean": _boolean,
    "option": _option,
    "options": _options,
    "picture": _picture,
    "files": _files,
}
"""One for each reader of ``contracts.fields.values``."""
