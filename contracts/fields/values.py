"""Values of fields: as they come in, as they are stored, and whether they may be so (specification 2.7, peer facts 2.7).

Stored by field uuid: text, cells, phone, select, radio a string; multiple a list of strings; checkbox a bool; number an int
or float; date ``YYYY-MM-DD``, or a moment where its format says the time; signature, initials, image, stamp the uuid of an
attachment; file a list of them; verification ``verified``, which is proved (``identity_checks``) and never given. Blank is
None. The rules are those of the browser: nothing is accepted here that the signing page would refuse, and the reverse.
"""

import contextlib
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from contracts.fields.date_formats import has_time, parsed_date
from contracts.fields.kinds import ATTACHED, CHOICES, KINDS, Field, Value
from contracts.fields.rules import LARGEST_NUMBER, LONGEST_TEXT, PLACEHOLDER, is_empty
from contracts.formats.phone_number import in_e164
from contracts.types import STATIC_TYPES, FieldDefinition, FieldType

_FIRST_YEAR, _LAST_YEAR = 2, 9998
"""Of a date with a time of day."""


class BadValue(ValueError):
    """``reason`` continues the sentence that the field's name begins: ``must be ...``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def coerce(field: Field, raw: Any) -> Any:
    """``raw`` as this field stores it, None when it is blank. Raises BadValue when it is no such value at all."""
    if raw is None or raw in ("", []):
        return None
    reader = READERS.get(KINDS[field.type].value)
    if reader is None:
        raise BadValue(f"must be left out: a {field.type.value} field takes no value")
    value = reader(field, raw)
    return None if value in ("", []) else value


def violation(field: Field, value: Any) -> str | None:
    """Return why a coerced value may not be: options, pattern, min, max, step. None when it may. Blank always may."""
    if value is None:
        return None
    if field.type in CHOICES and field.options:
        unknown = [v for v in (value if isinstance(value, list) else [value]) if v not in field.options]
        if unknown:
            return f"must be one of {', '.join(field.options[:20])}"
    rules = field.validation
    if not rules:
        return None
    reason = _broken_rule(field, value)
    return (rules.get("message") or reason) if reason else None


def is_missing(field: FieldDefinition, value: Any) -> bool:
    """The field must be filled in and is not. Static and read-only fields cannot be."""
    if not field.required or field.readonly or field.type in STATIC_TYPES:
        return False
    return is_empty(value)


def awaits(field: Field, raw: Any) -> bool:
    """Return whether ``raw`` is a default that is resolved when the party completes (``{{date}}``, ``{name}``): where a field
    takes text, in the midst of it; elsewhere alone, so that the rest is no value of another type."""
    if not isinstance(raw, str):
        return False
    if KINDS[field.type].value in ("text", "line") or field.type is FieldType.HEADING:
        return PLACEHOLDER.search(raw) is not None
    return PLACEHOLDER.fullmatch(raw.strip()) is not None


def attachments_in(field: FieldDefinition, value: Any) -> list[str]:
    """The uuids of the attachments that a stored value names."""
    if field.type not in ATTACHED or value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def needs_font_check(text: str) -> bool:
    """True when ``text`` has a character outside those that our fonts draw for certain, so that rendering must be asked."""
    return _SAFE.fullmatch(text) is None


# Latin-1, Latin Extended, Greek, Cyrillic, common punctuation and currency signs, as far as they are assigned: all of it is
# in every font that we draw with. The rest (emoji, CJK, Arabic, combining marks, ...) is asked for.
_SAFE = re.compile(
    "[\t\n -~\u00a0-\u00ac\u00ae-\u024f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03ff\u0400-\u0481\u048a-\u052f"
    "\u1e00-\u1eff\u2013\u2014\u2018-\u201a\u201c-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2116\u2122]*"
)


def _text(_field: Field, raw: Any) -> str:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise BadValue("must be text")
    text = str(raw).replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > LONGEST_TEXT:
        raise BadValue(f"must not be longer than {LONGEST_TEXT} characters")
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            raise BadValue(f"must not contain the character U+{ord(character):04X}")
    return text


def _line(field: Field, raw: Any) -> str:
    return _text(field, raw).replace("\n", " ")


def _phone(field: Field, raw: Any) -> str:
    digits = in_e164(_text(field, raw))
    if digits is None:
        raise BadValue("must be a phone number with + and the country code, such as +14155550123")
    return digits


def number(raw: Any) -> int | float:
    """A number, or the digits of one with a point; whole ones are ints. Raises BadValue."""
    if isinstance(raw, str):
        if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", raw.strip(), re.ASCII):
            raise BadValue("must be a number")
        raw = float(raw) if not re.fullmatch(r"[+-]?\d{1,16}", raw.strip(), re.ASCII) else int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise BadValue("must be a number")
    if not math.isfinite(raw) or abs(raw) > LARGEST_NUMBER:
        raise BadValue("is out of range")
    return int(raw) if raw == int(raw) else raw


def _number(_field: Field, raw: Any) -> int | float:
    return number(raw)


def _date(field: Field, raw: Any) -> str:
    """ISO date or date-time, Unix seconds, or as the field's format says. A format with a time of day keeps the moment."""
    timed = has_time(field.preferences.get("format"))
    if isinstance(raw, int | float) and not isinstance(raw, bool) and abs(raw) < 1e11:
        try:
            moment = datetime.fromtimestamp(raw, UTC)
        except (ValueError, OverflowError, OSError):
            raise BadValue("must be a day of the calendar") from None
        return _stored_moment(moment) if timed else moment.date().isoformat()
    if timed and isinstance(raw, str) and "T" in raw:
        return _timed(raw.strip())
    if isinstance(raw, str):
        text = raw.strip()
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}(T[0-9:.+Z\-]*)?", text, re.ASCII):
            try:
                return date.fromisoformat(text[:10]).isoformat()
            except ValueError:
                raise BadValue("must be a day of the calendar") from None
        if not timed and (day := parsed_date(text, field.preferences.get("format"))):
            return day.isoformat()
    raise BadValue(_TIMED if timed else "must be a date as YYYY-MM-DD")


