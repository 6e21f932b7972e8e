"""The boxes of fields over the picture of a page: where each is, whose it is, what it is called."""

from collections.abc import Sequence

import pikepdf
from PIL import Image, ImageDraw

from contracts.fields.boxes import FieldBox
from contracts.types import Area
from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.paper.transparent import Window, append_sheet, rendered, saved
from services.rendering.jobs.pdf.geometry import Rectangle, area_to_rectangle, upright_page
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pictures.image_objects import PictureEmbedder
from services.rendering.jobs.text.embedding import FontEmbedder
from services.rendering.jobs.text.layout import Color, Style, layout, legible

_COLORS: tuple[Color, ...] = (
    (0.60, 0.41, 0.0),
    (0.09, 0.36, 0.30),
    (0.16, 0.30, 0.68),
    (0.64, 0.13, 0.09),
    (0.42, 0.18, 0.58),
)
"""Of the roles, in order, and again from the first."""

_TINT = 40
"""Of 255: the page shows through."""

# Points.
_LABEL, _SMALLEST_LABEL = 8.0, 3.0
_FRAME, _INSET = 0.75, 1.5


def with_boxes(picture: Image.Image, boxes: Sequence[FieldBox], page: tuple[float, float]) -> Image.Image:
    """The picture of a page of ``page`` points (as it is seen) with the boxes over it; RGB."""
    whole = picture.convert("RGBA")
    tint = Image.new("RGBA", whole.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(tint)
    for box in boxes:
        left, top, right, bottom = box.x, box.y, box.x + max(box.w, 0), box.y + max(box.h, 0)
        corners = (left * whole.width, top * whole.height, right * whole.width, bottom * whole.height)
        pen.rectangle(corners, fill=(*(round(part * 255) for part in _color(box)), _TINT))
    whole.alpha_composite(tint)
    whole.alpha_composite(_frames(boxes, page, whole.size))
    return whole.convert("RGB")


def _frames(boxes: Sequence[FieldBox], page: tuple[float, float], size: tuple[int, int]) -> Image.Image:
    """Frames and labels on transparent paper."""
    pdf = pikepdf.new()
    fonts = FontEmbedder(pdf)
    canvas = Canvas(upright_page(*page), fonts, PictureEmbedder(pdf))
    for box in boxes:
        place = area_to_rectangle(Area(x=box.x, y=box.y, w=max(box.w, 0), h=max(box.h, 0)), canvas.page)
        canvas.frame(place, _color(box), min(_FRAME, place.width, place.height))
        _label(canvas, box, place)
    append_sheet(pdf, canvas)
    fonts.finish()
    with open_document(saved(pdf)) as document:
        return rendered(document[0], Window(0, 0, *size, *size))


def _label(canvas: Canvas, box: FieldBox, place: Rectangle) -> None:
    """The name in the box's upper left corner; left out where it has no room, because the place is what is looked at."""
    across, along = place.width - 2 * _INSET, place.height - 2 * _INSET
    text = " ".join(legible(box.label).split())
    if not text or across <= 0 or along <= 0:
        return
    style = Style(
        size=min(_LABEL, along), color=_color(box), valign="top", wrap=False, min_size=min(_SMALLEST_LABEL, along)
    )
    placed = layout(text, style, across, along)
    if placed.fits:
        canvas.text(placed, place.left + _INSET, place.bottom + _INSET)


def _color(box: FieldBox) -> Color:
    return _COLORS[box.role % len(_COLORS)]
