"""Erases the text of field tags from the pages of a PDF, glyph by glyph, and nothing else.

Only the operands that draw a tag's glyphs are rewritten; each glyph gives way to a TJ number of the same width, so that
what follows on the line stays where it was. Covering the text up would leave it in the file, so it is never done: a tag
whose glyphs cannot be told apart stays visible and is reported. Every page that was changed is read again and compared:
when anything but the tags differs, the page goes back to what it was.
"""

import io
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pikepdf
import pypdfium2 as pdfium

from contracts.types import Notice
from services.rendering.jobs.font_codes import FontCodes
from services.rendering.jobs.glyphs import Content, Glyph, TooComplicated, read_page
from services.rendering.jobs.pdfium_text import Character, open_document, open_page_text
from services.rendering.jobs.tag_grammar import clean
from services.rendering.jobs.tags import FoundTag

_SAME_PLACE = 0.1
"""How far pdfium's origin of a glyph may be from ours, in font sizes; the narrowest letters are 0.2 wide."""

_STAYED = 0.05
"""How far text outside the tags may seem to move, in points; single precision leaves less than that."""

_WIDTH_ROUNDING = 0.001
"""pdfium cuts glyph widths to thousandths of the font size, so to it, text behind a tag moves by what it had cut off the
tag's glyphs before; other readers see it stay."""

_SPOKEN = ("/ActualText", "/Alt", "/E")


def remove_tags(
    pdf: pikepdf.Pdf, data: bytes, tags: Sequence[FoundTag], *, document: str, save: "dict[str, Any]"
) -> tuple[bytes, list[Notice]]:
    """The document without the tags' text, and what could not be removed. ``data`` is ``pdf`` as it was saved with the
    options ``save``; ``tags`` were found in it. ``pdf`` is changed."""
    report: list[Notice] = []
    by_page: dict[int, list[FoundTag]] = defaultdict(list)
    for tag in tags:
        by_page[tag.page].append(tag)
    changed: dict[int, _ChangedPage] = {}
    fonts: dict[tuple[int, int], FontCodes] = {}
    with open_document(data) as before:
        for number, page_tags in by_page.items():
            page = _change_page(pdf, before, number, page_tags, fonts, document, report)
            if page is not None:
                changed[number] = page
    if not changed:
        return data, report
    result = _saved(pdf, save)
    spoiled = _spoiled_pages(result, changed)
    if not spoiled:
        return result, report
    for number in spoiled:
        changed[number].restore(pdf)
        report += [_not_removed(tag, document) for tag in changed[number].tags]
    return _saved(pdf, save), report


class _ChangedPage:
    """What a page was, and the text that it must still have."""

    def __init__(self, page: pikepdf.Page, tags: list[FoundTag], remaining: list[Character], tolerance: float) -> None:
        self.tags = tags
        self.remaining = remaining
        self.tolerance = tolerance
        self._contents = page.obj.get("/Contents")
        self._resources = page.obj.get("/Resources")

    def restore(self, pdf: pikepdf.Pdf) -> None:
        page = pdf.pages[self.tags[0].page - 1].obj
        for key, value in (("/Contents", self._contents), ("/Resources", self._resources)):
            if value is not None:
                page[key] = value
            elif key in page:
                del page[key]


def _change_page(
    pdf: pikepdf.Pdf,
    before: pdfium.PdfDocument,
    number: int,
    tags: list[FoundTag],
    fonts: dict[tuple[int, int], FontCodes],
    document: str,
    report: list[Notice],
) -> _ChangedPage | None:
    page = pdf.pages[number - 1]
    with open_page_text(before, number - 1) as text:
        characters = text.characters(0, len(text) - 1)
    try:
        content = read_page(page, fonts)
    except (pikepdf.PdfError, TooComplicated, TypeError, ValueError):
        report += [_not_removed(tag, document) for tag in tags]
        return None
    places = _Places(content)
    removable: list[FoundTag] = []
    gone: set[int] = set()
    for tag in tags:
        if places.mark(characters[tag.first : tag.last + 1], tag.text):
            removable.append(tag)
            gone.update(range(tag.first, tag.last + 1))
        else:
            report.append(_not_removed(tag, document))
    if not removable:
        return None
    remaining = [character for index, character in enumerate(characters) if index not in gone]
    changed = _ChangedPage(page, removable, remaining, _tolerance(content))
    stream, resources = _rewritten(pdf, content)
    page.obj["/Contents"] = pdf.make_stream(stream)
    page.obj["/Resources"] = resources
    return changed


