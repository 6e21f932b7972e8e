"""How the words of a tag's attributes become what JSON says of a field; ``contracts.fields.checker`` judges it. Readers raise
BadValue with what is wrong, as the end of a sentence that begins with the attribute's name."""

import re
import unicodedata
from collections.abc import Sequence

from contracts.fields import values
from contracts.fields.checker import wrong_name
from contracts.fields.formulas.grammar import plain_text
from contracts.fields.rules import LONGEST_NAME, MOST_OPTIONS
from contracts.fields.values import BadValue

LONGEST_VALUE = 2_000
"""Characters of a title, a description, a message or a default: a tag is a line of text."""

_FONTS = {
    "times": "Times",
    "times new roman": "Times",
    "times-roman": "Times",
    "helvetica": "Helvetica",
    "arial": "Helvetica",
    "courier": "Courier",
    "courier new": "Courier",
}
_INVISIBLE = re.compile("[\u200b-\u200f\u061c\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\ufffb]")
"""Zero-width and direction controls: a name that looks like another or reads backwards (threats T47)."""


_FORMS = re.compile("[\u2e80-\u2eff\u2f00-\u2fdf\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufdff\ufe70-\ufefc]")
"""Radicals, ligatures and forms of letters within a word. Redistilled files draw one where somebody wrote the letter."""


def letters(text: str) -> str:
    """``text`` with the letters that were written: 甲方 for 甲⽅, ``fi`` for its ligature."""
    return text if text.isascii() else _FORMS.sub(lambda form: unicodedata.normalize("NFKC", form[0]), text)


def clean(text: str, longest: int | None = LONGEST_NAME) -> str:
    """Text from a document, fit to be shown: NFC, blanks joined, without control, direction and zero-width characters.
    ``longest`` None cuts nothing off: whoever refuses what is too long must not be shown what a blank at the cut has spared."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())[:longest].rstrip()
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    text = "".join(" " if character.isspace() else character for character in text)
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cs", "Co") and c not in "\ufffe\uffff")
    return " ".join(text.split())[:longest].rstrip()


def text(value: str) -> str:
    cleaned = clean(value, None)
    if len(cleaned) > LONGEST_VALUE:
        raise BadValue(f"must not be longer than {LONGEST_VALUE:,} characters")
    return cleaned


def formula(value: str) -> str:
    return plain_text(clean(value, None))


def boolean(value: str) -> bool:
    """``required=`` is true."""
    return values.boolean(value.strip() or "true")


def length(value: str) -> float:
    """Pixels."""
    pixels = float(values.number(value.strip().lower().removesuffix("px")))
    if not 0 < pixels <= 10_000:
        raise BadValue("must be above 0 and up to 10,000 pixels")
    return pixels


def text_list(value: str) -> list[str]:
    return list(dict.fromkeys(item for item in map(clean_item, value.split(",")) if item))


def options(texts: Sequence[str]) -> list[str]:
    """Each once, without blank ones."""
    distinct = list(dict.fromkeys(option for option in map(option_text, texts) if option))
    if len(distinct) > MOST_OPTIONS:
        raise BadValue(f"must not have more than {MOST_OPTIONS} entries")
    return distinct


def font(value: str) -> str:
    """A font by the name of another that looks like it."""
    return _FONTS.get(value.strip().lower(), value)


def font_size(value: str) -> str:
    return value.strip().lower().removesuffix("px").removesuffix("pt")


def flag(value: str) -> str:
    return value.strip() or "true"


def reasons(value: str) -> list[str]:
    return text_list(value) or [""]


def role(value: str) -> str | None:
    return clean(value) or None


def clean_item(value: str) -> str:
    """An item of a list, whole where it is too long, too."""
    return clean(value, None)


def option_text(value: str) -> str:
    cleaned = clean_item(value)
    if reason := wrong_name(cleaned):
        raise BadValue(reason)
    return cleaned


def option(value: str) -> str:
    word = option_text(value)
    if not word:
        raise BadValue("must not be blank")
    return word
