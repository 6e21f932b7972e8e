"""What is drawn on one page, in *upright points* (see geometry.py): the page as its reader sees it, origin bottom left."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream

from contracts.fields.paper import CHECK_MARK
from services.rendering.jobs.archival.tagging import Mark
from services.rendering.jobs.pdf.drawing_rules import DrawingRules
from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage
from services.rendering.jobs.pdf.paths import ellipse, numbers
from services.rendering.jobs.pictures.image_objects import Picture, PictureEmbedder
from services.rendering.jobs.text import fonts
from services.rendering.jobs.text.layout import BLACK, Color, FontEmbedder, Layout, draw
from services.rendering.jobs.text.shaping import Cluster, paragraphs

RED: Color = (0.85, 0.09, 0.09)
_COLORS: dict[str, Color] = {
    "black": BLACK,
    "white": (1.0, 1.0, 1.0),
    "blue": (0.0, 0.13, 0.65),
    "red": RED,
    "green": (0.0, 0.45, 0.15),
    "gray": (0.4, 0.4, 0.4),
}
_HEX = re.compile(r"#?([0-9a-f]{3}|[0-9a-f]{6})")
_MARK_SHARE = 0.78
"""How much of its square a check mark fills."""

_BEHIND = "Behind"
_NO_RULES = DrawingRules()


def color_of(name: Any) -> Color | None:
    """A colour by name or as ``#rgb`` / ``#rrggbb``; None when it is neither."""
    return _color(str(name)) if name else None


@lru_cache(maxsize=256)
def _color(name: str) -> Color | None:
    text = name.strip().lower()
    if text in _COLORS:
        return _COLORS[text]
    match = _HEX.fullmatch(text)
    if match is None:
        return None
    digits = match[1] if len(match[1]) == 6 else "".join(digit * 2 for digit in match[1])
    return (int(digits[:2], 16) / 255, int(digits[2:4], 16) / 255, int(digits[4:], 16) / 255)


@cache
def _check_mark(_primary: fonts.Font) -> tuple[Cluster, Any]:
    """The mark and the extents of its ink; shaped once for the fonts there are."""
    cluster = paragraphs(CHECK_MARK, fonts.Face())[0].clusters[0]
    return cluster, cluster.font.shaper.get_glyph_extents(cluster.glyphs[0][0])


