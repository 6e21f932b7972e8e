"""Form fields and annotations become plain page content, as the reader saw them; links stay links.

A value whose field has no appearance of its own (or whose form says that appearances are out of date) is drawn with our own
text engine first: qpdf's generator knows Latin only, and without one the value would vanish from paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream

from services.rendering.jobs.annotations.appearances import draw_missing_appearances
from services.rendering.jobs.annotations.default_appearance import default_appearance
from services.rendering.jobs.annotations.hidden_layers import hide_annotations_of_hidden_layers
from services.rendering.jobs.drawing.field_frames import draw_frame
from services.rendering.jobs.drawing.isolation import isolate
from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.pdf.geometry import Matrix, Rectangle, VisiblePage
from services.rendering.jobs.pdf.values import items_of, name_of, text_of, whole_of
from services.rendering.jobs.pictures.image_objects import PictureEmbedder
from services.rendering.jobs.text.embedding import FontEmbedder
from services.rendering.jobs.text.layout import BLACK, Style, layout, legible

_MULTILINE = 1 << 12
_PASSWORD = 1 << 13
_RADIO = 1 << 15
_COMBO = 1 << 17
_CHOSEN = (0.6, 0.75, 0.85)
"""Acrobat's colour of what is chosen in a list."""
_MARKS = {"8": "✘", "l": "●", "n": "■", "u": "◆", "H": "★"}
_COMB = 1 << 24
_MOST_CELLS = 500
_INVISIBLE = 1 << 0
"""A flag for annotations of unknown types only (table 167), but qpdf obeys it for all."""
_STANDARD = frozenset(
    f"/{name}"
    for name in [
        "Text",
        "Link",
        "FreeText",
        "Line",
        "Square",
        "Circle",
        "Polygon",
        "PolyLine",
        "Highlight",
        "Underline",
        "Squiggly",
        "StrikeOut",
        "Caret",
        "Stamp",
        "Ink",
        "Popup",
        "FileAttachment",
        "Sound",
        "Movie",
        "Screen",
        "Widget",
        "PrinterMark",
        "TrapNet",
        "Watermark",
        "3D",
        "Redact",
        "Projection",
        "RichMedia",
    ]
)
"""Types of annotations (table 171)."""
_PUSH_BUTTON = 1 << 16
_DEEPEST_FIELD = 32
_USUAL_SIZE = 12.0
_LINE_SHARE = 0.72
"""Of a single line's box that its text takes when the size is automatic."""


def flatten(pdf: pikepdf.Pdf) -> None:
    """Burn form fields and annotations into the pages and drop the form. A document without any is left alone."""
    stated = pdf.Root.get("/AcroForm")
    form = stated if isinstance(stated, pikepdf.Dictionary) else None
    annotated = [(page, _annotations(page)) for page in pdf.pages if "/Annots" in page.obj]
    if form is None and not any(
        annotation.get("/Subtype") != Name.Link for _, page_annotations in annotated for annotation in page_annotations
    ):
        return
    # Fields of which no form knows have their value all the same.
    _complete_appearances(pdf, Dictionary() if form is None else form, annotated)
    if form is not None:
        form["/NeedAppearances"] = False
    for page, page_annotations in annotated:
        for annotation in page_annotations:
            _as_readers_show_it(annotation)
        if any(annotation.get("/Subtype") != Name.Link for annotation in page_annotations):
            isolate(pdf, page)  # qpdf's own brackets do not hold content that closes more than it opened
    hide_annotations_of_hidden_layers(pdf)  # of documents that came in before intake did it, as what follows
    draw_missing_appearances(pdf)
    if annotated:
        pdf.flatten_annotations("screen")
    for page, _ in annotated:
        _keep_links(page)
    if "/AcroForm" in pdf.Root:
        del pdf.Root["/AcroForm"]


