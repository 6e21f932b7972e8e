"""Where field tags stand in the text of a page: their braces, what is between them, and how that can be read.

Most tags stand on one line. One that is broken over lines is read on in its own column (see ``text_columns``) when the
order in which the page was drawn leads elsewhere.
"""

import itertools
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage
from services.rendering.jobs.pdf.pdfium_text import PageText
from services.rendering.jobs.tags.grammar import LONGEST_TAG, NotATag, ParsedTag, is_whole, parse_tag
from services.rendering.jobs.tags.reading_order import RIGHT_TO_LEFT, ReadText, in_order
from services.rendering.jobs.tags.text_columns import Columns

Range = tuple[int, int]
"""Positions in a page's text, the end not included."""

_BRACES = re.compile(r"([{}]) ?\1(?!\1)")
_PLACEHOLDER = r"=\s*\{\{\s*[a-z]{2,6}\s*\}\}"
"""A default such as ``{{date}}`` inside a tag."""

_TAG = re.compile(rf"(\{{ ?\{{)((?:{_PLACEHOLDER}|(?!\{{ ?\{{).){{0,{LONGEST_TAG}}}?)\}} ?\}}", re.DOTALL)
_MIRRORED_TAG = re.compile(r"([{}]) ?\1([^{}\r\n]*)([{}]) ?\3")
_BLANK = re.compile(" ")
_LINE_BREAK = re.compile(r"\s*[\r\n]+\s*")
_LINE = re.compile(r"[^\s](?:[^\r\n]*[^\s])?")
_WORD = re.compile(r"\S+")
_BLANK_WIDTH = 0.2
"""Line heights."""
_IN_NAME_OR_ROLE = re.compile(r"^[^;=]*[^;=\s]$|;\s*role\s*=[^;]*[^;\s]$", re.IGNORECASE)
_HYPHEN = re.compile("[\ufffe\x02]")
"""What pdfium makes of a hyphen at the end of a line; it drops the line's end."""

_MOST_BROKEN = 500
"""On a page; more are no contract."""

_MOST_ORDERED = 50_000
"""Characters; a page with more is no contract."""

_MOST_BREAKS = 4
_SHOWN_UNCLOSED = 60


@dataclass
class Span:
    """A tag in a page's text: ``ranges`` with its braces, ``inside`` without them, in the order of reading. ``problem``: why
    it is none."""

    ranges: list[Range]
    inside: list[Range]
    problem: str | None = None

    @property
    def closing(self) -> Range:
        """The braces at its end."""
        return self.inside[-1][1], self.ranges[-1][1]

    def text(self, page: ReadText) -> str:
        return "\n".join(page.text[start:end] for start, end in self.ranges)


class Inert(Protocol):
    """See ``tags.Surroundings``."""

    mirrored: bool

    def is_inert(self, text: ReadText, start: int, end: int) -> bool: ...


def tag_spans(page: PageText, visible: VisiblePage, surroundings: Inert | None = None) -> tuple[ReadText, list[Span]]:
    """The tags in the order of the text, and the text that their positions are in: the page's as it was drawn where that
    leaves nothing to be wished for, else as it is read (see ``reading_order``)."""
    spans = _spans(page, visible, surroundings)
    if RIGHT_TO_LEFT.search(page.text) is None and not any(
        span.problem or _is_broken(page, span) or _has_gaps(page, span) for span in spans
    ):
        return page, spans
    if len(page) > _MOST_ORDERED:
        return page, spans
    text = in_order(page, _is_right_to_left)
    reordered_spans = _spans(text, visible, surroundings)
    return (text, reordered_spans) if _understood(text, reordered_spans) >= _understood(page, spans) else (page, spans)


def _spans(text: ReadText, visible: VisiblePage, surroundings: Inert | None) -> list[Span]:
    spans = list(_in_order(text, surroundings))
    broken = sum(span.problem is not None or _is_broken(text, span) for span in spans)
    if broken == 0 or broken > _MOST_BROKEN:
        return spans
    return _in_columns(text, visible, spans, surroundings)


def _has_gaps(page: PageText, span: Span) -> bool:
    """Return whether something may stand between its characters that was drawn before or after them."""
    for start, end in span.ranges:
        if page.text[start:end].isascii():
            if any(
                page.is_generated(page.character_index(start + blank.start()))
                for blank in _BLANK.finditer(page.text[start:end])
            ):
                return True
        elif not page.is_continuous(page.character_index(start), page.character_index(end - 1)):
            return True
    return False


