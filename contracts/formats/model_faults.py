"""What pydantic finds wrong with a request, in the words that all refusals have."""

import re
from collections.abc import Mapping
from typing import Any

TYPES: Mapping[str, str] = {
    "string": "must be a String",
    "integer": "must be an Integer",
    "number": "must be a Number",
    "boolean": "must be true or false",
    "array": "must be an Array",
    "object": "must be an Object",
}
"""What is said of a value of another type, by the name that JSON Schema has for the right one."""

_KINDS = {
    "missing": "is required",
    "extra_forbidden": "is not a key of this request",
    "int_parsing_size": "is out of range",
    "finite_number": "must be finite",
    "value_error": "{error}",
    "assertion_error": "{error}",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "string_too_short": "is too short (minimum is {min_length} characters)",
    "string_too_long": "is too long (maximum is {max_length} characters)",
    "string_pattern_mismatch": "does not have the required form",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
}
_FAMILIES = (
    (r"string", TYPES["string"]),
    (r"int", TYPES["integer"]),
    (r"float|decimal", TYPES["number"]),
    (r"bool", TYPES["boolean"]),
    (r"list|tuple|set|iterable", TYPES["array"]),
    (r"dict|mapping|model|dataclass", TYPES["object"]),
    (r"datetime|timezone", "must be an ISO 8601 date and time"),
    (r"date", "must be a date as YYYY-MM-DD"),
    (r"uuid", "must be a UUID"),
    (r"url", "is not a valid URL"),
)


def reason_of(fault: Mapping[str, Any]) -> str:
    """Return the reason of one of ``ValidationError.errors()``, which must have its ``ctx``; it continues the field's name."""
    kind = str(fault["type"])
    if (text := _KINDS.get(kind)) is not None:
        context = {key: _plain(key, value) for key, value in fault.get("ctx", {}).items()}
        return text.format_map(context)
    family = re.match(r"(?:is_instance_of|[a-z]+)", kind)
    return next((words for names, words in _FAMILIES if family and re.fullmatch(names, family[0])), "is invalid")


def _plain(key: str, value: object) -> str:
    """``'a', 'b' or 'c'`` as ``a, b, c``; a number as it is written."""
    if key == "expected":
        return ", ".join(re.findall(r"'([^']*)'", str(value))) or str(value)
    return f"{value:,}" if isinstance(value, int) and key.endswith("_length") else str(value)
