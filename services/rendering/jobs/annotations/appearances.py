"""Appearances for annotations that have none (ISO 32000-2, 12.5.6).

Such an annotation says only what it is: text that is struck out, a line from here to there. Each reader draws it in its own
way, and flattening has nothing to put onto the page: a clause that was struck out would be in force again. What is drawn
here is the plainest form of what Acrobat, pdfium and poppler show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream

from contracts.types import Notice
from services.rendering.jobs.annotations.borders import Border, border_of
from services.rendering.jobs.annotations.default_appearance import default_appearance
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.paths import ellipse, numbers
from services.rendering.jobs.pdf.values import items_of, name_of, number_of, rgb_of, text_of, whole_of
from services.rendering.jobs.text.embedding import FontEmbedder
from services.rendering.jobs.text.layout import BLACK, Color, Style, draw, layout, legible

_UNSEEN = 1 << 1 | 1 << 5
"""Hidden, and not on the screen (table 167)."""
_MOST_POINTS = 100_000
_FARTHEST = 1_000_000.0
_YELLOW: Color = (1.0, 1.0, 0.0)
_STAMP_RED: Color = (0.7, 0.1, 0.1)

Point = tuple[float, float]
Draw = Callable[["_Drawing"], None]


def draw_missing_appearances(pdf: pikepdf.Pdf, *, document: str | None = None) -> list[Notice]:
    """Give each visible annotation that has none an appearance; a notice for each page with such annotations. Form fields
    and links are not looked at."""
    drawing = _Tools(pdf)
    report = []
    for number, page in enumerate(pdf.pages, 1):
        drawn: Counter[str] = Counter()
        for annotation in items_of(page.obj.get("/Annots")):
            if isinstance(annotation, pikepdf.Dictionary) and is_without_appearance(annotation):
                kind = name_of(annotation.get("/Subtype"))
                if _Drawing(drawing, annotation).finish(_KINDS[kind]):
                    drawn[kind[1:]] += 1
        if drawn:
            kinds = ", ".join(f"{kind} ({count:,})" if count > 1 else kind for kind, count in sorted(drawn.items()))
            message = f"Annotations that say only what they are were drawn as such: {kinds}."
            report.append(Notice(code="annotation_drawn", message=message, document=document, page=number))
    drawing.finish()
    return report


def is_without_appearance(annotation: pikepdf.Dictionary) -> bool:
    """It is to be seen on the page, and only its kind says how."""
    kind = name_of(annotation.get("/Subtype"))
    if kind not in _KINDS or whole_of(annotation.get("/F")) & _UNSEEN:
        return False
    if kind == "/Text" and "/IRT" in annotation:  # an answer to another note, or its state: seen in a list only
        return False
    appearances = annotation.get("/AP")
    return not isinstance(appearances, pikepdf.Dictionary) or "/N" not in appearances


class _Tools:
    """What the annotations of a document share. Fonts are made when the first one needs them."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        self.pdf = pdf

    @cached_property
    def fonts(self) -> FontEmbedder:
        return FontEmbedder(self.pdf)

    def finish(self) -> None:
        if "fonts" in vars(self):
            self.fonts.finish()


