"""A typed name as a picture in a handwriting font, on a transparent ground."""

import io

import pikepdf
import pypdfium2
from pikepdf import Dictionary
from PIL import Image

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.text.fonts import SCRIPT_FAMILY
from services.rendering.jobs.text.layout import FontEmbedder, Style, Undrawable, draw, layout

LONGEST = 200
_SIZE = 48.0
_SCALE = 3.0
"""Pixels per point: 144 pixels to the font size stays sharp in any field and in print."""
_MARGIN = 24.0
_LONGEST_LINE = 900.0


def draw_signature(text: str) -> bytes:
    """PNG, cut to the ink. Scripts that the handwriting font lacks fall back to a font that has them.

    Raises Refused for an empty or endless text, and for characters that no font has.
    """
    text = " ".join(text.split())
    if not text:
        raise Refused("The signature is empty.")
    if len(text) > LONGEST:
        raise Refused(f"A typed signature may have {LONGEST} characters at most.")
    try:
        picture = _rendered(text)
    except Undrawable as error:
        raise Refused(f"No font can draw {error}.") from error
    box = picture.getchannel("A").getbbox()
    if box is None:
        raise Refused("The signature is empty.")
    out = io.BytesIO()
    picture.crop(box).save(out, "PNG", optimize=True)
    return out.getvalue()


def _rendered(text: str) -> Image.Image:
    placed = layout(text, Style(family=SCRIPT_FAMILY, size=_SIZE))
    if placed.width > _LONGEST_LINE:
        placed = layout(text, Style(family=SCRIPT_FAMILY, size=_SIZE * _LONGEST_LINE / placed.width))
    # Swashes reach out of the letters' boxes.
    size = (placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN)
    pdf = pikepdf.new()
    fonts = FontEmbedder(pdf)
    page = pdf.add_blank_page(page_size=size)
    page.obj.Contents = pdf.make_stream(draw(placed, _MARGIN, _MARGIN, fonts))
    page.obj.Resources = Dictionary(Font=fonts.resources)
    fonts.finish()
    file = io.BytesIO()
    pdf.save(file)
    document = pypdfium2.PdfDocument(file.getvalue())
    try:
        drawn = document[0].render(scale=_SCALE, fill_color=(255, 255, 255, 0), rev_byteorder=True)
        picture: Image.Image = drawn.to_pil().convert("RGBA")
        return picture
    finally:
        document.close()
