"""Boxes to write in: cells of tables, frames, tinted areas, combs. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from services.rendering.jobs.detection.candidates import MOST_WORDS, UNIT, Candidate, label_text, with_label
from services.rendering.jobs.detection.labels.labels import meaning, name_of, normalised
from services.rendering.jobs.detection.page.marks import Rule, area_of, overlap, shared
from services.rendering.jobs.detection.page.phrases import Phrase
from services.rendering.jobs.detection.page.rulings import Cell
from services.rendering.jobs.detection.surroundings import Label, Surroundings
from services.rendering.jobs.pdf.geometry import Rectangle

SMALLEST_TICK, LARGEST_TICK = 4.5, 19.0
_SQUARE = (0.7, 1.4)
_NARROWEST, _LOWEST = 18.0, 8.0
_ROOM_BELOW, _ROOM_BESIDE = 9.5, 55.0
_LARGEST = 0.4
"""Share of the page above which a frame is no field."""
_MOST = 0.8
_LARGE, _DOUBT = 0.12, 0.14
_DEEPEST_LABEL = 60.0
_COMB = 4
_MOST_LABEL_WORDS = 14
_CODE = re.compile(r"\(?\d{1,3}[a-z]?\)?\.?", re.IGNORECASE)
_SAME = 2.2

_IN_TABLE = {"after": 0.82, "below": 0.8}
_FRAME = {"after": 0.84, "below": 0.78, "above": 0.74, "before": 0.6, "alone": 0.4}
_TINTED = {"after": 0.78, "below": 0.74, "above": 0.66, "alone": 0.3}
_WITHIN = 0.74


class Boxes:
    """The cells of a page, with what is in them and beside them."""

    def __init__(
        self,
        cells: Iterable[Cell],
        page_area: float,
        around: Surroundings,
        language: str,
        dark: Sequence[Rectangle] = (),
    ) -> None:
        """``dark``: the shaded areas, in which nobody writes."""
        self._around, self._language, self._page_area = around, language, page_area
        self.cells = _distinct(cell.box for cell in cells)
        self._dark = {box for box in self.cells if any(overlap(box, shade) > _MOST * area_of(box) for shade in dark)}
        self._texts = {box: around.inside(box) for box in self.cells}
        self._by_left: dict[int, list[Rectangle]] = defaultdict(list)
        self._by_right: dict[int, list[Rectangle]] = defaultdict(list)
        self._by_bottom: dict[int, list[Rectangle]] = defaultdict(list)
        for box in self.cells:
            self._by_left[round(box.left)].append(box)
            self._by_right[round(box.right)].append(box)
            self._by_bottom[round(box.bottom)].append(box)
        self._combs = self._find_combs()
        self._in_combs = {box for comb in self._combs for box in comb}

    def ticks(self) -> list[Rectangle]:
        """The small empty squares that stand alone."""
        return [box for box in self.cells if is_square(box) and not self._texts[box] and box not in self._in_combs]

    def fields(self, ticks: Sequence[Rectangle]) -> list[Candidate]:
        """The cells and frames to write in; a cell with ``ticks`` in it is none."""
        unusable = set(self.ticks()) | self._in_combs
        middles = [((tick.left + tick.right) / 2, (tick.bottom + tick.top) / 2) for tick in ticks]
        fields = [self._comb(comb) for comb in self._combs]
        for box in self.cells:
            if box in unusable or box in self._dark or box.width < _NARROWEST or box.height < _LOWEST:
                continue
            if any(box.left < x < box.right and box.bottom < y < box.top for x, y in middles):
                continue
            field = self._field(box)
            if field is not None:
                fields.append(field)
        return fields

    def tinted(self, areas: Iterable[Rectangle]) -> list[Candidate]:
        """Light areas without text in them, as high as one line or a few."""
        fields = []
        for box in areas:
            if not (box.width >= _NARROWEST and 11 <= box.height <= 90) or self._around.inside(box):
                continue
            if any(overlap(cell, box) > 0.3 * area_of(box) for cell in self._near(box)):
                continue
            label = self._around.left_of(box) or self._around.above(box, 8.0) or self._around.below(*_edge(box))
            field = with_label(label, self._language, _TINTED, what="tinted box", box=box)
            if field is not None:
                fields.append(field)
        return fields

    def free_of(self, rules: Iterable[Rule]) -> list[tuple[Rule, float]]:
        """The level rules without the stretches that border a cell, each with the length of the whole rule."""
        edges: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
        for box in self.cells:
            for edge in (box.bottom, box.top):
                edges[round(edge)].append((box.left, box.right, edge))
        free: list[tuple[Rule, float]] = []
        for rule in rules:
            start = rule.start
            near = (edge for place in range(round(rule.at) - 3, round(rule.at) + 4) for edge in edges.get(place, ()))
            for left, right, at in sorted(near):
                if abs(at - rule.at) > _SAME or right <= start or left >= rule.end:
                    continue
                if left - start > _SAME:
                    free.append((Rule(start, left, rule.at), rule.length))
                start = right
            if rule.end - start > _SAME:
                free.append((Rule(start, rule.end, rule.at), rule.length))
        return free

    def combs_on(self, rules: Iterable[Rule], upright: Sequence[Rule]) -> list[tuple[Candidate, Rule]]:
        """Combs that are open above: short upright rules on a level one, at even distances; each with its level rule."""
        fields_with_rules = []
        by_place = sorted(upright, key=lambda rule: rule.at)
        places = [rule.at for rule in by_place]
        for rule in rules:
            within = by_place[bisect_left(places, rule.start - _SAME) : bisect_right(places, rule.end + _SAME)]
            teeth = [tooth for tooth in within if abs(tooth.start - rule.at) < _SAME and 3 <= tooth.length <= 22]
            gaps = [next_tooth.at - tooth.at for tooth, next_tooth in pairwise(teeth)]
            if len(gaps) < _COMB or not 6 <= min(gaps) <= max(gaps) <= 1.3 * min(gaps) <= 40:
                continue
            top = max(max(tooth.end for tooth in teeth), rule.at + 12)
            field = self._labelled_comb(Rectangle(teeth[0].at, rule.at, teeth[-1].at, top), len(gaps))
            fields_with_rules.append((field, rule))
        return fields_with_rules

    def _field(self, box: Rectangle) -> Candidate | None:
        texts = self._texts[box]
        signs = [phrase for phrase in texts if UNIT.fullmatch(phrase.text) and phrase.box.width < 0.4 * box.width]
        if len(signs) == len(texts):
            return None if self._holds_cells(box) else self._empty(_beside_signs(box, signs), box)
        return self._with_room(box, texts)

    def _empty(self, room: Rectangle, box: Rectangle) -> Candidate | None:
        share = area_of(box) / self._page_area
        if share > _LARGEST or room.width < _NARROWEST:
            return None
        row, head = self._label_in_row(box), self._label_in_column(box)
        label = _nearer(row, head)
        if label is None:
            outside = [
                self._around.left_of(box),
                self._around.above(box, 14.0),
                self._around.below(*_edge(box)),
            ]
            label = next((candidate for candidate in outside if candidate is not None), None)
            field = with_label(label, self._language, _FRAME, what="box", box=room)
        else:
            field = with_label(label, self._language, _IN_TABLE, what="empty cell", box=room)
            if field is not None and row and head and row.phrase is not head.phrase:
                names = name_of(row.text), name_of(head.text)
                reason = f"empty cell in row “{names[0]}” under “{names[1]}”"
                field = replace(field, label=", ".join(names), reason=reason)
        if field is None:
            return None
        doubts = (share > _LARGE) + (label is not None and self._is_askew(label, box))
        return replace(field, confidence=field.confidence - _DOUBT * doubts)

    def _is_askew(self, label: Label, box: Rectangle) -> bool:
        """Return whether the cell of the label is much lower than the box beside it, or much wider than the one below it."""
        text = label.phrase.box
        under = self._near(Rectangle(text.left, text.bottom - _DEEPEST_LABEL, text.right, text.bottom))
        homes = [cell for cell in under if overlap(cell, text) > 0.8 * area_of(text)]
        if not homes:
            return False
        home = min(homes, key=area_of)
        return home.height < 0.6 * box.height if label.side == "after" else home.width > 1.8 * box.width

    def _with_room(self, box: Rectangle, texts: Sequence[Phrase]) -> Candidate | None:
        """A cell with its label in it."""
        words = sum(len(normalised(phrase.text).split()) for phrase in texts)
        if words > _MOST_LABEL_WORDS or area_of(box) > _LARGEST * self._page_area:
            return None
        first = texts[0]
        label = Label(first, "in", 0.0)
        names_a_kind = (
            meaning(first.text, self._language).is_known and len(normalised(first.text).split()) <= MOST_WORDS
        )
        below = min(phrase.box.bottom for phrase in texts) - box.bottom
        right = max(phrase.box.right for phrase in texts)
        is_row = max(phrase.middle for phrase in texts) - min(phrase.middle for phrase in texts) < 3
        confidence = _WITHIN + (0.12 if names_a_kind else 0.0) + (0.06 if label.has_colon else 0.0)
        name = name_of(label_text(label))
        if below >= _ROOM_BELOW and box.top - first.box.top < 0.5 * box.height:
            if self._is_filled_beside(box) or self._is_head(box):
                return None
            room = Rectangle(box.left + 1, box.bottom + 0.5, box.right - 1, box.bottom + below)
            return Candidate(room, f"room under “{name}” in its cell", confidence, first.text)
        beside = box.right - right
        is_labelled = names_a_kind or label.has_colon
        if is_row and beside >= max(_ROOM_BESIDE, 0.35 * box.width) and is_labelled and not self._is_followed(box):
            room = Rectangle(right + 3, box.bottom + 0.5, box.right - 1, box.top - 0.5)
            return Candidate(room, f"room beside “{name}” in its cell", confidence - 0.06, first.text)
        return None

    def _is_filled_beside(self, box: Rectangle) -> bool:
        """Return whether a cell of the same row is full of text: then the row is as high as that, and nothing is left blank."""
        for other in self._row_of(box):
            texts = self._texts[other]
            if texts and min(phrase.box.bottom for phrase in texts) - other.bottom < _ROOM_BELOW:
                return True
        return False

    def _is_followed(self, box: Rectangle) -> bool:
        """Return whether the next cell of the row is empty: what the box says is about that one."""
        following = self._touching(self._by_left, box.right)
        return any(cell != box and _same_row(cell, box) and not self._texts[cell] for cell in following)

    def _is_head(self, box: Rectangle) -> bool:
        """Return whether an empty cell is below that is as wide: what the box says is about the column."""
        below = [
            cell for cell in self._near(Rectangle(box.left, box.bottom - 60, box.right, box.bottom)) if cell != box
        ]
        return any(
            abs(cell.top - box.bottom) < _SAME
            and abs(cell.left - box.left) < _SAME
            and abs(cell.right - box.right) < _SAME
            and not self._texts[cell]
            for cell in below
        )

    def _label_in_row(self, box: Rectangle) -> Label | None:
        """The text of the next cell to the left that has some."""
        current = box
        for _ in range(12):
            left = next(
                (other for other in self._touching(self._by_right, current.left) if _same_row(other, box)), None
            )
            if left is None:
                return None
            texts = [phrase for phrase in self._texts[left] if not UNIT.fullmatch(phrase.text)]
            if texts:
                words = sum(len(normalised(phrase.text).split()) for phrase in texts)
                if words > _MOST_LABEL_WORDS:
                    return None
                return Label(self._with_words(_joined(texts), left), "after", box.left - left.right)
            current = left
        return None

    def _with_words(self, label: Phrase, cell: Rectangle) -> Phrase:
        """A label that is the number of a line, such as 12a, with what stands before it on its row."""
        words = self._around.left_words(cell) if _CODE.fullmatch(label.text) else None
        return label if words is None else Phrase(f"{words.text} {label.text}", label.box)

    def _label_in_column(self, box: Rectangle) -> Label | None:
        """The text of the head of its column."""
        current = box
        for _ in range(60):
            above = next(
                (other for other in self._touching(self._by_bottom, current.top) if _same_column(other, box)), None
            )
            if above is None:
                return None
            texts = [phrase for phrase in self._texts[above] if not UNIT.fullmatch(phrase.text)]
            if texts:
                words = sum(len(normalised(phrase.text).split()) for phrase in texts)
                return None if words > _MOST_LABEL_WORDS else Label(_joined(texts), "below", above.bottom - box.top)
            current = above
        return None

    def _row_of(self, box: Rectangle) -> Iterator[Rectangle]:
        for other in self._near(box):
            if other != box and abs(other.top - box.top) < _SAME and abs(other.bottom - box.bottom) < _SAME:
                yield other

    def _near(self, box: Rectangle) -> Iterator[Rectangle]:
        """The cells that begin or end at about its height."""
        for bottom in range(round(box.bottom) - 3, round(box.top) + 4):
            yield from self._by_bottom.get(bottom, ())

    def _touching(self, index: dict[int, list[Rectangle]], edge: float) -> list[Rectangle]:
        return [box for place in range(round(edge) - 2, round(edge) + 3) for box in index.get(place, ())]

    def _holds_cells(self, box: Rectangle) -> bool:
        return any(
            other != box and area_of(other) < 0.9 * area_of(box) and overlap(other, box) > 0.9 * area_of(other)
            for other in self._near(box)
        )

    def _find_combs(self) -> list[list[Rectangle]]:
        """Rows of four or more equal narrow cells."""
        combs: list[list[Rectangle]] = []
        seen: set[Rectangle] = set()
        for box in self.cells:
            if box in seen or not _is_narrow(box) or self._texts[box]:
                continue
            comb = [box]
            while True:
                last = comb[-1]
                following = next(
                    (
                        other
                        for other in self._touching(self._by_left, last.right)
                        if abs(other.bottom - box.bottom) < _SAME
                        and abs(other.top - box.top) < _SAME
                        and abs(other.width - box.width) < 0.25 * box.width
                        and other.left > last.left
                        and not self._texts[other]
                    ),
                    None,
                )
                if following is None:
                    break
                comb.append(following)
            if len(comb) >= _COMB:
                combs.append(comb)
                seen.update(comb)
        return combs

    def _comb(self, comb: Sequence[Rectangle]) -> Candidate:
        return self._labelled_comb(Rectangle(comb[0].left, comb[0].bottom, comb[-1].right, comb[0].top), len(comb))

    def _labelled_comb(self, box: Rectangle, cells: int) -> Candidate:
        label = self._around.left_of(box) or self._around.above(box, 14.0) or self._around.below(*_edge(box))
        field = with_label(label, self._language, _FRAME, what=f"{cells} boxes for letters", box=box)
        assert field is not None, "every side is evidence for a frame"
        return replace(field, cells=cells)


def is_square(box: Rectangle) -> bool:
    """Return whether it is as large as a box to tick."""
    return (
        SMALLEST_TICK <= box.width <= LARGEST_TICK
        and SMALLEST_TICK <= box.height <= LARGEST_TICK
        and _SQUARE[0] <= box.width / box.height <= _SQUARE[1]
    )


def _is_narrow(box: Rectangle) -> bool:
    return 6 <= box.width <= 26 and 8 <= box.height <= 32 and box.width <= 1.6 * box.height


def _distinct(boxes: Iterable[Rectangle]) -> list[Rectangle]:
    """Rounded to a tenth of a point, each once, from top to bottom and from left to right."""
    rounded = {Rectangle(*(round(edge, 1) for edge in box)) for box in boxes}
    return sorted(rounded, key=lambda box: (-box.top, box.left, box.bottom))


def _beside_signs(box: Rectangle, signs: Sequence[Phrase]) -> Rectangle:
    left, right = box.left, box.right
    for sign in signs:
        if (sign.box.left + sign.box.right) / 2 < (box.left + box.right) / 2:
            left = max(left, sign.box.right + 1)
        else:
            right = min(right, sign.box.left - 1)
    return Rectangle(left, box.bottom, right, box.top)


def _joined(texts: Sequence[Phrase]) -> Phrase:
    if len(texts) == 1:
        return texts[0]
    lefts, bottoms, rights, tops = zip(*(phrase.box for phrase in texts), strict=True)
    return Phrase(
        " ".join(phrase.text for phrase in texts), Rectangle(min(lefts), min(bottoms), max(rights), max(tops))
    )


def _nearer(row: Label | None, head: Label | None) -> Label | None:
    """The label in the row, unless only the one in the column is near."""
    if row is None or head is None:
        return row or head
    return row if row.gap <= head.gap + 1 else head


def _edge(box: Rectangle) -> tuple[float, float, float]:
    return box.left, box.right, box.bottom


def _same_row(box: Rectangle, other: Rectangle) -> bool:
    return shared((box.bottom, box.top), (other.bottom, other.top)) > 0.6 * other.height


def _same_column(box: Rectangle, other: Rectangle) -> bool:
    return shared((box.left, box.right), (other.left, other.right)) > 0.8 * other.width