class _Drawing:
    """Draws one annotation, in default user space."""

    def __init__(self, tools: _Tools, annotation: pikepdf.Dictionary) -> None:
        self.tools, self.annotation = tools, annotation
        self.operators: list[bytes] = []
        self.points: list[Point] = []
        self.blend: Name | None = None
        self.uses_text = False

    def finish(self, draw_kind: Draw) -> bool:
        """Draw, and make that the annotation's appearance; False when there is nothing to be seen."""
        draw_kind(self)
        if not self.points:
            return False
        margin = self.width * 5 + 1  # a mitred corner, the end of a line
        xs, ys = zip(*self.points, strict=True)
        box = Array(
            [round(value, 3) for value in (min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin)]
        )
        state = Dictionary(CA=self.opacity, ca=self.opacity)
        if self.blend is not None:
            state.BM = self.blend
        form = Stream(self.tools.pdf, b"/State gs\n" + b"\n".join(self.operators))
        resources = Dictionary(ExtGState=Dictionary(State=state))
        if self.uses_text:
            resources.Font = self.tools.fonts.resources
        form.stream_dict.update(Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=box, Resources=resources))
        self.annotation.AP = Dictionary(N=self.tools.pdf.make_indirect(form))
        self.annotation.Rect = box  # the same as /BBox: nothing is moved or scaled
        return True

    # What the annotation says

    @cached_property
    def rectangle(self) -> Rectangle:
        points = _points(self.annotation.get("/Rect"))
        if len(points) != 2:
            return Rectangle(0, 0, 0, 0)
        (x0, y0), (x1, y1) = points
        return Rectangle(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))

    @cached_property
    def inner(self) -> Rectangle:
        """The rectangle without its margins (/RD) and half of the border."""
        left, bottom, right, top = self.rectangle
        margins = [max(number_of(margin), 0) for margin in items_of(self.annotation.get("/RD"))] or [0.0] * 4
        half = self.width / 2
        if len(margins) == 4 and margins[0] + margins[2] < right - left and margins[1] + margins[3] < top - bottom:
            left, bottom, right, top = left + margins[0], bottom + margins[1], right - margins[2], top - margins[3]
        if right - left <= 2 * half or top - bottom <= 2 * half:
            return Rectangle(left, bottom, right, top)
        return Rectangle(left + half, bottom + half, right - half, top - half)

    @cached_property
    def border(self) -> Border:
        return border_of(self.annotation)

    @property
    def width(self) -> float:
        """Of its border or line, in points."""
        return self.border.width

    @cached_property
    def opacity(self) -> float:
        return min(max(number_of(self.annotation.get("/CA"), 1.0), 0.0), 1.0)

    def color(self, key: str, default: Color | None) -> Color | None:
        """None: it is transparent."""
        value = self.annotation.get(key)
        return rgb_of(value) if isinstance(value, pikepdf.Array) else default

    def quadrilaterals(self) -> Iterator[tuple[Point, Point, Point, Point]]:
        """Top left, top right, bottom left, bottom right of each run of text: in the order in which all producers write
        them, which is not that of the standard's picture. The rectangle when there are none."""
        points = _points(self.annotation.get("/QuadPoints"))
        if len(points) < 4:
            left, bottom, right, top = self.rectangle
            points = [(left, top), (right, top), (left, bottom), (right, bottom)]
        for at in range(0, len(points) - 3, 4):
            first, two, three, four = points[at : at + 4]
            # Some go around instead: then the third lies below the second.
            yield (
                (first, two, four, three)
                if math.dist(first, three) > math.dist(first, four)
                else (first, two, three, four)
            )

    # Operators

    def add(self, *operators: str) -> None:
        self.operators += [operator.encode("ascii") for operator in operators]

    def line_style(self, color: Color | None, width: float | None = None) -> bool:
        """False: nothing is stroked."""
        width = self.width if width is None else width
        if color is None or width <= 0:
            return False
        self.add(f"{numbers(*color)} RG {numbers(width)} w 1 j")
        if self.border.dashes:
            self.add(f"[{numbers(*self.border.dashes)}] 0 d")
        return True

    def path(self, points: Sequence[Point], *, closed: bool = False) -> None:
        self.points += points
        self.add(*(f"{numbers(*point)} {'l' if index else 'm'}" for index, point in enumerate(points)))
        if closed:
            self.add("h")

    def paint(self, stroke: bool, fill: Color | None) -> None:
        """Of the path that ``shape`` has added; the colours stand before it."""
        self.add("B" if stroke and fill else "S" if stroke else "f" if fill else "n")

    def shape(self, points: Sequence[Point], *, closed: bool) -> None:
        """Lines through ``points`` in the annotation's colours."""
        if len(points) < 2:
            return
        fill = self.color("/IC", None) if closed else None
        stroke = self.line_style(self.color("/C", BLACK))
        if fill:
            self.add(f"{numbers(*fill)} rg")
        self.path(points, closed=closed)
        self.paint(stroke, fill)

    def text(self, words: str, style: Style, box: Rectangle) -> None:
        self.uses_text = True
        placed = layout(legible(words), style, max(box.width, 1.0), max(box.height, 1.0))
        self.add("q", draw(placed, box.left, box.bottom, self.tools.fonts).decode("ascii"), "Q")
        self.points += [(box.left, box.bottom), (box.right, box.top)]


def _highlight(drawing: _Drawing) -> None:
    if (color := drawing.color("/C", _YELLOW)) is None:
        return
    drawing.blend = Name.Multiply
    drawing.add(f"{numbers(*color)} rg")
    for first, two, three, four in drawing.quadrilaterals():
        drawing.path([first, two, four, three], closed=True)
        drawing.add("f")


def _across(share: float) -> Draw:
    """A line through the text, ``share`` of its height above its lower edge."""

    def draw_lines(drawing: _Drawing) -> None:
        for first, two, three, four in drawing.quadrilaterals():
            if drawing.line_style(drawing.color("/C", BLACK), _thickness(first, three)):
                drawing.path([_between(three, first, share), _between(four, two, share)])
                drawing.add("S")

    return draw_lines


