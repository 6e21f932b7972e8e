"""Text on paper: any script, laid out in a box, as PDF content that gives the text back when it is copied.

    placed = layout("Łódź, שלום 12", Style(size=11), width=200, height=40)
    embedder = FontEmbedder(pdf)
    content = draw(placed, x, y, embedder)          # x, y: lower left corner of the box
    ...                                             # the content's resources need /Font embedder.resources
    embedder.finish()                               # once, after the last draw

Nothing is clipped: a text that is too wide is made smaller, then wrapped, then made smaller down to ``min_size``; when even
that does not fit, ``Layout.fits`` is False and the caller must refuse it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from contracts.fields.paper import SMALLEST_SIZE
from services.rendering.jobs.text import fonts, lines
from services.rendering.jobs.text.bidi import visual_order
from services.rendering.jobs.text.embedding import FontEmbedder
from services.rendering.jobs.text.fonts import Face, undrawable
from services.rendering.jobs.text.shaping import Cluster, Paragraph, Undrawable, describe, paragraphs

__all__ = ["FontEmbedder", "Layout", "Style", "Undrawable", "describe", "draw", "layout", "legible", "undrawable"]

Color = tuple[float, float, float]
BLACK: Color = (0.0, 0.0, 0.0)

_UNKNOWN = "\ufffd"
READABLE = SMALLEST_SIZE
"""The smallest size in points that text is shrunk to."""

# Below this share of its size a text is wrapped rather than shrunk further on one line.
_SHRINK_FIRST = 0.8
# While shrinking to this share avoids cutting a word in two, shrink.
_KEEP_WORDS = 0.55
_SIZE_STEP = 0.1
# What letters without accents need above and below the baseline; a line is never taken to be flatter.
_USUAL_ABOVE, _USUAL_BELOW = 730, 210
_BETWEEN_LINES = 50


@dataclass(frozen=True)
class Style:
    """``size`` in points; ``align`` None is left, or right in a paragraph that runs from right to left; ``leading`` is the
    distance of baselines as a multiple of the size; ``exact_size``: wrap before shrinking (somebody asked for this size);
    ``wrap`` False keeps each paragraph on one line."""

    family: str = "Helvetica"
    size: float = 11.0
    bold: bool = False
    italic: bool = False
    color: Color = BLACK
    align: str | None = None
    valign: str = "center"
    leading: float = 1.2
    exact_size: bool = False
    wrap: bool = True
    min_size: float = READABLE
    language: str = ""

    @property
    def face(self) -> Face:
        return Face(self.family, self.bold, self.italic, self.language)


class Line(NamedTuple):
    """``clusters`` from left to right as they are seen; ``x`` and ``baseline`` in points from the box's lower left corner;
    ``right_to_left`` holds for each cluster (None: for none of them)."""

    clusters: Sequence[Cluster]
    right_to_left: Sequence[bool] | None
    x: float
    baseline: float
    width: float


@dataclass(frozen=True)
class Layout:
    """``width`` and ``height`` of the box in points; without a given height it is just as high as the text.
    ``size`` is what came out of shrinking."""

    lines: list[Line]
    style: Style
    size: float
    width: float
    height: float
    fits: bool


class _Shape(NamedTuple):
    """Paragraphs broken into lines at one size."""

    size: float
    lines: list[tuple[Paragraph, int, int]]
    in_words: bool


def layout(text: str, style: Style, width: float | None = None, height: float | None = None) -> Layout:
    """Lay out ``text`` in a box of ``width`` x ``height`` points. None: as wide or as high as the text becomes; without
    a height nothing is shrunk. Raises Undrawable when no font has a character."""
    shaped = paragraphs(text, style.face)
    chosen, fits = _fitted(shaped, style, width, height)
    measured = [_measure(chosen, index) for index in range(len(chosen.lines))]
    if width is None:
        width = max((line_width for line_width, _, _ in measured), default=0.0)
    primary = fonts.primary(style.face)
    baselines, natural = _baselines(measured, primary.ascent, primary.descent, chosen.size, style.leading)
    if height is None:
        height = natural
    offset = _vertical(style.valign, natural, height)
    # The box is filled from the font's own ascent and descent, which look even from field to field; in a flat box only
    # the ink has to stay inside.
    offset = _inside(offset, baselines, measured, natural, height)
    placed = []
    for (paragraph, start, end), (line_width, _, _), down in zip(chosen.lines, measured, baselines, strict=True):
        x = _horizontal(style.align, paragraph, line_width, width)
        placed.append(_line(paragraph, start, end, x, offset + natural - down, line_width))
    return Layout(placed, style, chosen.size, width, height, fits)


def draw(placed: Layout, x: float, y: float, embedder: FontEmbedder) -> bytes:
    """PDF operators that draw the layout with the lower left corner of its box at (x, y). Changes the colour and the text
    state, so put ``q`` and ``Q`` around it where that matters."""
    red, green, blue = placed.style.color
    out = [f"{red:g} {green:g} {blue:g} rg BT"]
    for line in placed.lines:
        if line.clusters:
            out.append(f"1 0 0 1 {x + line.x:.3f} {y + line.baseline:.3f} Tm")
            out += embedder.show(line.clusters, line.right_to_left, placed.size)
    out.append("ET\n")
    return "\n".join(out).encode("ascii")


def legible(text: str) -> str:
    """A name that nobody can correct any more when it is drawn: a replacement character stands for what no font has."""
    bad = set(undrawable(text))
    return "".join(_UNKNOWN if character in bad else character for character in text) if bad else text


def _fitted(shaped: list[Paragraph], style: Style, width: float | None, height: float | None) -> tuple[_Shape, bool]:
    """The largest size at which the text goes into the box; see the module's first lines for the order of attempts."""
    requested = _broken(shaped, style.size, width if style.wrap and (height is None or style.exact_size) else None)
    if width is None and height is None:
        return requested, True
    if height is None:
        return requested, not _too_wide(requested, width)
    if _goes_into(requested, style, width, height):
        return requested, True
    smallest = min(style.min_size, style.size)

    def single(size: float) -> _Shape:
        return _broken(shaped, size, None)

    def wrapped(size: float) -> _Shape:
        return _broken(shaped, size, width)

    def unbroken(shape: _Shape) -> bool:
        return _goes_into(shape, style, width, height) and not shape.in_words

    def fitting(shape: _Shape) -> bool:
        return _goes_into(shape, style, width, height)

    best_single = _largest(single, fitting, smallest, style.size)
    if not style.wrap or width is None:
        return (best_single, True) if best_single else (single(smallest), False)
    if best_single and best_single.size >= style.size * (_SHRINK_FIRST if not style.exact_size else 1):
        return best_single, True
    candidates = [
        best_single,
        _largest(wrapped, unbroken, max(smallest, style.size * _KEEP_WORDS), style.size),
    ]
    best = max((shape for shape in candidates if shape), key=lambda shape: shape.size, default=None)
    best = best or _largest(wrapped, fitting, smallest, style.size)
    return (best, True) if best else (wrapped(smallest), False)


