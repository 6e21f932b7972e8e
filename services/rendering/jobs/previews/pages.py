"""A page of a PDF as a picture: what is shown is drawn from the very file that will be sealed (threats T49)."""

import io
import math
from collections.abc import Sequence

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from PIL import Image

from contracts.fields.boxes import FieldBox
from contracts.rpc.rendering import PageFooter
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pdf.refused import Refused

MOST_WIDTH = 4_000
MOST_PIXELS = 24_000_000


def draw_page(
    data: bytes, page: int, width: int = 1400, boxes: Sequence[FieldBox] = (), footer: PageFooter | None = None
) -> bytes:
    """PNG of the visible page, upright, with form fields and annotations; ``page`` from 1. ``boxes`` and ``footer`` are drawn
    over it.

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
        picture.convert("RGB").save(out, "PNG", compress_level=4)
        return out.getvalue()


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
