"""Erases the text of field tags from the pages of a PDF, glyph by glyph, and nothing else.

Only the operands that draw a tag's glyphs are rewritten; each glyph gives way to a TJ number of the same width, so that
what follows on the line stays where it was. Covering the text up would leave it in the file, so it is never done: a tag
whose glyphs cannot be told apart stays visible and is reported. Every page that was changed is read again and compared:
a tag that cannot go without touching other text stays.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pikepdf
import pypdfium2 as pdfium

from contracts.types import Notice
from services.rendering.jobs.content_rewriting import drop_spoken_text, rewritten
from services.rendering.jobs.font_codes import FontCodes
from services.rendering.jobs.geometry import Rectangle
from services.rendering.jobs.glyphs import Content, Glyph, Unreadable, read_page
from services.rendering.jobs.pdfium_text import Character, open_document, open_page_text
from services.rendering.jobs.saving import saved
from services.rendering.jobs.tag_values import clean
from services.rendering.jobs.tags import FoundTag
from services.rendering.jobs.text_comparison import RemainingText

_SAME_PLACE = 0.1
"""How far pdfium's origin of a glyph may be from ours, in font sizes; the narrowest letters are 0.2 wide."""

_SHADOW = 0.5
"""How far from a tag its copy may be, in font sizes."""

_WIDTH_ROUNDING = 0.001
"""pdfium cuts glyph widths to thousandths of the font size, so to it, text behind a tag moves by what it had cut off the
tag's glyphs before; other readers see it stay."""

