"""How values read on paper (peer facts 4.2): dates, numbers, masks; and dates as people write them, read back."""

import re
from datetime import date
from functools import lru_cache
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.dates import get_month_names

from contracts.types import FieldDefinition, FieldType

DEFAULT_DATE_FORMAT = "MM/DD/YYYY"
_TOKEN = re.compile(r"\[[^\]]*\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|HH|H|hh|h|mm|m|ss|s|A|a|z")
_KEPT = set(" -_[]()+?.,\n\t")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def display(field: FieldDefinition, value: Any, locale: str = "en-US") -> str | None:
    """The text that is drawn for ``value``, masked where the field says so; None for what is no text."""
    if value is None or isinstance(value, bool):
        return None
    kind = field.type
    if kind is FieldType.DATE:
        text = _date_text(value, field.preferences.get("format"), locale)
    elif kind is FieldType.NUMBER:
        text = formatted_number(value, field.preferences.get("format"))
    elif kind is FieldType.MULTIPLE:
        text = ", ".join(str(item) for item in value)
    elif kind in _TEXTS:
        text = str(value)
    else:
        return None
    return masked(text, field.preferences.get("mask"))


_TEXTS = {FieldType.TEXT, FieldType.CELLS, FieldType.PHONE, FieldType.SELECT, FieldType.RADIO, FieldType.HEADING}
_READ = _TEXTS | {FieldType.DATE, FieldType.NUMBER, FieldType.MULTIPLE}


def is_masked(field: FieldDefinition) -> bool:
    """The value is a text that is shown in part or not at all, to everybody but the API users who may change it."""
    return bool(field.preferences.get("mask")) and field.type in _READ


def masked(text: str, mask: Any) -> str:
    """``mask`` True: every character that is not punctuation becomes X; a number keeps the first (or last) so many."""
    if not mask:
        return text
    if mask is True:
        return _crossed(text)
    if mask > 0:
        return text[:mask] + _crossed(text[mask:])
    return _crossed(text[:mask]) + text[mask:]


def formatted_date(day: date, pattern: str | None, locale: str = "en-US") -> str:
    """``pattern`` as in ``DD/MM/YYYY``; the default is MM/DD/YYYY (specification 2.7). ``[...]`` is taken literally."""
    return _TOKEN.sub(lambda found: _part(found[0], day, locale), pattern or DEFAULT_DATE_FORMAT)


def _part(of_date: str, day: date, locale: str) -> str:
    match of_date:
        case "YYYY":
            return f"{day.year:04}"
        case "YY":
            return f"{day.year % 100:02}"
        case "MMMM" | "MMM":
            width = "wide" if of_date == "MMMM" else "abbreviated"
            return str(get_month_names(width, context="format", locale=_locale(locale))[day.month])
        case "MM" | "DD":
            return f"{day.month if of_date == 'MM' else day.day:02}"
        case "M" | "D":
            return str(day.month if of_date == "M" else day.day)
        case "A" | "a":
            return "AM" if of_date == "A" else "am"
        case "z":
            return "UTC"
    if of_date.startswith("["):
        return of_date[1:-1]
    return {"hh": "12", "h": "12"}.get(of_date, "0" * len(of_date))


def parsed_date(text: str, pattern: str | None) -> date | None:
    """A date written as ``pattern`` says, or None."""
    found = _reader(pattern or DEFAULT_DATE_FORMAT).fullmatch(text.strip())
    if found is None:
        return None
    parts = found.groupdict()
    if not parts.get("year") or not parts.get("month"):
        return None
    year, month = int(parts["year"]), parts["month"]
    try:
        number = _MONTHS.index(month[:3].lower()) + 1 if month[0].isalpha() else int(month)
        return date(year + 2000 if year < 100 else year, number, int(parts.get("day") or 1))
    except ValueError:
        return None


def formatted_number(value: int | float, style: str | None) -> str:
    """``usd``, ``eur``, ``gbp``, ``comma``, ``dot``, ``space``, ``percent``, ``percent_space``; plain otherwise."""
    plain = format(value, "f").rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    match (style or "").lower():
        case "usd" | "gbp" as currency:
            sign = "-" if value < 0 else ""
            return f"{sign}{'$' if currency == 'usd' else '£'}{abs(value):,.2f}"
        case "eur":
            return f"{value:,.2f}".translate(_FRENCH) + "\u00a0€"
        case "comma":
            return _thousands(plain)
        case "dot":
            return _thousands(plain).translate(_GERMAN)
        case "space":
            return _thousands(plain).translate(_FRENCH)
        case "percent":
            return f"{plain}%"
        case "percent_space":
            return f"{plain.replace('.', ',')}\u00a0%"
    return plain


_FRENCH = str.maketrans({",": "\u00a0", ".": ","})
_GERMAN = str.maketrans({",": ".", ".": ","})


def _thousands(plain: str) -> str:
    whole, point, rest = plain.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole != "-0" else plain


def _date_text(value: Any, pattern: str | None, locale: str) -> str:
    try:
        return formatted_date(date.fromisoformat(str(value)[:10]), pattern, locale)
    except ValueError:
        return str(value)


def _crossed(text: str) -> str:
    return "".join(character if character in _KEPT else "X" for character in text)


@lru_cache(maxsize=256)
def _reader(pattern: str) -> re.Pattern[str]:
    tokens = {
        "YYYY": r"(?P<year>\d{4})",
        "YY": r"(?P<year>\d{2})",
        "MMMM": r"(?P<month>[A-Za-z]{3,9})",
        "MMM": r"(?P<month>[A-Za-z]{3,9})",
        "MM": r"(?P<month>\d{1,2})",
        "M": r"(?P<month>\d{1,2})",
        "DD": r"(?P<day>\d{1,2})",
        "D": r"(?P<day>\d{1,2})",
    }
    parts, end, seen = [], 0, set()
    for found in _TOKEN.finditer(pattern):
        kind = found[0][0]
        parts.append(re.escape(pattern[end : found.start()]))
        parts.append(r"[\w:]+" if kind in seen or found[0] not in tokens else tokens[found[0]])
        seen.add(kind)
        end = found.end()
    return re.compile("".join([*parts, re.escape(pattern[end:])]), re.ASCII)


@lru_cache(maxsize=64)
def _locale(name: str) -> Locale:
    try:
        return Locale.parse(name.replace("-", "_"))
    except (ValueError, UnknownLocaleError):
        return Locale("en", "US")
