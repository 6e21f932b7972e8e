"""Field tags in the text of a PDF: where they are, and which fields they make.

pdfium finds them, because it reads any font and encoding and puts text together that is split over runs and kerning. A tag
that cannot be read is reported with its page and text; it never disappears silently. Removing their text is another
matter: see ``tag_removal``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from contracts.rpc.rendering import TagField
from contracts.types import Area, Notice
from services.rendering.jobs.geometry import Rectangle, VisiblePage, rectangle_to_area
from services.rendering.jobs.pdfium_text import PageText, page_texts
from services.rendering.jobs.refused import Refused
from services.rendering.jobs.tag_boxes import Neighbours, field_box
from services.rendering.jobs.tag_grammar import NotATag, ParsedTag, clean, parse_tag

MOST_FIELDS = 2_000
LONGEST_REPORT = 200
_MAYBE = re.compile(r"\{ ?\{")
_BRACES = re.compile(r"([{}]) ?\1")
_TAG = re.compile(r"(\{ ?\{)((?:(?!\{ ?\{).){0,4000}?)\} ?\}", re.DOTALL)
_MIRRORED_TAG = re.compile(r"([{}]) ?\1([^{}\r\n]*)([{}]) ?\3")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LINE_BREAK = re.compile(r"\s*[\r\n]+\s*")


@dataclass
class FoundTag:
    """A tag with its place: ``start`` and ``end`` are positions in the page's text, ``first`` and ``last`` indices of
    pdfium's characters, ``box`` is where the field goes, in upright points. ``page`` from 1."""

    page: int
    text: str
    start: int
    end: int
    first: int
    last: int
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
    def is_inert(self, text: PageText, start: int, end: int) -> bool: ...
    def take_over(self, text: PageText, tag: FoundTag) -> None: ...
    def align(self, tags: Sequence[FoundTag]) -> None: ...


def find_tags(
    data: bytes, pages: Sequence[VisiblePage], *, document: str, surroundings: Surroundings | None = None
) -> FoundTags:
    """All ``{{...}}`` tags of a PDF; ``pages`` are its pages' geometry, in order. Raises Refused above 2,000 tags.

    ``surroundings`` of a PDF that was a DOCX: fields take over what their tags look like, and braces of values are none.
    """
    found = FoundTags()
    for number, text in enumerate(page_texts(data, len(pages)), 1):
        if _MAYBE.search(text.text):
            _read_page(text, pages[number - 1], number, document, found, surroundings)
        elif not text.text.strip():
            found.textless.append(number)
    if surroundings is not None:
        surroundings.align(found.tags)
    return found


def tag_fields(tags: Sequence[FoundTag], *, document: str, report: list[Notice]) -> list[TagField]:
    """Tags with the same name and role are one field with several areas; a tag without a name is a field of its own."""
    fields: dict[Any, TagField] = {}
    for number, tag in enumerate(tags):
        parsed = tag.parsed.tag
        key = (parsed.name, parsed.role) if parsed.name else number
        if key not in fields:
            fields[key] = parsed.to_field(tag.area)
            continue
        known = fields[key]
        known.areas.append(tag.area)
        known.options += [option for option in parsed.options if option not in known.options]
        if known.type != parsed.type:
            report.append(
                Notice(
                    code="tag_type_differs",
                    message=f"The field “{parsed.name}” is tagged as {known.type} and as {parsed.type}; it is {known.type}.",
                    document=document,
                    page=tag.page,
                )
            )
    return list(fields.values())


@dataclass
class _Span:
    """A tag in a page's text: positions of its braces, and of what is between them. ``closed`` False: only its beginning."""

    start: int
    inside: tuple[int, int]
    end: int
    closed: bool = True


