"""The line at the foot of every page of a filled document that says to which submission it belongs (peer facts 4.2), and the
one at the head of a copy that is not the finished document.

It lies on what the document has there, on a white ground as large as its words, and below the values: where a field reaches
into the corner, the value is what is seen.
"""

from __future__ import annotations

import pikepdf
from PIL import Image

from contracts.rpc.rendering import PageFooter
from services.rendering.jobs.paper.canvas import RED, Canvas
from services.rendering.jobs.paper.transparent import Window, append_sheet, rendered, saved
from services.rendering.jobs.pdf.geometry import Rectangle, upright_page
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pictures.image_objects import PictureEmbedder
from services.rendering.jobs.text.embedding import FontEmbedder
from services.rendering.jobs.text.layout import Style, layout

_A4_WIDTH, _SIZE, _MARK_SIZE, _TEST_SIZE, _SMALLEST = 595, 9, 12, 12, 4
_FRAME, _THINNEST_FRAME = 3.0, 1.0
_WHITE = (1.0, 1.0, 1.0)
# Of the text's size: from the page's left and lower edge to the words, and the ground around these.
_ASIDE, _ABOVE, _GROUND = 1.0, 0.5, 0.15


def draw_footer(canvas: Canvas, text: str) -> float:
    """The line in the lower left corner; returns where it ends. A page that is too small for it in a readable size stays
    without."""
    return _draw(canvas, text, _SIZE, at_head=False)


def draw_mark(canvas: Canvas, text: str) -> None:
    """The line in the upper left corner, larger."""
    _draw(canvas, text, _MARK_SIZE, at_head=True)


def draw_test_mark(canvas: Canvas, text: str, footer_ends: float = 0.0) -> None:
    """A frame along the edges of the page, and the line in the middle of its head and of its foot, there beside what
    ``draw_footer`` has drawn. They are thin and at the very edge, and are drawn before the values: no field is hidden."""
    page = canvas.page
    frame = max(_FRAME * min(page.width, page.height) / _A4_WIDTH, _THINNEST_FRAME)
    canvas.frame(Rectangle(0, 0, page.width, page.height), RED, frame)
    size = max(_TEST_SIZE * min(page.width, page.height) / _A4_WIDTH, _SMALLEST)
    style = Style(size=size, bold=True, color=RED, wrap=False, min_size=_SMALLEST, align="left")
    around = _GROUND * size
    for begins, at_head in ((0.0, True), (footer_ends, False)):
        room = page.width - begins - 2 * (frame + around)
        placed = layout(text, style, max(room, 1.0), 1.3 * size)
        words = max(line.x + line.width for line in placed.lines)
        left = begins + (page.width - begins - words) / 2
        bottom = page.height - frame - placed.height if at_head else frame
        canvas.fill(Rectangle(left - around, bottom, left + words + around, bottom + placed.height), _WHITE)
        canvas.text(placed, left, bottom)


def _draw(canvas: Canvas, text: str, usual: int, *, at_head: bool) -> float:
    page = canvas.page
    size = max(usual * min(page.width, page.height) // _A4_WIDTH, _SMALLEST)
    room = page.width - 2 * _ASIDE * size
    placed = layout(text, Style(size=size, wrap=False, min_size=_SMALLEST, align="left"), max(room, 1.0), 1.3 * size)
    if not placed.fits or room < size:
        return 0.0
    left, around = _ASIDE * size, _GROUND * size
    bottom = page.height - _ABOVE * size - placed.height if at_head else _ABOVE * size
    words = max(line.x + line.width for line in placed.lines)
    ground = Rectangle(left - around, bottom - around, left + words + around, bottom + placed.height + around)
    canvas.fill(ground, _WHITE)
    canvas.text(placed, left, bottom)
    return ground.right


def with_footer(picture: Image.Image, footer: PageFooter) -> Image.Image:
    """The picture of a whole page with the line on it; RGB."""
    pdf = pikepdf.new()
    fonts = FontEmbedder(pdf)
    canvas = Canvas(upright_page(footer.width, footer.height), fonts, PictureEmbedder(pdf))
    draw_footer(canvas, footer.text)
    append_sheet(pdf, canvas)
    fonts.finish()
    whole = picture.convert("RGBA")
    with open_document(saved(pdf)) as document:
        whole.alpha_composite(rendered(document[0], Window(0, 0, *whole.size, *whole.size)))
    return whole.convert("RGB")
