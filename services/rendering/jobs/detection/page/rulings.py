"""Lines, boxes and cells out of the paths of a page. Pure.

Programs draw a table in many ways: as lines, as rectangles with a border, as thin filled rectangles one for each cell. So
everything becomes level and upright rules first, and cells are found between them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from services.rendering.jobs.detection.page.marks import Fill, Rule, area_of, overlap
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.pdfium_paths import DrawnPath, Point

MOST_RULES = 3_000
"""Of a page, after those that continue each other were joined."""

MOST_CELLS = 2_500

_STRAIGHT = 0.7
_THIN = 2.6
"""Points: a filled rectangle that is thinner is a line."""
_SHORTEST = 3.0
_GAP = 1.6
_SAME = 1.3
"""How far apart the ends of one line, and two lines that are one, may be."""
_CORNER = 2.2
_WHITE, _LIGHT, _SHADED = 0.96, 0.75, 0.87
"""Of lightness: what counts as white, as a light colour, and as shaded: nobody writes there."""
_SMALLEST_ROUND, _LARGEST_ROUND = 5.0, 22.0
_NESTED, _HAIR = 3.0, 0.15
"""Points: how wide a border is at most, and at least."""
_ROW = (10.0, 80.0)
"""How high rows are whose sides are not drawn."""
_MOST_AREAS = 500
"""Circles, or tinted areas, of a page."""
_MOST_STEPS = 1_500_000
"""Comparisons for the cells of a page; what comes to more is no form."""


class TooManyRules(Exception):
    """The page has more lines than any form."""


@dataclass
class Drawn:
    """What the paths of a page come to."""

    level: list[Rule] = field(default_factory=list)
    upright: list[Rule] = field(default_factory=list)
    rounds: list[Rectangle] = field(default_factory=list)
    tinted: list[Rectangle] = field(default_factory=list)
    dark: list[Rectangle] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    """A rectangle between four rules."""

    box: Rectangle


def drawn(paths: Iterable[DrawnPath], upright: Callable[[float, float], Point], page: Rectangle) -> Drawn:
    """The rules, circles and tinted areas on ``page``; ``upright`` leads from default user space to upright points. Raises
    TooManyRules."""
    level: list[Rule] = []
    upright_rules: list[Rule] = []
    rounds: list[Rectangle] = []
    fills: list[Fill] = []
    for path in paths:
        points = [upright(*point) for point in path.points]
        box = _bounds(points)
        if box.right < page.left or box.left > page.right or box.top < page.bottom or box.bottom > page.top:
            continue
        light = None if path.fill is None else _lightness(path.fill)
        is_line = path.stroke is not None and _lightness(path.stroke) < _WHITE
        if path.is_curved:
            if _is_round(box) and (is_line or (light is not None and light < _LIGHT)):
                rounds.append(box)
            elif is_line:
                _add_sides(points, box, level, upright_rules)
            continue
        if is_line:
            _add_lines(points, level, upright_rules, is_closed=path.is_closed or path.fill is not None)
        elif light is not None and len(points) >= 4:
            _add_fill(box, light, fills, level, upright_rules)
    fills = _without_borders(fills, level, upright_rules)
    tinted = _tinted(fills, level, upright_rules)
    dark = [fill.box for fill in fills if fill.lightness < _SHADED][:_MOST_AREAS]
    merged = Drawn(_merged(level), _merged(upright_rules), _distinct(rounds), tinted, dark)
    if len(merged.level) > MOST_RULES or len(merged.upright) > MOST_RULES:
        raise TooManyRules
    return merged


def cells(level: Sequence[Rule], upright: Sequence[Rule]) -> list[Cell]:
    """The smallest rectangles between rules, from top to bottom and from left to right. Raises TooManyRules where there are
    more than 2,500, or looking for them takes more than so many steps."""
    cells_found: list[Cell] = []
    from_top = sorted(level, key=lambda rule: (-rule.at, rule.start))
    sorted_upright = sorted([*upright, *_missing_sides(level, upright)], key=lambda rule: rule.at)
    places = [rule.at for rule in sorted_upright]
    steps = 0
    for number, top in enumerate(from_top):
        first = bisect_left(places, top.start - _CORNER)
        last = bisect_right(places, top.end + _CORNER)
        hanging = [rule for rule in sorted_upright[first:last] if rule.start < top.at - _SHORTEST]
        hanging = [rule for rule in hanging if rule.end >= top.at - _CORNER]
        steps += last - first
        for left, right in pairwise(hanging):
            if right.at - left.at < _SHORTEST:
                continue
            for below in from_top[number + 1 :]:
                steps += 1
                if steps > _MOST_STEPS:
                    raise TooManyRules
                if below.at < max(left.start, right.start) - _CORNER:
                    break
                if (
                    top.at - below.at >= _SHORTEST
                    and below.start <= left.at + _CORNER
                    and below.end >= right.at - _CORNER
                ):
                    cells_found.append(Cell(Rectangle(left.at, below.at, right.at, top.at)))
                    if len(cells_found) > MOST_CELLS:
                        raise TooManyRules
                    break
    return cells_found


def _missing_sides(level: Sequence[Rule], upright: Sequence[Rule]) -> list[Rule]:
    """The sides that rows of tables do not have where the table ends: between level rules that begin, or end, at one place and
    that an upright rule crosses elsewhere."""
    sides: list[Rule] = []
    by_place = sorted(upright, key=lambda rule: rule.at)
    places = [rule.at for rule in by_place]
    for end in (0, 1):
        for top, below in pairwise(sorted(level, key=_by_end(end))):
            distance = top.at - below.at
            if abs(top[end] - below[end]) > _CORNER or not _ROW[0] <= distance <= _ROW[1]:
                continue
            start, stop = max(top.start, below.start) + _CORNER, min(top.end, below.end) - _CORNER
            across = by_place[bisect_left(places, start) : bisect_right(places, stop)][:_MOST_AREAS]
            if any(rule.start <= below.at + _CORNER and rule.end >= top.at - _CORNER for rule in across):
                sides.append(Rule(below.at, top.at, (top[end] + below[end]) / 2))
    return sides


def _by_end(end: int) -> Callable[[Rule], tuple[int, float]]:
    """For sorting: by where rules begin (0) or end (1), and then from top to bottom."""
    return lambda rule: (round(rule[end] / 4), -rule.at)


def _add_lines(points: Sequence[Point], level: list[Rule], upright: list[Rule], *, is_closed: bool) -> None:
    corners = [*points, points[0]] if is_closed and len(points) > 2 else points
    for (x0, y0), (x1, y1) in pairwise(corners):
        across, up = abs(x1 - x0), abs(y1 - y0)
        if up <= _STRAIGHT and across >= _SHORTEST:
            level.append(Rule(min(x0, x1), max(x0, x1), (y0 + y1) / 2))
        elif across <= _STRAIGHT and up >= _SHORTEST:
            upright.append(Rule(min(y0, y1), max(y0, y1), (x0 + x1) / 2))


def _add_sides(points: Sequence[Point], box: Rectangle, level: list[Rule], upright: list[Rule]) -> None:
    """The sides of a rectangle with round corners: what is straight for more than half of a side is all of that side."""
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
        if abs(y1 - y0) <= _STRAIGHT and abs(x1 - x0) > max(box.width / 2, _SHORTEST):
            level.append(Rule(box.left, box.right, (y0 + y1) / 2))
        elif abs(x1 - x0) <= _STRAIGHT and abs(y1 - y0) > max(box.height / 2, _SHORTEST):
            upright.append(Rule(box.bottom, box.top, (x0 + x1) / 2))


def _add_fill(box: Rectangle, lightness: float, fills: list[Fill], level: list[Rule], upright: list[Rule]) -> None:
    if lightness < _WHITE and box.height <= _THIN < box.width:
        level.append(Rule(box.left, box.right, (box.bottom + box.top) / 2))
    elif lightness < _WHITE and box.width <= _THIN < box.height:
        upright.append(Rule(box.bottom, box.top, (box.left + box.right) / 2))
    elif min(box.width, box.height) > _THIN:
        fills.append(Fill(box, lightness))


def _without_borders(fills: Sequence[Fill], level: list[Rule], upright: list[Rule]) -> list[Fill]:
    """Return what is left of the fills when those that are borders are taken for rules: a rectangle and the same one
    without a thin edge, painted as one area with a hole."""
    left: list[Fill] = []
    for fill in fills[:MOST_RULES]:
        last = left[-1] if left else None
        if last is not None and fill.lightness == last.lightness < _LIGHT:
            outer, inner = sorted((fill.box, last.box), key=area_of, reverse=True)
            edges = (
                inner.left - outer.left,
                inner.bottom - outer.bottom,
                outer.right - inner.right,
                outer.top - inner.top,
            )
            if all(-_HAIR <= edge <= _NESTED for edge in edges) and max(edges) > _HAIR:
                left.pop()
                _add_edges(outer, inner, edges, level, upright)
                continue
        left.append(fill)
    return left


def _add_edges(
    outer: Rectangle, inner: Rectangle, edges: Sequence[float], level: list[Rule], upright: list[Rule]
) -> None:
    if edges[0] > _HAIR:
        upright.append(Rule(outer.bottom, outer.top, (outer.left + inner.left) / 2))
    if edges[1] > _HAIR:
        level.append(Rule(outer.left, outer.right, (outer.bottom + inner.bottom) / 2))
    if edges[2] > _HAIR:
        upright.append(Rule(outer.bottom, outer.top, (outer.right + inner.right) / 2))
    if edges[3] > _HAIR:
        level.append(Rule(outer.left, outer.right, (outer.top + inner.top) / 2))


def _tinted(fills: Sequence[Fill], level: list[Rule], upright: list[Rule]) -> list[Rectangle]:
    """Light areas on white paper. A white area on a coloured one is a box."""
    tinted: list[Rectangle] = []
    dark: list[Rectangle] = []
    for fill in fills:
        box = fill.box
        if fill.lightness >= _WHITE:
            if any(_holds(around_it, box) for around_it in dark[-50:]):
                _add_frame(box, level, upright)
            continue
        dark.append(box)
        if fill.lightness >= _SHADED:
            tinted.append(box)
    tinted = tinted[:_MOST_AREAS]
    return [box for box in tinted if not any(_holds(box, other) for other in tinted if other != box)]


def _add_frame(box: Rectangle, level: list[Rule], upright: list[Rule]) -> None:
    level += [Rule(box.left, box.right, box.bottom), Rule(box.left, box.right, box.top)]
    upright += [Rule(box.bottom, box.top, box.left), Rule(box.bottom, box.top, box.right)]


def _holds(outer: Rectangle, box: Rectangle) -> bool:
    return area_of(outer) > 1.05 * area_of(box) and overlap(outer, box) > 0.98 * area_of(box)


def _merged(rules: Iterable[Rule]) -> list[Rule]:
    """One rule where several lie on one another or continue each other."""
    merged: list[Rule] = []
    for group in _grouped(sorted(rules, key=lambda rule: (rule.at, rule.start))):
        at = sum(rule.at * rule.length for rule in group) / sum(rule.length for rule in group)
        start, end = None, 0.0
        for rule in sorted(group):
            if start is not None and rule.start > end + _GAP:
                merged.append(Rule(start, end, at))
                start = None
            start, end = (rule.start, rule.end) if start is None else (start, max(end, rule.end))
        if start is not None:
            merged.append(Rule(start, end, at))
    return sorted(merged, key=lambda rule: (rule.at, rule.start))


def _grouped(rules: Sequence[Rule]) -> Iterable[list[Rule]]:
    """Rules that are at the same place across; ``rules`` are sorted by that."""
    group: list[Rule] = []
    for rule in rules:
        if group and rule.at - group[0].at > _SAME:
            yield group
            group = []
        group.append(rule)
    if group:
        yield group


def _distinct(boxes: Iterable[Rectangle]) -> list[Rectangle]:
    """Without those that lie on another: a circle is often filled and drawn around apart."""
    distinct: list[Rectangle] = []
    for box in sorted(boxes, key=area_of, reverse=True)[:_MOST_AREAS]:
        if not any(overlap(box, other) > 0.5 * area_of(box) for other in distinct):
            distinct.append(box)
    return sorted(distinct, key=lambda box: (-box.top, box.left))


def _is_round(box: Rectangle) -> bool:
    return (
        _SMALLEST_ROUND <= box.width <= _LARGEST_ROUND
        and _SMALLEST_ROUND <= box.height <= _LARGEST_ROUND
        and 0.8 <= box.width / box.height <= 1.25
    )


def _bounds(points: Sequence[Point]) -> Rectangle:
    xs, ys = zip(*points, strict=True)
    return Rectangle(min(xs), min(ys), max(xs), max(ys))


def _lightness(color: tuple[int, int, int]) -> float:
    red, green, blue = color
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255
