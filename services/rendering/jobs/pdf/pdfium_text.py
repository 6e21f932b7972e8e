"""Text of pages with positions, as pdfium reads it. Coordinates are default user space (see ``geometry``)."""

import ctypes
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw

from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.saving import saved

_MOST_CHARACTERS = 500_000
_MOST_BOXES = 5_000
_LOOSE = 0.15
"""How far apart characters may be set, in line heights."""

Box = tuple[float, float, float, float]
"""(left, bottom, right, top); plain, because a page has hundreds."""


def fast(function: Any, result: Any, *arguments: Any) -> Any:
    """The same function of pdfium with plain addresses for its pointers: they are called for each line of each page, and
    pypdfium2's typed pointers double what a call costs."""
    return ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


_address, _int = ctypes.c_void_p, ctypes.c_int
_get_origin = fast(pdfium_raw.FPDFText_GetCharOrigin, _int, _address, _int, _address, _address)
_get_index = fast(pdfium_raw.FPDFText_GetCharIndexFromTextIndex, _int, _address, _int)
_get_loose_box = fast(pdfium_raw.FPDFText_GetLooseCharBox, _int, _address, _int, _address)
_get_char_box = fast(pdfium_raw.FPDFText_GetCharBox, _int, _address, _int, *[_address] * 4)
_get_text_object = fast(pdfium_raw.FPDFText_GetTextObject, _address, _address, _int)
_get_angle = fast(pdfium_raw.FPDFText_GetCharAngle, ctypes.c_float, _address, _int)
_is_generated = fast(pdfium_raw.FPDFText_IsGenerated, _int, _address, _int)
_count_rectangles = fast(pdfium_raw.FPDFText_CountRects, _int, _address, _int, _int)
_get_rectangle = fast(pdfium_raw.FPDFText_GetRect, _int, _address, _int, *[_address] * 4)
_get_object = fast(pdfium_raw.FPDFPage_GetObject, _address, _address, _int)
_get_type = fast(pdfium_raw.FPDFPageObj_GetType, _int, _address)
_get_bounds = fast(pdfium_raw.FPDFPageObj_GetBounds, _int, _address, *[_address] * 4)


@contextmanager
def open_document(data: bytes) -> Iterator[pdfium.PdfDocument]:
    """Raises Refused when pdfium cannot read what qpdf could.

    Of a document whose pages are bound on the right (/Direction /R2L) a copy is opened that does not say so: pdfium would
    turn the order of all its words, and only their order.
    """
    try:
        document = pdfium.PdfDocument(data)
        if _is_bound_on_the_right(document):
            document.close()
            document = pdfium.PdfDocument(_without_direction(data))
    except pdfium.PdfiumError as error:
        raise Refused("The PDF is damaged: its pages cannot be read.") from error
    try:
        yield document
    finally:
        document.close()


def _is_bound_on_the_right(document: pdfium.PdfDocument) -> bool:
    value = ctypes.create_string_buffer(4)
    size = pdfium_raw.FPDF_VIEWERREF_GetName(document, b"Direction", value, len(value))
    return bool(size == len(value) and value.value == b"R2L")


def _without_direction(data: bytes) -> bytes:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        del pdf.Root.ViewerPreferences.Direction
        return saved(pdf)


@dataclass
class Character:
    """``x`` and ``y`` are where the glyph starts on its baseline; ``generated`` ones (blanks, line ends) are pdfium's own
    and stand nowhere."""

    text: str
    x: float
    y: float
    generated: bool