def is_wrapped(text: ReadText, span: Span, visible: VisiblePage) -> bool:
    """Return whether the lines over which the tag's name or role is broken end where they must: the next word had no room
    there. A line that ends earlier ends a paragraph, and what follows is the document's text."""
    if not _is_broken(text, span) and len(span.ranges) == 1:
        return True
    lines = [
        (start + line.start(), start + line.end())
        for start, end in span.inside
        for line in _LINE.finditer(text.text[start:end])
    ]
    edges = [(_box(text, start, visible), _box(text, end - 1, visible)) for start, end in lines]
    boxes = [
        (first, last) for first, last in edges if first and last and first.top > last.bottom and last.top > first.bottom
    ]
    if len(boxes) < len(lines):
        return True
    inside = ""
    for number, (start, end) in enumerate(lines[:-1]):
        inside += text.text[start:end]
        if not _IN_NAME_OR_ROLE.search(inside):
            continue
        following, _ = lines[number + 1]
        word = _WORD.match(text.text, following)
        behind = _box(text, word.end() - 1, visible) if word else None
        (_, last), (first, _) = boxes[number], boxes[number + 1]
        if first.left > last.right:
            continue  # In the next column.
        widest = max(other.right for begin, other in boxes if begin.left <= last.right)
        if behind and last.right + behind.right - first.left + _BLANK_WIDTH * last.height < widest:
            return False
    return True


def _box(text: ReadText, position: int, visible: VisiblePage) -> Rectangle | None:
    box = text.glyph_box(text.character_index(position))
    return None if box is None else visible.from_default_space(box)


def _understood(text: ReadText, spans: Sequence[Span]) -> int:
    """Return how well: what is no tag counts against it."""
    return sum(_verdict(parse_span, text, span) if span.problem is None else -1 for span in spans)


def _is_right_to_left(left: str, right: str) -> bool:
    """Of two readings of a line, whether the one as a paragraph from right to left says more, or as much where most letters
    beside its tags run that way."""
    more = _score_of_tags(right) - _score_of_tags(left)
    beside = [character for character in _MIRRORED_TAG.sub("", left) if character.isalpha()]
    return more > 0 or (more == 0 and 2 * len(RIGHT_TO_LEFT.findall("".join(beside))) > len(beside))


def _score_of_tags(line: str) -> int:
    ends = list(_BRACES.finditer(line))
    pairs = zip(ends[::2], ends[1::2], strict=False)
    return sum(_verdict(parse_tag, line[opening.end() : closing.start()]) for opening, closing in pairs)


def _verdict(read: Callable[..., ParsedTag], *arguments: Any) -> int:
    try:
        return 1 if read(*arguments).remarks else 2
    except NotATag:
        return -1


def parse_span(text: ReadText, span: Span) -> ParsedTag:
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
    return min(parsed, key=lambda tag: len(tag.remarks))


def _in_order(text: ReadText, surroundings: Inert | None) -> Iterator[Span]:
    """One after the other."""
    end = 0
    may_be_mirrored = RIGHT_TO_LEFT.search(text.text) is not None or (
        surroundings is not None and surroundings.mirrored
    )
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
        if may_be_mirrored and _is_mirrored(text.text, start):
            match = _MIRRORED_TAG.match(text.text, start)
        elif opening[1] == "}":
            continue
        else:
            match = _TAG.match(text.text, start)
        inert = match and surroundings is not None and surroundings.is_inert(text, match.end(2), match.end())
        # ``{{A;default={date}}}``: the first brace belongs to the placeholder.
        more = (
            match is not None and match[2].count("{") > match[2].count("}") and text.text.startswith("}", match.end())
        )
        closed = match is not None and is_whole(text.text[match.start(2) : match.end(2) + more])
        if match is None or inert or not closed or not _is_pair(text, match.end(2), match.end()):
            yield Span([(start, start + _SHOWN_UNCLOSED)], [(opening.end(), opening.end())], _problem(text.text, start))
            continue
        end = match.end() + more
        yield Span([(start, end)], [(match.start(2), match.end(2) + more)])