_MOST_RETRIES = 50
_UNREADABLE = (
    pikepdf.PdfError,
    Unreadable,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""What a content stream or its resources can make pikepdf raise; such a page keeps its tags."""


def remove_tags(
    pdf: pikepdf.Pdf, data: bytes, tags: Sequence[FoundTag], *, document: str
) -> tuple[bytes, list[Notice]]:
    """The document without the tags' text, and what could not be removed. ``data`` is ``pdf`` as it was saved; ``tags``
    were found in it. ``pdf`` is changed."""
    by_page: dict[int, list[FoundTag]] = defaultdict(list)
    for tag in tags:
        by_page[tag.page].append(tag)
    fonts: dict[tuple[int, int], FontCodes] = {}
    with open_document(data) as before:
        pages = [_Page(pdf, before, number, page_tags, fonts) for number, page_tags in by_page.items()]
        for page in pages:
            page.erase(page.tags)
        result = saved(pdf)
        with open_document(result) as after:
            spoiled = [page for page in pages if not page.is_intact(after)]
        for page in spoiled:
            page.erase_one_by_one()
        if spoiled:
            result = saved(pdf)
        erased = [tag.text for page in pages for tag in page.erased]
        if erased and drop_spoken_text(pdf, erased):
            result = saved(pdf)
    report = [_not_removed(tag, document) for page in pages for tag in page.tags if tag not in page.erased]
    return (result if erased else data), report


class _Page:
    """A page with tags: as it was, and as it is."""

    def __init__(
        self,
        pdf: pikepdf.Pdf,
        before: pdfium.PdfDocument,
        number: int,
        tags: list[FoundTag],
        fonts: dict[tuple[int, int], FontCodes],
    ) -> None:
        self.tags = tags
        self.erased: list[FoundTag] = []
        self._pdf, self._before, self._number, self._fonts = pdf, before, number, fonts
        self._page = pdf.pages[number - 1]
        self._original = {key: self._page.obj.get(key) for key in ("/Contents", "/Resources")}
        self._remaining: RemainingText | None = None
        with self._text_before() as text:
            self._characters = {
                id(tag): [one for first, last in tag.characters for one in text.characters(first, last)] for tag in tags
            }

    def erase(self, tags: Sequence[FoundTag]) -> None:
        """Takes out of the original page what can be found of these tags."""
        self.erased = []
        places = self._places(tags)
        if places is None:
            return
        self.erased = [tag for tag in tags if places.mark(self._characters[id(tag)], tag.text)]
        if not self.erased:
            return
        with self._text_before() as text:
            spans = [span for tag in self.erased for span in tag.ranges]
            self._remaining = RemainingText(text, spans, tolerance=_rounding(places.content))
        try:
            stream, resources = rewritten(self._pdf, places.content)
        except _UNREADABLE:
            self._restore()
            return
        self._page.obj["/Contents"] = self._pdf.make_stream(stream)
        self._page.obj["/Resources"] = resources

    def erase_one_by_one(self) -> None:
        """After something else was hit: which tags can go?"""
        good: list[FoundTag] = []
        for tag in self.tags[:_MOST_RETRIES]:
            self._restore()
            self.erase([*good, tag])
            with open_document(_alone(self._pdf, self._page)) as single:
                if tag in self.erased and self.is_intact(single, number=1):
                    good.append(tag)
        self._restore()
        self.erase(good)

    def is_intact(self, document: pdfium.PdfDocument, *, number: int | None = None) -> bool:
        """Whether the page has all its text but the tags', where it was. The document has it as page ``number``."""
        if self._remaining is None or not self.erased:
            return True
        with open_page_text(document, (number or self._number) - 1) as after:
            if self._remaining.is_in(after):
                return True
            with self._text_before() as text:
                return self._remaining.is_anyhow_in(after, text)

    def _text_before(self) -> Any:
        return open_page_text(self._before, self._number - 1)

    def _places(self, tags: Sequence[FoundTag]) -> "_Places | None":
        characters = [character for tag in tags for character in self._characters[id(tag)]]
        try:
            content = read_page(self._pdf, self._page, self._fonts, _near(self._characters[id(tag)] for tag in tags))
        except _UNREADABLE:
            return None
        return _Places(content, characters)

    def _restore(self) -> None:
        self.erased = []
        for key, value in self._original.items():
            if value is not None:
                self._page.obj[key] = value
            elif key in self._page.obj:
                del self._page.obj[key]


class _Places:
    """The glyphs of a page by where they stand."""

    _CELL = 8.0

    def __init__(self, content: Content, characters: Sequence[Character]) -> None:
        """Only around ``characters``: they are what will be asked for."""
        self.content = content
        wanted = {
            (column + x, row + y)
            for column, row in {self._cell(character.x, character.y) for character in characters}
            for x in (-1, 0, 1)
            for y in (-1, 0, 1)
        }
        self._cells: dict[tuple[int, int], list[Glyph]] = defaultdict(list)
        self._order: dict[int, tuple[list[Glyph], int]] = {}
        self._spoken = [(text, glyphs) for text, glyphs in _spoken(content) if text and glyphs]
        for shown in _shown(content):
            for index, glyph in enumerate(shown):
                cell = self._cell(glyph.x, glyph.y)
                if cell in wanted:
                    self._cells[cell].append(glyph)
                    self._order[id(glyph)] = shown, index

    def mark(self, characters: Sequence[Character], text: str) -> bool:
        """Marks the glyphs of a tag as removed; False, and nothing is marked, when one of them is not found."""
        found: list[Glyph] = []
        for character in characters:
            if character.generated or character.text.isspace():
                continue
            glyphs = self._at(character)
            if not glyphs:
                return False
            found += glyphs
        found += self._shadows(found)
        # Of glyphs that have a text of their own, pdfium gives that text, all of it where the first glyph stands.
        for spoken, glyphs in self._spoken:
            if spoken in text and any(glyph is glyphs[0] for glyph in found):
                found += glyphs
        for glyph in found:
            glyph.removed = True
        self._mark_between(found)
        return True

    def _mark_between(self, found: list[Glyph]) -> None:
        """Blanks of the tag, which pdfium leaves out or which stand nowhere: what lies between two of its glyphs."""
        ranges: dict[int, tuple[list[Glyph], int, int]] = {}
        for glyph in found:
            if id(glyph) not in self._order:
                continue
            shown, index = self._order[id(glyph)]
            _, low, high = ranges.get(id(shown), (shown, index, index))
            ranges[id(shown)] = shown, min(low, index), max(high, index)
        for shown, low, high in ranges.values():
            for glyph in shown[low:high]:
                glyph.removed = True

    def _shadows(self, found: Sequence[Glyph]) -> list[Glyph]:
        """The whole tag once more, a little beside itself: pdfium takes text and shadow for one."""
        if not found:
            return []
        first, known = found[0], {id(glyph) for glyph in found}
        shadows: list[Glyph] = []
        for other in self._around(first.x, first.y):
            offset = other.x - first.x, other.y - first.y
            if id(other) in known or not other.is_like(first) or math.hypot(*offset) > _SHADOW * first.em:
                continue
            copy = [self._copy(glyph, offset) for glyph in found]
            if all(copy):
                shadows += [glyph for glyph in copy if glyph]
        return shadows

    def _copy(self, glyph: Glyph, offset: tuple[float, float]) -> Glyph | None:
        place = glyph.x + offset[0], glyph.y + offset[1]
        return next(
            (
                other
                for other in self._around(*place)
                if other.is_like(glyph) and math.dist((other.x, other.y), place) <= max(_SAME_PLACE * glyph.em, 0.01)
            ),
            None,
        )

    def _at(self, character: Character) -> list[Glyph]:
        """The glyph that stands there, with copies on top of it (bold made by drawing twice)."""
        return [
            glyph
            for glyph in self._around(character.x, character.y)
            if math.dist((glyph.x, glyph.y), (character.x, character.y)) <= max(_SAME_PLACE * glyph.em, 0.01)
        ]

    def _around(self, x: float, y: float) -> Iterator[Glyph]:
        column, row = self._cell(x, y)
        for beside in (column - 1, column, column + 1):
            for above in (row - 1, row, row + 1):
                yield from self._cells.get((beside, above), ())

    def _cell(self, x: float, y: float) -> tuple[int, int]:
        if not (math.isfinite(x) and math.isfinite(y)):
            return 0, 0
        return math.floor(x / self._CELL), math.floor(y / self._CELL)


def _shown(content: Content) -> Iterable[list[Glyph]]:
    """The glyphs of each show operator."""
    yield from content.glyphs.values()
    for form in content.forms.values():
        yield from _shown(form)


def _spoken(content: Content) -> Iterator[tuple[str, list[Glyph]]]:
    for spoken in content.spoken.values():
        yield spoken.text.strip(), [glyph for show in spoken.shows for glyph in content.glyphs.get(show, ())]
    for form in content.forms.values():
        yield from _spoken(form)


def _rounding(content: Content) -> float:
    cut = [sum(glyph.em for glyph in shown if glyph.removed) * _WIDTH_ROUNDING for shown in _shown(content)]
    return min(max(cut, default=0.0), 0.9)


def _near(tags: Iterable[Sequence[Character]]) -> Callable[[Rectangle], bool]:
    """Whether a rectangle touches the place of a tag."""
    boxes = []
    for characters in tags:
        xs = [character.x for character in characters if not character.generated]
        ys = [character.y for character in characters if not character.generated]
        if xs:
            boxes.append((min(xs) - 1, min(ys) - 1, max(xs) + 1, max(ys) + 1))

    def is_near(stretch: Rectangle) -> bool:
        left, bottom, right, top = stretch
        return any(left <= box[2] and right >= box[0] and bottom <= box[3] and top >= box[1] for box in boxes)

    return is_near


def _alone(pdf: pikepdf.Pdf, page: pikepdf.Page) -> bytes:
    """What the page shows, as a document of its own, which is quicker to write and to read."""
    content = pikepdf.Dictionary(Type=pikepdf.Name.Page, MediaBox=page.mediabox, Resources=page.obj["/Resources"])
    content["/Contents"] = page.obj["/Contents"]
    single = pikepdf.new()
    single.pages.append(pikepdf.Page(pdf.make_indirect(content)))
    return saved(single)


def _not_removed(tag: FoundTag, document: str) -> Notice:
    return Notice(
        code="tag_not_removed",
        message=f"“{clean(tag.text, 120)}” on page {tag.page} stays visible: its text cannot be taken out of the page.",
        document=document,
        page=tag.page,
    )
