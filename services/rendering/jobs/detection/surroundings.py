"""What stands beside a place on a page: the phrase to its left, right, above or below that may be its label. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from services.rendering.jobs.detection.page.marks import Rule, shared
from services.rendering.jobs.detection.page.phrases import Phrase
from services.rendering.jobs.pdf.geometry import Rectangle

_BAND = 24.0
_REACH, _REACH_OF_COLON = 45.0, 190.0
"""How far a label may stand to the left, and one that ends with a colon."""
_CAPTION = 15.0
"""How far below a line its caption may begin."""
_HEADING = 34.0
"""How far above a line or box its label may end."""
_TICK_REACH = 24.0
_MOST_NEAR = 400

_COLONS = (":", "：")


class Label(NamedTuple):
    """A phrase with where it stands: ``side`` is after (the field comes after it), before, above or below it."""

    phrase: Phrase
    side: str
    gap: float

    @property
    def text(self) -> str:
        return self.phrase.text

    @property
    def has_colon(self) -> bool:
        return self.phrase.text.rstrip(" *_").endswith(_COLONS)


class Surroundings:
    """The phrases of a page by height, and the rules between them."""

    def __init__(self, phrases: Iterable[Phrase], level: Sequence[Rule], upright: Sequence[Rule]) -> None:
        self._bands: dict[int, list[Phrase]] = defaultdict(list)
        for phrase in phrases:
            for band in range(int(phrase.box.bottom // _BAND), int(phrase.box.top // _BAND) + 1):
                self._bands[band].append(phrase)
        self._level, self._upright = _by_band(level, is_level=True), _by_band(upright, is_level=False)

    def between(self, bottom: float, top: float) -> Iterator[Phrase]:
        """The phrases of which a part is between two heights."""
        seen: set[int] = set()
        for band in range(int(bottom // _BAND), int(top // _BAND) + 1):
            for phrase in self._bands.get(band, ())[:_MOST_NEAR]:
                if phrase.box.top > bottom and phrase.box.bottom < top and id(phrase) not in seen:
                    seen.add(id(phrase))
                    yield phrase

    def inside(self, box: Rectangle) -> list[Phrase]:
        """The phrases whose middle is in the box, from top to bottom and left to right."""
        phrases = [
            phrase
            for phrase in self.between(box.bottom, box.top)
            if box.bottom < phrase.middle < box.top and box.left < (phrase.box.left + phrase.box.right) / 2 < box.right
        ]
        return sorted(phrases, key=lambda phrase: (-round(phrase.middle), phrase.box.left))

    def on_line(self, start: float, end: float, at: float) -> list[Phrase]:
        """The phrases that stand on a line, or through which it goes, from left to right."""
        phrases = [
            phrase
            for phrase in self.between(at + 1, at + 7)
            if shared((phrase.box.left, phrase.box.right), (start, end)) > 1
        ]
        return sorted(phrases, key=lambda phrase: phrase.box.left)

    def left_of(self, box: Rectangle) -> Label | None:
        """The phrase on the same row that ends before the box."""
        labels = [
            Label(phrase, "after", max(box.left - phrase.box.right, 0.0))
            for phrase in self.between(box.bottom - 4, box.top)
            if phrase.box.right <= box.left + 3 and _is_beside(phrase.box, box)
        ]
        label = min(labels, key=lambda candidate: (candidate.gap, -candidate.phrase.middle), default=None)
        if label is None or label.gap > (_REACH_OF_COLON if label.has_colon else _REACH):
            return None
        return None if self._is_parted(label.phrase.box.right, box.left, box, label.phrase.box) else label

    def right_of(self, box: Rectangle, reach: float = _TICK_REACH) -> Label | None:
        """The phrase on the same row that begins behind the box."""
        labels = [
            Label(phrase, "before", max(phrase.box.left - box.right, 0.0))
            for phrase in self.between(box.bottom, box.top)
            if phrase.box.left >= box.right - 1.5 and _is_beside(phrase.box, box)
        ]
        label = min(labels, key=lambda candidate: (candidate.gap, -candidate.phrase.middle), default=None)
        if label is None or label.gap > reach:
            return None
        return None if self._is_parted(box.right, label.phrase.box.left, box, label.phrase.box) else label

    def below(self, start: float, end: float, at: float) -> Label | None:
        """The phrase that begins shortly under a line and is not much longer: its caption."""
        labels = [
            Label(phrase, "above", at - phrase.box.top)
            for phrase in self.between(at - _CAPTION - 12, at)
            if -3.5 <= at - phrase.box.top <= _CAPTION
            and phrase.box.bottom < at
            and phrase.middle < at - 2
            and phrase.box.left >= start - 8
            and phrase.box.left < end - 4
            and phrase.box.right <= end + 30
        ]
        label = min(labels, key=lambda candidate: (round(candidate.gap), candidate.phrase.box.left), default=None)
        if label is None or self._is_crossed(label.phrase.box, label.phrase.box.top, at - 2):
            return None
        return label

    def above(self, box: Rectangle, reach: float = _HEADING) -> Label | None:
        """The phrase that ends shortly above the box and begins where it does."""
        labels = [
            Label(phrase, "below", phrase.box.bottom - box.top)
            for phrase in self.between(box.top - 3, box.top + reach)
            if -3 <= phrase.box.bottom - box.top <= reach
            and phrase.middle > box.top
            and (
                abs(phrase.box.left - box.left) < 12
                or shared((phrase.box.left, phrase.box.right), (box.left, box.right)) > 0.6 * phrase.box.width
            )
        ]
        label = min(
            labels,
            key=lambda candidate: (round(candidate.gap), abs(candidate.phrase.box.left - box.left)),
            default=None,
        )
        if label is None or self._is_crossed(label.phrase.box, box.top + 2, label.phrase.box.bottom):
            return None
        return label

    def room_above(self, start: float, end: float, at: float, most: float) -> float:
        """Return how high the blank is above a line."""
        bottoms = [
            phrase.box.bottom - at
            for phrase in self.between(at + 2, at + most)
            if phrase.middle > at + 4 and shared((phrase.box.left, phrase.box.right), (start, end)) > 1
        ]
        rules = [
            rule.at - at
            for rule in _near(self._level, at + 2, at + most)
            if at + 3 < rule.at < at + most and shared((rule.start, rule.end), (start, end)) > 1
        ]
        return max(min([most, *bottoms, *rules]), 0.0)

    def has_corner(self, rule: Rule) -> bool:
        """Return whether an upright rule hangs from an end of a level one: then it is the upper border of a frame."""
        return any(
            min(abs(other.at - rule.start), abs(other.at - rule.end)) < 2.5
            and rule.at - 8 > other.start
            and abs(other.end - rule.at) < 3
            for other in _near(self._upright, rule.at - 8, rule.at)
        )

    def left_words(self, box: Rectangle, reach: float = 330.0) -> Phrase | None:
        """The nearest phrase with a word in it on the same row to the left, whatever is between."""
        phrases = [
            phrase
            for phrase in self.between(box.bottom, box.top)
            if phrase.box.right <= box.left + 1
            and box.left - phrase.box.right < reach
            and _is_beside(phrase.box, box)
            and sum(letter.isalpha() for letter in phrase.text) >= 3
        ]
        return max(phrases, key=lambda phrase: phrase.box.right, default=None)

    def _is_parted(self, left: float, right: float, box: Rectangle, label: Rectangle) -> bool:
        """Return whether an upright rule stands between."""
        middle = (max(box.bottom, label.bottom) + min(box.top, label.top)) / 2
        return any(
            left + 1.5 < rule.at < right - 2 and rule.start < middle < rule.end
            for rule in _near(self._upright, middle, middle)
        )

    def _is_crossed(self, label: Rectangle, low: float, high: float) -> bool:
        """Return whether a level rule goes between a label and what is above or below it."""
        return any(
            low < rule.at < high and shared((rule.start, rule.end), (label.left, label.right)) > 0.3 * label.width
            for rule in _near(self._level, low, high)
        )


def _is_beside(phrase: Rectangle, box: Rectangle) -> bool:
    common = shared((phrase.bottom, phrase.top), (box.bottom - 3, box.top))
    return common > 0.4 * min(phrase.height, box.height + 3)


def _by_band(rules: Iterable[Rule], *, is_level: bool) -> dict[int, list[Rule]]:
    bands: dict[int, list[Rule]] = defaultdict(list)
    for rule in rules:
        low, high = (rule.at, rule.at) if is_level else (rule.start, rule.end)
        for band in range(int(low // _BAND), int(high // _BAND) + 1):
            bands[band].append(rule)
    return bands


def _near(bands: dict[int, list[Rule]], low: float, high: float) -> Iterator[Rule]:
    for band in range(int(low // _BAND), int(high // _BAND) + 1):
        yield from bands.get(band, ())[:_MOST_NEAR]