def _squiggly(drawing: _Drawing) -> None:
    for first, two, three, four in drawing.quadrilaterals():
        if not drawing.line_style(drawing.color("/C", BLACK), _thickness(first, three)):
            continue
        teeth = min(max(round(8 * math.dist(three, four) / max(math.dist(first, three), 1.0)), 2), 1000)
        points = []
        for index in range(teeth + 1):
            low, high = _between(three, four, index / teeth), _between(first, two, index / teeth)
            points.append(_between(low, high, 0.02 + 0.14 * (index % 2)))
        drawing.path(points)
        drawing.add("S")


def _thickness(top: Point, bottom: Point) -> float:
    """Of a line through text that is so high."""
    return min(max(math.dist(top, bottom) / 14, 0.6), 3.0)


def _square(drawing: _Drawing) -> None:
    left, bottom, right, top = drawing.inner
    drawing.shape([(left, bottom), (right, bottom), (right, top), (left, top)], closed=True)


def _circle(drawing: _Drawing) -> None:
    left, bottom, right, top = drawing.inner
    fill = drawing.color("/IC", None)
    stroke = drawing.line_style(drawing.color("/C", BLACK))
    if fill:
        drawing.add(f"{numbers(*fill)} rg")
    drawing.points += [(left, bottom), (right, top)]
    drawing.add(ellipse(drawing.inner))
    drawing.paint(stroke, fill)


def _ink(drawing: _Drawing) -> None:
    if not drawing.line_style(drawing.color("/C", BLACK)):
        return
    drawing.add("1 J")
    for stroke in items_of(drawing.annotation.get("/InkList")):
        points = _points(stroke)
        if points:
            drawing.path(points if len(points) > 1 else points * 2)
            drawing.add("S")


def _line(drawing: _Drawing) -> None:
    points = _points(drawing.annotation.get("/L"))
    if len(points) != 2:
        return
    start, end = points
    length = math.dist(start, end)
    lead = number_of(drawing.annotation.get("/LL"))
    if lead and length and abs(lead) < _FARTHEST:
        up = (-(end[1] - start[1]) / length * lead, (end[0] - start[0]) / length * lead)
        moved = [(x + up[0], y + up[1]) for x, y in points]
        drawing.shape([start, moved[0]], closed=False)
        drawing.shape([end, moved[1]], closed=False)
        start, end = moved
    drawing.shape([start, end], closed=False)
    _ends(drawing, [start, end])


def _polyline(drawing: _Drawing) -> None:
    points = _points(drawing.annotation.get("/Vertices"))
    drawing.shape(points, closed=False)
    if len(points) > 1:
        _ends(drawing, points)


def _polygon(drawing: _Drawing) -> None:
    drawing.shape(_points(drawing.annotation.get("/Vertices")), closed=True)


_ENDS: dict[str, tuple[Sequence[Point], bool]] = {
    "/OpenArrow": (((-3, 1.7), (0, 0), (-3, -1.7)), False),
    "/ClosedArrow": (((-3, 1.7), (0, 0), (-3, -1.7)), True),
    "/ROpenArrow": (((3, 1.7), (0, 0), (3, -1.7)), False),
    "/RClosedArrow": (((3, 1.7), (0, 0), (3, -1.7)), True),
    "/Butt": (((0, 1.7), (0, -1.7)), False),
    "/Slash": (((0.8, 1.5), (-0.8, -1.5)), False),
    "/Square": (((-1.5, -1.5), (1.5, -1.5), (1.5, 1.5), (-1.5, 1.5)), True),
    "/Diamond": (((-1.5, 0), (0, -1.5), (1.5, 0), (0, 1.5)), True),
    "/Circle": (
        tuple((1.5 * math.cos(step * math.pi / 8), 1.5 * math.sin(step * math.pi / 8)) for step in range(16)),
        True,
    ),
}
"""Line endings (table 179), in units of three line widths, for a line that comes from the left."""


def _ends(drawing: _Drawing, points: Sequence[Point]) -> None:
    ends = drawing.annotation.get("/LE")
    styles = [name_of(end) for end in items_of(ends)] if isinstance(ends, pikepdf.Array) else ["", name_of(ends)]
    for style, tip, before in zip(styles, (points[0], points[-1]), (points[1], points[-2]), strict=False):
        length = math.dist(tip, before)
        if style not in _ENDS or not length:
            continue
        shape, closed = _ENDS[style]
        unit = 3 * max(drawing.width, 1.0)
        cosine, sine = (tip[0] - before[0]) / length * unit, (tip[1] - before[1]) / length * unit
        drawing.shape(
            [(tip[0] + cosine * x - sine * y, tip[1] + sine * x + cosine * y) for x, y in shape], closed=closed
        )


