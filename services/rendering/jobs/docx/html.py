"""HTML as the value of a variable: the elements and styles of peer facts 3.3 as WordprocessingML, everything else as its text.

Nothing is taken over as it stands: the HTML is parsed, and what is known of it is written anew. Links lead to the web, to a
mailbox or a telephone; nothing is loaded.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import tinyhtml5
from docx.enum.text import WD_PARAGRAPH_ALIGNMENT as WD_ALIGN
from docx.oxml.table import CT_Tbl
from docx.shared import RGBColor, Twips
from docx.text.font import Font
from docx.text.parfmt import ParagraphFormat
from PIL import ImageColor

from services.rendering.jobs.docx.blocks import cut, remaining
from services.rendering.jobs.docx.names import PARAGRAPH, PARAGRAPH_PROPERTIES, TABLE, VALUE, W
from services.rendering.jobs.docx.tokens import bare_run
from services.rendering.jobs.docx.values import as_text, text_runs
from services.rendering.jobs.pdf.refused import Refused

MOST_ELEMENTS = 5_000
DEEPEST = 50
MOST_COLUMNS = 63

_MARKUP = re.compile(
    r"</?(?:p|b|i|u|a|ul|ol|li|table|thead|tbody|tfoot|tr|th|td|strong|em|br|span|div)(?:\s[^<>]*)?/?>", re.IGNORECASE
)
_BLOCKS = frozenset({"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "section", "article"})
_UNSEEN = frozenset(
    {"script", "style", "head", "title", "template", "iframe", "object", "noscript", "textarea", "select"}
)
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_LENGTH = re.compile(r"(\d{1,4}(?:\.\d+)?)(px|pt|)")
_ALIGN = {name: WD_ALIGN[name.upper()] for name in ("left", "right", "center", "justify")}
_SCHEMES = ("http", "https", "mailto", "tel")
_TWIPS = {"px": 15, "pt": 20, "": 15}
_INDENT = Twips(360)
_TABLE_WIDTH = Twips(9000)


def is_html(value: str) -> bool:
    """A value with one of the known tags in it; ``a < b`` is text."""
    return _MARKUP.search(value) is not None


@dataclass(frozen=True)
class _Look:
    """How text looks at a place: ``align`` of its paragraph, ``indent`` in steps."""

    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    color: RGBColor | None = None
    link: str | None = None
    align: WD_ALIGN | None = None
    indent: int = 0


@dataclass
class _Writing:
    """``blocks``: finished paragraphs and tables; ``open``: the paragraph that is being written."""

    blocks: list[Any] = field(default_factory=list)
    open: Any | None = None
    ends_blank: bool = True


def insert_document(data: bytes, run: Any, *, is_html: bool) -> None:
    """Puts a document of HTML or plain text in the place of ``run``. It is the author's own: what it has of tags are tags."""
    if is_html:
        HtmlValue(data, run, is_value=False).insert()
        return
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    for new_run in text_runs(run, as_text(text), is_value=False):
        run.addprevious(new_run)
    run.getparent().remove(run)


