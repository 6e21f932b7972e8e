"""Where field tags stand in the text of a page: their braces, what is between them, and how that can be read.

Most tags stand on one line. One that is broken over lines is read on in its own column (see ``text_columns``) when the
order in which the page was drawn leads elsewhere.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from services.rendering.jobs import bidi
from services.rendering.jobs.geometry import VisiblePage
from services.rendering.jobs.pdfium_text import PageText
from services.rendering.jobs.tag_grammar import NotATag, ParsedTag, parse_tag
from services.rendering.jobs.text_columns import Columns

LONGEST_TAG = 4_000
"""Characters between the braces."""

Range = tuple[int, int]
"""Positions in a page's text, the end not included."""

_BRACES = re.compile(r"([{}]) ?\1(?!\1)")
_PLACEHOLDER = r"=\s*\{\{\s*[a-z]{2,6}\s*\}\}"
"""A default such as ``{{date}}`` inside a tag."""

_TAG = re.compile(rf"(\{{ ?\{{)((?:{_PLACEHOLDER}|(?!\{{ ?\{{).){{0,{LONGEST_TAG}}}?)\}} ?\}}", re.DOTALL)
_MIRRORED_TAG = re.compile(r"([{}]) ?\1([^{}\r\n]*)([{}]) ?\3")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LINE_BREAK = re.compile(r"\s*[\r\n]+\s*")
_HYPHEN = re.compile("[\ufffe\x02]")
"""What pdfium makes of a hyphen at the end of a line; it drops the line's end."""

_MOST_BROKEN = 500
"""On a page; more are no contract."""

_MOST_BREAKS = 4
_SHOWN_UNCLOSED = 60


@dataclass
class Span:
    """A tag in a page's text: ``ranges`` with its braces, ``inside`` without them, in the order of reading. ``problem``: why
    it is none. ``right_to_left``: it stands on a line with such letters, where pdfium can only guess the order."""

    ranges: list[Range]
    inside: list[Range]
    problem: str | None = None
    right_to_left: bool = False

    @property
    def closing(self) -> Range:
        """The braces at its end."""
        return self.inside[-1][1], self.ranges[-1][1]

    def text(self, page: PageText) -> str:
        return "\n".join(page.text[start:end] for start, end in self.ranges)


class Inert(Protocol):
    """See ``tags.Surroundings``."""

    mirrored: bool

    def is_inert(self, text: PageText, start: int, end: int) -> bool: ...


def tag_spans(text: PageText, visible: VisiblePage, surroundings: Inert | None = None) -> list[Span]:
    """In the order of the page's text."""
    spans = list(_in_order(text, surroundings))
    broken = sum(span.problem is not None or _is_broken(text, span) for span in spans)
    if broken == 0 or broken > _MOST_BROKEN:
        return spans
    return _in_columns(text, visible, spans, surroundings)


def parse_span(text: PageText, span: Span) -> ParsedTag:
    """A tag may be broken over lines, or its letters set so loosely that pdfium sees blanks between them. Whether a blank
    belongs there cannot be seen, so the reading counts that is understood best. Raises NotATag when none is."""
    parsed: list[ParsedTag] = []
    failures: list[NotATag] = []
    for reading in _readings(text, span):
        try:
            parsed.append(parse_tag(reading))
        except NotATag as reason:
            failures.append(reason)
            continue
        if not parsed[-1].remarks:
            return parsed[-1]
    if not parsed:
        raise failures[0]
    return min(parsed, key=lambda one: len(one.remarks))


def _in_order(text: PageText, surroundings: Inert | None) -> Iterator[Span]:
    """As the page was drawn."""
    end = 0
    may_be_mirrored = not text.text.isascii()
    for opening in _BRACES.finditer(text.text):
        start = opening.start()
        if start < end or not _is_pair(text, start, opening.end()):
            continue
        if surroundings is not None and surroundings.is_inert(text, start, opening.end()):
            continue
        closing = text.text.find("}}", opening.end())
        if not may_be_mirrored and surroundings is None and _is_plain(text.text, opening, closing):
            end = closing + 2
            yield Span([(start, end)], [(opening.end(), closing)])
            continue
        right_to_left = may_be_mirrored and _RIGHT_TO_LEFT.search(_line_around(text.text, start)) is not None
        if right_to_left:
            # Braces are mirrored there: either pair may open, and a tag ends on its line.
            match = _MIRRORED_TAG.match(text.text, start)
        elif opening[1] == "}" and surroundings is not None and surroundings.mirrored:
            match = _MIRRORED_TAG.match(text.text, start)
        elif opening[1] == "}":
            continue
        else:
            match = _TAG.match(text.text, start)
        inert = match and surroundings is not None and surroundings.is_inert(text, match.end(2), match.end())
        if match is None or inert or not _is_pair(text, match.end(2), match.end()):
            yield Span([(start, start + _SHOWN_UNCLOSED)], [(opening.end(), opening.end())], _problem(text.text, start))
            continue
        inside, end = match[2], match.end()
        # ``{{A;default={date}}}``: the first brace belongs to the placeholder.
        more = inside.count("{") > inside.count("}") and text.text[end : end + 1] == "}"
        end += more
        yield Span([(start, end)], [(match.start(2), match.end(2) + more)], right_to_left=right_to_left)


