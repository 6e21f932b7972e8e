"""Which glyphs of a page draw its tags: those that stand where pdfium has the tags' characters."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from services.rendering.jobs.content.model import Content, Glyphs
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.tags.finding import TagLine

Place = tuple[float, float]
"""Default user space."""

_SAME_PLACE = 0.1
"""How far pdfium's origin of a glyph may be from ours, in font sizes; the narrowest letters are 0.2 wide."""

_SHADOW = 0.5
"""How far from a tag its copy may be, in font sizes."""

_WIDTH_ROUNDING = 0.001
"""pdfium cuts glyph widths to thousandths of the font size, so to it, text behind a tag moves by what it had cut off the
tag's glyphs before; other readers see it stay."""

_STAYED = 0.05
_AT_LEAST = 0.01
"""Points."""

_CELL = 8.0
_WIDEST_SEARCH = 24.0
_MOST_CELLS = 100


class Places:
    """The glyphs of a page by where they stand. A glyph is its operator's ``Glyphs`` and its index there."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self._shows = list(_shows(content))
        self._spoken = [(text, shows) for text, shows in _spoken(content) if text and shows]
        self._runs: list[list[_Run]] = []

    def mark_run(self, line: TagLine) -> bool:
        """Marks a line of a tag as removed where its glyphs follow each other as its characters do. False when there is more
        to it: then see ``mark``."""
        first, last = self._first_at(*line.first), self._first_at(*line.last)
        if first is None or last is None:
            return False
        (first_show, low), (last_show, high) = first, last
        if first_show is last_show:
            shows = [first_show]
        else:
            number = self._shows.index(first_show)
            shows = (
                self._shows[number : self._shows.index(last_show, number) + 1]
                if last_show in self._shows[number:]
                else []
            )
        run = [
            (shown, low if shown is first_show else 0, high if shown is last_show else len(shown.x) - 1)
            for shown in shows
        ]
        if not line.fewest <= sum(end - start + 1 for _, start, end in run) <= line.most:
            return False
        for shown, start, end in run:
            shown.removed[start : end + 1] = b"\1" * (end + 1 - start)
        self._runs.append(run)
        return True

    def is_certain(self, behind: Iterable[Place]) -> bool:
        """Return whether the page can be changed without a doubt after ``mark_run``: nothing else stands where the tags stood,
        and the text ``behind`` them is where it was measured, so it stays there."""
        if self._spoken or _is_unreadable(self.content):
            return False
        tolerance = _STAYED + self.rounding()
        if any(self._first_at(x, y, tolerance) is None for x, y in behind):
            return False
        return not any(self._has_others_inside(run) for run in self._runs)

    def mark(self, origins: Sequence[Place], text: str) -> bool:
        """Marks all glyphs of a tag as removed, copies of it too; False, and nothing is marked, when one is not found."""
        glyphs_found: list[_Glyph] = []
        for x, y in origins:
            glyphs = self._all_at(x, y)
            if not glyphs:
                return False
            glyphs_found += glyphs
        glyphs_found += self._shadows(glyphs_found)
        # Of glyphs that have a text of their own, pdfium gives that text, all of it where the first glyph stands.
        for spoken, shows in self._spoken:
            if spoken in text and any(shown is shows[0] and index == 0 for shown, index in glyphs_found):
                glyphs_found += [(shown, index) for shown in shows for index in range(len(shown.x))]
        _remove(glyphs_found)
        return True

    def rounding(self) -> float:
        """Return how far pdfium may see text behind removed glyphs move."""
        cut = [sum(shown.removed) * shown.em * _WIDTH_ROUNDING for shown in self._shows]
        return min(max(cut, default=0.0), 0.9)

    def _has_others_inside(self, run: list["_Run"]) -> bool:
        """Glyphs of other operators where the tag stood: a copy of it, a shadow, a label that overlaps."""
        own_shows = {id(shown) for shown, _, _ in run}
        left, bottom, right, top = _around(run)
        for shown in self._shows:
            if id(shown) in own_shows or _is_elsewhere(shown, bottom, top):
                continue
            for x, y, removed in zip(shown.x, shown.y, shown.removed, strict=True):
                if left < x < right and bottom < y < top and not removed:
                    return True
        return False

    def _shadows(self, glyphs: Sequence["_Glyph"]) -> list["_Glyph"]:
        """The whole tag once more, a little beside itself: pdfium takes text and shadow for one."""
        if not glyphs:
            return []
        (first, start), seen = glyphs[0], {(id(shown), index) for shown, index in glyphs}
        x, y = first.x[start], first.y[start]
        shadows: list[_Glyph] = []
        for other, index in self._near(x, y, _SHADOW * first.em):
            if (id(other), index) in seen or not other.is_like(index, first, start):
                continue
            copy = [self._copy(glyph, other.x[index] - x, other.y[index] - y) for glyph in glyphs]
            if all(copy):
                shadows += [glyph for glyph in copy if glyph]
        return shadows

    def _copy(self, glyph: "_Glyph", right: float, up: float) -> "_Glyph | None":
        shown, index = glyph
        near = self._near(shown.x[index] + right, shown.y[index] + up, max(_SAME_PLACE * shown.em, _AT_LEAST))
        return next(((other, at) for other, at in near if other.is_like(at, shown, index)), None)

    def _first_at(self, x: float, y: float, tolerance: float = 0.0) -> "_Glyph | None":
        for shown in self._shows:
            most = tolerance or max(_SAME_PLACE * shown.em, _AT_LEAST)
            if _is_elsewhere(shown, y - most, y + most):
                continue
            for index, at in enumerate(shown.x):
                if abs(at - x) <= most and abs(shown.y[index] - y) <= most:
                    return shown, index
        return None

    def _all_at(self, x: float, y: float) -> list["_Glyph"]:
        """The glyph that stands there, with copies on top of it (bold made by drawing twice)."""
        return [
            (shown, index)
            for shown, index in self._near(x, y, _WIDEST_SEARCH)
            if max(abs(shown.x[index] - x), abs(shown.y[index] - y)) <= max(_SAME_PLACE * shown.em, _AT_LEAST)
        ]

    def _near(self, x: float, y: float, distance: float) -> Iterator["_Glyph"]:
        low, high = math.floor((x - distance) / _CELL), math.floor((x + distance) / _CELL)
        for column in range(low, min(high, low + _MOST_CELLS) + 1):
            for shown, index in self._columns.get(column, ()):
                if abs(shown.x[index] - x) <= distance and abs(shown.y[index] - y) <= distance:
                    yield shown, index

    @cached_property
    def _columns(self) -> dict[int, list["_Glyph"]]:
        columns: dict[int, list[_Glyph]] = defaultdict(list)
        for shown in self._shows:
            for index, x in enumerate(shown.x):
                if math.isfinite(x):
                    columns[math.floor(x / _CELL)].append((shown, index))
        return columns


_Glyph = tuple[Glyphs, int]
_Run = tuple[Glyphs, int, int]
"""From and to, both included."""


def _is_elsewhere(shown: Glyphs, bottom: float, top: float) -> bool:
    """Of a level line: it lies above or below."""
    first = shown.y[0]
    return (first < bottom or first > top) and first == shown.y[-1]


def _remove(glyphs: list[_Glyph]) -> None:
    """Also the blanks of the tag, which pdfium leaves out or which stand nowhere: what lies between two of its glyphs."""
    ranges: dict[int, tuple[Glyphs, int, int]] = {}
    for shown, index in glyphs:
        range_ = ranges.get(id(shown))
        if range_ is None:
            ranges[id(shown)] = shown, index, index
        elif index > range_[2]:
            ranges[id(shown)] = shown, range_[1], index
        elif index < range_[1]:
            ranges[id(shown)] = shown, index, range_[2]
    for shown, low, high in ranges.values():
        shown.removed[low : high + 1] = b"\1" * (high + 1 - low)


def _around(run: list[_Run]) -> tuple[float, float, float, float]:
    """The origins of the run, half an em wider across the line and a little along it."""
    xs = [x for shown, start, end in run for x in (shown.x[start], shown.x[end])]
    ys = [y for shown, start, end in run for y in (shown.y[start], shown.y[end])]
    em = max(shown.em for shown, _, _ in run)
    is_flat = max(xs) - min(xs) >= max(ys) - min(ys)
    along, across = _SAME_PLACE * em, _SHADOW * em
    right, up = (along, across) if is_flat else (across, along)
    return min(xs) - right, min(ys) - up, max(xs) + right, max(ys) + up


def _is_unreadable(content: Content) -> bool:
    return content.unreadable or any(map(_is_unreadable, content.forms.values()))


def _shows(content: Content) -> Iterator[Glyphs]:
    """The glyphs of each show operator."""
    yield from content.glyphs.values()
    for form in content.forms.values():
        yield from _shows(form)


def _spoken(content: Content) -> Iterator[tuple[str, list[Glyphs]]]:
    for spoken in content.spoken.values():
        yield spoken.text.strip(), [content.glyphs[show] for show in spoken.shows if show in content.glyphs]
    for form in content.forms.values():
        yield from _spoken(form)


def near(tags: Iterable[Sequence[Place]]) -> Callable[[Rectangle], bool]:
    """Return whether a rectangle touches the place of a tag; ``tags`` are the origins of their glyphs, or those at both
    ends."""
    boxes = []
    for origins in tags:
        if origins:
            xs, ys = [x for x, _ in origins], [y for _, y in origins]
            boxes.append((min(xs) - 1, min(ys) - 1, max(xs) + 1, max(ys) + 1))

    def is_near(stretch: Rectangle) -> bool:
        left, bottom, right, top = stretch
        for box in boxes:  # noqa: SIM110 - asked for each line of each page
            if bottom <= box[3] and top >= box[1] and left <= box[2] and right >= box[0]:
                return True
        return False

    return is_near
