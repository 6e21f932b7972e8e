"""How the values of a tag's attributes are read. Each reader raises ValueError with what is wrong, as the end of a sentence
that begins with the attribute's name."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date

from contracts.fields.rules import LARGEST_FONT, SMALLEST_FONT, is_color

LONGEST_NAME = 255
LONGEST_VALUE = 2_000
MOST_OPTIONS = 200

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


def clean(text: str, longest: int = LONGEST_NAME) -> str:
    """Text from a document, fit to be shown: NFC, blanks joined, without control, direction and zero-width characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())[:longest].rstrip()
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    text = "".join(" " if character.isspace() else character for character in text)
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cs", "Co") and c not in "\ufffe\uffff")
    return " ".join(text.split())[:longest].rstrip()


_DATE_PARTS = {
    "YYYY": ("year", r"\d{4}"),
    "MM": ("month", r"\d{2}"),
    "M": ("month", r"\d{1,2}"),
    "DD": ("day", r"\d{2}"),
    "D": ("day", r"\d{1,2}"),
}
_DATE_TOKEN = re.compile("YYYY|MM|M|DD|D|.", re.DOTALL)


def iso_date(value: str, date_format: str) -> str:
    """ISO 8601, from that or from the field's own format. Raises ValueError."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        return date.fromisoformat(value).isoformat()
    tokens = _DATE_TOKEN.findall(date_format)
    if sorted(_DATE_PARTS[token][0] for token in tokens if token in _DATE_PARTS) != ["day", "month", "year"]:
        raise ValueError("is no date")
    parts = [_DATE_PARTS.get(token) for token in tokens]
    expected = "".join(
        f"(?P<{part[0]}>{part[1]})" if part else re.escape(token) for part, token in zip(parts, tokens, strict=True)
    )
    found = re.fullmatch(expected, value, re.ASCII)
    if found is None:
        raise ValueError("is no date")
    return date(int(found["year"]), int(found["month"]), int(found["day"])).isoformat()


def text(value: str) -> str:
    found = clean(value, LONGEST_VALUE + 1)
    if len(found) > LONGEST_VALUE:
        raise ValueError(f"is longer than {LONGEST_VALUE:,} characters")
    return found


def boolean(value: str) -> bool:
    match value.strip().lower():
        case "true" | "yes" | "1" | "":
            return True
        case "false" | "no" | "0":
            return False
    raise ValueError(f"is neither true nor false (“{clean(value)}”)")


def number(value: str) -> float | int:
    try:
        found = float(value)
    except ValueError:
        raise ValueError(f"is not a number (“{clean(value)}”)") from None
    if not -1e12 < found < 1e12:
        raise ValueError("is not a sensible number")
    return int(found) if found.is_integer() else found


def length(value: str) -> float:
    pixels = float(number(value.strip().lower().removesuffix("px")))
    if not 0 < pixels <= 10_000:
        raise ValueError("is not a sensible length")
    return pixels


def number_or_date(value: str) -> float | int | str:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value.strip(), re.ASCII):
        try:
            return date.fromisoformat(value.strip()).isoformat()
        except ValueError:
            raise ValueError("is no day of the calendar") from None
    return number(value)


def positive(value: str) -> float | int:
    found = number(value)
    if found <= 0:
        raise ValueError("is not above 0")
    return found


def price(value: str) -> float | int:
    found = number(value)
    if found < 0:
        raise ValueError("is below 0")
    return found


def url(value: str) -> str:
    found = value.strip()
    if not re.fullmatch(r"https?://[^\s/<>\"\\][^\s<>\"\\]*", found):
        raise ValueError("is no http or https URL")
    return found


def text_list(value: str) -> list[str]:
    return options(value.split(","))


def options(texts: Sequence[str]) -> list[str]:
    """Each once, without blank ones."""
    found = list(dict.fromkeys(option for option in map(option_text, texts) if option))
    if len(found) > MOST_OPTIONS:
        raise ValueError(f"has more than {MOST_OPTIONS} options")
    return found


def one_of(*words: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        word = value.strip().lower()
        if word not in words:
            raise ValueError(f"is none of {', '.join(words)}")
        return word

    return read


def font(value: str) -> str:
    if value.strip().lower() not in _FONTS:
        raise ValueError("is none of Times, Helvetica, Courier")
    return _FONTS[value.strip().lower()]


def color(value: str) -> str:
    word = value.strip().lower()
    if is_color(word):
        return word
    raise ValueError("is no color")


def mask(value: str) -> bool | int:
    word = value.strip()
    return int(word) if re.fullmatch(r"-?[1-9]\d?", word, re.ASCII) else boolean(word)


def font_size(value: str) -> float | int:
    size = number(value.strip().lower().removesuffix("px").removesuffix("pt"))
    if not SMALLEST_FONT <= size <= LARGEST_FONT:
        raise ValueError(f"is not between {SMALLEST_FONT} and {LARGEST_FONT}")
    return size


def reasons(value: str) -> list[str]:
    found = text_list(value)
    if not 0 < len(found) <= 50:
        raise ValueError("is not a list of 1 to 50 reasons")
    return found


def role(value: str) -> str | None:
    return clean(value) or None


def pattern(value: str) -> str:
    if len(value) > 256:
        raise ValueError("is longer than 256 characters")
    return value


def option_text(value: str) -> str:
    found = clean(value, LONGEST_NAME + 1)
    if len(found) > LONGEST_NAME:
        raise ValueError(f"is longer than {LONGEST_NAME} characters")
    return found


def option(value: str) -> str:
    word = option_text(value)
    if not word:
        raise ValueError("is empty")
    return word
