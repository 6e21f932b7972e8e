"""A document of our own on sheets of paper: blocks of text, pictures and panels that flow from page to page.

A block knows its height and how to paint itself; blocks are put together to larger ones, and only the outermost ones are
torn apart at the end of a page. All measures are points, all coordinates upright (see ``geometry``).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pikepdf
from pikepdf import Array, Dictionary

from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.pdf.geometry import Matrix, Rectangle, VisiblePage
from services.rendering.jobs.pictures.image_objects import NotAPicture, PictureEmbedder
from services.rendering.jobs.text.layout import Color, FontEmbedder, Style, layout, undrawable

LETTER, A4 = (612.0, 792.0), (595.28, 841.89)
LONGEST_TEXT = 2_000

Painter = Callable[[Canvas, float, float], None]
"""Paints with the block's upper left corner at (x, top)."""


@dataclass(frozen=True)
class Block:
    """``with_next``: not the last thing on a page, such as a heading. On a sheet that runs from right to left a block stands at
    the right edge of what it is in, by its ``width``."""

    height: float
    paint: Painter
    with_next: bool = False
    width: float = 0.0


@dataclass(frozen=True)
class Margins:
    left: float = 54.0
    right: float = 54.0
    top: float = 62.0
    bottom: float = 62.0


def readable(text: object, longest: int = LONGEST_TEXT) -> str:
    """Text of strangers as it can be printed without telling lies: no control characters and none that turn the
    direction of what follows (they make ``exe.pdf`` out of ``fdp.exe``), normalised, cut off when endless. What no font
    can draw becomes a question mark, because the rest must still be printed."""
    normal = unicodedata.normalize("NFC", str(text)[: longest * 2])
    cleaned = "".join(
        character
        for character in normal
        if character == "\n" or (unicodedata.category(character) not in {"Cc", "Cs", "Co"} and not _turns(character))
    )
    if len(cleaned) > longest:
        cleaned = f"{cleaned[: longest - 1]}…"
    for character in () if cleaned.isascii() else undrawable(cleaned):
        cleaned = cleaned.replace(character, "?")
    return cleaned


def _turns(character: str) -> bool:
    return "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"


def text(content: str, style: Style, width: float) -> Block:
    """As high as the text becomes in ``width``."""
    placed = layout(content, style, width)

    def paint(canvas: Canvas, x: float, top: float) -> None:
        canvas.text(placed, x, top - placed.height)

    return Block(placed.height, paint, width=width)


def space(height: float) -> Block:
    return Block(height, lambda canvas, x, top: None)


def rule(width: float, color: Color, thickness: float = 0.6) -> Block:
    def paint(canvas: Canvas, x: float, top: float) -> None:
        canvas.line(x, top - thickness / 2, x + width, top - thickness / 2, color, thickness)

    return Block(thickness, paint, width=width)


def stack(blocks: Sequence[Block], gap: float = 0.0) -> Block:
    """One below the other, never torn apart."""

    width = max((block.width for block in blocks), default=0.0)

    def paint(canvas: Canvas, x: float, top: float) -> None:
        for block in blocks:
            block.paint(canvas, x + (width - block.width if canvas.right_to_left else 0.0), top)
            top -= block.height + gap

    return Block(sum(block.height for block in blocks) + gap * max(0, len(blocks) - 1), paint, width=width)


def row(cells: Sequence[tuple[float, Block]]) -> Block:
    """Side by side, each at its distance from where lines begin, aligned at the top."""
    width = max((offset + block.width for offset, block in cells), default=0.0)

    def paint(canvas: Canvas, x: float, top: float) -> None:
        for offset, block in cells:
            block.paint(canvas, x + (width - offset - block.width if canvas.right_to_left else offset), top)

    return Block(max((block.height for _, block in cells), default=0.0), paint, width=width)


def panel(inner: Block, width: float, color: Color, padding: float) -> Block:
    """On a coloured ground."""

    def paint(canvas: Canvas, x: float, top: float) -> None:
        canvas.fill(Rectangle(x, top - inner.height - 2 * padding, x + width, top), color)
        beginning = width - padding - inner.width if canvas.right_to_left else padding
        inner.paint(canvas, x + beginning, top - padding)

    return Block(inner.height + 2 * padding, paint, width=width)