class _Places:
    """The glyphs of a page by where they stand."""

    _CELL = 8.0

    def __init__(self, content: Content) -> None:
        self._cells: dict[tuple[int, int], list[Glyph]] = defaultdict(list)
        self._order: dict[int, tuple[list[Glyph], int]] = {}
        self._spoken = [(text, glyphs) for text, glyphs in _spoken(content) if text and glyphs]
        for shown in _shown(content):
            for index, glyph in enumerate(shown):
                self._cells[self._cell(glyph.x, glyph.y)].append(glyph)
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
            shown, index = self._order[id(glyph)]
            _, low, high = ranges.get(id(shown), (shown, index, index))
            ranges[id(shown)] = shown, min(low, index), max(high, index)
        for shown, low, high in ranges.values():
            for glyph in shown[low:high]:
                glyph.removed = True

    def _at(self, character: Character) -> list[Glyph]:
        """The glyph that stands there, with copies on top of it (bold made by drawing twice)."""
        column, row = self._cell(character.x, character.y)
        return [
            glyph
            for x in (column - 1, column, column + 1)
            for y in (row - 1, row, row + 1)
            for glyph in self._cells.get((x, y), ())
            if math.dist((glyph.x, glyph.y), (character.x, character.y)) <= max(_SAME_PLACE * glyph.em, 0.01)
        ]

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
        yield spoken.text.strip(), [glyph for show in spoken.shows for glyph in content.glyphs[show]]
    for form in content.forms.values():
        yield from _spoken(form)


def _tolerance(content: Content) -> float:
    cut = [sum(glyph.em for glyph in shown if glyph.removed) * _WIDTH_ROUNDING for shown in _shown(content)]
    return _STAYED + min(max(cut, default=0.0), 1 - _STAYED)


def _rewritten(pdf: pikepdf.Pdf, content: Content) -> tuple[bytes, pikepdf.Dictionary]:
    """The stream without the removed glyphs. Form XObjects that change are copied, because other pages may draw them."""
    instructions: list[Any] = []
    resources = content.resources
    silent = {
        index for index, spoken in content.spoken.items() if any(_is_changed(content, show) for show in spoken.shows)
    }
    for index, instruction in enumerate(content.instructions):
        if _is_changed(content, index):
            instructions += _without_removed(instruction, content.glyphs[index])
        elif index in silent:
            instructions.append(_without_spoken_text(instruction, resources))
        elif index in content.forms and any(glyph.removed for glyph in content.forms[index].all_glyphs()):
            resources, name = _with_form(resources, _copied_form(pdf, content.forms[index]))
            instructions.append(pikepdf.ContentStreamInstruction([name], pikepdf.Operator("Do")))
        else:
            instructions.append(instruction)
    return pikepdf.unparse_content_stream(instructions), resources


def _is_changed(content: Content, index: int) -> bool:
    return any(glyph.removed for glyph in content.glyphs.get(index, ()))


def _without_removed(instruction: Any, glyphs: list[Glyph]) -> list[Any]:
    """The show operator as TJ; ``'`` and ``"`` are spelled out (ISO 32000-2, table 107)."""
    operands, operator = instruction.operands, str(instruction.operator)
    lead: list[Any] = []
    match operator:
        case "TJ":
            elements = list(operands[0])
        case "'":
            elements = [operands[0]]
            lead = [pikepdf.ContentStreamInstruction([], pikepdf.Operator("T*"))]
        case '"':
            elements = [operands[2]]
            lead = [
                pikepdf.ContentStreamInstruction([operands[0]], pikepdf.Operator("Tw")),
                pikepdf.ContentStreamInstruction([operands[1]], pikepdf.Operator("Tc")),
                pikepdf.ContentStreamInstruction([], pikepdf.Operator("T*")),
            ]
        case _:
            elements = [operands[0]]
    of_element: dict[int, list[Glyph]] = defaultdict(list)
    for glyph in glyphs:
        of_element[glyph.element].append(glyph)
    line = _Line()
    for number, element in enumerate(elements):
        if not isinstance(element, pikepdf.String):
            line.move(float(element))
            continue
        text = bytes(element)
        for glyph in of_element[number]:
            if glyph.removed:
                line.move(glyph.kern)
            else:
                line.show(text[glyph.start : glyph.end])
    return [*lead, pikepdf.ContentStreamInstruction([line.array()], pikepdf.Operator("TJ"))]


