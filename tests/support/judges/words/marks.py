"""What of a text stands outside of the marks that the pseudo-language puts around every message."""

import re
from collections.abc import Iterable

from contracts.languages.saying import MARKS

_FIRST, _LAST = MARKS
_INNERMOST = re.compile(f"{_FIRST}[^{_FIRST}{_LAST}]*{_LAST}")
_LETTERS = re.compile(r"[^\W\d_]{2,}")


def unmarked(text: str, known: Iterable[str] = ()) -> list[str]:
    """Return the words that are in no message; ``known`` is what was filled in by people."""
    text = re.sub("[\u2066-\u2069]", "", text)
    before = ""
    while text != before:
        before, text = text, _INNERMOST.sub(" ", text)
    for piece in sorted(known, key=len, reverse=True):
        text = text.replace(piece, " ")
    return _LETTERS.findall(text)
