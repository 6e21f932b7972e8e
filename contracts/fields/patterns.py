"""``validation.pattern``: HTML's pattern attribute as far as RE2 knows it, which takes linear time and therefore has no
look-around and no back-references. The service that reads tags has no RE2: templates judge the patterns of tags."""

import re
from functools import lru_cache
from typing import Any

import re2

_QUIET = re2.Options()
_QUIET.log_errors = False
_FIRST_PHONE, _LAST_PHONE = b"+1", b"+9:"
"""Every number in E.164 sorts between them (``:`` follows the digits)."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The pattern, to be matched with the whole text; None when RE2 cannot use it. HTML's is a JavaScript one: \\uXXXX is
    written \\x{XXXX} in RE2."""
    translated = re.sub(r"(?<!\\)((?:\\\\)*)\\u\{?([0-9a-fA-F]{4,6})\}?", r"\1\\x{\2}", pattern)
    try:
        re2.compile(translated, _QUIET)  # "a)(b" is one only within brackets
        return re2.compile(f"(?:{translated})", _QUIET)
    except (re2.error, UnicodeEncodeError):
        return None


def unusable(pattern: str, *, of_phone: bool = False) -> str | None:
    """Return why no value could ever match, as far as that can be told, or None. ``of_phone``: values are numbers in E.164."""
    usable = compiled(pattern)
    if usable is None:
        return "must be a pattern that RE2 understands (no look-around, no back-references)"
    bounded, low, high = usable._regexp.PossibleMatchRange(10)
    if not bounded:
        return None
    if high == b"":
        return "must match some text"
    if of_phone and (high < _FIRST_PHONE or low >= _LAST_PHONE):
        return "must match phone numbers such as +14155550123"
    return None
