"""Field tags in the text of a PDF: where they are, and which fields they make.

pdfium finds them, because it reads any font and encoding and puts text together that is split over runs and kerning. A tag
that cannot be read is reported with its page and text; it never disappears silently. Removing their text is another
matter: see ``tag_removal``.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from contracts.types import Area, Notice
from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage, rectangle_to_area
from services.rendering.jobs.pdf.pdfium_text import PageText, page_texts
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.tags.boxes import Neighbours, field_box
from services.rendering.jobs.tags.grammar import NotATag, ParsedTag, parse_tag
from services.rendering.jobs.tags.reading_order import OrderedText, ReadText
from services.rendering.jobs.tags.spans import Span, is_wrapped, parse_span, tag_spans
from services.rendering.jobs.tags.values import clean

MOST_FIELDS = 2_000
LONGEST_REPORT = 200
_ON_ONE_LINE = re.compile(r"[^\s\ufffe](?:[^\r\n\ufffe]*[^\s\ufffe])?\ufffe?")
_MAYBE = re.compile(r"\{ ?\{|\} ?\}")


class TagLine(NamedTuple):
    """A piece of a tag on one line: origins of its first and its last glyph in default user space, and how many glyphs there
    are from one to the other, ``most`` if blanks are glyphs."""

    first: tuple[float, float]
    last: tuple[float, float]
    fewest: int
    most: int


@dataclass
class FoundTag:
    """A tag with its place: ``ranges`` are positions in the page's text (one range unless it is broken over columns),
    ``characters`` the same as indices of pdfium's characters, both ends included; ``lines`` are its pieces on the page
    (none where it was not drawn in the order in which it is read), ``boxes`` what is around them, in upright points;
    ``behind`` is where the last glyph behind it on its line stands, in default user space; ``box`` is where the field
    goes, in upright points. ``page`` from 1."""

    page: int
    text: str
    ranges: list[tuple[int, int]]
    characters: list[tuple[int, int]]
    lines: list[TagLine]
    boxes: list[Rectangle]
    behind: tuple[float, float] | None
    parsed: ParsedTag
    box: Rectangle
    visible: VisiblePage

    @property
    def area(self) -> Area:
        area = rectangle_to_area(self.box, self.visible, page=self.page)
        area.option = self.parsed.option
        return area


@dataclass
class FoundTags:
    """``textless``: the pages (from 1) without any text."""

    tags: list[FoundTag] = field(default_factory=list)
    report: list[Notice] = field(default_factory=list)
    textless: list[int] = field(default_factory=list)

    def note(self, notice: Notice) -> None:
        """Adds to the report, which ends with a remark when it gets too long for anybody to read."""
        if len(self.report) < LONGEST_REPORT:
            self.report.append(notice)
        elif len(self.report) == LONGEST_REPORT:
            message = "There are more faults in field tags than are listed here."
            self.report.append(Notice(code="too_many_faults", message=message, document=notice.document))


class Surroundings(Protocol):
    """See ``docx_surroundings``."""

    mirrored: bool

    def original(self, shown: str) -> str | None: ...
    def is_inert(self, text: ReadText, start: int, end: int) -> bool: ...
    def take_over(self, text: PageText, tag: FoundTag) -> None: ...
    def align(self, tags: Sequence[FoundTag]) -> None: ...


def find_tags(
    data: bytes, pages: Sequence[VisiblePage], *, document: str, surroundings: Surroundings | None = None
) -> FoundTags:
    """All ``{{...}}`` tags of a PDF; ``pages`` are its pages' geometry, in order. Raises Refused above 2,000 tags.

    ``surroundings`` of a PDF that was a DOCX: fields take over what their tags look like, and braces of values are none.
    """
    result = FoundTags()
    for number, text in enumerate(page_texts(data, len(pages)), 1):
        if _MAYBE.search(text.text):
            _read_page(text, pages[number - 1], number, document, result, surroundings)
        elif not text.text.strip():
            result.textless.append(number)
    if surroundings is not None:
        surroundings.align(result.tags)
    return result


def _read_page(
    drawn: PageText,
    visible: VisiblePage,
    page: int,
    document: str,
    result: FoundTags,
    surroundings: Surroundings | None,
) -> None:
    def notice(code: str, message: str) -> None:
        result.note(Notice(code=code, message=message, document=document, page=page))

    neighbours = Neighbours(drawn, visible)
    text, spans = tag_spans(drawn, visible, surroundings)
    for span in spans:
        whole = span.text(text)
        shown = clean(whole, 120)
        typed = surroundings.original(whole) if surroundings is not None and span.problem is None else None
        if span.problem is None and typed is None and not is_wrapped(text, span, visible):
            span.problem = "is not closed"
        if span.problem is not None:
            notice(
                "unclosed_tag", f"The tag that begins with “{shown}” on page {page} {span.problem}; it stays as text."
            )
            continue
        try:
            parsed = parse_span(text, span) if typed is None else parse_tag(typed)
        except NotATag as reason:
            notice("unknown_tag", f"“{shown}” on page {page} is not a field: {reason}; it stays as text.")
            continue
        ranges = text.drawn(span.ranges) if isinstance(text, OrderedText) else span.ranges
        characters = [(drawn.character_index(start), drawn.character_index(end - 1)) for start, end in ranges]
        boxes = _line_boxes(drawn, characters, visible)
        box = field_box(parsed, boxes, visible, neighbours) if boxes else None
        if not box:
            notice("tag_outside_page", f"“{shown}” lies outside the visible part of page {page}.")
            continue
        if len(result.tags) >= MOST_FIELDS:
            raise Refused(f"The document has more than {MOST_FIELDS:,} field tags.")
        neighbours.add_field(box)
        lines = [line for start, end in ranges for line in _lines(drawn, start, end)] if text is drawn else []
        behind = _behind(drawn, span) if text is drawn else None
        result.tags.append(FoundTag(page, whole, ranges, characters, lines, boxes, behind, parsed, box, visible))
        if surroundings is not None:
            surroundings.take_over(drawn, result.tags[-1])
        for remark in parsed.remarks:
            notice("tag_attribute", f"In “{shown}” on page {page} {remark}.")


def _lines(text: PageText, start: int, end: int) -> Iterator[TagLine]:
    """The text at these positions, which begins and ends with braces, line by line."""
    for line in _ON_ONE_LINE.finditer(text.text, start, end):
        shown = line[0]
        first, last = text.character_index(line.start()), text.character_index(line.end() - 1)
        [first_place], [last_place] = text.origins(first, first), text.origins(last, last)
        yield TagLine(first_place, last_place, len("".join(shown.split())), len(shown))


def _behind(text: PageText, span: Span) -> tuple[float, float] | None:
    """Return where the last glyph of the line behind the tag stands."""
    start = span.ranges[-1][1]
    end = text.text.find("\n", start)
    rest = text.text[start : end if end >= 0 else len(text.text)].rstrip()
    if not rest:
        return None
    index = text.character_index(start + len(rest) - 1)
    return text.origins(index, index)[0]


def _line_boxes(text: PageText, characters: Sequence[tuple[int, int]], visible: VisiblePage) -> list[Rectangle]:
    """The boxes of the tag's text, in upright points, one for each line that it is broken over."""
    lines: list[Rectangle] = []
    stretches = [box for first, last in characters for box in text.rectangles(first, last - first + 1)]
    for other in stretches:
        part = visible.from_default_space(other)
        line = lines[-1] if lines else None
        shared = min(line.top, part.top) - max(line.bottom, part.bottom) if line else 0
        if line and shared > 0.5 * min(line.height, part.height):
            lines[-1] = Rectangle(
                min(line.left, part.left),
                min(line.bottom, part.bottom),
                max(line.right, part.right),
                max(line.top, part.top),
            )
        else:
            lines.append(part)
    return [line for line in lines if line.width > 0 and line.height > 0]


