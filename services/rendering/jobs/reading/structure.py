"""What a tagged PDF says of the parts of a page: headings, paragraphs, lists, tables, pictures with a description.

pdfium reads the structure tree and resolves its role map. What it says is taken as labels of the text that is drawn, never as
text: alternative and actual texts of text are not read, and descriptions of pictures are told as what the sender says.
"""

import ctypes
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw

_DEEPEST = 60
_MOST_ELEMENTS = 20_000
_LONGEST_DESCRIPTION = 1_000
_LONGEST_NAME = 64

_BLOCKS = {
    "P": "p",
    "H": "h2",
    **{f"H{level}": f"h{level}" for level in range(1, 7)},
    "Title": "h1",
    "Caption": "p",
    "BlockQuote": "p",
    "Note": "p",
    "FENote": "p",
    "TOCI": "li",
    "LI": "li",
    "TH": "th",
    "TD": "td",
}
_LISTS, _ROWS, _TABLES = frozenset({"L", "TOC"}), frozenset({"TR"}), frozenset({"Table"})


@dataclass(frozen=True)
class Part:
    """A block of text. ``kind``: p, h1 to h6, li, th, td; ``group`` is the number of the list or of the table that it is in, 0
    for none, ``row`` that of the row in a table."""

    number: int
    kind: str
    group: int = 0
    row: int = 0


@dataclass(frozen=True)
class Described:
    """A picture with the sender's description; it comes after the part ``after``."""

    after: int
    text: str


@dataclass
class PageStructure:
    """``parts`` in the order of the tree; ``of_content`` leads from the ids of marked content on the page to them."""

    parts: list[Part]
    of_content: dict[int, Part]
    pictures: list[Described]


def page_structure(page: pdfium.PdfPage) -> PageStructure:
    """Empty for a page without tags."""
    tree = pdfium_raw.FPDF_StructTree_GetForPage(page.raw)
    reading = _Reading()
    if not tree:
        return reading.structure
    try:
        count = pdfium_raw.FPDF_StructTree_CountChildren(tree)
        for index in range(min(max(count, 0), _MOST_ELEMENTS)):
            element = pdfium_raw.FPDF_StructTree_GetChildAtIndex(tree, index)
            if element:
                reading.read(element, 0, None, 0, 0)
    finally:
        pdfium_raw.FPDF_StructTree_Close(tree)
    return reading.structure


class _Reading:
    def __init__(self) -> None:
        self.structure = PageStructure([], {}, [])
        self._elements = 0
        self._groups = 0

    def read(self, element: pdfium_raw.FPDF_STRUCTELEMENT, depth: int, part: Part | None, group: int, row: int) -> None:
        """``part``: the block around the element."""
        self._elements += 1
        if depth > _DEEPEST or self._elements > _MOST_ELEMENTS:
            return
        kind = _text(pdfium_raw.FPDF_StructElement_GetType, element, _LONGEST_NAME)
        if kind in _LISTS or kind in _TABLES:
            self._groups += 1
            group, row, part = self._groups, 0, None
        elif kind in _ROWS:
            self._groups += 1
            row, part = self._groups, None
        elif kind == "Figure":
            words = _text(pdfium_raw.FPDF_StructElement_GetAltText, element, _LONGEST_DESCRIPTION).strip()
            if words:
                self.structure.pictures.append(Described(len(self.structure.parts), words))
        elif kind in _BLOCKS and (part is None or part.kind not in ("li", "th", "td")):
            # What is inside an item or a cell is part of that one, also a paragraph of its own.
            part = self._new(_BLOCKS[kind], group, row)
        for index in range(max(pdfium_raw.FPDF_StructElement_CountChildren(element), 0)):
            self._elements += 1
            if self._elements > _MOST_ELEMENTS:
                return
            child = pdfium_raw.FPDF_StructElement_GetChildAtIndex(element, index)
            if child:
                self.read(child, depth + 1, part, group, row)
                continue
            content = pdfium_raw.FPDF_StructElement_GetChildMarkedContentID(element, index)
            if content >= 0:
                if part is None:
                    part = self._new("p", 0, 0)
                self.structure.of_content.setdefault(content, part)

    def _new(self, kind: str, group: int, row: int) -> Part:
        part = Part(len(self.structure.parts) + 1, kind, group, row)
        self.structure.parts.append(part)
        return part


def _text(read: object, element: pdfium_raw.FPDF_STRUCTELEMENT, longest: int) -> str:
    buffer = ctypes.create_string_buffer(2 * longest + 2)
    size = read(element, buffer, len(buffer))  # type: ignore[operator]
    if not 2 < size <= len(buffer):
        return ""
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")