def _largest(make: Callable[[float], _Shape], good: Callable[[_Shape], bool], low: float, high: float) -> _Shape | None:
    """Binary search in steps of a tenth of a point; None when not even ``low`` is good."""
    best = make(low)
    if not good(best):
        return None
    floor, steps = 0, int((high - low) / _SIZE_STEP + 1e-6)
    top = make(high)
    if good(top):
        return top
    while steps - floor > 1:
        middle = (floor + steps) // 2
        shape = make(low + middle * _SIZE_STEP)
        if good(shape):
            best, floor = shape, middle
        else:
            steps = middle
    return best


def _broken(shaped: list[Paragraph], size: float, width: float | None) -> _Shape:
    placed: list[tuple[Paragraph, int, int]] = []
    in_words = False
    for paragraph in shaped:
        if width is None:
            placed.append((paragraph, 0, len(paragraph.clusters)))
            continue
        room = width * 1000 / size
        if lines.width_of(paragraph.clusters) <= room:
            placed.append((paragraph, 0, len(paragraph.clusters)))
            continue
        broken = lines.break_lines(paragraph.clusters, lines.opportunities(paragraph.clusters), room)
        placed += [(paragraph, start, end) for start, end in broken.lines]
        in_words = in_words or broken.in_words
    return _Shape(size, placed, in_words)