class _Line:
    """Operand of a TJ operator in the making."""

    def __init__(self) -> None:
        self._parts: list[bytes | float] = []

    def show(self, text: bytes) -> None:
        if self._parts and isinstance(self._parts[-1], bytes):
            self._parts[-1] += text
        else:
            self._parts.append(text)

    def move(self, number: float) -> None:
        if self._parts and isinstance(self._parts[-1], float):
            self._parts[-1] += number
        else:
            self._parts.append(float(number))

    def array(self) -> pikepdf.Array:
        parts = [
            pikepdf.String(part) if isinstance(part, bytes) else Decimal(part).quantize(Decimal("0.0001"))
            for part in self._parts
        ]
        return pikepdf.Array(parts)


def _without_spoken_text(instruction: Any, resources: pikepdf.Dictionary) -> Any:
    """A marked-content operator without the text that readers give instead of the glyphs."""
    tag, properties = instruction.operands[0], instruction.operands[1]
    if isinstance(properties, pikepdf.Name):
        properties = resources["/Properties"][properties]
    kept = pikepdf.Dictionary({key: value for key, value in properties.items() if key not in _SPOKEN})
    return pikepdf.ContentStreamInstruction([tag, kept], instruction.operator)


def _copied_form(pdf: pikepdf.Pdf, form: Content) -> pikepdf.Stream:
    data, resources = _rewritten(pdf, form)
    copy = pdf.make_stream(data)
    assert form.stream is not None
    for key, value in form.stream.items():
        if key not in ("/Length", "/Filter", "/DecodeParms", "/Resources"):
            copy[key] = value
    copy["/Resources"] = resources
    return copy


def _with_form(resources: pikepdf.Dictionary, form: pikepdf.Stream) -> tuple[pikepdf.Dictionary, pikepdf.Name]:
    """A copy of the resources that has the form, and its name there."""
    copy = pikepdf.Dictionary(dict(resources.items()))
    named = resources.get("/XObject")
    forms = dict(named.items()) if isinstance(named, pikepdf.Dictionary) else {}
    name = next(f"/Untagged{number}" for number in range(len(forms) + 1) if f"/Untagged{number}" not in forms)
    forms[name] = form
    copy["/XObject"] = pikepdf.Dictionary(forms)
    return copy, pikepdf.Name(name)


def _spoiled_pages(data: bytes, changed: dict[int, _ChangedPage]) -> list[int]:
    """The pages whose text differs from what it should be now."""
    spoiled = []
    with open_document(data) as after:
        for number, page in changed.items():
            with open_page_text(after, number - 1) as text:
                if not _same_text(page.remaining, text.characters(0, len(text) - 1), page.tolerance):
                    spoiled.append(number)
    return spoiled


def _same_text(expected: Sequence[Character], characters: Sequence[Character], tolerance: float) -> bool:
    """The same characters at the same places. Blanks do not count: pdfium makes and drops them by what is around them."""
    one = [c for c in expected if not c.generated and not c.text.isspace()]
    other = [c for c in characters if not c.generated and not c.text.isspace()]
    if len(one) != len(other):
        return False
    if all(_is_same(a, b, tolerance) for a, b in zip(one, other, strict=True)):
        return True
    cells: dict[tuple[str, int, int], list[Character]] = defaultdict(list)
    for character in other:
        cells[character.text, round(character.x), round(character.y)].append(character)
    return all(_take(cells, character, tolerance) for character in one)


def _take(cells: dict[tuple[str, int, int], list[Character]], wanted: Character, tolerance: float) -> bool:
    for x in (-1, 0, 1):
        for y in (-1, 0, 1):
            cell = cells.get((wanted.text, round(wanted.x) + x, round(wanted.y) + y), [])
            for index, character in enumerate(cell):
                if _is_same(character, wanted, tolerance):
                    del cell[index]
                    return True
    return False


def _is_same(one: Character, other: Character, tolerance: float) -> bool:
    return one.text == other.text and abs(one.x - other.x) < tolerance and abs(one.y - other.y) < tolerance


def _saved(pdf: pikepdf.Pdf, options: "dict[str, Any]") -> bytes:
    out = io.BytesIO()
    pdf.save(out, **options)
    return out.getvalue()


def _not_removed(tag: FoundTag, document: str) -> Notice:
    return Notice(
        code="tag_not_removed",
        message=f"“{clean(tag.text, 120)}” on page {tag.page} stays visible: its text cannot be taken out of the page.",
        document=document,
        page=tag.page,
    )
