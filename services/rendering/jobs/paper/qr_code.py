"""A QR code (ISO/IEC 18004) drawn as plain rectangles: sharp at every size, and no picture to embed."""

from collections.abc import Iterator
from itertools import groupby

import segno

from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.paper.sheets import Block
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.text.layout import BLACK, Color

WHITE: Color = (1.0, 1.0, 1.0)
_QUIET = 4
"""Modules of white around it, which readers need."""
_OVERLAP = 0.02
"""Of a module: rows touch, so that no viewer draws a hair between them."""


def qr_code(text: str, side: float) -> Block:
    """A code that a seventh of may be lost of (level M), with its white border ``side`` points wide and high."""
    rows = [tuple(row) for row in segno.make(text, error="m", micro=False).matrix]
    module = side / (len(rows) + 2 * _QUIET)

    def paint(canvas: Canvas, x: float, top: float) -> None:
        canvas.fill(Rectangle(x, top - side, x + side, top), WHITE)
        for number, row in enumerate(rows):
            upper = top - (number + _QUIET) * module
            for start, end in _dark(row):
                left, right = (x + (place + _QUIET) * module for place in (start, end))
                canvas.fill(Rectangle(left, upper - module * (1 + _OVERLAP), right, upper), BLACK)

    return Block(side, paint, width=side)


def _dark(row: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield where dark modules begin and end."""
    at = 0
    for value, group in groupby(row):
        length = sum(1 for _ in group)
        if value:
            yield at, at + length
        at += length
