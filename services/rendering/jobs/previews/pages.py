"""A page of a PDF as a picture: what is shown is drawn from the very file that will be sealed (threats T49)."""

import ctypes
import io
import math
from collections.abc import Iterator, Sequence

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from PIL import Image

from contracts.fields.boxes import FieldBox
from contracts.rpc.rendering import PageFooter
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.previews.encoding import smallest

MOST_WIDTH = 4_000
MOST_PIXELS = 24_000_000

_MOST_OBJECTS = 5_000
_DEEPEST = 4
_PHOTOGRAPH = 0.5
"""Share of the page that pictures in tones cover at least."""


def draw_page(
    data: bytes,
    page: int,
    width: int = 1400,
    boxes: Sequence[FieldBox] = (),
    footer: PageFooter | None = None,
    *,
    light: bool = False,
) -> bytes:
    """PNG of the visible page, upright, with form fields and annotations; ``page`` from 1. ``boxes`` and ``footer`` are drawn
    over it. ``light``: in few bytes, as PNG or WebP (``encoding.smallest``).

    ``width`` in pixels is kept unless the picture would have more than 24 million of them.
    """
    with open_document(data) as document:
        if not 1 <= page <= len(document):
            raise Refused(f"The document has no page {page}; it has {len(document)}.")
        document.init_forms()
        # A reader that marks fillable fields in blue is for filling in; this picture is of the page.
        pdfium_raw.FPDF_SetFormFieldHighlightAlpha(document.formenv, 0)
        try:
            opened = document[page - 1]
            bitmap = opened.render(scale=scale_of(opened, width), fill_color=(255, 255, 255, 255), rev_byteorder=True)
        except pdfium.PdfiumError as error:
            raise Refused(f"Page {page} cannot be drawn.") from error
        out = io.BytesIO()
        picture: Image.Image = bitmap.to_pil()
        if footer:
            from services.rendering.jobs.drawing.footer import with_footer

            picture = with_footer(picture, footer)
        if boxes:
            from services.rendering.jobs.drawing.boxes import with_boxes

            picture = with_boxes(picture, boxes, (float(opened.get_width()), float(opened.get_height())))
        if light:
            return smallest(picture.convert("RGB"), is_photograph=is_photograph(opened))
        picture.convert("RGB").save(out, "PNG", compress_level=4)
        return out.getvalue()


def is_photograph(page: pdfium.PdfPage) -> bool:
    """Return whether most of the page is covered by pictures in tones: photographs, scans in grey or colour. A scan in black
    and white is none, nor is a logo."""
    left, bottom, right, top = page.get_bbox()
    if right <= left or top <= bottom:
        return False
    # Rows of strips make up many scans: their areas are added. Pictures one over the other are as good as side by side.
    covered = sum(
        max(min(box[2], right) - max(box[0], left), 0) * max(min(box[3], top) - max(box[1], bottom), 0)
        for box in _pictures_in_tones(page)
    )
    return bool(covered >= _PHOTOGRAPH * (right - left) * (top - bottom))


def _pictures_in_tones(page: pdfium.PdfPage) -> Iterator[tuple[float, float, float, float]]:
    sides = [ctypes.c_float() for _ in range(4)]
    for index in range(min(pdfium_raw.FPDFPage_CountObjects(page), _MOST_OBJECTS)):
        drawn = pdfium_raw.FPDFPage_GetObject(page, index)
        if _is_in_tones(drawn, page) and pdfium_raw.FPDFPageObj_GetBounds(drawn, *map(ctypes.byref, sides)):
            left, bottom, right, top = (side.value for side in sides)
            yield left, bottom, right, top


def _is_in_tones(drawn: pdfium_raw.FPDF_PAGEOBJECT, page: pdfium.PdfPage, depth: int = 0) -> bool:
    kind = pdfium_raw.FPDFPageObj_GetType(drawn)
    if kind == pdfium_raw.FPDF_PAGEOBJ_IMAGE:
        about = pdfium_raw.FPDF_IMAGEOBJ_METADATA()
        return bool(
            pdfium_raw.FPDFImageObj_GetImageMetadata(drawn, page, ctypes.byref(about)) and about.bits_per_pixel > 1
        )
    if kind != pdfium_raw.FPDF_PAGEOBJ_FORM or depth == _DEEPEST:
        return False
    inside = min(pdfium_raw.FPDFFormObj_CountObjects(drawn), _MOST_OBJECTS)
    return any(_is_in_tones(pdfium_raw.FPDFFormObj_GetObject(drawn, index), page, depth + 1) for index in range(inside))


def scale_of(page: pdfium.PdfPage, width: int) -> float:
    """Pixels per unit for a picture of ``width`` pixels; pdfium counts in units, whatever /UserUnit says."""
    across, down = float(page.get_width()), float(page.get_height())
    if across <= 0 or down <= 0:
        raise Refused("The page has no area.")
    scale = min(max(width, 1), MOST_WIDTH) / across
    pixels = across * down * scale * scale
    if pixels > MOST_PIXELS:
        scale *= math.sqrt(MOST_PIXELS / pixels)
    # pypdfium2 rounds up: rounding noise must not add a column.
    return scale * (1 - 1e-9)
