"""The text of the pages of a PDF for the signing page: words in their places, in the order of reading.

What comes out holds only what the picture of the page shows (``visibility``). Places are ten-thousandths of the visible page,
from its top left.
"""

import ctypes
import io
import math
import re
import statistics
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw

from services.rendering.jobs.pdf.geometry import Matrix, Rectangle, visible_page
from services.rendering.jobs.pdf.pdfium_text import PageText, open_document
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.reading.order import in_place, is_followed
from services.rendering.jobs.reading.structure import PageStructure, Part, page_structure
from services.rendering.jobs.reading.visibility import DrawnPage, Glyph, pixels, prepared, text_objects
from services.rendering.jobs.tags.reading_order import RIGHT_TO_LEFT, lines
from services.rendering.protocol.messages import ReadBlock, ReadLine, ReadPage, ReadWord

MOST_PAGES = 10
"""Of one answer."""

_SECONDS = 6.0
_MOST_WORDS = 60_000
"""Of one answer: then it ends, after at least one page."""

_MOST_OF_PAGE = 20_000
_MOST_CHARACTERS = 150_000
"""Of one page: more words are told as too many, and the reader is sent to the PDF."""

_MOST_RECOGNISED = 20_000
"""Characters of the hidden text of a page that is a picture."""

_UNIT = 10_000
_PICTURE = 0.4
"""Share of the page that a picture has at least that is told of where there is no text."""

_UPRIGHT = 0.05
_NEXT_LINE = 1.75
_SAME_HEIGHT = 1.3
_WIDE = 1.2
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_INVISIBLE = 3
_HYPHENS = "\x02\ufffe"
_VERTICAL = re.compile("[\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u1800-\u18af\U00020000-\U0003ffff]")


@dataclass
class _Word:
    text: str
    box: Rectangle
    part: Part | None


@dataclass
class _Line:
    """``box`` in upright points. ``angle`` in degrees, clockwise. ``is_wide``: it has gaps between its words, as rows of tables
    and forms have."""

    words: list[_Word]
    angle: float
    is_vertical: bool = False
    is_wide: bool = False
    box: Rectangle = field(init=False)

    def __post_init__(self) -> None:
        self.box = _around([word.box for word in self.words])

    @property
    def part(self) -> Part | None:
        return self.words[0].part

    @property
    def is_upright(self) -> bool:
        return abs(self.angle) < _UPRIGHT and not self.is_vertical


@dataclass
class _Block:
    kind: str
    lines: list[_Line]
    group: int = 0
    row: int = 0

    @property
    def box(self) -> Rectangle:
        return _around([line.box for line in self.lines])


class _Words:
    """The words of a piece of a line, as its characters come. ``to_upright`` leads to upright points."""

    def __init__(self, to_upright: Matrix) -> None:
        self.ended: list[_Word] = []
        self._matrix = to_upright
        self._letters: list[str] = []
        self._boxes: list[Rectangle] = []
        self._part: Part | None = None

    def add(self, letter: str, box: Rectangle, part: Part | None) -> None:
        if not self._letters:
            self._part = part
        self._letters.append(letter)
        self._boxes.append(box)

    def mark(self, accent: str) -> None:
        """An accent without ink of its own stays with its letter."""
        if self._letters:
            self._letters.append(accent)

    def end(self) -> None:
        word = _clean("".join(self._letters))
        if word:
            self.ended.append(_Word(word, self._matrix.bounds(_around(self._boxes)), self._part))
        self._letters, self._boxes = [], []


def read_pages(
    data: bytes, first: int, clock: Callable[[], float] = time.monotonic
) -> tuple[str | None, list[ReadPage]]:
    """The language that the document names, and its pages from ``first`` (from 1): as many as are read quickly, at most 10."""
    until = clock() + _SECONDS
    pages: list[ReadPage] = []
    with pikepdf.open(io.BytesIO(data)) as pdf, open_document(data) as document:
        if not 1 <= first <= len(document) or len(document) != len(pdf.pages):
            raise Refused(f"The document has no page {first}; it has {len(document)}.")
        document.init_forms()
        pdfium_raw.FPDF_SetFormFieldHighlightAlpha(document.formenv, 0)
        for index in range(first - 1, min(first - 1 + MOST_PAGES, len(document))):
            visible = visible_page(pdf.pages[index])
            inverse = visible.matrix.inverse()
            pages.append(_Reader(document, index, inverse, visible.width, visible.height).read())
            if clock() > until or sum(page.words for page in pages) > _MOST_WORDS:
                break
        return _language(pdf), pages


