"""Reads a page for detection: its letters, lines and boxes, as pdfium has them, in upright points."""

import math
from collections.abc import Iterator

import pypdfium2 as pdfium

from services.rendering.jobs.detection.page.marks import Letter, PageMarks
from services.rendering.jobs.detection.page.rulings import drawn
from services.rendering.jobs.pdf.geometry import Matrix, Rectangle, VisiblePage
from services.rendering.jobs.pdf.pdfium_paths import PageObjects, TooManyObjects
from services.rendering.jobs.pdf.pdfium_text import PageText

MOST_OF_PAGE = 60_000
"""Objects and corners of paths of one page, and characters of it."""

_LEVEL = 0.06
"""Radians: text that is turned by more is no label."""
_SYMBOL_FONTS = ("wingdings", "webdings", "dingbats", "symbol")


def page_marks(document: pdfium.PdfDocument, index: int, visible: VisiblePage) -> tuple[PageMarks, int]:
    """The marks of a page (``index`` from 0), and how much was read for them. Raises TooManyObjects, rulings.TooManyRules, or
    pdfium.PdfiumError."""
    page = document[index]
    try:
        to_upright = visible.matrix.inverse()
        objects = PageObjects(page.raw, MOST_OF_PAGE)
        lines = drawn(objects.paths(), to_upright.apply, Rectangle(0, 0, visible.width, visible.height))
        text = PageText(document, index, page.raw)
        try:
            if len(text) > MOST_OF_PAGE:
                raise TooManyObjects
            letters = list(_letters(text, to_upright, visible))
        finally:
            text.close()
    finally:
        page.close()
    marks = PageMarks(
        visible.width, visible.height, letters, lines.level, lines.upright, lines.rounds, lines.tinted, lines.dark
    )
    return marks, objects.spent + len(letters)


def _letters(text: PageText, to_upright: Matrix, visible: VisiblePage) -> Iterator[Letter]:
    turned = math.radians(-visible.rotation)
    symbols: dict[int, bool] = {}
    for position, index, _, _, angle, box in text.drawn_characters():
        if abs(math.remainder(angle + turned, math.tau)) > _LEVEL:
            continue
        place = to_upright.bounds(box)
        if place.right < 0 or place.left > visible.width or place.top < 0 or place.bottom > visible.height:
            continue
        drawn_by = text.text_object(index)
        if drawn_by not in symbols:
            name = text.font(index)[0].casefold()
            symbols[drawn_by] = any(part in name for part in _SYMBOL_FONTS)
        yield Letter(text.text[position], place, symbols[drawn_by])
