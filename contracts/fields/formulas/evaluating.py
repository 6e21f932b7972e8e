"""What a formula comes to, and what is left of it when some of its fields are known."""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import Any

from contracts.fields.formulas import numbers
from contracts.fields.formulas.functions import CALLS, FUNCTIONS, Kind, fits, name_of, text_of, wrong_pattern
from contracts.fields.formulas.grammar import Tree
from contracts.fields.formulas.numbers import NoValue
from contracts.fields.kinds import KINDS, Field, Value
from contracts.fields.rules import LARGEST_NUMBER, LONGEST_TEXT, is_empty
from contracts.fields.values import BadValue
from contracts.types import FieldType

_KINDS: Mapping[Value, Kind] = {
    "text": "text",
    "line": "text",
    "phone": "text",
    "option": "text",
    "number": "number",
    "date": "date",
    "boolean": "boolean",
    "options": "options",
    "picture": "file",
    "files": "file",
    "proof": "file",
}
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
COMPUTED: Mapping[FieldType, Kind] = {
    FieldType.NUMBER: "number",
    FieldType.TEXT: "text",
    FieldType.CELLS: "text",
    FieldType.DATE: "date",
    FieldType.CHECKBOX: "boolean",
}
"""The types of fields that a formula may compute; a text takes numbers and dates as ``concat()`` writes them."""


def kind_of_field(kind: FieldType) -> Kind | None:
    """Return what a formula finds in such a field; None when it never has a value."""
    return _KINDS.get(KINDS[kind].value)


def kind_of(tree: Tree, fields: Mapping[str, Field]) -> Kind:
    """Return what kind of value a formula gives. Raises BadValue for what fits nothing: a wrong kind, an unknown function.
    ``fields`` are those that it names, by uuid."""
    if tree[0] == "field":
        kind = kind_of_field(fields[tree[1]].type)
        if kind is None:
            raise BadValue(f"names a {fields[tree[1]].type.value} field, which has no value")
        return kind
    if tree[0] == "empty":
        return "any"
    if tree[0] == "date":
        if _day(tree[1]) is None or len(tree[1]) != len("YYYY-MM-DD"):
            raise BadValue(f"has a date {tree[1]!r}, which is not a day as YYYY-MM-DD")
        return "date"
    if tree[0] != "call":
        constant: Kind = tree[0]
        return constant
    name, parts = tree[1], tree[2]
    if name not in CALLS or (name == "date" and (len(parts) != 1 or parts[0][0] != "text")):
        needs_day = 'must have a day in date(), such as date("2026-01-31")'
        raise BadValue(needs_day if name in CALLS else f"has an unknown function {name}()")
    kinds = [kind_of(part, fields) for part in parts]
    try:
        kind = CALLS[name].judge(kinds)
    except BadValue as bad:
        raise BadValue(f"{bad.reason} ({_shown(name)})") from None
    if name == "format":
        _check_pattern(kinds[0], parts[1])
    return kind


def _check_pattern(kind: Kind, pattern: Tree) -> None:
    if pattern[0] != "text":
        raise BadValue("must have the pattern of format() in quotes")
    if reason := wrong_pattern(kind, pattern[1]):
        raise BadValue(reason)


def check_result(tree: Tree, fields: Mapping[str, Field], needed: Kind) -> None:
    """Raise BadValue unless the formula gives what is ``needed``; a text takes numbers and dates, too."""
    kind = kind_of(tree, fields)
    if not fits(kind, needed) and not (needed == "text" and kind in ("number", "date")):
        raise BadValue(f"gives {name_of(kind)} where {name_of(needed)} is needed")