class Canvas:
    """Collects the drawing of a page. ``fonts`` and ``pictures`` are shared by all pages of the document; in a ``tagged`` one
    each part of the drawing must be marked."""

    def __init__(
        self,
        page: VisiblePage,
        fonts_: FontEmbedder,
        pictures: PictureEmbedder,
        rules: DrawingRules = _NO_RULES,
        *,
        tagged: bool = False,
    ) -> None:
        self.page = page
        self.pictures = pictures
        self.rules = rules
        self.links: list[tuple[Rectangle, str]] = []
        self.marks: list[Mark] = []
        self.right_to_left = False
        self._tagged = tagged
        self._fonts = fonts_
        self._content: list[bytes] = []
        self._images: dict[str, pikepdf.Object] = {}
        self._is_behind = False

    @property
    def is_empty(self) -> bool:
        return not self._content

    @property
    def keeps_rules(self) -> bool:
        return self.rules.transparency or not self._is_behind

    @contextmanager
    def marked(self) -> Iterator[list[Mark]]:
        """Mark what is drawn within as the one thing that the list then says, or as an artifact when it is empty."""
        start, marks = len(self._content), list[Mark]()
        yield marks
        if not self._tagged or len(self._content) == start:
            return
        if marks:
            kind = "Figure" if marks[0].alternative else "P"
            opening = f"/{kind} <</MCID {len(self.marks)}>> BDC\n"
            self.marks.append(marks[0])
        else:
            opening = "/Artifact BMC\n"
        self._content.insert(start, opening.encode("ascii"))
        self._content.append(b"EMC\n")

    def text(self, placed: Layout, x: float, y: float) -> None:
        """The lower left corner of the layout's box comes to (x, y)."""
        self._content.append(draw(placed, x, y, self._fonts))

    def fill(self, area: Rectangle, color: Color) -> None:
        self._add(f"{numbers(*color)} rg {numbers(area.left, area.bottom, area.width, area.height)} re f")

    def polygon(self, corners: Sequence[tuple[float, float]], color: Color) -> None:
        path = " l ".join(numbers(*corner) for corner in corners).replace(" l ", " m ", 1)
        self._add(f"{numbers(*color)} rg {path} l f")

    def disc(self, area: Rectangle, color: Color) -> None:
        self._add(f"{numbers(*color)} rg {ellipse(area)} f")

    def frame(self, area: Rectangle, color: Color, width: float, dashes: Sequence[float] = ()) -> None:
        """``dashes``: lengths of lines and gaps in points, here and below; none: the line is whole."""
        inner = _inset(area, width / 2)
        path = f"{numbers(inner.left, inner.bottom, inner.width, inner.height)} re"
        self._stroke(path, color, width, dashes)

    def circle(self, area: Rectangle, color: Color, width: float, dashes: Sequence[float] = ()) -> None:
        self._stroke(ellipse(_inset(area, width / 2)), color, width, dashes)

    def line(
        self, x0: float, y0: float, x1: float, y1: float, color: Color, width: float, dashes: Sequence[float] = ()
    ) -> None:
        self._stroke(f"{numbers(x0, y0)} m {numbers(x1, y1)} l", color, width, dashes)

    def _stroke(self, path: str, color: Color, width: float, dashes: Sequence[float]) -> None:
        stroke = f"{numbers(*color)} RG {width:.3f} w {path} S"
        self._add(f"q [{numbers(*dashes)}] 0 d {stroke} Q" if dashes else stroke)

    def picture(self, picture: Picture, area: Rectangle, align: str | None = None) -> Rectangle:
        """As large as it goes into the area, its proportions kept, in the middle unless ``align`` says else. Where it is."""
        scale = min(area.width / picture.width, area.height / picture.height)
        width, height = picture.width * scale, picture.height * scale
        room = area.width - width
        x = area.left + {"left": 0.0, "right": room}.get(align or "", room / 2)
        y = area.bottom + (area.height - height) / 2
        name = f"Im{len(self._images) + 1}"
        self._images[name] = picture.reference
        self._add(f"q {width:.3f} 0 0 {height:.3f} {numbers(x, y)} cm /{name} Do Q")
        return Rectangle(x, y, x + width, y + height)

    def check_mark(self, area: Rectangle, color: Color) -> None:
        """A check mark in the middle of the area. It is text, so that it can be read back and read aloud."""
        cluster, ink = _check_mark(fonts.primary(fonts.Face()))
        units = cluster.font.units
        side = min(area.width, area.height) * _MARK_SHARE
        size = side * units / max(ink.width, -ink.height)
        x = area.left + area.width / 2 - (ink.x_bearing + ink.width / 2) * size / units
        y = area.bottom + area.height / 2 - (ink.y_bearing + ink.height / 2) * size / units
        show = " ".join(self._fonts.show([cluster], None, round(size, 2)))
        self._add(f"{numbers(*color)} rg BT 1 0 0 1 {numbers(x, y)} Tm {show} ET")

    def behind(self) -> None:
        """Draw what follows so that it lets the page show through, as if it lay under it: white stays invisible, black stays
        legible. It is
        not really drawn first, because many pages are white pictures, which would hide it. ``in_front`` ends it."""
        self._add(f"q /{_BEHIND} gs")
        self._is_behind = True

    def in_front(self) -> None:
        self._add("Q")

    def link(self, area: Rectangle, url: str) -> None:
        self.links.append((area, url))

    def form(self, pdf: pikepdf.Pdf) -> Stream:
        """The drawing as a Form XObject whose matrix leads to the page's default user space."""
        page = self.page
        resources = Dictionary(Font=self._fonts.resources)
        if self._images:
            resources.XObject = Dictionary({f"/{name}": reference for name, reference in self._images.items()})
        if self._is_behind:
            resources.ExtGState = Dictionary({f"/{_BEHIND}": Dictionary(BM=Name.Multiply)})
        if self.rules.colors is not None:
            resources.ColorSpace = self.rules.colors
        form = Stream(pdf, zlib.compress(b"".join(self._content)))
        form.Filter = Name.FlateDecode
        form.stream_dict.update(
            Dictionary(
                Type=Name.XObject,
                Subtype=Name.Form,
                BBox=Array([0, 0, round(page.width, 3), round(page.height, 3)]),
                Matrix=Array([_plain(value) for value in page.matrix]),
                Resources=resources,
            )
        )
        return form

    def finish_fonts(self) -> None:
        """Write the fonts of a document that has just this one page."""
        self._fonts.finish()

    def annotations(self, pdf: pikepdf.Pdf) -> list[pikepdf.Object]:
        """Link annotations (ISO 32000-2, 12.5.6.5) without a border."""
        return [
            pdf.make_indirect(
                Dictionary(
                    Type=Name.Annot,
                    Subtype=Name.Link,
                    Rect=Array([_plain(value) for value in self.page.to_default_space(area)]),
                    Border=Array([0, 0, 0]),
                    F=4,
                    Contents=pikepdf.String(url),
                    A=Dictionary(S=Name.URI, URI=pikepdf.String(url)),
                )
            )
            for area, url in self.links
        ]

    def _add(self, operators: str) -> None:
        self._content.append(operators.encode("ascii") + b"\n")


def _inset(area: Rectangle, by: float) -> Rectangle:
    return Rectangle(area.left + by, area.bottom + by, area.right - by, area.top - by)


def _plain(value: float) -> Any:
    """Whole numbers without a point; pikepdf wants no binary fractions of 20 digits."""
    return int(value) if value == int(value) else round(value, 6)
