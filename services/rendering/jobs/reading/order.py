"""In which order the blocks of a page are read.

The order in which they were drawn, or that of the tags, is taken when an eye could follow it: never back up in the same column.
Else, as with programs that draw the footer first and with senders who mix sentences up, by where the blocks stand: from top to
bottom, columns one after the other.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from services.rendering.jobs.pdf.geometry import Rectangle

T = TypeVar("T")

_OVERLAP = 0.3
"""Share of the narrower of two blocks by which they are above one another."""

_COLUMN = 0.2
"""Share of the width of the page that a column of text has at least; cells of tables are narrower."""

_DEEPEST = 40


def is_followed(boxes: Sequence[Rectangle]) -> bool:
    """Return whether no block stands above one that is read before it."""
    return not any(
        _is_above(after, before) for number, after in enumerate(boxes) for before in boxes[max(0, number - 40) : number]
    )


def _is_above(box: Rectangle, other: Rectangle) -> bool:
    shared = min(box.right, other.right) - max(box.left, other.left)
    tolerance = 0.5 * min(box.height, other.height)
    return shared > _OVERLAP * min(box.width, other.width) and box.bottom > other.top - tolerance


def in_place(items: Sequence[T], box_of: Callable[[T], Rectangle], width: float) -> list[T]:
    """By where they stand; ``width`` of the page."""
    boxed = [(box_of(item), item) for item in items]
    return [item for _, item in _cut(boxed, width, 0)]


def _cut(items: list[tuple[Rectangle, T]], width: float, depth: int) -> list[tuple[Rectangle, T]]:
    if len(items) > 1 and depth < _DEEPEST:
        columns = _divided(items, 0)
        if len(columns) > 1 and all(_extent(column, 0) >= _COLUMN * width for column in columns):
            return [item for column in columns for item in _cut(column, width, depth + 1)]
        above, below = _at_widest_gap(items)
        if below:
            return _cut(above, width, depth + 1) + _cut(below, width, depth + 1)
    return sorted(items, key=lambda item: (-round(item[0].top), item[0].left))


def _divided(items: list[tuple[Rectangle, T]], axis: int) -> list[list[tuple[Rectangle, T]]]:
    """From left to right: what no vertical line divides stays together."""
    groups: list[list[tuple[Rectangle, T]]] = []
    end = float("-inf")
    for item in sorted(items, key=lambda item: item[0][axis]):
        if item[0][axis] >= end:
            groups.append([])
        groups[-1].append(item)
        end = max(end, item[0][axis + 2])
    return groups


def _extent(items: list[tuple[Rectangle, T]], axis: int) -> float:
    return max(box[axis + 2] for box, _ in items) - min(box[axis] for box, _ in items)


def _at_widest_gap(
    items: list[tuple[Rectangle, T]],
) -> tuple[list[tuple[Rectangle, T]], list[tuple[Rectangle, T]]]:
    """Return what is above and below the widest gap that runs through; nothing below when there is none."""
    rows = list(reversed(_divided(items, 1)))
    if len(rows) < 2:
        return items, []
    gaps = [min(box.bottom for box, _ in above) - max(box.top for box, _ in below) for above, below in pairwise(rows)]
    widest = gaps.index(max(gaps)) + 1
    return [item for row in rows[:widest] for item in row], [item for row in rows[widest:] for item in row]
