"""The text of a page by where its characters stand, whatever the order in which they were drawn.

Programs draw what they like first: LibreOffice the letters that it took from another font, others what is bold. Characters
with a common baseline are a line, from gap to gap, also on a slant; letters from right to left are put back in the order in
which they were written.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.pdfium_text import PageText
from services.rendering.jobs.text import bidi

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_HYPHEN = "\ufffe\x02"
_MADE_UP = -1
"""In the place of the index of a character: a blank or a line's end that is nowhere on the page."""

_HIGH = 0.85
"""The size of a font, of its height from the highest letter to the lowest, about."""

_SAME_LINE = 0.25
_BLANK = 0.2
_GAP = 1.2
"""In font sizes: between baselines of one line, between two words, between two columns."""


@dataclass
class _Glyph:
    """``position`` in the page's text; ``along`` and ``across`` its line, ``width`` along it, ``size`` of its font.
    ``angle`` is the direction of the line. ``marks`` are the positions of the accents above or below it."""

    position: int
    text: str
    along: float
    across: float
    width: float
    size: float
    angle: float = 0.0
    marks: list[int] = field(default_factory=list)


class OrderedText:
    """A page's text in the order of reading. It answers as ``PageText`` does; positions are its own, indices are pdfium's."""

    def __init__(self, page: PageText, positions: Sequence[int | str]) -> None:
        """``positions`` in the text of ``page``, or characters between them that are made up."""
        self._page = page
        self._positions = [_MADE_UP if isinstance(position, str) else position for position in positions]
        self.text = "".join(position if isinstance(position, str) else page.text[position] for position in positions)

    def character_index(self, position: int) -> int:
        """-1 for a character that is nowhere on the page."""
        index = self._positions[position]
        return index if index == _MADE_UP else self._page.character_index(index)

    def is_generated(self, index: int) -> bool:
        return index == _MADE_UP or self._page.is_generated(index)

    def color(self, index: int) -> tuple[int, int, int] | None:
        return None if index == _MADE_UP else self._page.color(index)

    def glyph_box(self, index: int) -> Rectangle | None:
        return None if index == _MADE_UP else self._page.glyph_box(index)

    def drawn(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The same text as ranges of the page's own text, in the order of reading."""
        drawn_ranges: list[tuple[int, int]] = []
        for start, end in ranges:
            for index in self._positions[start:end]:
                if index == _MADE_UP:
                    continue
                if drawn_ranges and drawn_ranges[-1][1] == index:
                    drawn_ranges[-1] = (drawn_ranges[-1][0], index + 1)
                else:
                    drawn_ranges.append((index, index + 1))
        return drawn_ranges


ReadText = PageText | OrderedText


def in_order(page: PageText, right_to_left: Callable[[str, str], bool]) -> OrderedText:
    """``right_to_left`` is asked which of two readings of a line holds: as written in a paragraph from left to right, or in
    one from right to left."""
    positions: list[int | str] = []
    previous: list[_Glyph] = []
    for stretch in _in_drawn_order(page):
        if positions and page.text[previous[-1].position] not in _HYPHEN:
            positions += " " if abs(stretch[0].across - previous[0].across) < _SAME_LINE * stretch[0].size else "\r\n"
        positions += _written(page, stretch, right_to_left)
        previous = stretch
    return OrderedText(page, positions)


def lines(
    page: PageText, right_to_left: Callable[[str, str], bool], only: Collection[int]
) -> Iterator[tuple[float, list[int | str]]]:
    """Pieces of lines without gaps in the order in which they were drawn: the direction of the line (radians,
    counter-clockwise), and the positions in the page's text, in the order of reading, with the blanks between words. ``only``
    has the indices of the characters that count."""
    for stretch in _in_drawn_order(page, only):
        yield stretch[0].angle, list(_written(page, stretch, right_to_left))


def _in_drawn_order(page: PageText, only: Collection[int] | None = None) -> list[list[_Glyph]]:
    return sorted(_stretches(page, only), key=lambda glyphs: min(glyph.position for glyph in glyphs))


def _stretches(page: PageText, only: Collection[int] | None) -> Iterator[list[_Glyph]]:
    """Pieces of lines without gaps, in the direction of the line."""
    by_angle: dict[float, list[_Glyph]] = {}
    for angle, glyph in _glyphs(page, only):
        by_angle.setdefault(angle, []).append(glyph)
    for glyphs in by_angle.values():
        for line in _lines(glyphs):
            # The letters of a ligature all stand in the same place, in the order of the line.
            line = sorted(_with_marks(line), key=lambda glyph_: (round(glyph_.along, 1), glyph_.position))
            stretch = [line[0]]
            for glyph in line[1:]:
                if glyph.along - max(glyph_.along + glyph_.width for glyph_ in stretch[-2:]) > _GAP * glyph.size:
                    yield stretch
                    stretch = []
                stretch.append(glyph)
            yield stretch


def _lines(glyphs: list[_Glyph]) -> Iterator[list[_Glyph]]:
    glyphs.sort(key=attrgetter("across"))
    line = glyphs[:1]
    for glyph in glyphs[1:]:
        if glyph.across - line[0].across > _SAME_LINE * min(glyph.size, line[0].size):
            yield line
            line = []
        line.append(glyph)
    if line:
        yield line


def _with_marks(line: list[_Glyph]) -> list[_Glyph]:
    """Hebrew and Arabic marks are drawn before or after their letter, which is the one that they stand at."""
    letters = [glyph for glyph in line if not unicodedata.combining(glyph.text) and not glyph.text.isspace()]
    if not letters or len(letters) == len(line):
        return line
    for mark in line:
        if unicodedata.combining(mark.text):
            letter = min(letters, key=lambda letter_: abs(letter_.along + letter_.width / 2 - mark.along))
            letter.marks.append(mark.position)
    return [glyph for glyph in line if not unicodedata.combining(glyph.text)]


def _glyphs(page: PageText, only: Collection[int] | None) -> Iterator[tuple[float, _Glyph]]:
    """All that are drawn, with the direction of their lines in radians. Accents go with the letter before them."""
    last: _Glyph | None = None
    for position, index, x, y, angle, box in page.drawn_characters():
        if only is not None and index not in only:
            continue
        text = page.text[position]
        is_blank = text.isspace()
        if last is not None and not text.isascii() and unicodedata.combining(text) and not RIGHT_TO_LEFT.match(text):
            last.marks.append(position)
            continue
        if angle == 0:
            glyph = _Glyph(position, text, x, y, box.width, _HIGH * box.height)
        else:
            cos, sin = math.cos(angle), math.sin(angle)
            is_slanted = min(abs(cos), abs(sin)) > 0.05
            width, height = (box.width, box.height) if abs(cos) > abs(sin) else (box.height, box.width)
            size = page.font(index)[1] if is_slanted else _HIGH * height
            glyph = _Glyph(
                position, text, x * cos + y * sin, y * cos - x * sin, size / 2 if is_slanted else width, size, angle
            )
        if is_blank and glyph.width == 0:
            continue  # pdfium made it up, too.
        yield angle, glyph
        last = None if is_blank else glyph


def _written(
    page: PageText, stretch: Sequence[_Glyph], right_to_left: Callable[[str, str], bool]
) -> Iterator[int | str]:
    """The positions of its characters in the order in which they were written, with blanks where there is room for one."""
    shown: list[_Glyph | str] = []
    for number, glyph in enumerate(stretch):
        if number and _has_blank(page, stretch[number - 1], glyph):
            shown.append(" ")
        shown.append(glyph)
    text = "".join(piece if isinstance(piece, str) else piece.text for piece in shown)
    if RIGHT_TO_LEFT.search(text):
        orders = {
            right_to_left: bidi.logical_indexes(text, right_to_left=right_to_left) for right_to_left in (False, True)
        }
        readings = {right_to_left: "".join(text[index] for index in order) for right_to_left, order in orders.items()}
        shown = [shown[index] for index in orders[right_to_left(readings[False], readings[True])]]
    for piece in shown:
        if isinstance(piece, str):
            yield piece
        else:
            yield piece.position
            yield from piece.marks


def _has_blank(page: PageText, glyph: _Glyph, following: _Glyph) -> bool:
    """Of two that were drawn one after the other, pdfium knows; others may have a gap between them."""
    if glyph.text.isspace() or following.text.isspace():
        return False
    first, last = sorted((glyph.position, following.position))
    between = page.text[first + 1 : last]
    if not between or between.isspace():
        return bool(between)
    return following.along - glyph.along - glyph.width > _BLANK * min(glyph.size, following.size)
