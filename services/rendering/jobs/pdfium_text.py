"""Text of pages with positions, as pdfium reads it. Coordinates are default user space (see ``geometry``)."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw

from services.rendering.jobs.geometry import Rectangle
from services.rendering.jobs.refused import Refused

_MOST_DRAWN_OBJECTS = 5_000


@contextmanager
def open_document(data: bytes) -> Iterator[pdfium.PdfDocument]:
    """Raises Refused when pdfium cannot read what qpdf could."""
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        raise Refused("The PDF is damaged: its pages cannot be read.") from error
    try:
        yield document
    finally:
        document.close()


@dataclass
class Character:
    """``x`` and ``y`` are where the glyph starts on its baseline; ``generated`` ones (blanks, line ends) are pdfium's own
    and stand nowhere."""

    text: str
    x: float
    y: float
    generated: bool


class PageText:
    """The text of one page while pdfium has it open."""

    def __init__(self, page: pdfium.PdfPage) -> None:
        self._page = page
        self._text_page = page.get_textpage()
        self.text: str = self._text_page.get_text_range(errors="surrogatepass")

    def close(self) -> None:
        self._text_page.close()

    def __len__(self) -> int:
        """Number of characters by pdfium's count; ``text`` may have more or fewer."""
        return int(self._text_page.count_chars())

    def character_index(self, position: int) -> int:
        """From a position in ``text`` to the index that the other methods take."""
        if not self.text.isascii():
            position = len(self.text[:position].encode("utf-16-le", "surrogatepass")) // 2
        return int(pdfium_raw.FPDFText_GetCharIndexFromTextIndex(self._text_page.raw, position))

    def is_generated(self, index: int) -> bool:
        return bool(pdfium_raw.FPDFText_IsGenerated(self._text_page.raw, index) == 1)

    def characters(self, first: int, last: int) -> list[Character]:
        """Both ends included."""
        raw = self._text_page.raw
        x, y = ctypes.c_double(), ctypes.c_double()
        found = []
        for index in range(first, last + 1):
            pdfium_raw.FPDFText_GetCharOrigin(raw, index, x, y)
            code = pdfium_raw.FPDFText_GetUnicode(raw, index)
            found.append(Character(chr(code), x.value, y.value, self.is_generated(index)))
        return found

    def rectangles(self, first: int = 0, count: int = -1) -> list[Rectangle]:
        """One for each stretch of text on a line."""
        raw = self._text_page.raw
        left, top, right, bottom = (ctypes.c_double() for _ in range(4))
        return [
            Rectangle(left.value, bottom.value, right.value, top.value)
            for index in range(pdfium_raw.FPDFText_CountRects(raw, first, count))
            if pdfium_raw.FPDFText_GetRect(raw, index, left, top, right, bottom)
        ]

    def drawn_rectangles(self) -> list[Rectangle]:
        """Around each path, shading and picture of the page itself: lines, frames, logos."""
        raw = self._page.raw
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        found = []
        for index in range(min(pdfium_raw.FPDFPage_CountObjects(raw), _MOST_DRAWN_OBJECTS)):
            drawn = pdfium_raw.FPDFPage_GetObject(raw, index)
            if pdfium_raw.FPDFPageObj_GetType(drawn) == pdfium_raw.FPDF_PAGEOBJ_TEXT:
                continue
            if pdfium_raw.FPDFPageObj_GetBounds(drawn, left, bottom, right, top):
                found.append(Rectangle(left.value, bottom.value, right.value, top.value))
        return found


def page_texts(data: bytes, expected: int) -> Iterator[PageText]:
    """The pages in order, each open until the next one is asked for. Raises Refused when there are not ``expected`` ones:
    two readers that disagree about the pages would show and sign different documents (threats T49)."""
    with open_document(data) as document:
        if len(document) != expected:
            raise Refused("The PDF is damaged: readers disagree about how many pages it has.")
        for number in range(expected):
            with open_page_text(document, number) as text:
                yield text


@contextmanager
def open_page_text(document: pdfium.PdfDocument, index: int) -> Iterator[PageText]:
    """``index`` from 0."""
    try:
        page = document[index]
        text = PageText(page)
    except pdfium.PdfiumError as error:
        raise Refused(f"The PDF is damaged: page {index + 1} cannot be read.") from error
    try:
        yield text
    finally:
        text.close()
        page.close()
