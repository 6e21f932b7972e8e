"""What a field may say about itself (specification 2.7): options, validation, preferences, default value.

Known keys are checked strictly, because a mistake there shows only when somebody signs; unknown keys are dropped, because
published clients send some. Numbers and booleans may come as strings.
"""

import math
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import re2

from contracts.fields.rules import (
    COLORS,
    CURRENCIES,
    LARGEST_FONT,
    LARGEST_NUMBER,
    LONGEST_PATTERN,
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
from contracts.types import IMAGE_TYPES, FieldType
from services.templates import names

MOST_OPTIONS = 500
LONGEST_URL = 2_000

CHOICES = frozenset({FieldType.SELECT, FieldType.RADIO, FieldType.MULTIPLE})

_PLACEHOLDER = re.compile(r"\s*\{{1,2}\s*(date|time|hour|minute|day|month|year|id|role|name|email|phone)\s*\}{1,2}\s*")
_URL = re.compile(r"https?://[^\s/<>\"\\][^\s<>\"\\]*")

_QUIET = re2.Options()
_QUIET.log_errors = False

Checker = Callable[[Any], Any]


def options(given: list[str], area_options: list[str], kind: FieldType, path: str, problems: Problems) -> list[str]:
    """The options of a choice: as given, else as the areas name them. A choice without any cannot be made."""
    chosen = [names.key(option, f"{path}.options[{i}]", problems) for i, option in enumerate(given)]
    if len(chosen) > MOST_OPTIONS:
        problems.add(f"{path}.options", f"must not have more than {MOST_OPTIONS} entries")
    for i, option in enumerate(chosen):
        if not option:
            problems.add(f"{path}.options[{i}]", "must not be blank")
        elif option in chosen[:i]:
            problems.add(f"{path}.options[{i}]", f"repeats the option {option!r}")
    if kind not in CHOICES:
        return []
    chosen = chosen or list(dict.fromkeys(area_options))
    if not chosen:
        problems.add(f"{path}.options", f"are required for a {kind} field")
    return chosen


def validation(given: dict[str, Any], kind: FieldType, path: str, problems: Problems) -> dict[str, Any]:
    """``pattern``, ``message``, ``min``, ``max``, ``step`` (specification 2.7)."""
    bound = _iso_date if kind == FieldType.DATE else _number if kind == FieldType.NUMBER else _number_or_date
    checkers: dict[str, Checker] = {"pattern": _pattern, "message": _text, "min": bound, "max": bound, "step": _step}
    found = _checked(given, checkers, f"{path}.validation", problems)
    low, high = found.get("min"), found.get("max")
    if low is not None and high is not None:
        if isinstance(low, str) != isinstance(high, str):
            problems.add(f"{path}.validation.max", "must be of the same kind as min")
        elif low > high:
            problems.add(f"{path}.validation.max", "must not be below min")
    return found


def preferences(given: dict[str, Any], kind: FieldType, path: str, problems: Problems) -> dict[str, Any]:
    """How the field is drawn, and what its type needs (specification 2.7)."""
    checkers = dict(_PREFERENCES)
    if kind == FieldType.DATE:
        checkers["format"] = _date_format
    elif kind == FieldType.NUMBER:
        checkers["format"] = _one_of(*NUMBER_FORMATS)
    elif kind in (FieldType.SIGNATURE, FieldType.INITIALS):
        checkers["format"] = _one_of(*SIGNATURE_FORMATS)
    elif kind == FieldType.PHONE:
        checkers["one_time_code"] = _boolean
    return _checked(given, checkers, f"{path}.preferences", problems)


def default_value(given: Any, kind: FieldType, choices: list[str], path: str, problems: Problems) -> Any:
    """A value that the signer finds filled in; ``{{date}}``, ``{{name}}`` and the like are resolved when he comes."""
    if given is None or given == "":
        return None
    if kind == FieldType.VERIFICATION:
        problems.add(f"{path}.default_value", "cannot be given: only its signer can prove who he is")
        return None
    if isinstance(given, str) and _PLACEHOLDER.fullmatch(given):
        return given
    try:
        return _default(given, kind, choices)
    except ValueError as error:
        problems.add(f"{path}.default_value", str(error))
        return None


def text(given: str | None, path: str, problems: Problems) -> str | None:
    """A title or description (Markdown); blank is none."""
    if not given or not given.strip():
        return None
    if len(given) > LONGEST_TEXT:
        problems.add(path, f"must not be longer than {LONGEST_TEXT} characters")
    return names.cleaned_text(given)


def _default(given: Any, kind: FieldType, choices: list[str]) -> Any:
    if kind == FieldType.CHECKBOX:
        return _boolean(given)
    if kind == FieldType.NUMBER:
        return _number(given)
    if kind == FieldType.DATE:
        return _iso_date(given)
    if kind == FieldType.MULTIPLE:
        return [_one_of_exactly(choices, value) for value in (given if isinstance(given, list) else [given])]
    if kind in (FieldType.SELECT, FieldType.RADIO):
        return _one_of_exactly(choices, given)
    if isinstance(given, int | float):
        return str(given)
    if isinstance(given, str) and len(given) > LONGEST_TEXT and kind in IMAGE_TYPES:
        raise ValueError("must be a URL: give pictures of one submission in submitters[].fields")
    return _text(given)


def _checked(given: dict[str, Any], checkers: dict[str, Checker], path: str, problems: Problems) -> dict[str, Any]:
    found = {}
    for name, check in checkers.items():
        value = given.get(name)
        if value is None or value == "":
            continue
        try:
            found[name] = check(value)
        except ValueError as error:
            problems.add(f"{path}.{name}", str(error))
    return found


def _pattern(value: Any) -> str:
    """HTML pattern-attribute syntax as far as RE2 knows it: linear time, so no look-around and no back-references."""
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - bad input, not a bug
    if len(value) > LONGEST_PATTERN:
        raise ValueError(f"must not be longer than {LONGEST_PATTERN} characters")
    try:
        re2.compile(value, _QUIET)
        re2.compile(f"^(?:{value})$", _QUIET)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(f"is not a pattern that can be used: {_said(error)}") from error
    return value


def _said(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - bad input, not a bug
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"must not be longer than {LONGEST_TEXT} characters")
    return names.cleaned_text(value)


def _number(value: Any) -> int | float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError("must be a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004 - bad input, not a bug
    if not math.isfinite(value) or abs(value) > LARGEST_NUMBER:
        raise ValueError("is out of range")
    return int(value) if value == int(value) else value


def _step(value: Any) -> int | float:
    step = _number(value)
    if step <= 0:
        raise ValueError("must be above 0")
    return step


def _iso_date(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            pass
    raise ValueError("must be a date as YYYY-MM-DD")


def _number_or_date(value: Any) -> int | float | str:
    try:
        return _number(value)
    except ValueError:
        pass
    try:
        return _iso_date(value)
    except ValueError:
        raise ValueError("must be a number or a date as YYYY-MM-DD") from None


def _boolean(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1", "yes"):
        return True
    if word in ("false", "0", "no"):
        return False
    raise ValueError("must be true or false")


def _one_of(*allowed: str) -> Checker:
    spelled = {word.lower(): word for word in allowed}

    def check(value: Any) -> str:
        if not isinstance(value, str) or value.strip().lower() not in spelled:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return spelled[value.strip().lower()]

    return check


def _one_of_exactly(choices: list[str], value: Any) -> str:
    if value not in choices:
        raise ValueError(f"must be one of the options {', '.join(choices[:20])}")
    return str(value)


def _color(value: Any) -> str:
    color = value.strip().lower() if isinstance(value, str) else ""
    if not is_color(color):
        raise ValueError(f"must be {', '.join(COLORS)} or a hex colour such as #1a2b3c")
    return color


def _font_size(value: Any) -> int | float:
    size = _number(value)
    if not SMALLEST_FONT <= size <= LARGEST_FONT:
        raise ValueError(f"must be between {SMALLEST_FONT} and {LARGEST_FONT}")
    return size


def _mask(value: Any) -> bool | int:
    """True masks all; a number keeps that many characters, from the end when negative."""
    if isinstance(value, str) and not re.fullmatch(r"-?\d{1,4}", value.strip(), re.ASCII):
        return _boolean(value)
    if isinstance(value, bool):
        return value
    kept = _number(value)
    if not isinstance(kept, int) or abs(kept) > names.LONGEST:
        raise ValueError("must be true, false or a whole number of characters")
    return kept


def _price(value: Any) -> int | float:
    price = _number(value)
    if price < 0:
        raise ValueError("must not be below 0")
    return price


def _url(value: Any) -> str:
    """Where a browser may be sent: http and https, never ``javascript:`` or ``data:``."""
    url = value.strip() if isinstance(value, str) else ""
    if len(url) > LONGEST_URL or not _URL.fullmatch(url):
        raise ValueError("must be an http or https URL")
    return url


def _reasons(value: Any) -> list[str]:
    if (
        not isinstance(value, list)
        or len(value) > MOST_REASONS
        or not all(isinstance(v, str) and 0 < len(v) <= LONGEST_REASON for v in value)
    ):
        raise ValueError(f"must be a list of at most {MOST_REASONS} texts of 1 to {LONGEST_REASON} characters")
    return [names.cleaned(reason) for reason in value]


def _date_format(value: Any) -> str:
    if not isinstance(value, str) or not is_date_format(value):
        raise ValueError("must be a date format such as DD/MM/YYYY")
    return names.cleaned(value)


_PREFERENCES: dict[str, Checker] = {
    "font_size": _font_size,
    "color": _color,
    "background": _color,
    "price": _price,
    "currency": _one_of(*CURRENCIES),
    "payment_url": _url,
    "mask": _mask,
    "reasons": _reasons,
    "hidden": _boolean,
    "with_signature_id": _boolean,
    **{name: _one_of(*words) for name, words in WORDS.items()},
}