def _read_page(
    text: PageText,
    visible: VisiblePage,
    page: int,
    document: str,
    found: FoundTags,
    surroundings: Surroundings | None,
) -> None:
    def notice(code: str, message: str) -> None:
        found.note(Notice(code=code, message=message, document=document, page=page))

    neighbours = Neighbours(text, visible)
    for span in _spans(text, surroundings):
        shown = clean(text.text[span.start : span.end], 120)
        if not span.closed:
            notice(
                "unclosed_tag", f"The tag that begins with “{shown}” on page {page} is not closed; it stays as text."
            )
            continue
        try:
            typed = surroundings.original(text.text[span.start : span.end]) if surroundings is not None else None
            parsed = _parse(text, span) if typed is None else parse_tag(typed)
        except NotATag as reason:
            notice("unknown_tag", f"“{shown}” on page {page} is not a field: {reason}; it stays as text.")
            continue
        first, last = text.character_index(span.start), text.character_index(span.end - 1)
        line = _widest_line(text, first, last, visible)
        box = line and field_box(parsed, line, visible, neighbours)
        if not box:
            notice("tag_outside_page", f"“{shown}” lies outside the visible part of page {page}.")
            continue
        if len(found.tags) >= MOST_FIELDS:
            raise Refused(f"The document has more than {MOST_FIELDS:,} field tags.")
        neighbours.add_field(box)
        shown_text = text.text[span.start : span.end]
        found.tags.append(FoundTag(page, shown_text, span.start, span.end, first, last, parsed, box, visible))
        if surroundings is not None:
            surroundings.take_over(text, found.tags[-1])
        for remark in parsed.remarks:
            notice("tag_attribute", f"In “{shown}” on page {page} {remark}.")


def _spans(text: PageText, surroundings: Surroundings | None = None) -> Iterator[_Span]:
    end = 0
    may_be_mirrored = not text.text.isascii()
    for opening in _BRACES.finditer(text.text):
        if opening.start() < end or not _is_pair(text, opening.start(), opening.end()):
            continue
        if surroundings is not None and surroundings.is_inert(text, opening.start(), opening.end()):
            continue
        if may_be_mirrored and _RIGHT_TO_LEFT.search(_line_around(text.text, opening.start())):
            # Braces are mirrored there: either pair may open, and a tag ends on its line.
            match = _MIRRORED_TAG.match(text.text, opening.start())
        elif opening[1] == "}" and surroundings is not None and surroundings.mirrored:
            match = _MIRRORED_TAG.match(text.text, opening.start())
        elif opening[1] == "}":
            continue
        else:
            match = _TAG.match(text.text, opening.start())
        inert = (
            match is not None and surroundings is not None and surroundings.is_inert(text, match.end(2), match.end())
        )
        if match is None or inert or not _is_pair(text, match.end(2), match.end()):
            yield _Span(opening.start(), (0, 0), opening.start() + 60, closed=False)
            continue
        end = match.end()
        yield _Span(match.start(), match.span(2), end)


def _line_around(text: str, position: int) -> str:
    end = text.find("\n", position)
    return text[text.rfind("\n", 0, position) + 1 : len(text) if end < 0 else end]


def _is_pair(text: PageText, start: int, end: int) -> bool:
    """``{{`` or ``}}``; a blank between the two is none when pdfium made it up from loose letter spacing."""
    return end - start == 2 or text.is_generated(text.character_index(start + 1))


def _parse(text: PageText, span: _Span) -> ParsedTag:
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


def _readings(text: PageText, span: _Span) -> Iterator[str]:
    inside = text.text[slice(*span.inside)]
    loose = span.inside[0] - span.start > 2  # The braces themselves are apart.
    if not loose:
        yield _LINE_BREAK.sub(" ", inside)
        yield _LINE_BREAK.sub("", inside)
    yield "".join(
        character
        for position, character in enumerate(inside, span.inside[0])
        if not character.isspace() or not text.is_generated(text.character_index(position))
    )
    if loose:
        yield inside


def _widest_line(text: PageText, first: int, last: int, visible: VisiblePage) -> Rectangle | None:
    """The box of the tag's text, in upright points; of a tag that is broken over lines, the line with most of it."""
    lines: list[Rectangle] = []
    for other in text.rectangles(first, last - first + 1):
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
    widest = max(lines, key=lambda one: one.width, default=None)
    return widest if widest and widest.width > 0 and widest.height > 0 else None
