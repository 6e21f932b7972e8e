"""What a field may say about itself, wherever it is said (specification 2.7): in a template, in a tag, in an override."""

import re
from typing import Any

LONGEST_TEXT = 10_000
"""Characters of a value, a title, a description or the message of a validation."""
LONGEST_PATTERN = 256
LARGEST_NUMBER = 2**53
SMALLEST_FONT, LARGEST_FONT = 4, 144
"""Points; halves too."""
MOST_REASONS = 50
LONGEST_REASON = 255
MOST_OPTIONS = 500
LONGEST_NAME = 255
"""Characters of a field's name and of an option."""

CURRENCIES = ("USD", "EUR", "GBP", "CAD", "AUD", "CHF", "SEK")
NUMBER_FORMATS = ("usd", "eur", "gbp", "comma", "dot", "space", "percent", "percent_space", "none")
SIGNATURE_FORMATS = ("drawn", "typed", "drawn_or_typed", "upload")
COLORS = ("black", "white", "blue", "red")
WORDS: dict[str, tuple[str, ...]] = {
    "font_type": ("bold", "italic", "bold_italic"),
    "font": ("Times", "Helvetica", "Courier"),
    "align": ("left", "center", "right"),
    "valign": ("top", "center", "bottom"),
    "method": ("aes", "qes"),
    "position": ("background", "foreground"),
}
"""The preferences that are one of a few words."""

PLACEHOLDER = re.compile(r"\{\{?\s*(date|time|hour|minute|day|month|year|id|role|name|email|phone)\s*\}\}?")
"""What a default value may have in it, filled in when the party completes (peer facts 2.7): ``{{date}}``, ``{name}``."""

_HEX_COLOR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}")


def is_empty(value: Any) -> bool:
    """Return whether a field has no value. Zero is a value: compared with ``in``, it would be the same as False."""
    return value is None or value is False or value == "" or value == []


def is_color(text: str) -> bool:
    """One of ``COLORS``, or hexadecimal such as ``#1a2b3c`` or ``#fe9``."""
    return text in COLORS or _HEX_COLOR.fullmatch(text) is not None
