"""The rules for what a field may say about itself (specification 2.7), wherever it says so: in a template, in a tag, in a form
field of a PDF, in an override. So that nobody is given a field that no value satisfies: a mistake would show only when somebody
signs.

Known keys are checked strictly; keys that are not known, or not of this type of field, are dropped, because published clients
send some. Numbers and booleans may come as strings. What has a wrong value raises BadValue where one setting is read, and is
noted in ``problems`` where a whole definition is.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from contracts.fields import values
from contracts.fields.date_formats import is_date_format, parsed_date
from contracts.fields.formulas import grammar
from contracts.fields.formulas.evaluating import COMPUTED
from contracts.fields.formulas.references import EXPRESSIONS, FORMULA
from contracts.fields.kinds import ATTACHED, CHOICES, DEPENDING, KINDS, LOOKS, WITHOUT_CONTENT, Field
from contracts.fields.rules import (
    COLORS,
    CURRENCIES,
    LARGEST_FONT,
    LARGEST_NUMBER,
    LONGEST_NAME,
    LONGEST_PATTERN,
    LONGEST_REASON,
    LONGEST_TEXT,
    MOST_OPTIONS,
    MOST_REASONS,
    NUMBER_FORMATS,
    SIGNATURE_FORMATS,
    SMALLEST_FONT,
    WORDS,
    is_color,
)
from contracts.fields.values import BadValue
from contracts.formats.plain_text import FORBIDDEN, lines, one_line
from contracts.formats.web_url import NOT_A_URL, is_web_url
from contracts.problems import Problems
from contracts.types import FieldDefinition, FieldType

RULES = ("pattern", "message", "min", "max", "step")
"""The keys of ``validation``."""

PROOFS = {"one_time_code": FieldType.PHONE, "method": FieldType.VERIFICATION}
"""What asks a signer to prove something is never dropped: whoever asks for it elsewhere must hear that it has no effect."""

Read = Callable[[Any], Any]


def options(
    raw: Sequence[str], area_options: Sequence[str], kind: FieldType, path: str, problems: Problems
) -> list[str]:
    """The options of a choice: as given, else as the areas name them. A choice without any cannot be made."""
    chosen = [option.strip() for option in raw]
    if kind in CHOICES and not chosen:
        chosen = list(dict.fromkeys(area_options))
    if len(chosen) > MOST_OPTIONS:
        problems.add(f"{path}.options", f"must not have more than {MOST_OPTIONS} entries")
    for i, option in enumerate(chosen):
        if reason := "must not be blank" if not option else wrong_name(option):
            problems.add(f"{path}.options[{i}]", reason)
        elif option in chosen[:i]:
            problems.add(f"{path}.options[{i}]", f"repeats the option {option!r}")
    if kind not in CHOICES:
        return []
    if not chosen:
        problems.add(f"{path}.options", f"are required for a {kind} field")
    return chosen


def validation(raw: Mapping[str, Any], field: Field, path: str, problems: Problems) -> dict[str, Any]:
    """``pattern``, ``message``, ``min``, ``max``, ``step`` of what is given, such that some value satisfies them and those that
    the field has already."""
    checked = _checked(raw, RULES, lambda key, value: rule(field, key, value), f"{path}.validation", problems)
    if conflict := contradiction({**field.validation, **checked}, field.type):
        low, high = conflict
        key = high if high in checked else low
        if key in checked:
            problems.add(f"{path}.validation.{key}", CONFLICTS[key])
    return checked


CONFLICTS = {"max": "must not be below min", "min": "must not be above max", "step": "must leave a number to choose"}


def contradiction(rules: Mapping[str, Any], kind: FieldType) -> tuple[str, str] | None:
    """Two rules that no value satisfies together, or None: bounds with nothing between them, a step with nothing on it."""
    read = _BOUNDS.get(kind, lambda bound: bound)
    low, high, step = read(rules.get("min")), read(rules.get("max")), values.as_number(rules.get("step"))
    if low is not None and high is not None and (isinstance(low, str) != isinstance(high, str) or low > high):
        return "min", "max"
    if kind is FieldType.NUMBER and low is None and high is not None and step:
        # Steps are counted from min, which is always one of them, or from 0.
        lowest = (Decimal(str(high)) / Decimal(str(step))).to_integral_value("ROUND_FLOOR") * Decimal(str(step))
        return ("max", "step") if lowest < -LARGEST_NUMBER else None
    return None


def unsatisfiable(field: FieldDefinition) -> str | None:
    """Return why its signer could not complete, or nothing be judged by its pattern, as the end of a sentence about a stored
    field; or None. Older versions took what is refused now; what may stay empty does no harm."""
    from contracts.fields.patterns import compiled, unusable  # not where tags are read

    rules, validation = KINDS[field.type].rules, field.validation
    demanded = field.required and not field.readonly
    pattern = str(validation.get("pattern") or "")
    if "pattern" in rules and (demanded or compiled(pattern) is None):
        reason = unusable(pattern, of_phone=field.type is FieldType.PHONE) if pattern else None
        return f"pattern {reason}" if reason else None
    conflict = contradiction(validation, field.type) if demanded and "min" in rules else None
    return f"{conflict[1]} {CONFLICTS[conflict[1]]}" if conflict else None


def rule(field: Field, key: str, value: Any) -> Any:
    """One key of ``validation`` as it is stored."""
    match key:
        case "pattern":
            return _pattern(value, field.type)
        case "message":
            return text(value)
        case "step":
            return _above_zero(value)
    if field.type is FieldType.DATE:
        return _day(value, field.preferences.get("format"))
    return values.number(value) if field.type is FieldType.NUMBER else _number_or_day(value)


def preferences(raw: Mapping[str, Any], kind: FieldType, path: str, problems: Problems) -> dict[str, Any]:
    """Return how the field is drawn, and what its type needs."""
    keys = dict.fromkeys([*LOOKS, *DEPENDING, *KINDS[kind].preferences, *PROOFS, FORMULA])
    checked = _checked(raw, keys, lambda key, value: preference(kind, key, value), f"{path}.preferences", problems)
    return {key: value for key, value in checked.items() if holds(kind, key)}


def holds(kind: FieldType, key: str) -> bool:
    """Return whether such fields have this preference."""
    return key in LOOKS or key in DEPENDING or key in KINDS[kind].preferences


def preference(kind: FieldType, key: str, value: Any) -> Any:
    """One key of ``preferences`` as it is stored."""
    checked = _FORMATS[kind](value) if key == "format" and kind in _FORMATS else PREFERENCES[key](value)
    if checked and kind is not PROOFS.get(key, kind):
        raise BadValue(f"is for {PROOFS[key]} fields only")
    if checked and key == FORMULA and kind not in COMPUTED:
        raise BadValue(f"is for {', '.join(COMPUTED)} fields only")
    return checked


def default_value(raw: Any, field: Field, path: str, problems: Problems) -> Any:
    """A value that the signer finds filled in; ``{{date}}``, ``{{name}}`` and the like are resolved when they complete."""
    try:
        return default(raw, field)
    except BadValue as bad:
        problems.add(f"{path}.default_value", bad.reason)
        return None


def default(raw: Any, field: Field) -> Any:
    """As ``default_value``; raises BadValue. Pictures and files are texts here: whoever makes a submission fetches them."""
    if raw is None or raw in ("", []) or field.type in WITHOUT_CONTENT:
        return None
    if field.preferences.get(FORMULA):
        raise BadValue("must be left out: a formula computes the value")
    if field.type is FieldType.VERIFICATION:
        raise BadValue("must be left out: only the signer can prove who they are")
    if field.type in ATTACHED:
        return _fetched(raw, field)
    if values.awaits(field, raw) or field.type is FieldType.HEADING:
        return text(str(raw) if isinstance(raw, int | float) else raw)
    value = values.coerce(field, raw)
    if reason := values.violation(field, value):
        raise BadValue(reason)
    return value


def _fetched(raw: Any, field: Field) -> Any:
    """Return what becomes one attachment or, of a file field, several."""
    sources = raw if isinstance(raw, list) else [raw]
    if len(sources) > 1 and field.type is not FieldType.FILE:
        raise BadValue("must be one picture")
    for source in sources:
        if not isinstance(source, str):
            raise BadValue("must be a URL, base64 or text shorter than 60 characters")
        refuse_placeholder(field, source)
        if len(source) > LONGEST_TEXT:
            raise BadValue("must be a URL: give pictures of one submission in submitters[].fields")
    return raw


def refuse_placeholder(field: Field, source: str) -> None:
    """Raises BadValue for a placeholder where a picture is wanted: what it stands for is no picture."""
    if values.awaits(field, source):
        raise BadValue("must be a picture or a file, not a placeholder")


def wrong_name(name: str) -> str | None:
    """Return why values cannot be found by this name (of a field, a role, an option), or None."""
    if len(name) > LONGEST_NAME:
        return f"must not be longer than {LONGEST_NAME} characters"
    if FORBIDDEN.search(name):
        return "must not contain control characters or marks that change the direction of text"
    return None


def shown_text(raw: str | None, path: str, problems: Problems) -> str | None:
    """A title or description (Markdown); blank is none."""
    if not raw or not raw.strip():
        return None
    try:
        return text(raw)
    except BadValue as bad:
        problems.add(path, bad.reason)
        return None


def text(value: Any) -> str:
    """A text of several lines."""
    if not isinstance(value, str):
        raise BadValue("must be text")
    if len(value) > LONGEST_TEXT:
        raise BadValue(f"must not be longer than {LONGEST_TEXT} characters")
    return lines(value)


def pattern_text(value: Any) -> str:
    """A pattern as it is written; whether it can be used only RE2 knows."""
    if not isinstance(value, str):
        raise BadValue("must be text")
    if len(value) > LONGEST_PATTERN:
        raise BadValue(f"must not be longer than {LONGEST_PATTERN} characters")
    return value


def _pattern(value: Any, kind: FieldType) -> str:
    from contracts.fields.patterns import unusable  # not where tags are read

    if reason := unusable(pattern_text(value), of_phone=kind is FieldType.PHONE):
        raise BadValue(reason)
    return str(value)


def _checked(
    raw: Mapping[str, Any], keys: Iterable[str], check: Callable[[str, Any], Any], path: str, problems: Problems
) -> dict[str, Any]:
    checked = {}
    for key in keys:
        value = raw.get(key)
        if value is None or value == "":
            continue
        try:
            checked[key] = check(key, value)
        except BadValue as bad:
            problems.add(f"{path}.{key}", bad.reason)
    return checked


def _above_zero(value: Any) -> int | float:
    step = values.number(value)
    if step <= 0:
        raise BadValue("must be above 0")
    return step


def _day(value: Any, format_: str | None = None) -> str:
    """A day, also as the field's own format writes it."""
    if isinstance(value, str):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value.strip(), re.ASCII):
            format_ = "YYYY-MM-DD"
        if day := parsed_date(value, format_):
            return day.isoformat()
    raise BadValue("must be a date as YYYY-MM-DD")