def tag_areas(tag: FoundTag) -> Iterator[Area]:
    """Yield where the text of a tag stands, or stood. How high its letters are is taken from how far they are apart, or from
    their boxes where they were not drawn in a row."""
    for box in tag.boxes if not tag.lines else ():
        more = 0.4 * min(box.width, box.height)
        around = Rectangle(box.left - more, box.bottom - more, box.right + more, box.top + more)
        yield rectangle_to_area(around, tag.visible, page=tag.page)
    for line in tag.lines:
        (x0, y0), (x1, y1) = line.first, line.last
        length = math.dist(line.first, line.last)
        em = min(max(2 * length / max(line.fewest, 1), 8.0), 200.0)
        along = ((x1 - x0) / length * em, (y1 - y0) / length * em) if length else (em, 0.0)
        corners = [
            (x + along[0] * ahead - along[1] * up, y + along[1] * ahead + along[0] * up)
            for x, y, ahead in ((x0, y0, -0.2), (x1, y1, 1.0))
            for up in (-0.4, 1.0)
        ]
        xs, ys = zip(*corners, strict=True)
        rectangle = tag.visible.from_default_space(Rectangle(min(xs), min(ys), max(xs), max(ys)))
        yield rectangle_to_area(rectangle, tag.visible, page=tag.page)