def _language(pdf: pikepdf.Pdf) -> str | None:
    language = str(pdf.Root.get("/Lang", "")).replace("_", "-")
    return language if _LANGUAGE.fullmatch(language) else None


class _Reader:
    """Reads one page. ``to_upright`` leads from default user space to upright points."""

    def __init__(
        self, document: pdfium.PdfDocument, index: int, to_upright: Matrix, width: float, height: float
    ) -> None:
        self._document, self._index = document, index
        self._matrix, self._width, self._height = to_upright, width, height

    def read(self) -> ReadPage:
        number = self._index + 1
        try:
            as_shown = self._document[self._index]
        except pdfium.PdfiumError as error:
            raise Refused(f"The PDF is damaged: page {number} cannot be read.") from error
        flat = as_shown
        try:
            if pdfium_raw.FPDFPage_GetAnnotCount(as_shown.raw) > 0:
                flat = self._flattened(as_shown)
            try:
                text = PageText(self._document, self._index, flat.raw)
            except Refused:
                return ReadPage(number=number, kind="too_long")
            prepared(flat.raw)
            text.close()
            text = PageText(self._document, self._index, flat.raw)
            try:
                return self._read(number, as_shown, flat, text)
            finally:
                text.close()
        finally:
            if flat is not as_shown:
                flat.close()
            as_shown.close()

    def _flattened(self, as_shown: pdfium.PdfPage) -> pdfium.PdfPage:
        """Another copy of the page, with its annotations as they are shown."""
        copy = pdfium.PdfDocument.new()
        copy.import_pages(self._document, [self._index])
        page = copy[0]
        done = pdfium_raw.FPDFPage_Flatten(page.raw, pdfium_raw.FLAT_NORMALDISPLAY)
        page.close()
        if done == pdfium_raw.FLATTEN_FAIL:
            copy.close()
            return as_shown
        return copy[0]

    def _read(self, number: int, as_shown: pdfium.PdfPage, flat: pdfium.PdfPage, text: PageText) -> ReadPage:
        if len(text) > _MOST_CHARACTERS:
            return ReadPage(number=number, kind="too_long")
        drawn = DrawnPage(as_shown, flat)
        scale = drawn.scale * as_shown.get_width() / self._width
        glyphs = list(self._glyphs(text, scale))
        seen = drawn.visible(glyphs)
        structure = page_structure(as_shown)
        parts = _parts(flat, structure)
        pieces = list(self._lines(text, {glyph.index: glyph for glyph in glyphs}, seen, parts))
        words = sum(len(line.words) for line in pieces)
        hidden = [glyph for glyph in glyphs if glyph.index not in seen and not glyph.text.isspace()]
        if words > _MOST_OF_PAGE:
            return ReadPage(number=number, kind="too_long")
        blocks = self._blocks(_with_vertical_lines(pieces), structure)
        pictures = [picture.text for picture in structure.pictures]
        kind = "text"
        recognised = ""
        if not words:
            kind = "picture" if _has_picture(as_shown) or _is_drawn_on(drawn, as_shown) else "blank"
            if kind == "picture":
                recognised = _recognised(text, hidden, flat)
        return ReadPage(
            number=number,
            kind=kind,
            words=words,
            hidden=len(hidden),
            recognised=recognised,
            pictures=pictures,
            blocks=[self._block(block) for block in blocks],
        )

    def _glyphs(self, text: PageText, scale: float) -> Iterator[Glyph]:
        for position, index, *_ in text.drawn_characters():
            box = text.ink_box(index)
            if box is not None and not text.text[position].isspace():
                upright = self._matrix.bounds(box)
                place = pixels(upright, self._height, scale)
                yield Glyph(index, text.text[position], text.text_object(index), place)

    def _lines(
        self, text: PageText, glyphs: dict[int, Glyph], seen: set[int], parts: dict[int, Part]
    ) -> Iterator[_Line]:
        """Pieces of lines with the words that are seen, each of one part."""
        objects = {glyphs[index].drawn_by for index in seen}
        counted = {
            index
            for position, index, *_ in text.drawn_characters()
            if index in seen or (index not in glyphs and text.text_object(index) in objects)
        }
        for angle, positions in lines(text, _reads_from_right, counted):
            words = _Words(self._matrix)
            for position in positions:
                character = position if isinstance(position, str) else text.text[position]
                if character.isspace() or isinstance(position, str):
                    words.end()
                    continue
                index = text.character_index(position)
                box = text.glyph_box(index)
                if index in seen and box is not None:
                    words.add(character, box, parts.get(glyphs[index].drawn_by))
                elif unicodedata.combining(character):
                    words.mark(character)
            words.end()
            turned = math.degrees(-angle) + self._rotation()
            for group in _by_part(words.ended):
                yield _Line(group, ((turned + 180) % 360) - 180)

    def _rotation(self) -> float:
        """Degrees, clockwise, by which the page itself is turned."""
        return math.degrees(math.atan2(-self._matrix.b, self._matrix.a))

    def _blocks(self, pieces: list[_Line], structure: PageStructure) -> list[_Block]:
        tagged: dict[int, _Block] = {}
        loose: list[_Line] = []
        for piece in pieces:
            if piece.part is None:
                loose.append(piece)
                continue
            part = piece.part
            block = tagged.setdefault(part.number, _Block(part.kind, [], part.group, part.row))
            block.lines.append(piece)
        blocks = [tagged[part.number] for part in structure.parts if part.number in tagged]
        paragraphs = list(_paragraphs(_joined(loose)))
        if blocks and paragraphs:
            blocks = _merged(blocks, paragraphs)
        else:
            blocks += paragraphs
        upright = [block for block in blocks if all(line.is_upright for line in block.lines)]
        if not is_followed([block.box for block in upright]):
            aslant = [block for block in blocks if block not in upright]
            groups = in_place(_kept_together(upright), _box_of_all, self._width)
            blocks = [block for group in groups for block in group] + aslant
        return blocks

    def _block(self, block: _Block) -> ReadBlock:
        return ReadBlock(
            kind=block.kind,
            group=block.group,
            row=block.row,
            lines=[
                ReadLine(
                    angle=round(line.angle),
                    vertical=line.is_vertical,
                    wide=line.is_wide,
                    words=[self._word(word) for word in line.words],
                )
                for line in block.lines
            ],
        )

    def _word(self, word: _Word) -> ReadWord:
        box = word.box
        return (
            round(box.left / self._width * _UNIT),
            round((self._height - box.top) / self._height * _UNIT),
            round(box.width / self._width * _UNIT),
            round(box.height / self._height * _UNIT),
            word.text,
        )


