"""What the sender of a PDF ought to know of it although nothing is wrong: lines for the report that comes with a template."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pikepdf

from contracts.types import Notice
from services.rendering.jobs.archival.tagging import is_tagged
from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage, media_box
from services.rendering.jobs.pdf.values import items_of, name_of
from services.rendering.jobs.tags.values import clean

_FONTS_EVERYWHERE = re.compile(
    r"/(?:Arial|Courier|CourierNew|Helvetica|Symbol|Times|TimesNewRoman|ZapfDingbats)(?:PS|MT|PSMT|[,-].*)?"
)
"""The 14 that every reader must have (ISO 32000-1, 9.6.2.2), and those that every system shows in the same widths."""
_PAGES = {
    "pages_turned": (
        "is stored turned; it is shown, filled in and sealed upright",
        "are stored turned; they are shown, filled in and sealed upright",
    ),
    "pages_cropped": (
        "is larger than what is seen of it; positions count from the visible part",
        "are larger than what is seen of them; positions count from the visible part",
    ),
    "pages_scaled": (
        "is measured in units of its own (UserUnit); its size is given in points",
        "are measured in units of their own (UserUnit); their sizes are given in points",
    ),
    "no_text": (
        "is a picture without text, such as a scan: no field tags can be found there, and no text can be copied",
        "are pictures without text, such as a scan: no field tags can be found there, and no text can be copied",
    ),
}
_SUBSET = re.compile(r"/[A-Z]{6}\+")
_FONT_FILES = ("/FontFile", "/FontFile2", "/FontFile3")
_DEEPEST = 16
_MOST_NAMED = 10


def page_notices(pdf: pikepdf.Pdf, pages: Sequence[VisiblePage], *, document: str) -> list[Notice]:
    """Pages that are stored otherwise than they are seen: turned, cropped, scaled."""
    turned = [number for number, page in enumerate(pages, 1) if page.rotation]
    scaled = [number for number, page in enumerate(pages, 1) if page.user_unit != 1]
    cropped = [
        number
        for number, (page, visible) in enumerate(zip(pdf.pages, pages, strict=True), 1)
        if _is_cropped(media_box(page), visible.box)
    ]
    by_code = {"pages_turned": turned, "pages_cropped": cropped, "pages_scaled": scaled}
    return [_of_pages(code, numbers, document) for code, numbers in by_code.items() if numbers]


def _is_cropped(media: Rectangle, box: Rectangle) -> bool:
    return any(abs(edge - other) > 1 for edge, other in zip(media, box, strict=True))


def _of_pages(code: str, numbers: Sequence[int], document: str) -> Notice:
    of_one_page, of_several_pages = _PAGES[code]
    if len(numbers) == 1:
        return Notice(code=code, message=f"Page {numbers[0]} {of_one_page}.", document=document, page=numbers[0])
    return Notice(code=code, message=f"Pages {ranges(numbers)} {of_several_pages}.", document=document)


def ranges(numbers: Sequence[int]) -> str:
    """``1, 3-5``; ``numbers`` ascend."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def content_notices(pdf: pikepdf.Pdf, textless: Sequence[int], *, document: str, signed: bool = False) -> list[Notice]:
    """Tagged for accessibility, pages that are nothing but pictures, fonts that are not in the file. ``textless``: the pages
    (from 1) on which no reader finds any text."""
    notices = []
    if "/StructTreeRoot" in pdf.Root:
        also = is_tagged(pdf) and not signed
        message = "The PDF is tagged for accessibility; its tags stay, " + (
            "and what is filled in is tagged, too." if also else "but what is filled in is not part of them."
        )
        notices.append(Notice(code="tagged", message=message, document=document))
    used = _Used()
    without_text = set(textless)
    scans = []
    for number, page in enumerate(pdf.pages, 1):
        if used.look_at(page.obj) and number in without_text:
            scans.append(number)
    if scans:
        notices.append(_of_pages("no_text", scans, document))
    if used.missing:
        names = [f"“{name}”" for name in sorted(used.missing)[:_MOST_NAMED]]
        more = f" and {len(used.missing) - _MOST_NAMED:,} more" if len(used.missing) > _MOST_NAMED else ""
        message = f"Fonts that are used are not in the PDF: {', '.join(names)}{more}. Each reader replaces them in its own way."
        notices.append(Notice(code="fonts_missing", message=message, document=document))
    return notices


@dataclass
class _Used:
    """``missing``: names of fonts that the pages looked at use and the file does not have."""

    missing: set[str] = field(default_factory=set)
    _known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def look_at(self, page: pikepdf.Dictionary) -> bool:
        """Return whether the page has a picture."""
        node: Any = page
        for _ in range(_DEEPEST):
            if not isinstance(node, pikepdf.Dictionary):
                return False
            if "/Resources" in node:
                return self._look_into(node["/Resources"], 0)
            node = node.get("/Parent")
        return False

    def _look_into(self, resources: Any, depth: int) -> bool:
        if not isinstance(resources, pikepdf.Dictionary) or depth > _DEEPEST:
            return False
        place = resources.objgen
        if place != (0, 0) and place in self._known:
            return self._known[place]
        if place != (0, 0):
            self._known[place] = False  # A form may lead back here.
        for font in _values(resources.get("/Font")):
            self._look_at_font(font)
        has_picture = False
        for drawn in _values(resources.get("/XObject")):
            has_picture |= self._look_at_drawn(drawn, depth)
        if place != (0, 0):
            self._known[place] = has_picture
        return has_picture

    def _look_at_drawn(self, drawn: Any, depth: int) -> bool:
        if not isinstance(drawn, pikepdf.Stream):
            return False
        if drawn.get("/Subtype") != "/Form":
            return bool(drawn.get("/Subtype") == "/Image")
        if drawn.objgen not in self._known:
            self._known[drawn.objgen] = False
            self._known[drawn.objgen] = self._look_into(drawn.get("/Resources"), depth + 1)
        return self._known[drawn.objgen]

    def _look_at_font(self, font: Any) -> None:
        if not isinstance(font, pikepdf.Dictionary) or font.get("/Subtype") == "/Type3":
            return
        if font.objgen in self._known:
            return
        if font.objgen != (0, 0):
            self._known[font.objgen] = False
        name = name_of(font.get("/BaseFont"))
        inner = items_of(font.get("/DescendantFonts"))
        holder = inner[0] if inner and isinstance(inner[0], pikepdf.Dictionary) else font
        descriptor = holder.get("/FontDescriptor")
        if isinstance(descriptor, pikepdf.Dictionary) and any(key in descriptor for key in _FONT_FILES):
            return
        if name and not _FONTS_EVERYWHERE.fullmatch(name):
            self.missing.add(clean(_SUBSET.sub("/", name)[1:], 60))


def _values(dictionary: Any) -> Iterator[Any]:
    if isinstance(dictionary, pikepdf.Dictionary):
        yield from (value for _, value in dictionary.items())