def _is_mirrored(text: str, start: int) -> bool:
    """Return whether the rest of the line has braces that are mirrored, as on lines from right to left: then either pair may
    open, and a tag ends on its line."""
    end = text.find("\n", start)
    kinds = "".join(brace[1] for brace in _BRACES.finditer(text, start, len(text) if end < 0 else end))
    return len(kinds) % 2 == 0 and kinds != "{}" * (len(kinds) // 2)


def _is_plain(text: str, opening: re.Match[str], closing: int) -> bool:
    """As nearly all tags are: nothing between its braces has to be looked at."""
    start = opening.end()
    return (
        opening[0] == "{{"
        and 0 <= closing - start <= LONGEST_TAG
        and text.find("{", start, closing) < 0
        and text.find("}", start, closing) < 0
    )


def _problem(text: str, start: int) -> str:
    following = text.find("{{", start + 2)
    closing = text.find("}}", start, following if following >= 0 else len(text))
    return f"is longer than {LONGEST_TAG:,} characters" if closing - start > LONGEST_TAG else "is not closed"


def _is_broken(text: ReadText, span: Span) -> bool:
    """Return whether it is broken over lines."""
    return any("\n" in text.text[start:end] for start, end in span.ranges)


def _in_columns(text: ReadText, visible: VisiblePage, spans: list[Span], surroundings: Inert | None) -> list[Span]:
    """Those that the order of drawing breaks, read down their column; what has been read so, no other tag has."""
    columns = Columns(text, visible)
    positions_taken: set[int] = set()
    for span in sorted(spans, key=lambda candidate: candidate.problem is None):
        start, end = span.ranges[0]
        if span.problem is None and not (_is_broken(text, span) and columns.leaves_column(start, end)):
            if not positions_taken.intersection(range(start, end)):
                continue
            span.problem = "is not closed"
        column_span = _down_the_column(text, columns, start)
        if column_span is None or (surroundings is not None and surroundings.is_inert(text, *column_span.closing)):
            continue
        if not positions_taken.intersection(_positions(column_span.ranges)):
            span.ranges, span.inside, span.problem = column_span.ranges, column_span.inside, None
            positions_taken.update(_positions(column_span.ranges))
    return spans


def _positions(ranges: list[Range]) -> Iterator[int]:
    for start, end in ranges:
        yield from range(start, end)


def _down_the_column(text: ReadText, columns: Columns, start: int) -> Span | None:
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
            whole = is_whole("".join(text.text[first:last] for first, last in inside))
            return Span([*ranges, (begin, close + 2)], inside) if whole else None
        length += len(piece)
        if another >= 0 or length > LONGEST_TAG:
            return None
        ranges.append((begin, end))
    return None


def _is_pair(text: ReadText, start: int, end: int) -> bool:
    """``{{`` or ``}}``; a blank between the two is none when pdfium made it up from loose letter spacing."""
    return end - start == 2 or text.is_generated(text.character_index(start + 1))


def _readings(text: ReadText, span: Span) -> Iterator[str]:
    """Yield what the tag may say, the likeliest first. A line's end was a blank or nothing, a hyphen there was one or not."""
    inside = "\n".join(text.text[start:end] for start, end in span.inside)
    loose = span.inside[0][0] - span.ranges[0][0] > 2  # The braces themselves are apart.
    if not loose and inside.isascii() and inside.isprintable():
        yield inside
    elif not loose:
        hyphens = ("-", "") if _HYPHEN.search(inside) else ("-",)
        for hyphen in hyphens:
            pieces = _LINE_BREAK.split(_HYPHEN.sub(hyphen, inside))
            yield from _joined(pieces)
    positions = list(_positions(span.inside))
    generated = [
        position
        for position in positions
        if text.text[position].isspace() and text.is_generated(text.character_index(position))
    ]
    dropped = set(generated)
    if loose:
        yield "".join(
            text.text[position] for position in positions if position not in dropped - _between_words(text, generated)
        )
    yield "".join(text.text[position] for position in positions if position not in dropped)
    if loose:
        yield inside


def _between_words(text: ReadText, blanks: Sequence[int]) -> set[int]:
    """Those of the blanks between loosely set letters that are wider than the others by a blank's width."""
    gaps: dict[int, float] = {}
    sizes = []
    for position in blanks:
        before, after = (text.glyph_box(text.character_index(beside)) for beside in (position - 1, position + 1))
        if before is not None and after is not None:
            across = max(after.left - before.right, before.left - after.right)
            gaps[position] = max(across, after.bottom - before.top, before.bottom - after.top)
            sizes.append(max(before.width, before.height))
    if not gaps:
        return set()
    widest = statistics.median(gaps.values()) + _BLANK_WIDTH * statistics.median(sizes)
    return {position for position, gap in gaps.items() if gap > widest}


def _joined(pieces: list[str]) -> Iterator[str]:
    """The lines of a tag with a blank or nothing between them, in every way if there are few."""
    if len(pieces) - 1 > _MOST_BREAKS:
        yield " ".join(pieces)
        yield "".join(pieces)
        return
    for between in sorted(
        itertools.product((" ", ""), repeat=len(pieces) - 1), key=lambda separators: separators.count("")
    ):
        yield "".join(piece + glue for piece, glue in zip(pieces, (*between, ""), strict=True))