class HtmlValue:
    """An HTML value, to be put in the place of ``run``, whose formatting it continues; or the author's own HTML, of which
    braces make tags (``is_value`` false)."""

    def __init__(self, html: str | bytes, run: Any, *, is_value: bool = True) -> None:
        self._run = run
        self._is_value = is_value
        self._paragraph = next(run.iterancestors(PARAGRAPH))
        self._body = tinyhtml5.parse(html, namespace_html_elements=False).find("body")
        self._elements = 0

    def insert(self) -> int:
        """Into the paragraph when it is one piece of text, otherwise as paragraphs and tables between what is before and
        behind. Returns how many elements it added."""
        writing = _Writing()
        self._write(self._body, _Look(), writing, 1)
        self._flush(writing)
        count = sum(1 for block in writing.blocks for _ in block.iter())
        alone = len(writing.blocks) <= 1 and all(block.tag == PARAGRAPH for block in writing.blocks)
        if alone or self._run.getparent() is not self._paragraph:
            self._insert_inline(writing.blocks)
        else:
            self._insert_blocks(writing.blocks)
        return count

    def _insert_inline(self, blocks: list[Any]) -> None:
        """Insert blocks as lines, where they cannot stand (inside a link)."""
        paragraphs = [
            paragraph
            for block in blocks
            for paragraph in ([block] if block.tag == PARAGRAPH else block.iter(PARAGRAPH))
        ]
        run, host = self._run, self._paragraph
        for number, paragraph in enumerate(paragraphs):
            if number:
                line = bare_run(run)
                line.append(line.makeelement(f"{W}br"))
                run.addprevious(line)
            for child in list(paragraph):
                if child.tag != PARAGRAPH_PROPERTIES:
                    run.addprevious(child)
                elif len(paragraphs) == 1 and (align := child.find(f"{W}jc")) is not None:
                    _set(host.get_or_add_pPr(), f"{W}jc", align.attrib)
        run.getparent().remove(run)

    def _insert_blocks(self, blocks: list[Any]) -> None:
        before, after = cut(self._run)
        for block in blocks:
            after.addprevious(block)
        remaining(before)
        remaining(after)
        for table in (block for block in blocks if block.tag == TABLE):
            _keep_apart(table)

    # --- from HTML to blocks

    def _write(self, element: Any, look: _Look, writing: _Writing, depth: int) -> None:
        self._text(element.text, look, writing)
        for position, child in enumerate(element):
            if isinstance(child.tag, str) and child.tag not in _UNSEEN:
                self._element(child, look, writing, depth + 1, position)
            self._text(child.tail, look, writing)

    def _element(self, element: Any, look: _Look, writing: _Writing, depth: int, position: int) -> None:
        self._elements += 1
        if self._elements > MOST_ELEMENTS or depth > DEEPEST:
            raise Refused(
                f"A value of variables has HTML with more than {MOST_ELEMENTS:,} elements or deeper than {DEEPEST}.",
                field="variables",
            )
        look = _looks(element, look)
        if element.tag == "br":
            run = self._runs("\n", look)
            self._current(look, writing).extend(run)
            writing.ends_blank = True
        elif element.tag == "table":
            self._flush(writing)
            if (table := self._table(element, look, depth)) is not None:
                writing.blocks.append(table)
        elif element.tag in ("ul", "ol"):
            self._flush(writing)
            self._list(element, look, writing, depth)
            self._flush(writing)
        elif element.tag in _BLOCKS or element.tag == "li":
            self._flush(writing)
            self._write(element, look, writing, depth)
            self._flush(writing)
        else:
            self._write(element, look, writing, depth)

    def _list(self, element: Any, look: _Look, writing: _Writing, depth: int) -> None:
        inner = replace(look, indent=look.indent + 1)
        number = 0
        for position, child in enumerate(element):
            if child.tag != "li":
                if isinstance(child.tag, str) and child.tag not in _UNSEEN:
                    self._element(child, inner, writing, depth + 1, position)
                continue
            number += 1
            mark = f"{number}." if element.tag == "ol" else "•"
            self._current(inner, writing, marked=True).extend(self._runs(f"{mark}\t", inner))
            writing.ends_blank = True
            self._element_in_item(child, inner, writing, depth + 1)

    def _element_in_item(self, item: Any, look: _Look, writing: _Writing, depth: int) -> None:
        """The first paragraph of an item stands beside its mark."""
        self._elements += 1
        look = _looks(item, look)
        first = next(iter(item), None)
        if not (item.text or "").strip() and first is not None and first.tag in _BLOCKS:
            self._write(first, _looks(first, look), writing, depth + 1)
            self._flush(writing)
            self._text(first.tail, look, writing)
            rest = list(item)[1:]
        else:
            self._text(item.text, look, writing)
            rest = list(item)
        for position, child in enumerate(rest):
            if isinstance(child.tag, str) and child.tag not in _UNSEEN:
                self._element(child, look, writing, depth + 1, position)
            self._text(child.tail, look, writing)
        self._flush(writing)

    def _text(self, text: str | None, look: _Look, writing: _Writing) -> None:
        words = _BLANKS.sub(" ", text or "")
        if writing.open is None or writing.ends_blank:
            words = words.lstrip(" ")
        if words:
            self._current(look, writing).extend(self._runs(words, look))
            writing.ends_blank = words.endswith(" ")

    def _current(self, look: _Look, writing: _Writing, *, marked: bool = False) -> Any:
        if writing.open is None:
            writing.open = self._new_paragraph(look, marked=marked)
            writing.ends_blank = True
        return writing.open

    def _flush(self, writing: _Writing) -> None:
        if writing.open is not None:
            writing.blocks.append(writing.open)
        writing.open, writing.ends_blank = None, True

    def _new_paragraph(self, look: _Look, *, marked: bool) -> Any:
        paragraph = self._paragraph.makeelement(PARAGRAPH)
        if (properties := self._paragraph.pPr) is not None:
            paragraph.append(copy.deepcopy(properties))
            for section in paragraph.pPr.findall(f"{W}sectPr"):
                paragraph.pPr.remove(section)
        shape = ParagraphFormat(paragraph)
        if look.indent:
            for name in (f"{W}ind", f"{W}numPr"):
                for other in paragraph.get_or_add_pPr().findall(name):
                    paragraph.pPr.remove(other)
            shape.left_indent = Twips(_INDENT.twips * (look.indent + 1))
            if marked:
                shape.first_line_indent = Twips(-_INDENT.twips)
        if look.align is not None:
            shape.alignment = look.align
        return paragraph

    def _runs(self, text: str, look: _Look) -> list[Any]:
        model = bare_run(self._run)
        font = Font(model)
        for name in ("bold", "italic", "underline", "strike"):
            if getattr(look, name):
                setattr(font, name, True)
        if look.color:
            font.color.rgb = look.color
        runs = text_runs(model, text, is_value=self._is_value)
        if not look.link:
            return runs
        link = model.makeelement(f"{W}fldSimple", {f"{W}instr": f'HYPERLINK "{look.link}"'})
        link.extend(runs)
        return [link]

    # --- tables

    def _table(self, element: Any, look: _Look, depth: int) -> Any | None:
        rows = _rows_of(element)
        columns = max((sum(_span(cell) for cell in cells) for cells in rows), default=0)
        if not columns:
            return None
        if columns > MOST_COLUMNS:
            raise Refused(f"A value of variables has a table with more than {MOST_COLUMNS} columns.", field="variables")
        table = CT_Tbl.new_tbl(len(rows), columns, _TABLE_WIDTH)
        _set(table.tblPr, f"{W}tblW", {f"{W}w": "5000", f"{W}type": "pct"})
        if outline := _border(_styles(element).get("border", "")):
            _borders(table.tblPr, f"{W}tblBorders", outline)
        inner = replace(_looks(element, look), indent=0)
        for cells, row in zip(rows, table.tr_lst, strict=True):
            row_cells = row.tc_lst
            for spare in row_cells[len(row_cells) - sum(_span(cell) - 1 for cell in cells) :]:
                row.remove(spare)
            for cell, place in zip(cells, row_cells, strict=False):
                self._fill(place, cell, inner, depth + 2)
        return table

    def _fill(self, cell: Any, element: Any, look: _Look, depth: int) -> None:
        self._elements += 1
        styles = _styles(element)
        if (span := _span(element)) > 1:
            cell.grid_span = span
        if border := _border(styles.get("border", "")):
            _borders(cell.get_or_add_tcPr(), f"{W}tcBorders", border)
        if padding := _paddings(styles.get("padding", "")):
            margins = cell.makeelement(f"{W}tcMar")
            for side, width in zip(("top", "right", "bottom", "left"), padding, strict=True):
                _set(margins, f"{W}{side}", {f"{W}w": str(width), f"{W}type": "dxa"})
            cell.get_or_add_tcPr().append(margins)
        look = _looks(element, look)
        if element.tag == "th":
            look = replace(look, bold=True)
        writing = _Writing()
        self._write(element, look, writing, depth)
        self._flush(writing)
        cell.clear_content()
        cell.extend(writing.blocks)
        if not writing.blocks or writing.blocks[-1].tag == TABLE:
            cell.add_p()


