"""Whether a page still has the text that it must have, at the same places, after some of its text was taken out."""

from collections import defaultdict
from collections.abc import Sequence

from services.rendering.jobs.pdf.pdfium_text import Character, PageText

_STAYED = 0.05
"""How far text may seem to move, in points; single precision leaves less than that."""

_CHECKED_BEHIND = 200


class RemainingText:
    """What a page's text is without some spans. Blanks do not count: pdfium makes and drops them by what is around."""

    def __init__(self, before: PageText, spans: Sequence[tuple[int, int]], *, tolerance: float) -> None:
        self._gone = {position for start, end in spans for position in range(start, end)}
        self._tolerance = _STAYED + tolerance
        remaining = [
            position
            for position, character in enumerate(before.text)
            if position not in self._gone and not character.isspace()
        ]
        self._text = "".join(before.text[position] for position in remaining)
        self._behind = self._characters_behind(before, spans, remaining)

    @staticmethod
    def _characters_behind(
        before: PageText, spans: Sequence[tuple[int, int]], remaining: list[int]
    ) -> list[tuple[int, Character]]:
        """(index among the kept characters, character) for the rest of each line behind a span: what could have moved."""
        behind = []
        indices = {position: index for index, position in enumerate(remaining)}
        for _, end in spans:
            line_end = before.text.find("\n", end)
            line_end = len(before.text) if line_end < 0 else line_end
            for position in range(end, min(line_end, end + _CHECKED_BEHIND)):
                if position in indices:
                    character = before.character_index(position)
                    behind.append((indices[position], before.characters(character, character)[0]))
        return behind

    def is_in(self, after: PageText) -> bool:
        """The same text, and behind the spans at the same places."""
        remaining = [position for position, character in enumerate(after.text) if not character.isspace()]
        if "".join(after.text[position] for position in remaining) != self._text:
            return False
        for index, character in self._behind:
            place = after.character_index(remaining[index])
            if not self._is_same(after.characters(place, place)[0], character):
                return False
        return True

    def is_anyhow_in(self, after: PageText, before: PageText) -> bool:
        """As ``is_in``, but in any order, and by each character of the page."""
        removed = {before.character_index(position) for position in self._gone}
        expected = [
            character
            for index, character in enumerate(before.characters(0, len(before) - 1))
            if index not in removed and _counts(character)
        ]
        cells: dict[tuple[str, int, int], list[Character]] = defaultdict(list)
        count = 0
        for character in after.characters(0, len(after) - 1):
            if _counts(character):
                cells[character.text, round(character.x), round(character.y)].append(character)
                count += 1
        return count == len(expected) and all(self._take(cells, character) for character in expected)

    def _take(self, cells: dict[tuple[str, int, int], list[Character]], expected: Character) -> bool:
        for x in (-1, 0, 1):
            for y in (-1, 0, 1):
                cell = cells.get((expected.text, round(expected.x) + x, round(expected.y) + y), [])
                for index, character in enumerate(cell):
                    if self._is_same(character, expected):
                        del cell[index]
                        return True
        return False

    def _is_same(self, character: Character, other: Character) -> bool:
        moved = max(abs(character.x - other.x), abs(character.y - other.y))
        return character.text == other.text and moved < self._tolerance


def _counts(character: Character) -> bool:
    return not character.generated and not character.text.isspace()
