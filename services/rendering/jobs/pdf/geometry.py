"""Page geometry, in one place: what part of a page is seen, how large it is, and where a field's area lies on it.

Three coordinate systems occur:

- *default user space* (ISO 32000-2, 8.3.2.3): what content streams, annotations and pdfium's text boxes use. Its origin
  may lie outside the page, it knows nothing of ``/Rotate``, and its unit is ``/UserUnit`` / 72 inch;
- *upright points*: the visible page as the reader sees it, origin at its **bottom left**, x to the right, y up, unit
  1/72 inch. ``VisiblePage.matrix`` leads from here to default user space, so content that was made for upright points
  is placed with ``q <matrix> cm ... Q``;
- *areas* (``contracts.types.Area``): fractions of the visible page, origin at its **top left**, y down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pikepdf

from contracts.types import Area

LETTER = (0.0, 0.0, 612.0, 792.0)
"""What pdfium and poppler take for a page without a usable MediaBox."""

_DEEPEST_PAGE_TREE = 64


class Matrix(NamedTuple):
    """``x' = a x + c y + e``, ``y' = b x + d y + f`` (ISO 32000-2, 8.3.3): the six operands of ``cm``."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def apply(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def after(self, first: Matrix) -> Matrix:
        """The matrix that does ``first`` and then this one."""
        return Matrix(
            self.a * first.a + self.c * first.b,
            self.b * first.a + self.d * first.b,
            self.a * first.c + self.c * first.d,
            self.b * first.c + self.d * first.d,
            self.a * first.e + self.c * first.f + self.e,
            self.b * first.e + self.d * first.f + self.f,
        )

    def inverse(self) -> Matrix:
        """Raises ZeroDivisionError when the matrix flattens the plane."""
        det = self.a * self.d - self.b * self.c
        a, b, c, d = self.d / det, -self.b / det, -self.c / det, self.a / det
        return Matrix(a, b, c, d, -(a * self.e + c * self.f), -(b * self.e + d * self.f))

    def bounds(self, rectangle: Rectangle) -> Rectangle:
        """The smallest upright rectangle around the image of ``rectangle``."""
        left, bottom, right, top = rectangle
        corners = [self.apply(x, y) for x in (left, right) for y in (bottom, top)]
        xs, ys = zip(*corners, strict=True)
        return Rectangle(min(xs), min(ys), max(xs), max(ys))