def barred(inner: Block, color: Color, thickness: float = 2.0, indent: float = 12.0) -> Block:
    """With a bar along the side where lines begin."""
    width = inner.width + indent

    def paint(canvas: Canvas, x: float, top: float) -> None:
        bar = x + width - thickness if canvas.right_to_left else x
        canvas.fill(Rectangle(bar, top - inner.height, bar + thickness, top), color)
        inner.paint(canvas, x if canvas.right_to_left else x + indent, top)

    return Block(inner.height, paint, width=width)


def linked(inner: Block, width: float, url: str) -> Block:
    """Leads to ``url``."""

    def paint(canvas: Canvas, x: float, top: float) -> None:
        inner.paint(canvas, x, top)
        canvas.link(Rectangle(x, top - inner.height, x + width, top), url)

    return Block(inner.height, paint, width=inner.width)


def keep_with_next(block: Block) -> Block:
    return replace(block, with_next=True)


class Paper:
    """Sheets of one size. ``furniture`` paints what is the same on each: (canvas, page from 1, pages)."""

    def __init__(
        self,
        size: tuple[float, float],
        margins: Margins,
        furniture: Callable[[Canvas, int, int], None],
        *,
        right_to_left: bool = False,
    ) -> None:
        self.pdf = pikepdf.new()
        self.width = size[0] - margins.left - margins.right
        """Of what is printed on."""
        self._size, self._margins, self._furniture = size, margins, furniture
        self._right_to_left = right_to_left
        self._fonts = FontEmbedder(self.pdf)
        self._pictures = PictureEmbedder(self.pdf)
        self._canvases: list[Canvas] = []

    def picture(self, data: bytes, width: float, height: float) -> Block | None:
        """At most that large, at the left; None when it is none."""
        try:
            picture = self._pictures.place(data, points=(width, height))
        except NotAPicture:
            return None
        scale = min(width / picture.width, height / picture.height)
        shown = picture.height * scale

        def paint(canvas: Canvas, x: float, top: float) -> None:
            side = "right" if canvas.right_to_left else "left"
            canvas.picture(picture, Rectangle(x, top - shown, x + width, top), side)

        return Block(shown, paint, width=width)

    def flow(self, blocks: Sequence[Block]) -> None:
        """Place the blocks one below the other; one that does not fit begins a page, together with the headings that
        belong to it."""
        full = self._size[1] - self._margins.top - self._margins.bottom
        left = 0.0
        for group in _groups(blocks):
            height = sum(block.height for block in group)
            if height > left:
                self._canvases.append(self._new_canvas())
                left = full
            for block in group:
                top = self._margins.bottom + left
                beginning = self.width - block.width if self._right_to_left else 0.0
                block.paint(self._canvases[-1], self._margins.left + beginning, top)
                left -= block.height

    def save(self, *, title: str, language: str) -> pikepdf.Pdf:
        """The finished document, still open."""
        pages = len(self._canvases)
        for number, canvas in enumerate(self._canvases, start=1):
            self._furniture(canvas, number, pages)
            self._add_page(canvas)
        self._fonts.finish()
        self.pdf.docinfo["/Title"] = title
        self.pdf.docinfo["/Creator"] = "Countersign"
        self.pdf.Root.Lang = pikepdf.String(language)
        self.pdf.Root.ViewerPreferences = Dictionary(DisplayDocTitle=True)
        return self.pdf

    def _new_canvas(self) -> Canvas:
        width, height = self._size
        sheet = VisiblePage(width, height, Matrix(1, 0, 0, 1, 0, 0), Rectangle(0, 0, width, height), 0, 1.0)
        canvas = Canvas(sheet, self._fonts, self._pictures)
        canvas.right_to_left = self._right_to_left
        return canvas

    def _add_page(self, canvas: Canvas) -> None:
        page = self.pdf.add_blank_page(page_size=self._size)
        page.obj.Resources = Dictionary(XObject=Dictionary(Sheet=canvas.form(self.pdf)))
        page.obj.Contents = self.pdf.make_stream(b"/Sheet Do")
        if canvas.links:
            page.obj.Annots = Array(canvas.annotations(self.pdf))


def _groups(blocks: Sequence[Block]) -> list[list[Block]]:
    groups: list[list[Block]] = []
    open_group = False
    for block in blocks:
        if open_group:
            groups[-1].append(block)
        else:
            groups.append([block])
        open_group = block.with_next
    return groups