class PageText:
    """The text of one page while pdfium has it open.

    It calls pdfium itself, without pypdfium2's wrappers: a document is read page by page here, and they cost a tenth.
    """

    def __init__(self, document: pdfium.PdfDocument, index: int, opened: pdfium_raw.FPDF_PAGE | None = None) -> None:
        """``index`` from 0. ``opened``: the page itself, when the caller has it open and closes it. Raises
        pdfium.PdfiumError."""
        self._is_own = opened is None
        self._page = opened or pdfium_raw.FPDF_LoadPage(document.raw, index)
        if not self._page:
            raise pdfium.PdfiumError("page cannot be loaded")
        self._text_page = pdfium_raw.FPDFText_LoadPage(self._page)
        if not self._text_page:
            if self._is_own:
                pdfium_raw.FPDF_ClosePage(self._page)
            raise pdfium.PdfiumError("text cannot be loaded")
        self._count = max(int(pdfium_raw.FPDFText_CountChars(self._text_page)), 0)
        if self._count > _MOST_CHARACTERS:
            self.close()
            raise Refused(f"Page {index + 1} of the PDF has more than {_MOST_CHARACTERS:,} characters.")
        self._address = ctypes.cast(self._text_page, ctypes.c_void_p).value
        self._numbers = (ctypes.c_double * 4)()
        self._places = range(ctypes.addressof(self._numbers), ctypes.addressof(self._numbers) + 32, 8)
        buffer = (ctypes.c_ushort * (self._count + 1))()
        length = max(pdfium_raw.FPDFText_GetText(self._text_page, 0, self._count, buffer) - 1, 0)
        self.text: str = bytes(memoryview(buffer)[:length]).decode("utf-16-le", "surrogatepass")
        self._has_surrogates = not self.text.isascii() and max(self.text) > "\uffff"

    def close(self) -> None:
        pdfium_raw.FPDFText_ClosePage(self._text_page)
        if self._is_own:
            pdfium_raw.FPDF_ClosePage(self._page)

    def text_object(self, index: int) -> int:
        """The address of the object of the page that draws the character; 0 when pdfium made it up."""
        return _get_text_object(self._address, index) or 0

    def ink_box(self, index: int) -> Rectangle | None:
        """Around what is drawn of the character."""
        left, top, right, bottom = self._places
        if not _get_char_box(self._address, index, left, right, bottom, top):
            return None
        return Rectangle(self._numbers[0], self._numbers[3], self._numbers[2], self._numbers[1])

    def __len__(self) -> int:
        """Number of characters by pdfium's count; ``text`` may have more or fewer."""
        return self._count

    def character_index(self, position: int) -> int:
        """From a position in ``text`` to the index that the other methods take."""
        if self._has_surrogates:
            position = len(self.text[:position].encode("utf-16-le", "surrogatepass")) // 2
        return int(_get_index(self._address, position))

    def drawn_characters(self) -> Iterator[tuple[int, int, float, float, float, Rectangle]]:
        """Of each character of ``text`` that is on the page: its position there, its index, where it starts on its baseline, in
        which direction its line runs (radians, counter-clockwise), and its box, as wide as it moves on, as high as its font."""
        box = pdfium_raw.FS_RECTF()
        numbers, page, to_box = self._numbers, self._address, ctypes.addressof(box)
        to_x, to_y, *_ = self._places
        place = 0
        for position, character in enumerate(self.text):
            index = int(_get_index(page, place))
            place += 2 if character > "\uffff" else 1
            if character in "\r\n" or _is_generated(page, index) == 1 or not _get_loose_box(page, index, to_box):
                continue
            _get_origin(page, index, to_x, to_y)
            clockwise = _get_angle(page, index)
            angle = -round(clockwise, 2) if clockwise > 0 else 0.0
            yield position, index, numbers[0], numbers[1], angle, Rectangle(box.left, box.bottom, box.right, box.top)

    def is_generated(self, index: int) -> bool:
        return bool(pdfium_raw.FPDFText_IsGenerated(self._text_page, index) == 1)

    def font(self, index: int) -> tuple[str, float]:
        """Name of the character's font, and its size as drawn, in points."""
        buffer = ctypes.create_string_buffer(256)
        pdfium_raw.FPDFText_GetFontInfo(self._text_page, index, buffer, len(buffer), None)
        matrix = pdfium_raw.FS_MATRIX()
        scaled = pdfium_raw.FPDFText_GetMatrix(self._text_page, index, ctypes.byref(matrix))
        scale = math.hypot(matrix.c, matrix.d) if scaled else 1.0
        return buffer.value.decode("utf-8", "replace"), pdfium_raw.FPDFText_GetFontSize(self._text_page, index) * scale

    def color(self, index: int) -> tuple[int, int, int] | None:
        """Red, green and blue (0 to 255) that the character is filled with."""
        parts = [ctypes.c_uint() for _ in range(4)]
        if not pdfium_raw.FPDFText_GetFillColor(self._text_page, index, *map(ctypes.byref, parts)):
            return None
        return parts[0].value, parts[1].value, parts[2].value

    def characters(self, first: int, last: int) -> list[Character]:
        """Both ends included."""
        x, y = ctypes.c_double(), ctypes.c_double()
        to_x, to_y = ctypes.byref(x), ctypes.byref(y)
        characters = []
        for index in range(first, last + 1):
            pdfium_raw.FPDFText_GetCharOrigin(self._text_page, index, to_x, to_y)
            code = pdfium_raw.FPDFText_GetUnicode(self._text_page, index)
            characters.append(Character(chr(code), x.value, y.value, self.is_generated(index)))
        return characters

    def origins(self, first: int, last: int) -> list[tuple[float, float]]:
        """Return where the glyphs start on their baselines; both ends included."""
        numbers, page = self._numbers, self._address
        x, y, *_ = self._places
        origins = []
        for index in range(first, last + 1):
            _get_origin(page, index, x, y)
            origins.append((numbers[0], numbers[1]))
        return origins

    def is_continuous(self, first: int, last: int) -> bool:
        """Return whether each character from ``first`` to ``last`` stands where the one before it on its line ends."""
        box = pdfium_raw.FS_RECTF()
        place = ctypes.byref(box)
        end = None
        for index in range(first, last + 1):
            if self.is_generated(index) or not pdfium_raw.FPDFText_GetLooseCharBox(self._text_page, index, place):
                if pdfium_raw.FPDFText_GetUnicode(self._text_page, index) == 0x20:
                    return False
                end = None
                continue
            if end is not None and abs(box.left - end) > _LOOSE * (box.top - box.bottom):
                return False
            end = box.right
        return True

    def glyph_box(self, index: int) -> Rectangle | None:
        """As wide as the glyph moves on, as high as its font."""
        box = pdfium_raw.FS_RECTF()
        if not pdfium_raw.FPDFText_GetLooseCharBox(self._text_page, index, ctypes.byref(box)):
            return None
        return Rectangle(box.left, box.bottom, box.right, box.top)

    def rectangles(self, first: int, count: int) -> list[Rectangle]:
        """One for each stretch of text on a line."""
        return [Rectangle(*box) for box in self._boxes(first, count)]

    def all_boxes(self) -> list[Box]:
        """(left, bottom, right, top) of all stretches of text on the page, or of the first 5,000."""
        return self._boxes(0, -1)

    def _boxes(self, first: int, count: int) -> list[Box]:
        numbers, page = self._numbers, self._address
        left, top, right, bottom = self._places
        return [
            (numbers[0], numbers[3], numbers[2], numbers[1])
            for index in range(min(_count_rectangles(page, first, count), _MOST_BOXES))
            if _get_rectangle(page, index, left, top, right, bottom)
        ]

    def drawn_boxes(self) -> list[Box]:
        """Around each path, shading and picture of the page itself: lines, frames, logos."""
        numbers = (ctypes.c_float * 4)()
        places = range(ctypes.addressof(numbers), ctypes.addressof(numbers) + 16, 4)
        page = ctypes.cast(self._page, ctypes.c_void_p).value
        boxes: list[Box] = []
        for index in range(min(pdfium_raw.FPDFPage_CountObjects(self._page), _MOST_BOXES)):
            is_drawn = _get_object(page, index)
            if _get_type(is_drawn) != pdfium_raw.FPDF_PAGEOBJ_TEXT and _get_bounds(is_drawn, *places):
                boxes.append((numbers[0], numbers[1], numbers[2], numbers[3]))
        return boxes


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
        text = PageText(document, index)
    except pdfium.PdfiumError as error:
        raise Refused(f"The PDF is damaged: page {index + 1} cannot be read.") from error
    try:
        yield text
    finally:
        text.close()
