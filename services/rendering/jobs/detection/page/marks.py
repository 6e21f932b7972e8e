"""What is on a page, as far as fields are looked for by it. Pure.

All places are upright points (``jobs.pdf.geometry``): the visible page as the reader sees it, from its lower left corner, y up.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from services.rendering.jobs.pdf.geometry import Rectangle


class Letter(NamedTuple):
    """A character: ``box`` is as wide as it moves on and as high as its font; ``is_symbol``: its font is one of signs
    (Wingdings, Dingbats), in which letters are boxes and ticks."""

    text: str
    box: Rectangle
    is_symbol: bool = False


class Rule(NamedTuple):
    """A straight line: from ``start`` to ``end`` along it, at ``at`` across it. A level one runs along x and is at y."""

    start: float
    end: float
    at: float

    @property
    def length(self) -> float:
        return self.end - self.start


class Fill(NamedTuple):
    """A rectangle that is painted; ``lightness`` from 0 (black) to 1 (white)."""

    box: Rectangle
    lightness: float


@dataclass(frozen=True)
class PageMarks:
    """A page: ``level`` and ``upright`` rules are merged and sorted; ``rounds`` are small circles; ``tinted`` are areas in a
    light colour, such as those that designers make of fields; ``dark`` are those that are shaded."""

    width: float
    height: float
    letters: list[Letter] = field(default_factory=list)
    level: list[Rule] = field(default_factory=list)
    upright: list[Rule] = field(default_factory=list)
    rounds: list[Rectangle] = field(default_factory=list)
    tinted: list[Rectangle] = field(default_factory=list)
    dark: list[Rectangle] = field(default_factory=list)


def around(boxes: Iterable[Rectangle]) -> Rectangle:
    """Return the smallest rectangle around all of them; there is one at least."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return Rectangle(min(lefts), min(bottoms), max(rights), max(tops))


def shared(stretch: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the length that two stretches have in common; below 0 it is the gap between them."""
    return min(stretch[1], other[1]) - max(stretch[0], other[0])


def overlap(rectangle: Rectangle, other: Rectangle) -> float:
    """Return the area that two rectangles have in common."""
    across = shared((rectangle.left, rectangle.right), (other.left, other.right))
    up = shared((rectangle.bottom, rectangle.top), (other.bottom, other.top))
    return across * up if across > 0 and up > 0 else 0.0


def area_of(box: Rectangle) -> float:
    """Return its area in square points."""
    return max(box.width, 0.0) * max(box.height, 0.0)
