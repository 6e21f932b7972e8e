"""Fields of a document out of the places on its pages: what each is called, of which type it is, who fills it in. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.detection import DetectedField
from contracts.types import Area, FieldType
from services.rendering.jobs.detection.candidates import MOST_WORDS, Candidate
from services.rendering.jobs.detection.labels.labels import PartyName, name_of, normalised, party_of, type_of
from services.rendering.jobs.detection.page.marks import PageMarks, area_of, overlap, shared
from services.rendering.jobs.detection.page.phrases import Phrase
from services.rendering.jobs.detection.page_fields import PageFields
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.tags.grammar import EMAIL_PATTERN

_MOST_REPEATED = 0.6
_FEWEST_PAGES = 2
"""What is in the same place on as many pages, and on more than this share of all, belongs to the paper."""
_MARGIN = 0.14
"""Share of the page's height that head and foot have."""
_SIGNED = frozenset({"signature", "initials"})
_ABOVE, _BELOW = 190.0, 40.0
"""How far the name of a party may stand above what it fills in, and below it."""


@dataclass(frozen=True)
class CandidateOnPage:
    """A place on a page (from 1) with its meaning."""

    page: int
    place: Candidate
    kind: str


def proposals(pages: Sequence[tuple[int, PageFields, Sequence[Candidate]]], language: str) -> list[DetectedField]:
    """The fields in the order of reading; ``pages`` are those that were read, by number."""
    candidates = [
        CandidateOnPage(number, place, "checkbox" if place.is_tick else place.meaning(language).kind)
        for number, _, places in pages
        for place in places
    ]
    marks = {number: page.marks for number, page, _ in pages}
    candidates = _without_repeated(candidates, marks)
    roles = _roles(candidates, {number: page for number, page, _ in pages})
    return [_field(candidate, role, marks[candidate.page]) for candidate, role in zip(candidates, roles, strict=True)]


def _field(candidate: CandidateOnPage, role: str | None, marks: PageMarks) -> DetectedField:
    place = candidate.place
    kind = FieldType.CHECKBOX if place.is_tick else FieldType.CELLS if place.cells else type_of(candidate.kind)
    box = place.box
    area = Area(
        x=round(max(box.left, 0.0) / marks.width, 6),
        y=round(1 - min(box.top, marks.height) / marks.height, 6),
        w=round((min(box.right, marks.width) - max(box.left, 0.0)) / marks.width, 6),
        h=round((min(box.top, marks.height) - max(box.bottom, 0.0)) / marks.height, 6),
        page=candidate.page,
        cell_w=round(box.width / place.cells / marks.width, 6) if place.cells else None,
    )
    return DetectedField(
        name=name_of(place.label),
        type=kind,
        role=role,
        required=candidate.kind in _SIGNED or (place.label.rstrip().endswith("*") and not place.is_tick),
        validation={"pattern": EMAIL_PATTERN} if candidate.kind == "email" and not place.cells else {},
        areas=[area],
        reason=place.reason,
        confidence=round(min(max(place.confidence, 0.0), 1.0), 2),
    )


def _without_repeated(candidates: Sequence[CandidateOnPage], marks: dict[int, PageMarks]) -> list[CandidateOnPage]:
    """Without what is in head or foot of most pages, unless it is signed there: initials of each page are wanted."""
    if len(marks) < _FEWEST_PAGES:
        return list(candidates)
    places = Counter(place for candidate in candidates for place in {_place(candidate)})
    least = max(_FEWEST_PAGES, _MOST_REPEATED * len(marks))
    return [
        candidate
        for candidate in candidates
        if candidate.kind in _SIGNED
        or places[_place(candidate)] < least
        or not _is_in_margin(candidate.place.box, marks[candidate.page])
    ]


def _place(candidate: CandidateOnPage) -> tuple[int, int, int]:
    box = candidate.place.box
    return round(box.left / 3), round(box.bottom / 3), round(box.width / 3)


def _is_in_margin(box: Rectangle, marks: PageMarks) -> bool:
    return box.top > (1 - _MARGIN) * marks.height or box.bottom < _MARGIN * marks.height


