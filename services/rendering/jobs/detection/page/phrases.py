"""Rows of text, cut into phrases, and what in them is there to be filled in: leaders and boxes that are characters. Pure."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from services.rendering.jobs.detection.page.marks import Letter, Rule, around
from services.rendering.jobs.pdf.geometry import Rectangle

_WORD_GAP = 0.17
_PHRASE_GAP = 0.85
"""Blank stretches between words, and between phrases, in heights of a line."""
_LEADER_GAP = 1.0
"""Between the dots of a leader, in heights of a line."""
_UNDERSCORES, _DOTS, _ELLIPSES = 3, 6, 2
"""Of which at least a leader consists."""
_SHORTEST_LEADER = 12.0

_MASK = re.compile(r"\s*[/.\-–]\s*")
"""Stands between the parts of a date that is to be filled in: ``__/__/____``."""
_BOX_CHARACTERS = frozenset("☐□❏❐❑❒▢◻⬜◽▭\uf06f\uf071\uf072\uf0a8\uf0a0\uf0fe\uf052")
"""Boxes as characters; those above U+F000 are where Word puts the signs of Wingdings."""
_SYMBOL_BOXES = frozenset("oqr¨nlm¤❍❏❐❑❒\u2751\u2752☐□")
"""Boxes in fonts of signs (Wingdings, Zapf Dingbats)."""
_BRACKETS = re.compile(r"\[[\s_]{0,6}\]|\([\s_]{2,6}\)")
_UNDERLINE, _DOT = "_", ".…․·‥"


@dataclass(frozen=True)
class Phrase:
    """Words that belong together on one row."""

    text: str
    box: Rectangle

    @property
    def middle(self) -> float:
        return (self.box.bottom + self.box.top) / 2


@dataclass(frozen=True)
class Leader:
    """A run of underscores or dots; ``before`` and ``after`` are what stands beside it on its row, ``is_last`` when no other
    one follows that; ``is_mask`` when it has the parts of a date."""

    box: Rectangle
    is_dotted: bool
    before: str = ""
    after: str = ""
    is_last: bool = True
    is_mask: bool = False


@dataclass(frozen=True)
class GlyphBox:
    """A box to tick that is a character, or brackets with nothing between them."""

    box: Rectangle


@dataclass
class PageText:
    """The text of a page by rows, from top to bottom."""

    phrases: list[Phrase] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    boxes: list[GlyphBox] = field(default_factory=list)


@dataclass(frozen=True)
class _Piece:
    """Letters of a row without a gap: ``kind`` is text, leader or box."""

    kind: str
    letters: tuple[Letter, ...]

    @property
    def box(self) -> Rectangle:
        return around(letter.box for letter in self.letters)

    @property
    def text(self) -> str:
        return _spaced(self.letters)


def page_text(letters: Iterable[Letter], upright: Sequence[Rule] = ()) -> PageText:
    """Return the phrases of a page, and what in its text is there to be filled in. ``upright`` rules keep apart what stands on
    either side of them."""
    text = PageText()
    for row in _rows(letters):
        middle = (row[0].box.bottom + row[0].box.top) / 2
        parting = sorted(rule.at for rule in upright if rule.start < middle < rule.end)
        _read_row(_pieces(row), parting, text)
    return text


def _rows(letters: Iterable[Letter]) -> list[list[Letter]]:
    """Letters whose middles are at one height, from left to right; rows from top to bottom."""
    rows: list[tuple[float, float, list[Letter]]] = []
    for letter in sorted(
        letters, key=lambda character: (-(character.box.bottom + character.box.top), character.box.left)
    ):
        middle, height = (letter.box.bottom + letter.box.top) / 2, letter.box.height
        if rows and rows[-1][0] - middle < 0.3 * max(min(height, rows[-1][1]), 1.0):
            rows[-1][2].append(letter)
        else:
            rows.append((middle, height, [letter]))
    return [sorted(row, key=lambda letter: letter.box.left) for _, _, row in rows]


def _pieces(row: Sequence[Letter]) -> list[_Piece]:
    """Leaders, boxes, and what is between them."""
    pieces: list[_Piece] = []
    place = 0
    text: list[Letter] = []

    def end_text() -> None:
        if text:
            pieces.append(_Piece("text", tuple(text)))
            text.clear()

    while place < len(row):
        end = _leader_end(row, place)
        if end:
            end_text()
            pieces.append(_Piece("leader", tuple(letter for letter in row[place:end] if not letter.text.isspace())))
            place = end
            continue
        end = _box_end(row, place)
        if end:
            end_text()
            pieces.append(_Piece("box", tuple(row[place:end])))
            place = end
            continue
        if not row[place].text.isspace():
            text.append(row[place])
        place += 1
    end_text()
    return pieces


def _leader_end(row: Sequence[Letter], place: int) -> int:
    """Return where the leader that begins there ends; 0 when none does."""
    first = row[place]
    family = _UNDERLINE if first.text in _UNDERLINE else _DOT if first.text in _DOT else ""
    if not family:
        return 0
    end, count, last = place + 1, 1, first
    ellipses = int(first.text == "…")
    for index in range(place + 1, len(row)):
        letter = row[index]
        if letter.text.isspace():
            continue
        if letter.text not in family or letter.box.left - last.box.right > _LEADER_GAP * max(letter.box.height, 1.0):
            break
        end, count, last = index + 1, count + 1, letter
        ellipses += letter.text == "…"
    width = last.box.right - first.box.left
    is_long = count >= _UNDERSCORES if family is _UNDERLINE else count >= _DOTS or ellipses >= _ELLIPSES
    return end if is_long and width >= _SHORTEST_LEADER else 0


def _box_end(row: Sequence[Letter], place: int) -> int:
    letter = row[place]
    if letter.text in _BOX_CHARACTERS or (letter.is_symbol and letter.text in _SYMBOL_BOXES):
        return place + 1
    if letter.text not in "[(":
        return 0
    around_it = "".join(character.text for character in row[place : place + 8])
    match = _BRACKETS.match(around_it)
    if match:
        return place + match.end()
    # Blanks are not always letters: brackets with a gap between them.
    if place + 1 < len(row) and letter.text + row[place + 1].text in ("[]", "()"):
        gap = row[place + 1].box.left - letter.box.right
        least = 0.1 if letter.text == "[" else 0.5
        if least * letter.box.height < gap < 2.5 * letter.box.height:
            return place + 2
    return 0


def _read_row(pieces: Sequence[_Piece], parting: Sequence[float], text: PageText) -> None:
    texts = [piece.text if piece.kind == "text" else "" for piece in pieces]
    number = 0
    while number < len(pieces):
        piece = pieces[number]
        if piece.kind == "text":
            text.phrases += _phrases(piece.letters, parting)
        elif piece.kind == "box":
            text.boxes.append(GlyphBox(piece.box))
        else:
            last = number
            while (
                last + 2 < len(pieces)
                and pieces[last + 2].kind == "leader"
                and pieces[last + 1].kind == "text"
                and _MASK.fullmatch(texts[last + 1])
            ):
                last += 2
            text.leaders.append(
                Leader(
                    box=around([piece.box, pieces[last].box]),
                    is_dotted=piece.letters[0].text in _DOT,
                    before=texts[number - 1] if number else "",
                    after=texts[last + 1] if last + 1 < len(pieces) else "",
                    is_last=all(piece.kind != "leader" for piece in pieces[last + 1 :][:2]),
                    is_mask=last - number >= 4,  # day, month and year with two marks between
                )
            )
            number = last
        number += 1


def _phrases(letters: Sequence[Letter], parting: Sequence[float]) -> Iterable[Phrase]:
    start = 0
    for number, (letter, next_letter) in enumerate(pairwise(letters), 1):
        height = max(letter.box.height, next_letter.box.height, 1.0)
        gap = next_letter.box.left - letter.box.right
        if gap > _PHRASE_GAP * height or (gap > 0 and _is_parted(letter.box, next_letter.box, parting)):
            yield _phrase(letters[start:number])
            start = number
    yield _phrase(letters[start:])


def _is_parted(box: Rectangle, next_box: Rectangle, parting: Sequence[float]) -> bool:
    """``parting``: where upright rules cross the row, from left to right."""
    place = bisect_left(parting, box.right - 1)
    return place < len(parting) and parting[place] <= next_box.left + 1


def _phrase(letters: Sequence[Letter]) -> Phrase:
    return Phrase(_spaced(letters), around(letter.box for letter in letters))


def _spaced(letters: Sequence[Letter]) -> str:
    """The text with a blank where there is a gap."""
    parts: list[str] = []
    last: Letter | None = None
    for letter in letters:
        if last is not None and letter.box.left - last.box.right > _WORD_GAP * max(letter.box.height, 1.0):
            parts.append(" ")
        parts.append(letter.text)
        last = letter
    return " ".join("".join(parts).split())