def evaluate(tree: Tree, value_of: Callable[[str], Any]) -> Any:
    """Return what a formula gives. ``value_of(uuid)`` is what ``operand`` made of a field's value. Raises NoValue."""
    match tree[0]:
        case "field":
            return value_of(tree[1])
        case "number":
            return numbers.of_text(tree[1])
        case "text" | "boolean":
            return tree[1]
        case "date":
            return _day(tree[1])
        case "empty":
            return None
    name, parts = tree[1], tree[2]
    if name == "if":
        return evaluate(parts[1 if evaluate(parts[0], value_of) else 2], value_of)
    if name in ("and", "or"):
        first = bool(evaluate(parts[0], value_of))
        return first if first == (name == "or") else bool(evaluate(parts[1], value_of))
    arguments = [evaluate(part, value_of) for part in parts]
    compute = CALLS[name].compute if name in CALLS else None
    if compute is None:
        raise NoValue
    return compute(arguments)


def operand(kind: FieldType, value: Any) -> Any:
    """Return a stored value as formulas reckon with it. What is no value of such a field counts as none."""
    match kind_of_field(kind):
        case "number":
            return numbers.of_value(value) if numbers.is_number(value) else None
        case "text":
            return value if isinstance(value, str) else ""
        case "date":
            return _day(value) if isinstance(value, str) else None
        case "boolean":
            return value is True
        case "options":
            return value if isinstance(value, list) else []
    return value


def result(field: Field, tree: Tree, value_of: Callable[[str], Any]) -> Any:
    """Return what a formula computes for a field, as the field stores it; None for no value, also where none can be
    computed."""
    try:
        value = evaluate(tree, value_of)
        if value is None:
            return None
        match COMPUTED.get(field.type):
            case "number":
                return numbers.to_value(value) if abs(value) <= LARGEST_NUMBER * numbers.ONE else None
            case "text":
                text = text_of(value).replace("\n", " ") if field.type is FieldType.CELLS else text_of(value)
                return text if text and len(text) <= LONGEST_TEXT else None
            case "date":
                return value.isoformat()
            case "boolean":
                return bool(value)
    except (ArithmeticError, TypeError, ValueError, AttributeError):  # of an older or a newer version: not judged here
        pass
    return None


def holds(tree: Tree, value_of: Callable[[str], Any]) -> bool:
    """Return whether a condition holds. What cannot be computed holds: a field too many is seen, a field too few is not."""
    try:
        return bool(evaluate(tree, value_of))
    except (ArithmeticError, TypeError, ValueError, AttributeError):
        return True


def settled(tree: Tree, changing: Collection[str], value_of: Callable[[str], Any]) -> Tree:
    """Return the tree with what is known in place of the fields that are not ``changing``, computed as far as that goes:
    whoever gets it learns no more of others' values than what it needs."""
    if tree[0] == "field":
        return tree if tree[1] in changing else _constant(value_of(tree[1]))
    if tree[0] != "call":
        return tree
    name, parts = tree[1], [settled(part, changing, value_of) for part in tree[2]]
    if name == "if" and parts[0][0] == "boolean":
        return parts[1 if parts[0][1] else 2]
    if name in ("and", "or") and parts[0][0] == "boolean":
        return parts[0] if parts[0][1] == (name == "or") else parts[1]
    rest: Tree = ("call", name, tuple(parts))
    if name == "options" or any(part[0] in ("call", "field") and not _is_constant(part) for part in parts):
        return rest
    try:
        return _constant(evaluate(rest, value_of))
    except NoValue:
        return rest


def _constant(value: Any) -> Tree:
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int):
        text = numbers.written(abs(value))
        return ("call", "negative", (("number", text),)) if value < 0 else ("number", text)
    if isinstance(value, date):
        return "date", value.isoformat()
    if isinstance(value, list):
        return "call", "options", tuple(("text", item) for item in value)
    return ("empty",) if is_empty(value) else ("text", str(value))


def _is_constant(tree: Tree) -> bool:
    return (
        tree[0] == "call"
        and tree[1] in ("options", "negative")
        and all(part[0] in ("text", "number") for part in tree[2])
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10]) if _DAY.match(text) else None  # others of ISO 8601 are no stored days
    except ValueError:
        return None


def _shown(name: str) -> str:
    return f"{name}()" if name in FUNCTIONS else {"negative": "-"}.get(name, name)
