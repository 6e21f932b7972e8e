"""The lines of a page as they are seen, column by column, whatever the order in which they were drawn.

Pages are often drawn row by row, through columns and the cells of a table. A tag that is broken over lines goes on below,
not in the next column.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage
from services.rendering.jobs.tags.reading_order import ReadText

_GAP = 1.2
"""Line heights between two stretches of a line that belong to different columns or cells."""

_FARTHEST_LINE = 2.5
"""Line heights to the next line of a paragraph."""

_MOST_LINES = 40


@dataclass
class _Stretch:
    """A piece of a line without gaps; ``start`` and ``end`` are positions in the page's text."""

    start: int
    end: int
    box: Rectangle

    def is_on_line_of(self, box: Rectangle) -> bool:
        shared = min(self.box.top, box.top) - max(self.box.bottom, box.bottom)
        return shared > 0.5 * min(self.box.height, box.height)


class Columns:
    """Boxes are in upright points. Slow: only for pages where a tag is broken over lines."""

    def __init__(self, text: ReadText, visible: VisiblePage) -> None:
        self._stretches: list[_Stretch] = []
        for position, character in enumerate(text.text):
            if character.isspace():
                continue
            index = text.character_index(position)
            box = text.glyph_box(index)
            if box is not None and not text.is_generated(index):
                self._add(position, visible.from_default_space(box))
        self._from_below = sorted(self._stretches, key=_top)

    def _add(self, position: int, box: Rectangle) -> None:
        last = self._stretches[-1] if self._stretches else None
        if last is not None and last.is_on_line_of(box):
            gap = box.left - last.box.right
            if -last.box.height < gap < _GAP * max(box.height, 1.0):
                last.end, last.box = position + 1, _around(last.box, box)
                return
        self._stretches.append(_Stretch(position, position + 1, box))

    def leaves_column(self, start: int, end: int) -> bool:
        """Return whether the text from ``start`` to ``end`` jumps over a gap within a line."""
        passed = self._stretches[self._index(start) : self._index(end - 1) + 1]
        return any(
            stretch.is_on_line_of(other.box)
            for index, stretch in enumerate(passed)
            for other in passed[index + 1 : index + 3]
        )

    def below(self, start: int) -> Iterator[tuple[int, int]]:
        """From ``start`` to the end of its stretch, then each line below it in the same column, as positions."""
        if not self._stretches:
            return
        current: _Stretch | None = self._stretches[self._index(start)]
        if current is None or not current.start <= start < current.end:
            return
        yield start, current.end
        column = current.box
        for _ in range(_MOST_LINES):
            current = self._next_line(current, column)
            if current is None:
                return
            column = _around(column, current.box)
            yield current.start, current.end

    def _index(self, position: int) -> int:
        """Of the last stretch that begins there or before it."""
        return max(bisect_right(self._stretches, position, key=lambda stretch: stretch.start) - 1, 0)

    def _next_line(self, line: _Stretch, column: Rectangle) -> _Stretch | None:
        middle = (line.box.top + line.box.bottom) / 2
        lowest = line.box.bottom - _FARTHEST_LINE * line.box.height
        begin = bisect_right(self._from_below, lowest, key=_top)
        end = bisect_left(self._from_below, middle + 0.5 * line.box.height, key=_top)
        candidates = [
            other
            for other in self._from_below[begin:end]
            if (other.box.top + other.box.bottom) / 2 < middle
            and not other.is_on_line_of(line.box)
            and min(other.box.right, column.right) > max(other.box.left, column.left)
        ]
        return max(candidates, key=lambda stretch: (round(stretch.box.top), -stretch.box.left), default=None)


def _top(stretch: _Stretch) -> float:
    return stretch.box.top


def _around(rectangle: Rectangle, other: Rectangle) -> Rectangle:
    return Rectangle(
        min(rectangle.left, other.left),
        min(rectangle.bottom, other.bottom),
        max(rectangle.right, other.right),
        max(rectangle.top, other.top),
    )
