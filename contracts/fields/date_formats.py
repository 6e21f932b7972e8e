"""Formats of dates such as ``DD/MM/YYYY`` (specification 2.7): what is one, and dates as people write them, read back."""

import re
from datetime import date
from functools import lru_cache
from typing import Any

DEFAULT_DATE_FORMAT = "MM/DD/YYYY"
LONGEST_FORMAT = 50

TOKEN = re.compile(r"\[[^\]]*\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|HH|H|hh|h|mm|m|ss|s|A|a|z")
"""The parts of a format; what is in brackets is taken literally."""

_TIME_TOKENS = frozenset("HhmsAaz")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DIGITS = r"\d{1,2}"
_READ = {
    "YYYY": r"(?P<year>\d{4})",
    "YY": r"(?P<year>\d{2})",
    "MMMM": r"(?P<month>[A-Za-z]{3,9})",
    "MMM": r"(?P<month>[A-Za-z]{3,9})",
    "MM": rf"(?P<month>{_DIGITS})",
    "M": rf"(?P<month>{_DIGITS})",
    "DD": rf"(?P<day>{_DIGITS})",
    "D": rf"(?P<day>{_DIGITS})",
    **dict.fromkeys(("HH", "H", "hh", "h", "mm", "m", "ss", "s"), _DIGITS),
    **dict.fromkeys(("A", "a"), "[AaPp][Mm]"),
    "z": "[A-Za-z]{1,9}",
}
"""Each is short: people's text is matched, and where parts follow each other without a mark between them, every way of dividing
it is tried."""


def is_date_format(text: str) -> bool:
    """Such as ``DD/MM/YYYY``: parts of a date or a time, and between them neither letters nor digits."""
    rest = TOKEN.sub(lambda token: token[0] if token[0].startswith("[") else "", text)
    return len(text) <= LONGEST_FORMAT and rest != text and not re.search(r"[A-Za-z0-9]", rest)


def has_time(format_: Any) -> bool:
    """True when a date in this format says the time of day as well: then its value is a moment, not a day."""
    return any(token[0] in _TIME_TOKENS for token in TOKEN.findall(format_ if isinstance(format_, str) else ""))


def parsed_date(text: str, format_: str | None) -> date | None:
    """A date written as ``format_`` says, or None. A format that names a part of the date twice is not read."""
    reader = _reader(format_ or DEFAULT_DATE_FORMAT)
    match = reader.fullmatch(text.strip()) if reader else None
    if match is None:
        return None
    parts = match.groupdict()
    if not parts.get("year") or not parts.get("month"):
        return None
    year, month = int(parts["year"]), parts["month"]
    try:
        number = _MONTHS.index(month[:3].lower()) + 1 if month[0].isalpha() else int(month)
        return date(year + 2000 if len(parts["year"]) == len("YY") else year, number, int(parts.get("day") or 1))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _reader(format_: str) -> re.Pattern[str] | None:
    parts, end, seen = [], 0, set()
    for token in TOKEN.finditer(format_):
        word, kind = token[0], token[0][0]
        if kind in seen:
            return None
        parts += [re.escape(format_[end : token.start()]), re.escape(word[1:-1]) if kind == "[" else _READ[word]]
        seen |= {kind} - {"["}
        end = token.end()
    return re.compile("".join([*parts, re.escape(format_[end:])]), re.ASCII)