def _free_text(drawing: _Drawing) -> None:
    family, size, color = default_appearance(text_of(drawing.annotation.get("/DA")))
    box = drawing.inner
    background = drawing.color("/C", None)
    callout = _points(drawing.annotation.get("/CL"))
    is_typed_on_the_page = name_of(drawing.annotation.get("/IT")) == "/FreeTextTypeWriter"
    frame = not is_typed_on_the_page and drawing.line_style(color)
    if len(callout) > 1 and frame:
        drawing.path(callout)
        drawing.add("S")
    if background:
        drawing.add(f"{numbers(*background)} rg")
    if background or frame:
        left, bottom, right, top = box
        drawing.path([(left, bottom), (right, bottom), (right, top), (left, top)], closed=True)
        drawing.paint(frame, background)
    words = text_of(drawing.annotation.get("/Contents")).replace("\r\n", "\n").replace("\r", "\n")
    if words.strip():
        align = {1: "center", 2: "right"}.get(whole_of(drawing.annotation.get("/Q")))
        style = Style(family=family, size=size or 12.0, color=color, align=align, valign="top", min_size=1.0)
        inset = drawing.width + 1
        drawing.text(words, style, Rectangle(box.left + inset, box.bottom, box.right - inset, box.top - inset))


def _stamp(drawing: _Drawing) -> None:
    """The word of the stamp in a frame: how it looks is left to each reader."""
    name = name_of(drawing.annotation.get("/Name")).removeprefix("/").removeprefix("#") or "Draft"
    words = "".join(f" {letter}" if letter.isupper() and at and not name[at - 1].isupper() else letter
                    for at, letter in enumerate(name)).strip().upper()  # fmt: skip
    color = drawing.color("/C", _STAMP_RED) or _STAMP_RED
    left, bottom, right, top = drawing.rectangle
    width = min(max((top - bottom) / 20, 0.5), 4.0)
    if right - left < 4 * width or top - bottom < 4 * width:
        return
    drawing.add(f"{numbers(*color)} RG {numbers(width)} w")
    inner = Rectangle(left + width, bottom + width, right - width, top - width)
    drawing.path([(inner.left, inner.bottom), (inner.right, inner.bottom), (inner.right, inner.top), (inner.left, inner.top)],
                 closed=True)  # fmt: skip
    drawing.add("S")
    room = Rectangle(inner.left + width, inner.bottom + width, inner.right - width, inner.top - width)
    style = Style(size=min(room.height * 0.7, 144.0), bold=True, color=color, align="center", wrap=False, min_size=1.0)
    drawing.text(words[:100], style, room)


def _caret(drawing: _Drawing) -> None:
    left, bottom, right, top = drawing.inner
    color = drawing.color("/C", BLACK)
    if color:
        middle = (left + right) / 2
        drawing.add(f"{numbers(*color)} rg")
        drawing.path(
            [(left, bottom), (middle, top), (right, bottom), (middle, bottom + (top - bottom) / 4)], closed=True
        )
        drawing.add("f")


def _note(drawing: _Drawing) -> None:
    """A sheet with lines, at the upper left corner (12.5.6.4): its words are shown by none, its place by all."""
    left, top = drawing.rectangle.left, drawing.rectangle.top
    color = drawing.color("/C", _YELLOW) or _YELLOW
    drawing.add(f"{numbers(*color)} rg 0 0 0 RG 0.8 w")
    drawing.path([(left + 2, top - 18), (left + 18, top - 18), (left + 18, top - 2), (left + 2, top - 2)], closed=True)
    drawing.add("B")
    for down in (6, 10, 14):
        drawing.path([(left + 5, top - down), (left + 15, top - down)])
        drawing.add("S")


def _redaction(drawing: _Drawing) -> None:
    """It is marked, not yet removed: what is below stays legible."""
    color = drawing.color("/OC", None) or drawing.color("/C", (1.0, 0.0, 0.0))
    for first, two, three, four in drawing.quadrilaterals():
        if drawing.line_style(color):
            drawing.path([first, two, four, three], closed=True)
            drawing.add("S")


_KINDS: dict[str, Draw] = {
    "/Highlight": _highlight,
    "/Underline": _across(0.07),
    "/StrikeOut": _across(0.42),
    "/Squiggly": _squiggly,
    "/Square": _square,
    "/Circle": _circle,
    "/Ink": _ink,
    "/Line": _line,
    "/PolyLine": _polyline,
    "/Polygon": _polygon,
    "/FreeText": _free_text,
    "/Stamp": _stamp,
    "/Caret": _caret,
    "/Text": _note,
    "/Redact": _redaction,
}


def _points(array: Any) -> list[Point]:
    numbers = [number_of(number, math.nan) for number in items_of(array)[: 2 * _MOST_POINTS]]
    if not all(abs(number) <= _FARTHEST for number in numbers):  # not a number is not below anything
        return []
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def _between(start: Point, other: Point, share: float) -> Point:
    return start[0] + (other[0] - start[0]) * share, start[1] + (other[1] - start[1]) * share
