"""Erases the text of field tags from the pages of a PDF, glyph by glyph, and nothing else.

Only the operands that draw a tag's glyphs are rewritten; each glyph gives way to a TJ number of the same width, so that
what follows on the line stays where it was. Covering the text up would leave it in the file, so it is never done: a tag
whose glyphs cannot be told apart stays visible and is reported. Nothing else may go or move: where our measure of a page
agrees with pdfium's at each glyph of its tags and behind them, and nothing else stands there, that is certain; every other
page that was changed is read again and compared, and a tag that cannot go without touching other text stays.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property

import pikepdf
import pypdfium2 as pdfium

from contracts.types import Notice
from services.rendering.jobs.content.font_codes import FontCodes
from services.rendering.jobs.content.glyphs import Unreadable, read_page
from services.rendering.jobs.content.rewriting import drop_spoken_text, rewritten
from services.rendering.jobs.pdf.pdfium_text import PageText, open_document, open_page_text
from services.rendering.jobs.pdf.saving import saved
from services.rendering.jobs.tags.finding import FoundTag
from services.rendering.jobs.tags.places import Place, Places, near
from services.rendering.jobs.tags.text_comparison import RemainingText
from services.rendering.jobs.tags.values import clean

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
    with _Original(data) as before:
        pages = [_Page(pdf, before, number, page_tags, fonts) for number, page_tags in by_page.items()]
        for page in pages:
            page.erase(page.tags)
        result = saved(pdf)
        if spoiled := _spoiled([page for page in pages if not page.certain], result):
            for page in spoiled:
                page.erase_one_by_one()
            result = saved(pdf)
        erased = [tag.text for page in pages for tag in page.erased]
        if erased and drop_spoken_text(pdf, result, erased):
            result = saved(pdf)
    report = [_not_removed(tag, document) for page in pages for tag in page.tags if tag not in page.erased]
    return (result if erased else data), report


class _Original:
    """The document before tags were removed; pdfium opens it when somebody has to look."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._stack = ExitStack()

    def __enter__(self) -> "_Original":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def _document(self) -> pdfium.PdfDocument:
        return self._stack.enter_context(open_document(self._data))

    def page(self, number: int) -> AbstractContextManager[PageText]:
        """``number`` from 1."""
        return open_page_text(self._document, number - 1)


def _spoiled(pages: Sequence["_Page"], result: bytes) -> list["_Page"]:
    """The pages on which something else went or moved."""
    if not pages:
        return []
    with open_document(result) as after:
        return [page for page in pages if not page.is_intact(after)]


class _Page:
    """A page with tags: as it was, and as it is."""

    def __init__(
        self,
        pdf: pikepdf.Pdf,
        before: "_Original",
        number: int,
        tags: list[FoundTag],
        fonts: dict[tuple[int, int], FontCodes],
    ) -> None:
        self.tags = tags
        self.erased: list[FoundTag] = []
        self.certain = False
        self._pdf, self._before, self._number, self._fonts = pdf, before, number, fonts
        self._page = pdf.pages[number - 1]
        self._original = {key: self._page.obj.get(key) for key in ("/Contents", "/Resources")}
        self._remaining: RemainingText | None = None
        self._known_origins: dict[int, list[Place]] = {}

    def erase(self, tags: Sequence[FoundTag]) -> None:
        """Takes these tags out of the original page, those that can be found. ``certain`` when what it leaves needs no second
        look; else see ``is_intact``."""
        self.erased, self.certain, self._remaining = [], False, None
        lines = [line for tag in tags for line in tag.lines]
        places = self._read([line.first, line.last] for line in lines)
        if places is not None and all(tag.lines for tag in tags) and all(map(places.mark_run, lines)):
            self.certain = places.is_certain(tag.behind for tag in tags if tag.behind is not None)
            self.erased = list(tags)
        if not self.certain:
            origins = {id(tag): self._origins(tag) for tag in tags}
            places = self._read(origins.values())
            self.erased = [tag for tag in tags if places is not None and places.mark(origins[id(tag)], tag.text)]
        if places is None or not self.erased:
            return
        if not self.certain:
            with self._before.page(self._number) as text:
                spans = [span for tag in self.erased for span in tag.ranges]
                self._remaining = RemainingText(text, spans, tolerance=places.rounding())
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
        """Return whether the page has all its text but the tags', where it was. The document has it as page ``number``."""
        if self._remaining is None or not self.erased:
            return True
        with open_page_text(document, (number or self._number) - 1) as after:
            if self._remaining.is_in(after):
                return True
            with self._before.page(self._number) as text:
                return self._remaining.is_anyhow_in(after, text)

    def _origins(self, tag: FoundTag) -> list[Place]:
        """Of all its glyphs."""
        if id(tag) not in self._known_origins:
            with self._before.page(self._number) as text:
                characters = [character for first, last in tag.characters for character in text.characters(first, last)]
            self._known_origins[id(tag)] = [
                (character.x, character.y)
                for character in characters
                if not character.generated and not character.text.isspace()
            ]
        return self._known_origins[id(tag)]

    def _read(self, tags: Iterable[Sequence[Place]]) -> Places | None:
        try:
            return Places(read_page(self._pdf, self._page, self._fonts, near(tags)))
        except _UNREADABLE:
            return None

    def _restore(self) -> None:
        self.erased = []
        for key, value in self._original.items():
            if value is not None:
                self._page.obj[key] = value
            elif key in self._page.obj:
                del self._page.obj[key]


def _alone(pdf: pikepdf.Pdf, page: pikepdf.Page) -> bytes:
    """Return what the page shows, as a document of its own, which is quicker to write and to read."""
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
