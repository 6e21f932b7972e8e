"""The background and border of a form field (ISO 32000-2, tables 168 and 192), as Acrobat and pdfium draw them."""

from __future__ import annotations

from collections.abc import Sequence

import pikepdf
from pikepdf import Dictionary

from services.rendering.jobs.annotations.borders import border_of
from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.values import rgb_of
from services.rendering.jobs.text.layout import Color

_WHITE: Color = (1.0, 1.0, 1.0)
_SHADES: dict[str, tuple[Color, Color]] = {
    "/B": (_WHITE, (0.5, 0.5, 0.5)),
    "/I": ((0.5, 0.5, 0.5), (0.75, 0.75, 0.75)),
}
"""What makes a border stand out (beveled) or the field lie deeper (inset): left and upper edge, right and lower one."""


def draw_frame(canvas: Canvas, widget: pikepdf.Dictionary, *, is_round: bool = False, cells: int = 0) -> float:
    """Draw the field's frame on a canvas of the field's size: around a circle when it ``is_round``, with lines between the
    ``cells`` of a comb. Returns how wide the border is, in points."""
    characteristics = widget.get("/MK")
    characteristics = characteristics if isinstance(characteristics, pikepdf.Dictionary) else Dictionary()
    area = Rectangle(0, 0, canvas.page.width, canvas.page.height)
    if is_round:
        across, up = (max(area.width - area.height, 0) / 2, max(area.height - area.width, 0) / 2)
        area = Rectangle(across, up, area.right - across, area.top - up)
    border, color = border_of(widget), rgb_of(characteristics.get("/BC"))
    width = min(border.width, min(area.width, area.height) / 2)
    if background := rgb_of(characteristics.get("/BG")):
        (canvas.disc if is_round else canvas.fill)(area, background)
    if color is None or not width:
        return 0.0
    if is_round:
        canvas.circle(area, color, width, border.dashes)
    elif border.style == "/U":
        canvas.line(0, width / 2, area.width, width / 2, color, width)
    else:
        canvas.frame(area, color, width, border.dashes)
        for number in range(1, cells):
            x = number * area.width / cells
            canvas.line(x, 0, x, area.height, color, width, border.dashes)
    if border.style in _SHADES and not is_round and min(area.width, area.height) > 4 * width:
        _shade(canvas, area, width, _SHADES[border.style])
        return 2 * width
    return width


def _shade(canvas: Canvas, area: Rectangle, width: float, shades: Sequence[Color]) -> None:
    """Draw the edges as wide again, inside of the border."""
    left, bottom, right, top = (area.left + width, area.bottom + width, area.right - width, area.top - width)
    inner = Rectangle(left + width, bottom + width, right - width, top - width)
    for corner, inner_corner, color in (
        ((left, top), (inner.left, inner.top), shades[0]),
        ((right, bottom), (inner.right, inner.bottom), shades[1]),
    ):
        start, end = (left, bottom), (right, top)
        inner_start, inner_end = (inner.left, inner.bottom), (inner.right, inner.top)
        canvas.polygon([start, corner, end, inner_end, inner_corner, inner_start], color)
