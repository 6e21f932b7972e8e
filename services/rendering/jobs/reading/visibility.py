"""Which characters of a page its picture shows.

A sender can write into a PDF what no eye sees: white on white, under a picture, outside of the page, in render mode 3. It
must not be read out as if it stood there. So the page is drawn twice, with its text and without it: a character is seen where
the two pictures differ. Where characters of different objects stand one over the other, each of these is left out alone.
"""

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from PIL import Image, ImageChops, ImageStat

from services.rendering.jobs.pdf.geometry import Rectangle

_PIXELS_PER_POINT = 2.0
_MOST_PIXELS = 6_000_000
_MOST_OBJECTS = 100_000
_DEEPEST = 6

_CONTRAST = 28
"""Of 255: what differs less from what is around it is not seen."""

_INK = 0.05
"""Share of a character's box that must be seen: an l fills all of it, a tilde a third."""

_COVERED = 50
"""Of 255, on average: what differs more lies under something else."""

_SHARED = 0.3
"""Share of the smaller of two boxes that the other may cover: letters of one line touch."""

_MOST_ALONE = 200
_WHITE = 255

ACTUAL_TEXT = "ActualText"


@dataclass(frozen=True)
class Glyph:
    """A character as pdfium has it: its index, its text, the address of the object that draws it, and a box around its ink
    in pixels of the drawn page (left, top, right, bottom)."""

    index: int
    text: str
    drawn_by: int
    box: tuple[int, int, int, int]