def _number_or_day(value: Any) -> int | float | str:
    try:
        return values.number(value)
    except BadValue:
        pass
    try:
        return _day(value, "YYYY-MM-DD")
    except BadValue:
        raise BadValue("must be a number or a date as YYYY-MM-DD") from None


def _one_of(*allowed: str) -> Read:
    spelled = {word.lower(): word for word in allowed}

    def read(value: Any) -> str:
        if not isinstance(value, str) or value.strip().lower() not in spelled:
            raise BadValue(f"must be one of {', '.join(allowed)}")
        return spelled[value.strip().lower()]

    return read


def _color(value: Any) -> str:
    color = value.strip().lower() if isinstance(value, str) else ""
    if not is_color(color):
        raise BadValue(f"must be {', '.join(COLORS)} or a hex colour such as #1a2b3c")
    return color


def _font_size(value: Any) -> int | float:
    size = values.number(value)
    if not SMALLEST_FONT <= size <= LARGEST_FONT:
        raise BadValue(f"must be between {SMALLEST_FONT} and {LARGEST_FONT}")
    return size


def _mask(value: Any) -> bool | int:
    """True masks all; a number keeps that many characters, from the end when negative."""
    if isinstance(value, str) and not re.fullmatch(r"-?\d{1,4}", value.strip(), re.ASCII):
        return values.boolean(value)
    if isinstance(value, bool):
        return value
    count = values.number(value)
    if not isinstance(count, int) or abs(count) > LONGEST_NAME:
        raise BadValue(f"must be true, false or a whole number of characters up to {LONGEST_NAME}")
    return count


