"""Find a free place for a box on a page. Pure.

All lengths are points of the visible page, upright, from its lower left corner. A rectangle is (left, bottom, right, top).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

Rectangle = tuple[float, float, float, float]

_ROUNDING = 0.01
_INSETS = (18.0, 6.0, 0.0)
"""How far from the page's edges a box is tried: most printers leave out a quarter of an inch."""
_MARGIN = 0.2
"""What of a page counts as its bottom margin."""


def at(corner: tuple[float, float], size: tuple[float, float]) -> Rectangle:
    """The box of that size with that lower left corner."""
    return corner[0], corner[1], corner[0] + size[0], corner[1] + size[1]


def overlap(one: Rectangle, other: Rectangle) -> bool:
    """Return whether they share more than an edge."""
    return (
        min(one[2], other[2]) - max(one[0], other[0]) > _ROUNDING
        and min(one[3], other[3]) - max(one[1], other[1]) > _ROUNDING
    )


def is_within(box: Rectangle, page: tuple[float, float]) -> bool:
    """Return whether all of the box is on a page of that width and height."""
    left, bottom, right, top = box
    return left >= -_ROUNDING and bottom >= -_ROUNDING and right <= page[0] + _ROUNDING and top <= page[1] + _ROUNDING


def centred(anchor: Rectangle, size: tuple[float, float], page: tuple[float, float]) -> Rectangle:
    """The box in the middle of ``anchor``, moved as far as is needed to be on the page, which is large enough for it."""
    x = (anchor[0] + anchor[2] - size[0]) / 2
    y = (anchor[1] + anchor[3] - size[1]) / 2
    return at((min(max(x, 0.0), page[0] - size[0]), min(max(y, 0.0), page[1] - size[1])), size)


class Cells:
    """What is taken of a page, in cells of equal size. A row is a number whose lowest bit is its leftmost cell; the first row
    is the lowest one."""

    def __init__(self, page: tuple[float, float], rows: Sequence[int], columns: int) -> None:
        self._page, self._rows, self._columns = page, list(rows), columns
        self._wide, self._high = page[0] / columns, page[1] / len(rows)

    @classmethod
    def blank(cls, page: tuple[float, float], most: int = 400) -> "Cells":
        """Nothing is taken; ``most`` cells along the longer side, none below two points."""
        across, up = (max(1, min(round(side / 2), round(most * side / max(page)))) for side in page)
        return cls(page, [0] * up, across)

    def take(self, rectangles: Iterable[Rectangle]) -> "Cells":
        """The same page where these rectangles are taken, too."""
        rows = list(self._rows)
        for left, bottom, right, top in rectangles:
            first, last = self._between(left, right, self._wide, self._columns)
            mask = (1 << max(last - first, 0)) - 1 << first
            for row in range(*self._between(bottom, top, self._high, len(rows))):
                rows[row] |= mask
        return Cells(self._page, rows, self._columns)

    @staticmethod
    def _between(low: float, high: float, step: float, count: int) -> tuple[int, int]:
        """The cells that a stretch touches: the first, and the one behind the last."""
        return max(math.floor(low / step + 1e-6), 0), min(math.ceil(high / step - 1e-6), count)

    def free(self, size: tuple[float, float], inset: float = 0.0) -> Iterator[tuple[float, float]]:
        """The lower left corners of free places for a box that stays ``inset`` points off the page's edges: from the bottom
        up, in each row from the right to the left."""
        wide, high = math.ceil(size[0] / self._wide - 1e-6), math.ceil(size[1] / self._high - 1e-6)
        first, last = (math.ceil(edge - 1e-6) for edge in (inset / self._wide, inset / self._high))
        for row in range(last, len(self._rows) - high - last + 1):
            occupied = reduce(or_, self._rows[row : row + high])
            reaching = reduce(or_, (occupied >> shift for shift in range(wide)), 0)
            for column in range(self._columns - wide - first, first - 1, -1):
                if not reaching >> column & 1:
                    yield column * self._wide, row * self._high

    def taken_in(self, box: Rectangle) -> int:
        """Return how many cells of the box are taken."""
        first, last = self._between(box[0], box[2], self._wide, self._columns)
        mask = (1 << max(last - first, 0)) - 1 << first
        rows = range(*self._between(box[1], box[3], self._high, len(self._rows)))
        return sum((self._rows[row] & mask).bit_count() for row in rows)


def near(cells: Cells, size: tuple[float, float], target: Rectangle) -> Rectangle | None:
    """The free place whose distance from the wished one is smallest; None when nothing is free."""
    places = cells.free(size)
    nearest = min(places, key=lambda place: math.hypot(place[0] - target[0], place[1] - target[1]), default=None)
    return nearest and at(nearest, size)


def lowest(cells: Cells, size: tuple[float, float], page: tuple[float, float]) -> Rectangle | None:
    """A free place in the bottom margin, off the page's edges where there is room; else the lowest free one anywhere. None when
    nothing is free."""
    corners = [corner for inset in _INSETS if (corner := next(cells.free(size, inset), None)) is not None]
    margin = max(_MARGIN * page[1], _INSETS[0] + size[1])
    corner = next((corner for corner in corners if corner[1] + size[1] <= margin), corners[0] if corners else None)
    return corner and at(corner, size)


def least_covering(free: Cells, drawn: Cells, size: tuple[float, float]) -> Rectangle | None:
    """The place that is free in the first and takes as little as can be from the second; the lowest of several. None when
    nothing is free."""
    best = min(free.free(size), key=lambda corner: drawn.taken_in(at(corner, size)), default=None)
    return best and at(best, size)
