"""What an override may say about a field: ``validation`` and ``preferences`` (specification 2.7).

Known keys are checked strictly, because a mistake shows only when somebody signs; unknown keys are dropped.
"""

import re
from collections.abc import Mapping
from typing import Any

from contracts.fields.rules import (
    COLORS,
    CURRENCIES,
    LARGEST_FONT,
    LARGEST_NUMBER,
    LONGEST_FORMAT,
    LONGEST_REASON,
    LONGEST_TEXT,
    MOST_REASONS,
    NUMBER_FORMATS,
    SIGNATURE_FORMATS,
    SMALLEST_FONT,
    WORDS,
    is_color,
    is_date_format,
)
from contracts.problems import Problems
from contracts.types import FieldDefinition, FieldType
from services.submissions.rules import addresses
from services.submissions.rules import values as rules

# Where a stamp is, the template says.
_WORDS = {key: words for key, words in WORDS.items() if key != "position"}
_ONLY_FOR = {"one_time_code": FieldType.PHONE, "method": FieldType.VERIFICATION}


def validation(definition: FieldDefinition, given: Mapping[str, Any], path: str, problems: Problems) -> dict[str, Any]:
    """``pattern``, ``message``, ``min``, ``max``, ``step``; numbers and dates in the form that values have."""
    known = {
        key: given[key] for key in ("pattern", "message", "min", "max", "step") if given.get(key) not in (None, "")
    }
    pattern, message = known.get("pattern"), known.get("message")
    if pattern is not None and (reason := rules.unusable_pattern(str(pattern))):
        problems.add(f"{path}.validation.pattern", reason)
    if message is not None and (not isinstance(message, str) or len(message) > LONGEST_TEXT):
        problems.add(f"{path}.validation.message", f"must be text of at most {LONGEST_TEXT} characters")
    for key in ("min", "max", "step") if definition.type in (FieldType.NUMBER, FieldType.DATE) else ():
        if key not in known:
            continue
        kind = FieldType.NUMBER if key == "step" else definition.type
        try:
            known[key] = rules.coerce(definition.model_copy(update={"type": kind}), known[key])
        except rules.BadValue as bad:
            problems.add(f"{path}.validation.{key}", bad.reason)
    return known


def preferences(definition: FieldDefinition, given: Mapping[str, Any], path: str, problems: Problems) -> dict[str, Any]:
    """The known keys; whoever draws relies on their kinds."""
    found = {}
    for key, value in given.items():
        if key not in _KNOWN or value is None:
            continue
        value = _coerced(key, value)
        if wrong := _wrong(definition.type, key, value):
            problems.add(f"{path}.preferences.{key}", wrong)
        found[key] = value
    return found


def _coerced(key: str, value: Any) -> Any:
    """Numbers, booleans and words as clients write them: ``"12"``, ``"true"``, ``"times"``."""
    if not isinstance(value, str):
        return value
    word = value.strip()
    if key in ("hidden", "with_signature_id", "one_time_code", "mask") and word.lower() in ("true", "false"):
        return word.lower() == "true"
    if key in ("font_size", "price", "mask") and re.fullmatch(r"-?\d{1,9}(\.\d{1,9})?", word, re.ASCII):
        number = float(word)
        return int(number) if number.is_integer() else number
    if key in ("color", "background"):
        return word.lower()
    if key == "currency":
        return word.upper()
    known = {one.lower(): one for one in _WORDS.get(key, ())}
    return known.get(word.lower(), value)


_KNOWN = {
    *_WORDS,
    "font_size",
    "color",
    "background",
    "format",
    "price",
    "currency",
    "payment_url",
    "hidden",
    "mask",
    "reasons",
    "one_time_code",
    "with_signature_id",
}


def _wrong(kind: FieldType, key: str, value: Any) -> str | None:
    if value and kind is not _ONLY_FOR.get(key, kind):
        return f"is for {_ONLY_FOR[key]} fields only"
    if key in _WORDS:
        return None if value in _WORDS[key] else f"must be one of {', '.join(_WORDS[key])}"
    if key in ("color", "background"):
        fits = isinstance(value, str) and is_color(value)
        return None if fits else f"must be one of {', '.join(COLORS)} or a hex colour"
    if key == "format":
        return _wrong_format(kind, value)
    if key == "font_size":
        fits = _is_number(value) and SMALLEST_FONT <= value <= LARGEST_FONT
        return None if fits else f"must be a number from {SMALLEST_FONT} to {LARGEST_FONT}"
    if key == "mask":
        return (
            None if isinstance(value, int) and abs(value) <= LONGEST_TEXT else "must be true, false or a whole number"
        )
    if key in ("hidden", "with_signature_id", "one_time_code"):
        return None if isinstance(value, bool) else "must be true or false"
    if key == "price":
        fits = _is_number(value) and 0 <= value <= LARGEST_NUMBER
        return None if fits else "must be a number from 0"
    if key == "currency":
        return None if value in CURRENCIES else f"must be one of {', '.join(CURRENCIES)}"
    if key == "payment_url":
        return _wrong_url(value)
    if key == "reasons":
        fits = (
            isinstance(value, list)
            and len(value) <= MOST_REASONS
            and all(isinstance(v, str) and len(v) <= LONGEST_REASON for v in value)
        )
        return None if fits else f"must be a list of at most {MOST_REASONS} texts"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong_url(value: Any) -> str | None:
    try:
        return None if isinstance(value, str) and addresses.web_url(value) else "must be an http or https URL"
    except addresses.BadAddress as bad:
        return bad.reason


def _wrong_format(kind: FieldType, value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > LONGEST_FORMAT:
        return f"must be text of at most {LONGEST_FORMAT} characters"
    if kind is FieldType.NUMBER:
        return None if value in NUMBER_FORMATS else f"must be one of {', '.join(NUMBER_FORMATS)}"
    if kind in (FieldType.SIGNATURE, FieldType.INITIALS):
        return None if value in SIGNATURE_FORMATS else f"must be one of {', '.join(SIGNATURE_FORMATS)}"
    if kind is FieldType.DATE:
        return None if is_date_format(value) else "must be a date format such as DD/MM/YYYY"
    return None