def _as_readers_show_it(annotation: pikepdf.Dictionary) -> None:
    """Take away what readers overlook and qpdf does not: the flag for annotations of unknown types is for these alone, and
    layers are asked for the annotation, not for its appearance. What has several looks and says not which has that for off.
    The look of a link is not wanted: links stay."""
    if annotation.get("/Subtype") == Name.Link and "/AP" in annotation:
        del annotation["/AP"]
    if name_of(annotation.get("/Subtype")) in _STANDARD and isinstance(flags := annotation.get("/F"), int):
        annotation["/F"] = flags & ~_INVISIBLE
    appearances = annotation.get("/AP")
    look = appearances.get("/N") if isinstance(appearances, pikepdf.Dictionary) else None
    if isinstance(look, Stream):
        if "/OC" in look.stream_dict:
            del look.stream_dict["/OC"]
    elif isinstance(look, Dictionary) and "/AS" not in annotation and "/Off" in look:
        annotation["/AS"] = Name.Off


def _annotations(page: pikepdf.Page) -> list[pikepdf.Dictionary]:
    entries = page.obj.get("/Annots")
    if not isinstance(entries, pikepdf.Array):
        return []
    return [annotation for annotation in entries if isinstance(annotation, pikepdf.Dictionary)]


def _keep_links(page: pikepdf.Page) -> None:
    """Keep on the page what no one can burn in: links."""
    links = [annotation for annotation in _annotations(page) if annotation.get("/Subtype") == Name.Link]
    if links:
        page.obj.Annots = Array(links)
    elif "/Annots" in page.obj:
        del page.obj["/Annots"]


def _complete_appearances(
    pdf: pikepdf.Pdf,
    form: pikepdf.Dictionary,
    annotated: Sequence[tuple[pikepdf.Page, Sequence[pikepdf.Dictionary]]],
) -> None:
    outdated = bool(form.get("/NeedAppearances", False))
    tools = _Tools(pdf, form)
    for _, page_annotations in annotated:
        for widget in page_annotations:
            if widget.get("/Subtype") == Name.Widget:
                _Widget(tools, widget).complete(outdated)
    if "fonts" in vars(tools):
        tools.fonts.finish()


@dataclass
class _Tools:
    """What drawing the widgets of a document needs, made when the first one does: most have an appearance, or no value."""

    pdf: pikepdf.Pdf
    form: pikepdf.Dictionary

    @cached_property
    def fonts(self) -> FontEmbedder:
        return FontEmbedder(self.pdf)

    @cached_property
    def pictures(self) -> PictureEmbedder:
        return PictureEmbedder(self.pdf)