def _price(value: Any) -> int | float:
    price = values.number(value)
    if price < 0:
        raise BadValue("must not be below 0")
    return price


def _url(value: Any) -> str:
    url = value.strip() if isinstance(value, str) else ""
    if not is_web_url(url):
        raise BadValue(NOT_A_URL)
    return url


def _reasons(value: Any) -> list[str]:
    entries = value if isinstance(value, list) and len(value) <= MOST_REASONS else [None]
    reasons = [one_line(reason) if isinstance(reason, str) else "" for reason in entries]
    if not all(0 < len(reason) <= LONGEST_REASON for reason in reasons):
        raise BadValue(f"must be a list of at most {MOST_REASONS} texts of 1 to {LONGEST_REASON} characters")
    return reasons


def _date_format(value: Any) -> str:
    if not isinstance(value, str) or not is_date_format(value):
        raise BadValue("must be a date format such as DD/MM/YYYY")
    return one_line(value)


_FORMATS: dict[FieldType, Read] = {
    FieldType.DATE: _date_format,
    FieldType.NUMBER: _one_of(*NUMBER_FORMATS),
    FieldType.SIGNATURE: _one_of(*SIGNATURE_FORMATS),
    FieldType.INITIALS: _one_of(*SIGNATURE_FORMATS),
}
_BOUNDS: dict[FieldType, Read] = {FieldType.NUMBER: values.as_number, FieldType.DATE: values.as_day}
PREFERENCES: dict[str, Read] = {
    "font_size": _font_size,
    "color": _color,
    "background": _color,
    "format": text,
    "price": _price,
    "currency": _one_of(*CURRENCIES),
    "payment_url": _url,
    "mask": _mask,
    "reasons": _reasons,
    "hidden": values.boolean,
    "with_signature_id": values.boolean,
    "one_time_code": values.boolean,
    **{key: _one_of(*words) for key, words in WORDS.items()},
    **dict.fromkeys(EXPRESSIONS, grammar.checked_text),
}