class Rectangle(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.top - self.bottom


@dataclass(frozen=True)
class VisiblePage:
    """``width`` and ``height`` in points as the reader sees them; ``box`` is the visible part in default user space;
    ``rotation`` is 0, 90, 180 or 270 degrees clockwise; ``matrix`` leads from upright points to default user space."""

    width: float
    height: float
    matrix: Matrix
    box: Rectangle
    rotation: int
    user_unit: float

    def to_default_space(self, rectangle: Rectangle) -> Rectangle:
        """From upright points; for example the ``/Rect`` of an annotation."""
        if self.rotation == 0 and self.user_unit == 1:
            x, y = self.matrix.e, self.matrix.f
            return Rectangle(rectangle[0] + x, rectangle[1] + y, rectangle[2] + x, rectangle[3] + y)
        return self.matrix.bounds(rectangle)

    def from_default_space(self, rectangle: Rectangle) -> Rectangle:
        """To upright points."""
        if self.rotation == 0 and self.user_unit == 1:
            x, y = self.box.left, self.box.bottom
            return Rectangle(rectangle[0] - x, rectangle[1] - y, rectangle[2] - x, rectangle[3] - y)
        return self.matrix.inverse().bounds(rectangle)


def upright_page(width: float, height: float) -> VisiblePage:
    """A page of that size in points whose default user space is upright points."""
    return VisiblePage(width, height, Matrix(1, 0, 0, 1, 0, 0), Rectangle(0, 0, width, height), 0, 1.0)


def visible_page(page: pikepdf.Page) -> VisiblePage:
    """Return whatever the page says of itself, reduced to what every reader shows; never raises on a page's own values.

    The visible part is the crop box within the media box; when they do not meet, or a box is unusable, the media box,
    and without one US Letter. ``/Rotate`` is taken as pdfium takes it (whole quarter turns, towards zero), because
    previews are drawn by pdfium: ``prepare`` writes it back as 0, 90, 180 or 270, so that other readers agree.
    """
    inherited = _inherited(page.obj)
    media = as_rectangle(inherited.get("/MediaBox")) or Rectangle(*LETTER)
    box = _intersection(media, as_rectangle(inherited.get("/CropBox")) or media) or media
    unit = _number(page.obj.get("/UserUnit"))
    unit = unit if unit is not None and unit > 0 else 1.0
    rotation = _quarter_turns(inherited.get("/Rotate")) * 90
    width, height = box.width * unit, box.height * unit
    if rotation % 180:
        width, height = height, width
    return VisiblePage(width, height, _matrix(box, rotation, unit), box, rotation, unit)


def area_to_rectangle(area: Area, visible: VisiblePage) -> Rectangle:
    """The area in upright points (origin bottom left)."""
    left = area.x * visible.width
    top = (1 - area.y) * visible.height
    return Rectangle(left, top - area.h * visible.height, left + area.w * visible.width, top)


def rectangle_to_area(rectangle: Rectangle, visible: VisiblePage, *, page: int) -> Area:
    """The inverse of ``area_to_rectangle``: upright points to fractions of the visible page; ``page`` from 1."""
    return Area(
        x=rectangle.left / visible.width,
        y=1 - rectangle.top / visible.height,
        w=rectangle.width / visible.width,
        h=rectangle.height / visible.height,
        page=page,
    )


def clip(rectangle: Rectangle, visible: VisiblePage) -> Rectangle | None:
    """The part that lies on the page (upright points), or None."""
    return _intersection(rectangle, Rectangle(0, 0, visible.width, visible.height))


def media_box(page: pikepdf.Page) -> Rectangle:
    """All of the page, in default user space; US Letter when it does not say."""
    return as_rectangle(_inherited(page.obj).get("/MediaBox")) or Rectangle(*LETTER)


def has_unusable_media_box(page: pikepdf.Page) -> bool:
    """A MediaBox is there, but it is no rectangle or encloses nothing."""
    inherited = _inherited(page.obj)
    return "/MediaBox" in inherited and as_rectangle(inherited["/MediaBox"]) is None


def state_plainly(page: pikepdf.Page, visible: VisiblePage) -> None:
    """Replaces values that readers would have to guess about, each in its own way, by what ``visible`` has."""
    inherited = _inherited(page.obj)
    if inherited.get("/Rotate", 0) not in (0, 90, 180, 270):
        page.obj["/Rotate"] = visible.rotation
    if "/UserUnit" in page.obj and _number(page.obj["/UserUnit"]) != visible.user_unit:
        del page.obj["/UserUnit"]
    corners = pikepdf.Array([Decimal(number).quantize(Decimal("0.000001")) for number in visible.box])
    media = as_rectangle(inherited.get("/MediaBox"))
    if media is None:
        page.obj["/MediaBox"] = corners
    if "/CropBox" in inherited and as_rectangle(inherited["/CropBox"]) != visible.box:
        page.obj["/CropBox"] = corners  # of one that reaches beyond the media box poppler shows another part


def _matrix(box: Rectangle, rotation: int, unit: float) -> Matrix:
    """``/Rotate`` turns the page clockwise, so the way back to default user space turns counter-clockwise."""
    scale = 1 / unit
    match rotation:
        case 90:
            return Matrix(0, scale, -scale, 0, box.right, box.bottom)
        case 180:
            return Matrix(-scale, 0, 0, -scale, box.right, box.top)
        case 270:
            return Matrix(0, -scale, scale, 0, box.left, box.top)
        case _:
            return Matrix(scale, 0, 0, scale, box.left, box.bottom)


def _inherited(page: pikepdf.Dictionary) -> dict[str, Any]:
    """MediaBox, CropBox and Rotate, from the page or the nearest ancestor that has them (ISO 32000-2, 7.7.3.4)."""
    attributes: dict[str, Any] = {}
    for node in _with_ancestors(page):
        for key in ("/MediaBox", "/CropBox", "/Rotate"):
            if key not in attributes and key in node:
                attributes[key] = node[key]
    return attributes


def _with_ancestors(node: Any) -> Iterator[pikepdf.Dictionary]:
    """The page tree of a hostile file may be a ring, hence the limit."""
    for _ in range(_DEEPEST_PAGE_TREE):
        if not isinstance(node, pikepdf.Dictionary):
            return
        yield node
        node = node.get("/Parent")


def as_rectangle(value: Any) -> Rectangle | None:
    """Two opposite corners in any order (ISO 32000-2, 7.9.5); None when it is no rectangle or encloses nothing."""
    if not isinstance(value, pikepdf.Array) or len(value) < 4:
        return None
    numbers = [_number(value[i]) for i in range(4)]
    if any(number is None for number in numbers):
        return None
    x0, y0, x1, y1 = (number for number in numbers if number is not None)
    box = Rectangle(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    return box if box.width > 0 and box.height > 0 else None


def _intersection(box: Rectangle, other: Rectangle) -> Rectangle | None:
    both = Rectangle(
        max(box.left, other.left), max(box.bottom, other.bottom), min(box.right, other.right), min(box.top, other.top)
    )
    return both if both.width > 0 and both.height > 0 else None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        return None
    return number if math.isfinite(number) else None


def _quarter_turns(value: Any) -> int:
    number = _number(value)
    return math.trunc(number / 90) % 4 if number is not None else 0
