"""The fields of one page. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from services.rendering.jobs.detection import lines, ticks
from services.rendering.jobs.detection.boxes import Boxes
from services.rendering.jobs.detection.candidates import MOST_WORDS, Candidate
from services.rendering.jobs.detection.labels.labels import is_for_office, normalised
from services.rendering.jobs.detection.page.marks import PageMarks, area_of, overlap, shared
from services.rendering.jobs.detection.page.phrases import PageText, Phrase, page_text
from services.rendering.jobs.detection.page.rulings import TooManyRules, cells
from services.rendering.jobs.detection.surroundings import Surroundings
from services.rendering.jobs.pdf.geometry import Rectangle

LEAST = 0.4
"""Confidence below which a place is not proposed."""

MOST_PLACES = 2_000
"""Lines, leaders and boxes of a page that may be fields."""

_SHARED = 0.2
"""Share of the smaller of two fields that the other may cover."""
_OFFICE_REACH = 60.0
_BAND = 20.0
_LOWEST_TEXT = 3.0
_TEXT = 0.7
"""Share of the width of a page that text has as a rule."""


@dataclass(frozen=True)
class PageFields:
    """A page that was read: its ``marks``, and its text."""

    marks: PageMarks

    @cached_property
    def text(self) -> PageText:
        """The text by phrases; what is too small to be read is none."""
        legible = [letter for letter in self.marks.letters if letter.box.height >= _LOWEST_TEXT]
        return page_text(legible, self.marks.upright)

    @property
    def labels(self) -> list[str]:
        """The short phrases of the page."""
        return [phrase.text for phrase in self.text.phrases if len(normalised(phrase.text).split()) <= MOST_WORDS]

    def candidates(self, language: str) -> tuple[list[Candidate], int]:
        """The places to fill in, without those that lie on others, from top to bottom and from left to right; and how many
        places were looked at. Raises rulings.TooManyRules."""
        marks, text = self.marks, self.text
        around = Surroundings(text.phrases, marks.level, marks.upright)
        boxes = Boxes(cells(marks.level, marks.upright), marks.width * marks.height, around, language, marks.dark)
        squares = ticks.without_grids(boxes.ticks())
        to_tick = [
            *((box, "square") for box in squares),
            *((box, "circle") for box in marks.rounds if not around.inside(box)),
            *((glyph.box, "box") for glyph in text.boxes),
        ]
        free = boxes.free_of(marks.level)
        combs = boxes.combs_on([rule for rule, _ in free], marks.upright)
        combed = {rule for _, rule in combs}
        places = len(to_tick) + len(free) + len(text.leaders)
        if places > MOST_PLACES:
            raise TooManyRules
        fields = [
            *ticks.on_boxes(to_tick, around),
            *(field for field, _ in combs),
            *boxes.fields([box for box, _ in to_tick]),
            *boxes.tinted(marks.tinted),
            *lines.on_leaders(text.leaders, around, language),
            *lines.on_rules(
                [(rule, length) for rule, length in free if rule not in combed],
                _width(text.phrases, marks.width),
                around,
                language,
            ),
        ]
        on_page = [field for field in fields if _is_on_page(field.box, marks)]
        offices = [phrase for phrase in text.phrases if is_for_office(phrase.text)]
        return _apart([_for_office(field, offices) for field in on_page]), places + len(boxes.cells)


def _apart(fields: Iterable[Candidate]) -> list[Candidate]:
    """Without those below the least confidence, and of those that lie on each other the surest."""
    surest: list[Candidate] = []
    by_height: dict[int, list[Rectangle]] = defaultdict(list)
    by_confidence = sorted(
        fields, key=lambda field: (-round(field.confidence, 3), -field.box.top, field.box.left, area_of(field.box))
    )
    for field in by_confidence:
        if field.confidence < LEAST:
            continue
        heights = range(int(field.box.bottom // _BAND), int(field.box.top // _BAND) + 1)
        if all(_lies_beside(field.box, other) for height in heights for other in by_height[height]):
            surest.append(field)
            for height in heights:
                by_height[height].append(field.box)
    return sorted(surest, key=lambda field: (-round(field.box.top), field.box.left))


def _lies_beside(box: Rectangle, other: Rectangle) -> bool:
    if other.left >= box.right or box.left >= other.right:
        return True
    return overlap(box, other) <= _SHARED * min(area_of(box), area_of(other))


def _for_office(field: Candidate, offices: Sequence[Phrase]) -> Candidate:
    """Less sure where somebody else is asked to fill it in."""
    box = field.box
    if any(
        (
            -4 <= phrase.box.bottom - box.top <= _OFFICE_REACH
            and shared((phrase.box.left, phrase.box.right), (box.left, box.right)) > 0
        )
        or overlap(phrase.box, box) > 0
        for phrase in offices
    ):
        return replace(field, confidence=field.confidence - 0.4)
    return field


def _width(phrases: Sequence[Phrase], page: float) -> float:
    """Return how wide the text of a page is, where there is enough of it to tell."""
    lefts, rights = [phrase.box.left for phrase in phrases], [phrase.box.right for phrase in phrases]
    return max(max(rights, default=0.0) - min(lefts, default=0.0), _TEXT * page)


def _is_on_page(box: Rectangle, marks: PageMarks) -> bool:
    return box.left >= -1 and box.bottom >= -1 and box.right <= marks.width + 1 and box.top <= marks.height + 1