def _keep_apart(table: Any) -> None:
    """Two tables with nothing between them are one."""
    for neighbour, put in ((table.getprevious(), table.addprevious), (table.getnext(), table.addnext)):
        if neighbour is not None and neighbour.tag == TABLE:
            put(table.makeelement(PARAGRAPH))


def _looks(element: Any, look: _Look) -> _Look:
    styles = _styles(element)
    tag = element.tag
    decoration = styles.get("text-decoration", "")
    return replace(
        look,
        bold=look.bold or tag in ("b", "strong", "h1", "h2", "h3", "h4", "h5", "h6"),
        italic=look.italic or tag in ("i", "em"),
        underline=(look.underline or tag in ("u", "a") or "underline" in decoration) and "none" not in decoration,
        strike=(look.strike or "line-through" in decoration) and "none" not in decoration,
        color=_color(styles.get("color", "")) or look.color,
        link=_address(element.get("href", "")) or look.link if tag == "a" else look.link,
        align=_ALIGN.get(styles.get("text-align", "")) or look.align,
    )


def _styles(element: Any) -> Mapping[str, str]:
    styles = {}
    for declaration in (element.get("style") or "").split(";")[:50]:
        name, colon, value = declaration.partition(":")
        if colon:
            styles[name.strip().lower()] = value.replace("!important", "").strip().lower()
    return styles


