"""Reading back what was drawn: the text in an area as pdfium extracts it, and whether a drawn text is in there.

Extractors differ in blanks and line ends, in canonical forms, in the order of text where left-to-right and right-to-left meet
(also when the two are in neighbouring fields), and a field may lie on a printed line or label, whose characters come along.
What must hold is that nothing of the drawn text is missing.
"""

import ctypes
import unicodedata
from collections import Counter
from typing import Any

import pypdfium2.raw as pdfium
from bidi.mirror import MIRRORED

from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.text.fonts import is_invisible

_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_ENCLOSED = frozenset(map(chr, [*range(0x2460, 0x2500), *range(0x2776, 0x2794), *range(0x1F100, 0x1F200)]))
# pdfium marks a hyphen at the end of a line with one of these.
_OVERLAY = 1
"""The combining class of strokes through a sign: of a \N{NOT EQUAL TO} among Hebrew pdfium makes = and /, or leaves it out."""
_LINE_END_HYPHENS = str.maketrans({"\x02": "-", "\ufffe": "-"})


def text_in(text_page: Any, area: Rectangle, slack: float = 3.0) -> str:
    """The text in ``area`` (default user space, widened by ``slack`` points: letters reach out of their boxes) of a
    ``pypdfium2.PdfTextPage``. Its own method loses emoji: pdfium turns their halves around beside right-to-left text."""
    box = (area.left - slack, area.top + slack, area.right + slack, area.bottom - slack)
    count = pdfium.FPDFText_GetBoundedText(text_page, *box, None, 0)
    if count <= 0:
        return ""
    buffer = (ctypes.c_ushort * count)()
    pdfium.FPDFText_GetBoundedText(text_page, *box, buffer, count)
    return _decoded(list(buffer))


def is_found(drawn: str, read: str) -> bool:
    """True when every visible character of ``drawn`` is in ``read``, as often as it was drawn. For signs other than letters
    and digits another character may stand: pdfium has its own mind about a circled 4 and about quotes among Hebrew."""
    expected, found_characters = Counter(_comparable(drawn)), Counter(_comparable(read))
    missing = expected - found_characters
    if any(unicodedata.category(character)[0] in "LMN" for character in missing if character not in _ENCLOSED):
        return False
    return missing.total() <= (found_characters - expected).total()


def _decoded(units: list[int]) -> str:
    """UTF-16 whose surrogates may stand in either order."""
    out: list[str] = []
    index = 0
    while index < len(units):
        unit = units[index]
        pair = units[index : index + 2]
        high = next((half for half in pair if half in _HIGH), None)
        low = next((half for half in pair if half in _LOW), None)
        if (unit in _HIGH or unit in _LOW) and high is not None and low is not None:
            out.append(chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)))
            index += 2
            continue
        if unit and unit not in _HIGH and unit not in _LOW:
            out.append(chr(unit))
        index += 1
    return "".join(out)


def _comparable(text: str) -> str:
    normal = unicodedata.normalize("NFKD", text.translate(_LINE_END_HYPHENS))
    return "".join(
        min(character, MIRRORED.get(character, character))
        for character in normal
        if not character.isspace()
        and not is_invisible(character)
        and unicodedata.category(character)[0] != "C"
        and unicodedata.combining(character) != _OVERLAY
    )
