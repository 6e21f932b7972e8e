"""What a value reads like on paper, for the signing page and the API; and dates as people write them, read back."""

import re
from datetime import date
from functools import lru_cache
from typing import Any

from contracts.fields import paper
from contracts.fields.paper import DEFAULT_DATE_FORMAT
from contracts.types import Account, FieldDefinition, FieldType

_TOKEN = re.compile(r"\[[^\]]*\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|HH|H|hh|h|mm|m|ss|s|A|a|z")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


_TEXTS = {FieldType.TEXT, FieldType.CELLS, FieldType.PHONE, FieldType.SELECT, FieldType.RADIO, FieldType.HEADING}
_READ = _TEXTS | {FieldType.DATE, FieldType.NUMBER, FieldType.MULTIPLE, FieldType.VERIFICATION}


def display(field: FieldDefinition, value: Any, locale: str = "en-US", time_zone: str = "UTC") -> str | None:
    """The text that is drawn for ``value``, as ``contracts.fields.paper`` says; None for what is no text. The zone is for
    moments."""
    if field.type is FieldType.PAYMENT:
        return paper.payment_text(field, None, Account(locale=locale)) or None
    if value is None or isinstance(value, bool) or field.type not in _READ:
        return None
    return paper.display(field, value, Account(locale=locale, time_zone=time_zone))


def is_masked(field: FieldDefinition) -> bool:
    """The value is a text that is shown in part or not at all, to everybody but the API users who may change it."""
    return bool(field.preferences.get("mask")) and field.type in _READ


def formatted_date(day: date, pattern: str | None, locale: str = "en-US") -> str:
    """``pattern`` as in ``DD/MM/YYYY``; the default is MM/DD/YYYY (specification 2.7). ``[...]`` is taken literally."""
    return paper.date_text(day.isoformat(), pattern, Account(locale=locale))


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