def _color(value: str) -> RGBColor | None:
    try:
        return RGBColor(*ImageColor.getrgb(value)[:3])
    except ValueError:
        return None


def _address(url: str) -> str | None:
    """Return where a link may lead, fit to stand between quotation marks in a field's instruction."""
    address = "".join(url.split())
    try:
        scheme = urlsplit(address).scheme.lower()
    except ValueError:
        return None
    unfit = any(character in '"\\{}' or ord(character) < 33 for character in address)
    return None if scheme not in _SCHEMES or unfit or len(address) > 2_000 else address


def _border(value: str) -> dict[str, str] | None:
    words = value.split()
    if not words or "none" in words or "hidden" in words or words == ["0"]:
        return None
    width = next((_LENGTH.fullmatch(word) for word in words if _LENGTH.fullmatch(word)), None)
    points = float(width[1]) * _TWIPS[width[2]] / 20 if width else 0.75
    if not points:
        return None
    line = next((word for word in words if word in ("dotted", "dashed", "double")), "single")
    color = next(
        (color for word in words if word not in ("solid", line) and (color := _color(word))), RGBColor(0, 0, 0)
    )
    return {
        VALUE: line,
        f"{W}sz": str(round(min(max(points, 0.25), 12) * 8)),
        f"{W}space": "0",
        f"{W}color": str(color),
    }


def _borders(properties: Any, name: str, border: dict[str, str]) -> None:
    borders = properties.makeelement(name)
    for side in ("top", "left", "bottom", "right"):
        _set(borders, f"{W}{side}", border)
    properties.append(borders)


def _paddings(value: str) -> list[int] | None:
    """Top, right, bottom, left in twips, as CSS spreads one to four lengths."""
    words = [_LENGTH.fullmatch(word) for word in value.split()[:4]]
    widths = [round(min(float(word[1]) * _TWIPS[word[2]], 2_000)) for word in words if word]
    if not widths or len(widths) != len(words):
        return None
    top, right, bottom, left = (widths * 4)[:4] if len(widths) != 3 else [*widths, widths[1]]
    return [top, right, bottom, left]


def _rows_of(table: Any) -> list[list[Any]]:
    rows = []
    for child in table:
        if child.tag == "tr":
            rows.append([cell for cell in child if cell.tag in ("td", "th")])
        elif child.tag in ("thead", "tbody", "tfoot"):
            rows += _rows_of(child)
    return [cells for cells in rows if cells]


def _span(cell: Any) -> int:
    value = cell.get("colspan", "1").strip()
    return min(max(int(value), 1), MOST_COLUMNS) if value.isascii() and value.isdigit() else 1


def _set(properties: Any, name: str, attributes: Mapping[str, str]) -> None:
    for present in properties.findall(name):
        properties.remove(present)
    properties.append(properties.makeelement(name, dict(attributes)))