def _is_plain(text: str, opening: re.Match[str], closing: int) -> bool:
    """As nearly all tags are: nothing between its braces has to be looked at."""
    start = opening.end()
    return (
        opening[0] == "{{"
        and 0 <= closing - start <= LONGEST_TAG
        and text.find("{", start, closing) < 0
        and text.find("} }", start, closing + 1) < 0
    )


def _problem(text: str, start: int) -> str:
    following = text.find("{{", start + 2)
    closing = text.find("}}", start, following if following >= 0 else len(text))
    return f"is longer than {LONGEST_TAG:,} characters" if closing - start > LONGEST_TAG else "is not closed"


def _is_broken(text: PageText, span: Span) -> bool:
    """Whether it is broken over lines."""
    return any("\n" in text.text[start:end] for start, end in span.ranges)


def _in_columns(text: PageText, visible: VisiblePage, spans: list[Span], surroundings: Inert | None) -> list[Span]:
    """Those that the order of drawing breaks, read down their column; what has been read so, no other tag has."""
    columns = Columns(text, visible)
    taken: set[int] = set()
    for span in sorted(spans, key=lambda one: one.problem is None):
        start, end = span.ranges[0]
        if span.problem is None and not (_is_broken(text, span) and columns.leaves_column(start, end)):
            if not taken.intersection(range(start, end)):
                continue
            span.problem = "is not closed"
        found = _down_the_column(text, columns, start)
        if found is None or (surroundings is not None and surroundings.is_inert(text, *found.closing)):
            continue
        if not taken.intersection(_positions(found.ranges)):
            span.ranges, span.inside, span.problem = found.ranges, found.inside, None
            taken.update(_positions(found.ranges))
    return spans


def _positions(ranges: list[Range]) -> Iterator[int]:
    for start, end in ranges:
        yield from range(start, end)


def _down_the_column(text: PageText, columns: Columns, start: int) -> Span | None:
    ranges: list[Range] = []
    length = 0
    for begin, end in columns.below(start):
        piece = text.text[begin:end]
        searched = piece if ranges else piece[2:]
        another, closing = searched.find("{{"), searched.find("}}")
        if closing >= 0 and (another < 0 or closing < another):
            close = end - len(searched) + closing
            inside = [*ranges, (begin, close)]
            inside[0] = (start + 2, inside[0][1])
            return Span([*ranges, (begin, close + 2)], inside)
        length += len(piece)
        if another >= 0 or length > LONGEST_TAG:
            return None
        ranges.append((begin, end))
    return None


def _line_around(text: str, position: int) -> str:
    end = text.find("\n", position)
    return text[text.rfind("\n", 0, position) + 1 : len(text) if end < 0 else end]


def _is_pair(text: PageText, start: int, end: int) -> bool:
    """``{{`` or ``}}``; a blank between the two is none when pdfium made it up from loose letter spacing."""
    return end - start == 2 or text.is_generated(text.character_index(start + 1))


def _readings(text: PageText, span: Span) -> Iterator[str]:
    """What the tag may say, the likeliest first. A line's end was a blank or nothing, a hyphen there was one or not."""
    if span.right_to_left:
        yield from _bidirectional(text, span)
    inside = "\n".join(text.text[start:end] for start, end in span.inside)
    loose = span.inside[0][0] - span.ranges[0][0] > 2  # The braces themselves are apart.
    if not loose and inside.isascii() and inside.isprintable():
        yield inside
    elif not loose:
        hyphens = ("-", "") if _HYPHEN.search(inside) else ("-",)
        for hyphen in hyphens:
            pieces = _LINE_BREAK.split(_HYPHEN.sub(hyphen, inside))
            yield from _joined(pieces)
    yield "".join(
        text.text[position]
        for position in _positions(span.inside)
        if not text.text[position].isspace() or not text.is_generated(text.character_index(position))
    )
    if loose:
        yield inside


def _bidirectional(text: PageText, span: Span) -> Iterator[str]:
    """From where the glyphs stand, left to right, back to the order in which they were written: in a paragraph that is
    written from right to left, or from left to right."""
    first, last = text.character_index(span.ranges[0][0]), text.character_index(span.ranges[-1][1] - 1)
    glyphs = [one for one in text.characters(first, last) if not one.generated]
    # The letters of a ligature all stand in the same place, in the order of the line.
    shown = "".join(glyph.text for glyph in sorted(glyphs, key=lambda one: round(one.x, 1)))
    for right_to_left in (True, False):
        yield bidi.logical_order(shown, right_to_left=right_to_left).strip("{} ")


def _joined(pieces: list[str]) -> Iterator[str]:
    """The lines of a tag with a blank or nothing between them, in every way if there are few."""
    if len(pieces) - 1 > _MOST_BREAKS:
        yield " ".join(pieces)
        yield "".join(pieces)
        return
    for between in sorted(itertools.product((" ", ""), repeat=len(pieces) - 1), key=lambda way: way.count("")):
        yield "".join(piece + glue for piece, glue in zip(pieces, (*between, ""), strict=True))