def _roles(candidates: Sequence[CandidateOnPage], pages: dict[int, PageFields]) -> list[str | None]:
    """Return who fills in each place: by the party that its label names, or that is named below or above it in its column;
    for signatures side by side of nobody's, by the column."""
    party_phrases_by_page = {number: _phrases_with_parties(page.text.phrases) for number, page in pages.items()}
    parties = [_party(candidate, party_phrases_by_page[candidate.page]) for candidate in candidates]
    written: dict[str, set[str]] = defaultdict(set)
    for party in parties:
        if party is not None:
            written[party.key].add(party.name)
    names = {key: min(spellings, key=lambda name: (len(name), name)) for key, spellings in written.items()}
    roles = [party and names[party.key] for party in parties]
    return roles if any(roles) else _by_column(candidates)


def _phrases_with_parties(phrases: Iterable[Phrase]) -> list[tuple[Phrase, PartyName]]:
    """The short phrases that name a party."""
    return [
        (phrase, party)
        for phrase in phrases
        if len(normalised(phrase.text).split()) <= MOST_WORDS and (party := party_of(phrase.text)) is not None
    ]


def _party(candidate: CandidateOnPage, party_phrases: Sequence[tuple[Phrase, PartyName]]) -> PartyName | None:
    if candidate.place.label and len(normalised(candidate.place.label).split()) <= MOST_WORDS:
        party_of_label = party_of(candidate.place.label)
        if party_of_label is not None:
            return party_of_label
    if candidate.place.is_tick:
        return None
    box = candidate.place.box
    near = []
    for phrase, party in party_phrases:
        common = shared((phrase.box.left - 4, phrase.box.right + 4), (box.left, box.right))
        if common <= 0:
            continue
        above, below = phrase.box.bottom - box.top, box.bottom - phrase.box.top
        if -2 <= above <= _ABOVE:
            near.append((above + _BELOW, party))
        elif candidate.kind in _SIGNED and -4 <= below <= _BELOW:
            near.append((below, party))
    return min(near, key=lambda distance_and_party: distance_and_party[0])[1] if near else None


def _by_column(candidates: Sequence[CandidateOnPage]) -> list[str | None]:
    """Two signatures side by side are of two parties: so is what is above and below them in their columns."""
    roles: list[str | None] = [None] * len(candidates)
    signed = [number for number, candidate in enumerate(candidates) if candidate.kind == "signature"]
    for left in signed:
        for right in signed:
            left_candidate, right_candidate = candidates[left], candidates[right]
            if (
                left_candidate.page != right_candidate.page
                or right_candidate.place.box.left < left_candidate.place.box.right
            ):
                continue
            if shared(_height(left_candidate), _height(right_candidate)) <= 0:
                continue
            roles[left], roles[right] = "First Party", "Second Party"
            middle = (left_candidate.place.box.right + right_candidate.place.box.left) / 2
            for number, near in enumerate(candidates):
                if (
                    near.page == left_candidate.page
                    and abs(near.place.box.bottom - left_candidate.place.box.bottom) < _ABOVE / 2
                ):
                    if near.place.box.left >= middle - 4:
                        roles[number] = "Second Party"
                    elif near.place.box.right <= middle + 4:
                        roles[number] = "First Party"
    return roles


def _height(candidate: CandidateOnPage) -> tuple[float, float]:
    return candidate.place.box.bottom, candidate.place.box.top


def without_occupied(fields: Iterable[DetectedField], occupied: Sequence[Area]) -> list[DetectedField]:
    """Without those whose place another field has already."""
    boxes: dict[int, list[Rectangle]] = defaultdict(list)
    for area in occupied:
        boxes[area.page].append(_rectangle(area))
    return [field for field in fields if all(_is_free(area, boxes[area.page]) for area in field.areas)]


def _is_free(area: Area, occupied: Sequence[Rectangle]) -> bool:
    box = _rectangle(area)
    return all(overlap(box, other) <= 0.1 * min(area_of(box), area_of(other)) for other in occupied)


def _rectangle(area: Area) -> Rectangle:
    return Rectangle(area.x, 1 - area.y - area.h, area.x + area.w, 1 - area.y)
