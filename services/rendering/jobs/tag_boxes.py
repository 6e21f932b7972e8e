"""How large a field is that was placed by a text tag, when the tag does not say so.

A text field is as wide as the tag and as high as its line. A signature, a picture or a stamp needs more height than a line
of text has: it grows upwards, where signatures go, into free space only.
"""

from collections.abc import Sequence

from contracts.types import FieldType
from services.rendering.jobs.geometry import Rectangle, VisiblePage, clip
from services.rendering.jobs.pdfium_text import Box
from services.rendering.jobs.tag_grammar import ParsedTag

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
_GAP = 1.0
"""Points kept free towards a neighbour."""


def field_box(
    parsed: ParsedTag,
    line: Rectangle,
    visible: VisiblePage,
    *,
    texts: Sequence[Box] = (),
    drawn: Sequence[Box] = (),
) -> Rectangle | None:
    """Where the field goes, in upright points; None when the tag is not on the visible page.

    ``line`` is the box of the tag's text. Lines of text and other fields (``texts``) and lines, frames and pictures
    (``drawn``) are not covered.
    """
    if clip(line, visible) is None:
        return None
    tag = parsed.tag
    pixel = visible.width / TAG_PIXELS
    width = parsed.width * pixel if parsed.width else line.width
    height = parsed.height * pixel if parsed.height else line.height
    box = Rectangle(line.left, line.top - height, line.left + width, line.top)
    if not parsed.height and tag.type in _WANTED_HEIGHT:
        wanted = _WANTED_HEIGHT[tag.type] * visible.height
        box = _grow(box, wanted, wanted, _free_space(box, texts, drawn, visible))
    elif not parsed.width and not parsed.height and _is_mark(parsed):
        side = max(line.height, _SMALLEST_MARK)
        middle = (line.top + line.bottom) / 2
        box = Rectangle(line.left, middle - side / 2, line.left + side, middle + side / 2)
    elif not parsed.height and line.width > line.height:
        # The glyphs' own height leaves no leading: a value in the same font size would be shrunk to fit.
        upwards = (1 + _LEADING / 2) * line.height
        box = _grow(box, upwards, (1 + _LEADING) * line.height, _free_space(box, texts, drawn, visible))
    return clip(box, visible)


def _is_mark(parsed: ParsedTag) -> bool:
    """A check mark is square, and stands where the tag began."""
    return parsed.tag.type == FieldType.CHECKBOX or parsed.option is not None


def _free_space(
    box: Rectangle, texts: Sequence[Box], drawn: Sequence[Box], visible: VisiblePage
) -> tuple[float, float]:
    """Lowest and highest y that the box can reach without covering anything."""
    floor, ceiling = 0.0, visible.height
    box_left, box_bottom, box_right, box_top = box
    middle = (box_bottom + box_top) / 2
    for left, bottom, right, top in (*texts, *drawn):
        if right <= box_left or left >= box_right:
            continue
        if middle <= bottom < ceiling + _GAP:
            ceiling = bottom - _GAP
        elif floor - _GAP < top <= middle:
            floor = top + _GAP
    for left, bottom, right, top in drawn:
        if left <= box_left and right >= box_right and bottom < middle < top:
            floor, ceiling = max(floor, bottom + _GAP), min(ceiling, top - _GAP)
    return floor, ceiling


def _grow(box: Rectangle, upwards: float, in_all: float, free: tuple[float, float]) -> Rectangle:
    """To a height of ``upwards`` by moving the top, then to ``in_all`` by moving the bottom, within the free space."""
    floor, ceiling = free
    top = max(box.top, min(ceiling, box.bottom + upwards))
    bottom = min(box.bottom, max(floor, top - in_all))
    return Rectangle(box.left, bottom, box.right, top)