def _parts(page: pdfium.PdfPage, structure: PageStructure) -> dict[int, Part]:
    """From the addresses of text objects to the parts of the page that they are in."""
    if not structure.of_content:
        return {}
    part_by_address: dict[int, Part] = {}
    for address, drawn in text_objects(page.raw).items():
        part = structure.of_content.get(pdfium_raw.FPDFPageObj_GetMarkedContentID(drawn))
        if part is not None:
            part_by_address[address] = part
    return part_by_address


def _reads_from_right(from_left: str, _from_right: str) -> bool:
    """Return whether a line has more letters from right to left than others."""
    right = len(RIGHT_TO_LEFT.findall(from_left))
    return right > sum(character.isalpha() for character in from_left) - right


def _clean(word: str) -> str:
    """Without control characters and those that would turn what follows; hyphens at the end of a line are hyphens."""
    for hyphen in _HYPHENS:
        word = word.replace(hyphen, "-")
    return "".join(character for character in word if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Cn"))


def _by_part(words: Sequence[_Word]) -> Iterator[list[_Word]]:
    group: list[_Word] = []
    for word in words:
        if group and group[-1].part != word.part:
            yield group
            group = []
        group.append(word)
    if group:
        yield group


def _joined(pieces: Sequence[_Line]) -> Iterator[_Line]:
    """Pieces that follow one another on one line, with gaps between them."""
    line: _Line | None = None
    for piece in pieces:
        if line is not None and line.is_upright and piece.is_upright and _continues(line, piece):
            line = _Line(line.words + piece.words, line.angle, is_wide=True)
            continue
        if line is not None:
            yield line
        line = piece
    if line is not None:
        yield line


def _continues(line: _Line, piece: _Line) -> bool:
    last, first = line.words[-1].box, piece.words[0].box
    shared = min(last.top, first.top) - max(last.bottom, first.bottom)
    is_beside = piece.box.left >= line.box.right or piece.box.right <= line.box.left
    return is_beside and shared > 0.5 * min(last.height, first.height)


def _paragraphs(pieces: Iterator[_Line]) -> Iterator[_Block]:
    block: _Block | None = None
    for line in pieces:
        if block is not None and _goes_on(block, line):
            block.lines.append(line)
            continue
        if block is not None:
            yield block
        block = _Block("p", [line])
    if block is not None:
        yield block


def _goes_on(block: _Block, line: _Line) -> bool:
    last = block.lines[-1]
    if last.is_wide or line.is_wide or not (last.is_upright and line.is_upright):
        return False
    heights = sorted((_height(last), _height(line)))
    distance = last.box.bottom - line.box.bottom
    shared = min(last.box.right, line.box.right) - max(last.box.left, line.box.left)
    return (
        heights[1] <= _SAME_HEIGHT * heights[0]
        and 0.5 * heights[0] < distance < _NEXT_LINE * heights[1]
        and shared > 0.5 * min(last.box.width, line.box.width)
    )


def _height(line: _Line) -> float:
    return statistics.median(word.box.height for word in line.words)


def _merged(blocks: list[_Block], loose: list[_Block]) -> list[_Block]:
    """Return what is on the page without a tag (the head and foot of a page, what a sender left out) is read too: before the
    first part that is below it, else at the end."""
    before: dict[int, list[_Block]] = {}
    for paragraph in loose:
        place = next((index for index, block in enumerate(blocks) if block.box.top < paragraph.box.bottom), len(blocks))
        before.setdefault(place, []).append(paragraph)
    merged: list[_Block] = []
    for index in range(len(blocks) + 1):
        merged += before.get(index, [])
        merged += blocks[index : index + 1]
    return merged


def _box_of_all(blocks: Sequence[_Block]) -> Rectangle:
    return _around([block.box for block in blocks])


def _kept_together(blocks: Sequence[_Block]) -> list[list[_Block]]:
    """The parts of one table or list stay together."""
    groups: list[list[_Block]] = []
    for block in blocks:
        if block.group and groups and groups[-1][-1].group == block.group:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def _with_vertical_lines(pieces: Sequence[_Line]) -> list[_Line]:
    """Single characters one below the other, of scripts that are written so, as one line."""
    lines: list[_Line] = []
    for piece in pieces:
        if not _is_single(piece):
            lines.append(piece)
            continue
        last = lines[-1] if lines else None
        if last is not None and (last.is_vertical or _is_single(last)) and _is_below(last, piece):
            word = _Word(
                last.words[0].text + piece.words[0].text,
                _around([last.words[0].box, piece.words[0].box]),
                last.words[0].part,
            )
            lines[-1] = _Line([word], 0.0, is_vertical=True)
        else:
            lines.append(piece)
    return lines


def _is_single(line: _Line) -> bool:
    return len(line.words) == 1 and len(line.words[0].text) == 1 and bool(_VERTICAL.match(line.words[0].text))


def _is_below(last: _Line, piece: _Line) -> bool:
    size = piece.box.width
    return (
        abs((last.box.left + last.box.right) - (piece.box.left + piece.box.right)) < size
        and abs(last.box.bottom - piece.box.top) < 0.6 * piece.box.height
    )


def _around(boxes: Sequence[Rectangle]) -> Rectangle:
    return Rectangle(
        min(box.left for box in boxes),
        min(box.bottom for box in boxes),
        max(box.right for box in boxes),
        max(box.top for box in boxes),
    )


def _has_picture(page: pdfium.PdfPage) -> bool:
    left, bottom, right, top = page.get_bbox()
    area = max((right - left) * (top - bottom), 1)
    sides = [ctypes.c_float() for _ in range(4)]
    for picture in page.get_objects(filter=(pdfium_raw.FPDF_PAGEOBJ_IMAGE,), max_depth=4):
        if pdfium_raw.FPDFPageObj_GetBounds(picture.raw, *map(ctypes.byref, sides)):
            x0, y0, x1, y1 = (side.value for side in sides)
            if (x1 - x0) * (y1 - y0) > _PICTURE * area:
                return True
    return False


def _is_drawn_on(drawn: DrawnPage, page: pdfium.PdfPage) -> bool:
    """Return whether there is anything on the page: letters may be drawn as shapes, too."""
    picture = page.render(scale=min(drawn.scale, 0.5), fill_color=(255, 255, 255, 255)).to_pil().convert("L")
    return bool(picture.getextrema()[0] < 200)


def _recognised(text: PageText, hidden: Sequence[Glyph], page: pdfium.PdfPage) -> str:
    """Return what a program has recognised in a scan, as it is laid behind pictures: text in render mode 3."""
    modes = {
        address: pdfium_raw.FPDFTextObj_GetTextRenderMode(drawn) for address, drawn in text_objects(page.raw).items()
    }
    if not hidden or any(modes.get(glyph.drawn_by) != _INVISIBLE for glyph in hidden):
        return ""
    words = " ".join(text.text.split())
    return _clean(words)[:_MOST_RECOGNISED] if len(words) <= _MOST_RECOGNISED else ""
