"""Where duty stamps go on a file: see the rules in ``rules.stamps`` and ``rules.free_places``.

What is on a page is seen on a picture of it, as readers see it: whatever is not of the paper's colour is taken, be it text, a
scanned page, a line, or the look of a provider's seal.
"""

import io

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from PIL import Image, ImageFilter

from contracts.types import Area
from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage, area_to_rectangle, visible_page
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.protocol.messages import PlacedStamp
from services.rendering.rules import free_places
from services.rendering.rules.free_places import Cells
from services.rendering.rules.stamps import FileToStamp, StampWish

_CELLS = 400
"""Along the longer side of a page: of A4 each is two points wide."""
_INK = 24
"""Of 255: how much darker or lighter than the paper a spot must be to count as drawn."""

Size = tuple[float, float]


def place_stamps(data: bytes, file: FileToStamp, size: Size) -> list[PlacedStamp]:
    """A place of that size (points) for each wish of ``file``, in order; ``data`` is the sealed file. Those that were given
    stay where they are. The others go to a field for stamps, else onto a signature, moved to where they hide no value, else
    to the bottom margin. None lies over another. Raises Refused when there is no room."""
    with pikepdf.open(io.BytesIO(data)) as pdf, open_document(data) as document:
        document.init_forms()  # else the looks of signatures are not drawn
        # A reader that marks fillable fields in blue is for filling in.
        pdfium_raw.FPDF_SetFormFieldHighlightAlpha(document.formenv, 0)
        pages = _Pages(pdf, document, file, size)
        fixed = {
            number: pages.at_corner(wish, (wish.x, wish.y))
            for number, wish in enumerate(file.wishes)
            if wish.x is not None and wish.y is not None
        }
        return [fixed.get(number) or pages.find_place(wish) for number, wish in enumerate(file.wishes)]


class _Pages:
    """The pages of a file, with the stamps that have got a place so far."""

    def __init__(self, pdf: pikepdf.Pdf, document: pdfium.PdfDocument, file: FileToStamp, size: Size) -> None:
        self._pdf, self._document, self._file, self._size = pdf, document, file, size
        self._anchors = list(file.anchors)
        self._stamps: list[tuple[int, free_places.Rectangle]] = []

    def at_corner(self, wish: StampWish, corner: tuple[float, float]) -> PlacedStamp:
        return self._placed(self._page(wish.first), wish.first, free_places.at(corner, self._size))

    def find_place(self, wish: StampWish) -> PlacedStamp:
        """On the first anchor that is free yet, else at the bottom of the last page that has room."""
        for anchor in [area for area in self._anchors if wish.first <= area.page <= wish.last]:
            page = self._page(anchor.page)
            if self._fits(page):
                self._anchors.remove(anchor)
                if (box := self._at(anchor, page)) is not None:
                    return self._placed(page, anchor.page, box)
        for number in range(wish.last, wish.first - 1, -1):
            page = self._page(number)
            if self._fits(page) and (box := self._at_the_bottom(page, number)) is not None:
                return self._placed(page, number, box)
        raise Refused(f"There is no free place for a stamp on {_pages(wish)}.")

    def _at(self, anchor: Area, page: VisiblePage) -> free_places.Rectangle | None:
        """In the middle of the anchor, or where it hides nothing as near as can be; None when it would always hide a value."""
        side = (page.width, page.height)
        box = free_places.centred(area_to_rectangle(anchor, page), self._size, side)
        occupied = self._occupied(page, anchor.page, but=anchor)
        if not any(free_places.overlap(box, other) for other in occupied):
            return box
        occupied = self._occupied(page, anchor.page)
        drawn = self._drawn(page, anchor.page)
        return free_places.near(drawn.take(occupied), self._size, box) or free_places.near(
            Cells.blank(side).take(occupied), self._size, box
        )

    def _at_the_bottom(self, page: VisiblePage, number: int) -> free_places.Rectangle | None:
        side = (page.width, page.height)
        occupied, drawn = self._occupied(page, number), self._drawn(page, number)
        return free_places.lowest(drawn.take(occupied), self._size, side) or free_places.least_covering(
            Cells.blank(side, _CELLS).take(occupied), drawn, self._size
        )

    def _occupied(self, page: VisiblePage, number: int, but: Area | None = None) -> list[free_places.Rectangle]:
        """The values on the page, without the one in the area ``but``, and the stamps."""
        values = [area for area in self._file.values if area.page == number and area != but]
        stamps = [box for where, box in self._stamps if where == number]
        return [*(area_to_rectangle(area, page) for area in values), *stamps]

    def _drawn(self, page: VisiblePage, number: int) -> Cells:
        """Return what is on the page as it looks."""
        try:
            opened = self._document[number - 1]
            scale = _CELLS / max(float(opened.get_width()), float(opened.get_height()))
            picture: Image.Image = opened.render(scale=scale * (1 - 1e-9), grayscale=True).to_pil().convert("L")
            opened.close()
        except pdfium.PdfiumError as error:
            raise Refused(f"Page {number} cannot be drawn.") from error
        shades = picture.histogram()
        paper = shades.index(max(shades))
        ink = picture.point([255 * (abs(shade - paper) > _INK) for shade in range(256)])
        around = ink.filter(ImageFilter.MaxFilter(3))  # a cell wider: a stamp does not touch what is drawn
        spots = around.transpose(Image.Transpose.FLIP_LEFT_RIGHT).convert("1", dither=Image.Dither.NONE)
        columns, rows = spots.size
        bits, across = spots.tobytes(), (columns + 7) // 8
        lines = [int.from_bytes(bits[row * across : (row + 1) * across]) >> -columns % 8 for row in range(rows)]
        return Cells((page.width, page.height), lines[::-1], columns)

    def _page(self, number: int) -> VisiblePage:
        if not 1 <= number <= len(self._pdf.pages):
            raise Refused(f"The document has no page {number} for a stamp.")
        return visible_page(self._pdf.pages[number - 1])

    def _fits(self, page: VisiblePage) -> bool:
        return self._size[0] <= page.width and self._size[1] <= page.height

    def _placed(self, page: VisiblePage, number: int, box: free_places.Rectangle) -> PlacedStamp:
        if not free_places.is_within(box, (page.width, page.height)):
            raise Refused(f"The stamp would reach beyond page {number}.")
        self._stamps.append((number, box))
        return PlacedStamp(number, box, page.to_default_space(Rectangle(*box)))


def _pages(wish: StampWish) -> str:
    return f"page {wish.first}" if wish.first == wish.last else f"pages {wish.first} to {wish.last}"
