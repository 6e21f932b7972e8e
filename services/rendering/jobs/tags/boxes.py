"""How large a field is that was placed by a text tag, when the tag does not say so.

A text field is as wide as the tag and as high as its line. A signature, a picture or a stamp needs more height than a line
of text has: it grows upwards, where signatures go, into free space only.
"""

from collections.abc import Sequence
from functools import cached_property

from contracts.types import FieldType
from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage, clip
from services.rendering.jobs.pdf.pdfium_text import Box, PageText
from services.rendering.jobs.tags.grammar import ParsedTag

TAG_PIXELS = 1400
"""``width`` and ``height`` of a tag count pixels of a page picture of this width (peer facts 3.1)."""

_WANTED_HEIGHT = {
    FieldType.SIGNATURE: 0.06,
    FieldType.INITIALS: 0.045,
    FieldType.IMAGE: 0.1,
    FieldType.STAMP: 0.1,
}
"""Fraction of the page's height."""

_SMALLEST_MARK = 9.0
_LEADING = 0.3
_LITTLE = 2.0
"""Points that are not worth looking for lines and frames."""
_GAP = 1.0
"""Points kept free towards a neighbour."""


class Neighbours:
    """What a field must not cover, in upright points: text, fields that have their place, and lines, frames and pictures.
    Only looked for when a field wants more room than its tag has: on most pages of a contract, none does."""

    def __init__(self, page: PageText, visible: VisiblePage) -> None:
        self._page = page
        self._visible = visible
        self._fields: list[Box] = []

    def add_field(self, box: Rectangle) -> None:
        self._fields.append(box)

    @property
    def texts(self) -> Sequence[Box]:
        return [*self._page_texts, *self._fields]

    @cached_property
    def drawn(self) -> Sequence[Box]:
        return self._upright(self._page.drawn_boxes())

    @cached_property
    def _page_texts(self) -> Sequence[Box]:
        return self._upright(self._page.all_boxes())

    def _upright(self, boxes: Sequence[Box]) -> Sequence[Box]:
        visible = self._visible
        if visible.rotation == 0 and visible.user_unit == 1 and visible.box[:2] == (0, 0):
            return boxes
        return [visible.from_default_space(Rectangle(*box)) for box in boxes]


def field_box(
    parsed: ParsedTag, lines: Sequence[Rectangle], visible: VisiblePage, neighbours: Neighbours
) -> Rectangle | None:
    """Return where the field goes, in upright points; None when the tag is not on the visible page. ``lines`` are the boxes of
    the tag's text: one that is broken over lines is where most of it is, one that runs up or down the page is all of it."""
    tag = parsed.tag
    line = _column(lines) or max(lines, key=lambda line_: line_.width)
    pixel = visible.width / TAG_PIXELS
    width = parsed.width * pixel if parsed.width else line.width
    height = parsed.height * pixel if parsed.height else line.height
    box = Rectangle(line.left, line.top - height, line.left + width, line.top)
    if not parsed.height and tag.type in _WANTED_HEIGHT:
        box = _grow(box, _WANTED_HEIGHT[tag.type] * visible.height, visible, neighbours, own_lines=lines)
    elif not parsed.width and not parsed.height and _is_mark(parsed):
        side = max(line.height, _SMALLEST_MARK)
        middle = (line.top + line.bottom) / 2
        box = Rectangle(line.left, middle - side / 2, line.left + side, middle + side / 2)
    elif not parsed.height and line.width > line.height:
        # The glyphs' own height leaves no leading: a value in the same font size would be shrunk to fit.
        more = _LEADING / 2 * line.height
        box = Rectangle(box.left, box.bottom - more, box.right, box.top + more)
    return clip(box, visible)


def _column(lines: Sequence[Rectangle]) -> Rectangle | None:
    """All of a tag whose letters stand one below the other, each in a box of its own: vertical and turned text."""
    left, right = min(line.left for line in lines), max(line.right for line in lines)
    bottom, top = min(line.bottom for line in lines), max(line.top for line in lines)
    widest = max(line.width for line in lines)
    if len(lines) > 2 and right - left < 2 * widest < top - bottom:
        return Rectangle(left, bottom, right, top)
    return None


def _is_mark(parsed: ParsedTag) -> bool:
    """A check mark is square, and stands where the tag began."""
    return parsed.tag.type == FieldType.CHECKBOX or parsed.option is not None


def _grow(
    box: Rectangle, height: float, visible: VisiblePage, neighbours: Neighbours, own_lines: Sequence[Rectangle]
) -> Rectangle:
    """To a height of ``height``: upwards as far as there is room, then downwards. The tag's ``own_lines`` lines are room."""
    texts = neighbours.texts
    if len(own_lines) > 1:
        texts = [other for other in texts if not any(_is_inside(other, line) for line in own_lines)]
    floor, ceiling = _free_space(box, texts, (0.0, visible.height))
    if ceiling > box.top + _LITTLE or floor < box.bottom - _LITTLE:
        floor, ceiling = _free_space(box, neighbours.drawn, (floor, ceiling))
        floor, ceiling = _inside_frames(box, neighbours.drawn, (floor, ceiling))
    top = max(box.top, min(ceiling, box.bottom + height))
    bottom = min(box.bottom, max(floor, top - height))
    return Rectangle(box.left, bottom, box.right, top)


def _is_inside(box: Box, line: Rectangle) -> bool:
    left, bottom, right, top = box
    return (
        left >= line.left - _GAP
        and right <= line.right + _GAP
        and bottom >= line.bottom - _GAP
        and top <= line.top + _GAP
    )


def _free_space(box: Rectangle, obstacles: Sequence[Box], free: tuple[float, float]) -> tuple[float, float]:
    """Lowest and highest y within ``free`` that the box can reach without covering any of the others."""
    floor, ceiling = free
    box_left, box_bottom, box_right, box_top = box
    middle = (box_bottom + box_top) / 2
    for left, bottom, right, top in obstacles:
        if right <= box_left or left >= box_right:
            continue
        if middle <= bottom < ceiling + _GAP:
            ceiling = bottom - _GAP
        elif floor - _GAP < top <= middle:
            floor = top + _GAP
    return floor, ceiling


def _inside_frames(box: Rectangle, drawn: Sequence[Box], free: tuple[float, float]) -> tuple[float, float]:
    floor, ceiling = free
    middle = (box.bottom + box.top) / 2
    for left, bottom, right, top in drawn:
        if left <= box.left and right >= box.right and bottom < middle < top:
            floor, ceiling = max(floor, bottom + _GAP), min(ceiling, top - _GAP)
    return floor, ceiling