@dataclass
class DrawnPage:
    """A page while its text is compared with its picture. ``as_shown`` is the page with all that the signing page shows;
    ``flat`` is the same page with its annotations made part of it, or the very same one where it has none."""

    as_shown: pdfium.PdfPage
    flat: pdfium.PdfPage
    scale: float = field(init=False)
    _left_out_alone: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        across, down = self.as_shown.get_width(), self.as_shown.get_height()
        self.scale = min(_PIXELS_PER_POINT, (_MOST_PIXELS / max(across * down, 1)) ** 0.5)

    def visible(self, glyphs: Sequence[Glyph]) -> set[int]:
        """The indices of the characters that are seen."""
        objects = text_objects(self.flat.raw)
        whole = self._drawn(self.flat)
        with _left_out(objects):
            without = self._drawn(self.flat)
        ink = _unlike(whole, without)
        seen = {glyph.index: glyph for glyph in glyphs if _is_inked(ink, glyph.box)}
        if self.as_shown is not self.flat:
            # Something may be drawn over the page that did not become part of it, such as an annotation without an appearance.
            shown = self._drawn(self.as_shown, forms=True)
            ink = _unlike(shown, without)
            seen = {
                index: glyph
                for index, glyph in seen.items()
                if _is_inked(ink, glyph.box) and _looks_alike(shown, whole, glyph.box)
            }
        for address in self._one_over_another(list(seen.values())):
            of_object = [glyph for glyph in seen.values() if glyph.drawn_by == address]
            alone = self._ink_of(objects.get(address), of_object)
            for glyph in of_object:
                if alone is None or not _is_inked(alone[0], _moved(glyph.box, alone[1])):
                    del seen[glyph.index]
        return set(seen)

    def _drawn(self, page: pdfium.PdfPage, *, forms: bool = False) -> Image.Image:
        bitmap = page.render(
            scale=self.scale, fill_color=(255, 255, 255, 255), rev_byteorder=True, may_draw_forms=forms
        )
        picture: Image.Image = bitmap.to_pil()
        return picture.convert("RGB")

    def _one_over_another(self, glyphs: list[Glyph]) -> list[int]:
        """The objects whose characters stand where others do. The same text twice in the same place is bold type."""
        cells: dict[tuple[int, int], list[Glyph]] = {}
        suspects: dict[int, None] = {}
        size = 24
        for glyph in glyphs:
            left, top, right, bottom = glyph.box
            for x in range(left // size, right // size + 1):
                for y in range(top // size, bottom // size + 1):
                    neighbours = cells.setdefault((x, y), [])
                    for other in neighbours:
                        if other.drawn_by == glyph.drawn_by or other.text == glyph.text:
                            continue
                        if _shares(other.box, glyph.box):
                            suspects |= dict.fromkeys((other.drawn_by, glyph.drawn_by))
                    neighbours.append(glyph)
        return list(suspects)

    def _ink_of(
        self, drawn: pdfium_raw.FPDF_PAGEOBJECT | None, glyphs: Sequence[Glyph]
    ) -> tuple[Image.Image, tuple[int, int]] | None:
        """Return what only this object draws, and where that picture lies on the page's; None when it cannot be said: with too
        many of them the page is made to be slow."""
        self._left_out_alone += 1
        if drawn is None or not glyphs or self._left_out_alone > _MOST_ALONE:
            return None
        width, height = self.as_shown.get_width(), self.as_shown.get_height()
        left = max(min(glyph.box[0] for glyph in glyphs) - 1, 0)
        top = max(min(glyph.box[1] for glyph in glyphs) - 1, 0)
        right = max(glyph.box[2] for glyph in glyphs) + 1
        bottom = max(glyph.box[3] for glyph in glyphs) + 1
        crop = (
            left / self.scale,
            max(height - bottom / self.scale, 0),
            max(width - right / self.scale, 0),
            top / self.scale,
        )

        def part() -> Image.Image:
            bitmap = self.flat.render(
                scale=self.scale, crop=crop, fill_color=(255, 255, 255, 255), rev_byteorder=True, may_draw_forms=False
            )
            picture: Image.Image = bitmap.to_pil()
            return picture.convert("RGB")

        whole = part()
        with _left_out({0: drawn}):
            return _unlike(whole, part()), (left, top)


class _left_out:  # noqa: N801 - a context manager that reads as one
    """Text objects are not drawn inside."""

    def __init__(self, objects: dict[int, pdfium_raw.FPDF_PAGEOBJECT]) -> None:
        self._objects = list(objects.values())

    def __enter__(self) -> None:
        for drawn in self._objects:
            pdfium_raw.FPDFPageObj_SetIsActive(drawn, 0)

    def __exit__(self, *_: object) -> None:
        for drawn in self._objects:
            pdfium_raw.FPDFPageObj_SetIsActive(drawn, 1)


def prepared(page: pdfium_raw.FPDF_PAGE) -> None:
    """Take away what replaces the text that is drawn: ``/ActualText`` may say anything."""
    for drawn in text_objects(page).values():
        for number in range(pdfium_raw.FPDFPageObj_CountMarks(drawn)):
            mark = pdfium_raw.FPDFPageObj_GetMark(drawn, number)
            if mark:
                pdfium_raw.FPDFPageObjMark_RemoveParam(drawn, mark, ACTUAL_TEXT.encode())


def text_objects(page: pdfium_raw.FPDF_PAGE) -> dict[int, pdfium_raw.FPDF_PAGEOBJECT]:
    """All objects of the page that draw text, by their addresses."""
    count = min(pdfium_raw.FPDFPage_CountObjects(page), _MOST_OBJECTS)
    top = (pdfium_raw.FPDFPage_GetObject(page, index) for index in range(count))
    texts = (drawn for top_object in top for drawn in _text_within(top_object, 0))
    return {ctypes.cast(drawn, ctypes.c_void_p).value or 0: drawn for drawn in texts}


def _text_within(drawn: pdfium_raw.FPDF_PAGEOBJECT, depth: int) -> Iterator[pdfium_raw.FPDF_PAGEOBJECT]:
    kind = pdfium_raw.FPDFPageObj_GetType(drawn)
    if kind == pdfium_raw.FPDF_PAGEOBJ_TEXT:
        yield drawn
    elif kind == pdfium_raw.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
        for index in range(min(pdfium_raw.FPDFFormObj_CountObjects(drawn), _MOST_OBJECTS)):
            yield from _text_within(pdfium_raw.FPDFFormObj_GetObject(drawn, index), depth + 1)


def pixels(box: Rectangle, height: float, scale: float) -> tuple[int, int, int, int]:
    """A box in upright points as left, top, right, bottom in whole pixels; never empty."""
    left, top = math.floor(box.left * scale), math.floor((height - box.top) * scale)
    return (
        left,
        top,
        max(math.ceil(box.right * scale), left + 1),
        max(math.ceil((height - box.bottom) * scale), top + 1),
    )


def _unlike(picture: Image.Image, other: Image.Image) -> Image.Image:
    """White where they differ for an eye."""
    red, green, blue = ImageChops.difference(picture, other).split()
    strongest = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    return strongest.point(lambda value: _WHITE if value >= _CONTRAST else 0)


def _is_inked(ink: Image.Image, box: tuple[int, int, int, int]) -> bool:
    left, top, right, bottom = box
    left, top, right, bottom = max(left, 0), max(top, 0), min(right, ink.width), min(bottom, ink.height)
    if right <= left or bottom <= top:
        return False
    count = ink.crop((left, top, right, bottom)).histogram()[_WHITE]
    # Of a character that reaches out of the page, its whole box counts.
    return count >= max(1, _INK * (box[2] - box[0]) * (box[3] - box[1]))


def _looks_alike(picture: Image.Image, other: Image.Image, box: tuple[int, int, int, int]) -> bool:
    """On the whole: edges are drawn a little otherwise within a form."""
    around = (max(box[0] - 1, 0), max(box[1] - 1, 0), min(box[2] + 1, picture.width), min(box[3] + 1, picture.height))
    first, second = (ImageStat.Stat(picture_seen.crop(around)).mean for picture_seen in (picture, other))
    return all(abs(a - b) < _COVERED for a, b in zip(first, second, strict=True))


def _shares(box: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> bool:
    across = min(box[2], other[2]) - max(box[0], other[0])
    down = min(box[3], other[3]) - max(box[1], other[1])
    if across <= 0 or down <= 0:
        return False
    smaller = min((rectangle[2] - rectangle[0]) * (rectangle[3] - rectangle[1]) for rectangle in (box, other))
    return across * down > _SHARED * smaller


def _moved(box: tuple[int, int, int, int], to: tuple[int, int]) -> tuple[int, int, int, int]:
    return box[0] - to[0], box[1] - to[1], box[2] - to[0], box[3] - to[1]