_TIMED = "must be a date and time as YYYY-MM-DDTHH:MM:SSZ"


def _timed(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadValue(_TIMED) from None
    return _stored_moment(moment)


def _stored_moment(moment: datetime) -> str:
    """Not of the calendar's first and last year: in another time zone it may be beyond them, and nobody could show it."""
    text = moment.isoformat(timespec="seconds")
    with contextlib.suppress(OverflowError):  # beyond the calendar, so of its first or last year
        text = moment_text(moment) if moment.tzinfo else text
    if not _FIRST_YEAR <= int(text[:4]) <= _LAST_YEAR:
        raise BadValue(f"must be of the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return text


def moment_text(moment: datetime) -> str:
    """Return how a moment is kept: ISO 8601 in UTC, to the second."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def boolean(raw: Any) -> bool:
    """True, false, or their words. Raises BadValue."""
    word = str(raw).strip().lower()
    if word in ("true", "1", "yes"):
        return True
    if word in ("false", "0", "no"):
        return False
    raise BadValue("must be true or false")


def _checkbox(_field: Field, raw: Any) -> bool:
    return boolean(raw)


def _multiple(field: Field, raw: Any) -> list[str]:
    chosen = [_line(field, item) for item in _items(raw)]
    ordered = [option for option in field.options if option in chosen]
    return ordered + [item for item in dict.fromkeys(chosen) if item not in ordered]


def _attachment(_field: Field, raw: Any) -> str:
    if isinstance(raw, list) and len(raw) == 1:
        raw = raw[0]
    if not isinstance(raw, str) or len(raw) > 64:
        raise BadValue("must be the uuid of an attachment")
    return raw


def _files(field: Field, raw: Any) -> list[str]:
    return list(dict.fromkeys(_attachment(field, item) for item in _items(raw)))


def _items(raw: Any) -> list[Any]:
    return [item for item in (raw if isinstance(raw, list) else [raw]) if item not in (None, "")]


READERS: Mapping[Value, Callable[[Field, Any], Any]] = {
    "text": _text,
    "line": _line,
    "phone": _phone,
    "number": _number,
    "date": _date,
    "boolean": _checkbox,
    "option": _line,
    "options": _multiple,
    "picture": _attachment,
    "files": _files,
}
"""The reader of each kind's ``value``; what is proved and what takes nothing have none."""


def _broken_rule(field: Field, value: Any) -> str | None:
    rules, limits = KINDS[field.type].rules, field.validation
    if "pattern" in rules and (pattern := limits.get("pattern")):
        # Where tags are read there is no RE2 (see patterns).
        from contracts.fields.patterns import compiled

        usable = compiled(pattern)
        return "does not have the required form" if usable and usable.fullmatch(value) is None else None
    if "step" in rules:
        return _out_of_bounds(value, limits, as_number) or _off_step(value, limits)
    if "min" in rules:
        return _out_of_bounds(value[:10], limits, as_day)
    return None


def _out_of_bounds(value: Any, rules: Mapping[str, Any], convert: Callable[[Any], Any]) -> str | None:
    low, high = convert(rules.get("min")), convert(rules.get("max"))
    if low is not None and value < low:
        return f"must not be below {low}"
    if high is not None and value > high:
        return f"must not be above {high}"
    return None


def _off_step(value: int | float, rules: Mapping[str, Any]) -> str | None:
    """As in HTML: the allowed values are ``min`` (or 0) plus whole multiples of ``step``."""
    step = as_number(rules.get("step"))
    if not step or step <= 0:
        return None
    start = as_number(rules.get("min")) or 0
    try:
        rest = (Decimal(str(value)) - Decimal(str(start))) % Decimal(str(step))
    except InvalidOperation:  # the step is finer than the 28 digits of Decimal: every number is on it
        return None
    if not rest:
        return None
    return "must be a whole number" if step == 1 and start == int(start) else f"must be in steps of {step}"


def as_number(bound: Any) -> int | float | None:
    """A bound or step of numbers as values are judged by it; None where it says nothing."""
    if isinstance(bound, str):
        try:
            bound = float(bound)
        except ValueError:
            return None
    return bound if isinstance(bound, int | float) and math.isfinite(bound) else None


def as_day(bound: Any) -> str | None:
    """A bound of dates as values are judged by it; None where it says nothing."""
    return bound[:10] if isinstance(bound, str) and re.match(r"\d{4}-\d{2}-\d{2}", bound, re.ASCII) else None