class _Widget:
    """A form field's place on a page (ISO 32000-2, 12.5.6.19 and 12.7)."""

    def __init__(self, tools: _Tools, widget: pikepdf.Dictionary) -> None:
        self.tools, self.widget = tools, widget

    def complete(self, outdated: bool) -> None:
        """Give the widget the appearance that its value asks for, when it has none that can be trusted."""
        value = self._inherited("/V")
        if value is None and "/AS" not in self.widget and "/MK" not in self.widget:
            return
        kind = self._inherited("/FT")
        box = _size(self.widget.get("/Rect"))
        if box is None:
            return
        if kind == Name.Btn:
            self._complete_button(*box)
        elif kind in (Name.Tx, Name.Ch) and ((outdated and value is not None) or not self._has_appearance()):
            self._complete_text(*box, choice=kind == Name.Ch)

    def _inherited(self, key: str) -> Any:
        node: Any = self.widget
        for _ in range(_DEEPEST_FIELD):
            if not isinstance(node, pikepdf.Dictionary):
                return None
            if key in node:
                return node[key]
            node = node.get("/Parent")
        return None

    def _flags(self) -> int:
        flags = self._inherited("/Ff")
        return int(flags) if isinstance(flags, int) else 0

    def _has_appearance(self) -> bool:
        appearances = self.widget.get("/AP")
        return isinstance(appearances, pikepdf.Dictionary) and isinstance(appearances.get("/N"), Stream)

    def _complete_button(self, width: float, height: float) -> None:
        """Check boxes and radio buttons show the state ``/AS``; older tools set only the field's value."""
        appearances = self.widget.get("/AP")
        if self._flags() & _PUSH_BUTTON:
            if not self._has_appearance():
                self._draw_push_button(width, height)
            return
        states = appearances.get("/N") if isinstance(appearances, pikepdf.Dictionary) else None
        value = self._inherited("/V")
        if isinstance(states, pikepdf.Dictionary) and not isinstance(states, Stream):
            if "/AS" not in self.widget and isinstance(value, Name) and str(value) in states:
                self.widget.AS = value
            if any(isinstance(state, Stream) for state in states.values()):
                return
        is_on = self.widget.get("/AS", value)
        canvas = self._canvas(width, height)
        draw_frame(canvas, self.widget, is_round=self._mark() == "l")
        if isinstance(is_on, Name) and is_on != Name.Off:
            self._draw_mark(canvas)
        self._set_appearance(canvas)

    def _mark(self) -> str:
        """The letter of ZapfDingbats that stands for the mark: usually a check mark, of radio buttons a dot."""
        usual = "l" if self._flags() & _RADIO else "4"
        return text_of(self._characteristics().get("/CA")) or usual

    def _draw_mark(self, canvas: Canvas) -> None:
        width, height = canvas.page.width, canvas.page.height
        mark = _MARKS.get(self._mark())
        if mark is None:
            canvas.check_mark(Rectangle(0, 0, width, height), BLACK)
        else:
            canvas.text(layout(mark, Style(size=min(width, height), align="center"), width, height), 0, 0)

    def _complete_text(self, width: float, height: float, *, choice: bool) -> None:
        text, cells = legible(self._text(choice=choice)), self._cells()
        canvas = self._canvas(width, height)
        width, height = canvas.page.width, canvas.page.height
        border = draw_frame(canvas, self.widget, cells=cells)
        lines = bool(self._flags() & _MULTILINE) or (choice and not self._flags() & _COMBO)
        style = self._style(height, lines)
        if (choice and not self._flags() & _COMBO and self._draw_list(canvas, style, border)) or not text.strip():
            pass
        elif cells:
            self._draw_cells(canvas, text[:cells], style, width / cells, height, cells)
        else:
            inset = 2 + border
            canvas.text(layout(text, style, max(width - 2 * inset, 1), height - (border if lines else 0)), inset, 0)
        self._set_appearance(canvas)

    def _draw_list(self, canvas: Canvas, style: Style, border: float) -> bool:
        """A list box shows its options, the chosen ones marked. False when one of these has no room: then they stand alone."""
        values = [
            option[0] if isinstance(option, Array) and len(option) == 2 else option
            for option in items_of(self._inherited("/Opt"))
        ]
        value = self._inherited("/V")
        chosen = {str(option) for option in (value if isinstance(value, Array) else [value]) if option is not None}
        first, line = max(whole_of(self._inherited("/TI")), 0), style.size * style.leading
        width, height = canvas.page.width, canvas.page.height
        shown = [str(option) for option in values[first : first + int((height - 2 * border) / line)]]
        if not shown or not chosen <= set(shown):
            return False
        for index, option in enumerate(shown):
            bottom = height - border - (index + 1) * line
            if option in chosen:
                canvas.fill(Rectangle(border, bottom, width - border, bottom + line), _CHOSEN)
            label = legible(self._option(option))
            placed = layout(label, replace(style, wrap=False, valign="center"), max(width - 2 * border - 4, 1), line)
            canvas.text(placed, border + 2, bottom)
        return True

    def _draw_push_button(self, width: float, height: float) -> None:
        canvas = self._canvas(width, height)
        width, height = canvas.page.width, canvas.page.height
        draw_frame(canvas, self.widget)
        caption = legible(text_of(self._characteristics().get("/CA")))
        if caption.strip():
            style = replace(self._style(height, lines=False), align="center")
            canvas.text(layout(caption, style, max(width - 4, 1), height), 2, 0)
        self._set_appearance(canvas)

    def _characteristics(self) -> pikepdf.Dictionary:
        characteristics = self.widget.get("/MK")
        return characteristics if isinstance(characteristics, pikepdf.Dictionary) else Dictionary()

    def _draw_cells(self, canvas: Canvas, text: str, style: Style, cell: float, height: float, cells: int) -> None:
        """A comb: each character in the middle of its cell."""
        first = {"right": cells - len(text), "center": (cells - len(text)) // 2}.get(style.align or "", 0)
        for index, character in enumerate(text, first):
            if not character.isspace():
                canvas.text(layout(character, replace(style, align="center"), cell, height), index * cell, 0)

    def _cells(self) -> int:
        length = self._inherited("/MaxLen")
        usable = isinstance(length, int) and 0 < length <= _MOST_CELLS and bool(self._flags() & _COMB)
        return length if usable else 0

    def _turn(self) -> int:
        """Degrees that the text stands turned counter-clockwise (table 192)."""
        turn = self._characteristics().get("/R")
        return turn % 360 if isinstance(turn, int) and turn % 90 == 0 else 0

    def _text(self, *, choice: bool) -> str:
        value = self._inherited("/V")
        if choice:
            chosen = list(value) if isinstance(value, pikepdf.Array) else [value]
            return "\n".join(self._option(option) for option in chosen if option is not None)
        if isinstance(value, Stream):
            return _decoded(value.read_bytes())
        text = str(value) if isinstance(value, pikepdf.String | str) else ""
        return "*" * len(text) if self._flags() & _PASSWORD else text

    def _option(self, value: Any) -> str:
        """Return what the choice is called, which may differ from what it stands for."""
        options = self._inherited("/Opt")
        for option in options if isinstance(options, pikepdf.Array) else []:
            if isinstance(option, pikepdf.Array) and len(option) == 2 and str(option[0]) == str(value):
                return str(option[1])
        return str(value)

    def _style(self, height: float, lines: bool) -> Style:
        family, size, color = default_appearance(str(self._inherited("/DA") or self.tools.form.get("/DA", "")))
        if not size:
            size = _USUAL_SIZE if lines else min(max(height * _LINE_SHARE, 4.0), _USUAL_SIZE)
        alignment = self._inherited("/Q")
        align = {1: "center", 2: "right"}.get(int(alignment) if isinstance(alignment, int) else 0)
        return Style(
            family=family,
            size=size,
            color=color,
            align=align,
            valign="top" if lines else "center",
            wrap=lines,
            exact_size=True,
            min_size=1.0,
        )

    def _canvas(self, width: float, height: float) -> Canvas:
        """As wide and high as the text sees it, which may be turned."""
        turn = self._turn()
        if turn % 180:
            width, height = height, width
        matrix = {
            90: Matrix(0, 1, -1, 0, height, 0),
            180: Matrix(-1, 0, 0, -1, width, height),
            270: Matrix(0, -1, 1, 0, 0, width),
        }.get(turn, Matrix(1, 0, 0, 1, 0, 0))
        page = VisiblePage(width, height, matrix, Rectangle(0, 0, width, height), 0, 1.0)
        return Canvas(page, self.tools.fonts, self.tools.pictures)

    def _set_appearance(self, canvas: Canvas) -> None:
        if canvas.is_empty:
            return
        self.widget.AP = Dictionary(N=self.tools.pdf.make_indirect(canvas.form(self.tools.pdf)))
        if "/AS" in self.widget:
            del self.widget["/AS"]


def _size(rectangle: Any) -> tuple[float, float] | None:
    if not isinstance(rectangle, pikepdf.Array) or len(rectangle) != 4:
        return None
    try:
        left, bottom, right, top = (float(value) for value in rectangle)
    except (TypeError, ValueError):
        return None
    width, height = abs(right - left), abs(top - bottom)
    return (width, height) if width > 0 and height > 0 else None


def _decoded(data: bytes) -> str:
    """A text string (ISO 32000-2, 7.9.2.2) that was stored as a stream."""
    if data.startswith(b"\xfe\xff"):
        return data[2:].decode("utf-16-be", "replace")
    return data.decode("utf-8", "replace")