def _goes_into(shape: _Shape, style: Style, width: float | None, height: float) -> bool:
    measured = [_measure(shape, index) for index in range(len(shape.lines))]
    if width is not None and any(line_width > width + 1e-6 for line_width, _, _ in measured):
        return False
    needed = measured[0][1] + measured[-1][2] + sum(_steps(measured, shape.size, style.leading))
    return needed <= height + 1e-6


def _too_wide(shape: _Shape, width: float | None) -> bool:
    return width is not None and any(_measure(shape, index)[0] > width + 1e-6 for index in range(len(shape.lines)))


def _measure(shape: _Shape, index: int) -> tuple[float, float, float]:
    """Width, ink above and ink below the baseline of a line, in points."""
    paragraph, start, end = shape.lines[index]
    width, above, below = 0, _USUAL_ABOVE, _USUAL_BELOW
    for cluster in paragraph.clusters[start:end]:
        width += cluster.advance
        if cluster.above > above:
            above = cluster.above
        if cluster.below > below:
            below = cluster.below
    scale = shape.size / 1000
    return width * scale, above * scale, below * scale


def _steps(measured: list[tuple[float, float, float]], size: float, leading: float) -> list[float]:
    """From each baseline to the next: the usual distance, or more where the ink needs it."""
    gap = _BETWEEN_LINES * size / 1000
    return [max(leading * size, below + above + gap) for (_, _, below), (_, above, _) in pairwise(measured)]


def _baselines(
    measured: list[tuple[float, float, float]], ascent: float, descent: float, size: float, leading: float
) -> tuple[list[float], float]:
    """Distances of the baselines from the top of the text, and the height of it all."""
    top = max(ascent * size / 1000, measured[0][1])
    result = list(accumulate(_steps(measured, size, leading), initial=top))
    return result, result[-1] + max(descent * size / 1000, measured[-1][2])


def _vertical(valign: str, natural: float, height: float) -> float:
    """Return how far the text's lower edge is above the box's."""
    return {"top": height - natural, "bottom": 0.0}.get(valign, (height - natural) / 2)


def _inside(
    offset: float, baselines: list[float], measured: list[tuple[float, float, float]], natural: float, height: float
) -> float:
    """Move the text so that its ink does not leave the box."""
    ink_top = offset + natural - baselines[0] + measured[0][1]
    ink_bottom = offset + natural - baselines[-1] - measured[-1][2]
    if ink_top > height:
        shift = height - ink_top
        return offset + max(shift, -ink_bottom) if ink_bottom > 0 else offset + (height - ink_top - ink_bottom) / 2
    if ink_bottom < 0:
        return offset + min(-ink_bottom, height - ink_top)
    return offset


def _horizontal(align: str | None, paragraph: Paragraph, line_width: float, width: float) -> float:
    align = align or ("right" if paragraph.right_to_left else "left")
    return {"right": width - line_width, "center": (width - line_width) / 2}.get(align, 0.0)


def _line(paragraph: Paragraph, start: int, end: int, x: float, baseline: float, width: float) -> Line:
    clusters = paragraph.clusters[start:end]
    if paragraph.levels is None:
        return Line(clusters, None, x, baseline, width)
    levels = paragraph.levels[start:end]
    order = visual_order(levels)
    return Line([clusters[i] for i in order], [levels[i] % 2 == 1 for i in order], x, baseline, width)
