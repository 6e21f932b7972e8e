"""A typed name as a picture in one of the handwritten styles, on a transparent ground."""

import io

import pikepdf
import pypdfium2
from pikepdf import Dictionary
from PIL import Image

from services.rendering.jobs.drawing.signature_styles import Hand, hands_for
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.text.layout import FontEmbedder, Style, Undrawable, draw, layout

LONGEST = 200
_SIZE = 48.0
_SCALE = 3.0
"""Pixels per point: 144 pixels to the font size stays sharp in any field and in print."""
_MARGIN = 24.0
_LONGEST_LINE = 900.0
_SHOWN = (720, 100)
"""Pixels of what a signer chooses from: sharp on a telephone in a row that a finger can hit."""
_TONES = 8


def draw_signature(text: str, style: int = 1) -> bytes:
    """PNG, cut to the ink, in one of the styles (``signature_styles``). Scripts that the handwriting font lacks fall back to a
    font that has them.

    Raises Refused for an empty or endless text, and for characters that no font has.
    """
    return _png(_drawn(text, hands_for(" ".join(text.split()))[style - 1]))


def draw_styles(text: str) -> list[bytes]:
    """The signature in each style, small and black on white, for the signer to choose: the very picture that would be sealed.

    Raises Refused as ``draw_signature`` does.
    """
    pictures = []
    for hand in hands_for(" ".join(text.split())):
        ink = _drawn(text, hand)
        paper = Image.new("RGBA", ink.size, "white")
        paper.alpha_composite(ink)
        paper.thumbnail(_SHOWN, Image.Resampling.LANCZOS)
        pictures.append(_png(paper.convert("L").quantize(_TONES), bits=4))
    return pictures


def _drawn(text: str, hand: Hand) -> Image.Image:
    text = " ".join(text.split())
    if not text:
        raise Refused("The signature is empty.")
    if len(text) > LONGEST:
        raise Refused(f"A typed signature may have {LONGEST} characters at most.")
    try:
        picture = _rendered(text, hand)
    except Undrawable as error:
        raise Refused(f"No font can draw {error}.") from error
    box = picture.getchannel("A").getbbox()
    if box is None:
        raise Refused("The signature is empty.")
    return picture.crop(box)


def _rendered(text: str, hand: Hand) -> Image.Image:
    placed = layout(text, Style(family=hand.family, size=_SIZE))
    longest = _LONGEST_LINE / hand.stretch
    if placed.width > longest:
        placed = layout(text, Style(family=hand.family, size=_SIZE * longest / placed.width))
    # Swashes reach out of the letters' boxes.
    height = placed.height + 2 * _MARGIN
    lean = abs(hand.slant) * height
    size = ((placed.width + 2 * _MARGIN) * hand.stretch + lean, height)
    pdf = pikepdf.new()
    fonts = FontEmbedder(pdf)
    page = pdf.add_blank_page(page_size=size)
    shape = f"{hand.stretch} 0 {hand.slant} 1 {lean if hand.slant < 0 else 0:.3f} 0 cm "
    if hand.weight:
        shape += f"2 Tr 1 j {hand.weight * placed.size:.3f} w "  # filled, and round the edge
    page.obj.Contents = pdf.make_stream(shape.encode() + draw(placed, _MARGIN, _MARGIN, fonts))
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


def _png(picture: Image.Image, **options: int) -> bytes:
    """Compress as zlib does by default: its best level takes nine times the time for a twelfth of the bytes."""
    out = io.BytesIO()
    picture.save(out, "PNG", **options)
    return out.getvalue()
