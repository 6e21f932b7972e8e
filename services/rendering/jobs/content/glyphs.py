"""Reads a page's content stream for one thing: which bytes of which operand draw which glyph where.

It follows the graphics and text state of ISO 32000-2 (8.4 and 9.3) through the page and its form XObjects. The result is
a tree: ``Content`` of the page, with a ``Content`` for each form XObject that is drawn, as often as it is drawn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pikepdf

from services.rendering.jobs.content.font_codes import FontCodes, font_codes
from services.rendering.jobs.content.model import Content, Glyphs, Spoken
from services.rendering.jobs.pdf.geometry import Matrix, Rectangle
from services.rendering.jobs.pdf.values import text_of

_IDENTITY = Matrix(1, 0, 0, 1, 0, 0)
_DEEPEST_FORM = 12
_MOST_INSTRUCTIONS = 500_000
_MOST_SAVED_STATES = 512
_ANY_ADVANCE = 1e6
"""Text space units: to see by its line that text is not wanted, before it is measured."""


class Unreadable(Exception):
    """The page's content is too long, or so malformed that writing it anew could change what other readers make of it."""


@dataclass(slots=True)
class _State:
    """The part of the graphics state that moves text."""

    ctm: Matrix = _IDENTITY
    font: FontCodes | None = None
    size: float = 0.0
    character_spacing: float = 0.0
    word_spacing: float = 0.0
    scale: float = 1.0
    leading: float = 0.0
    rise: float = 0.0


def read_page(
    pdf: pikepdf.Pdf,
    page: pikepdf.Page,
    fonts: dict[tuple[int, int], FontCodes],
    is_wanted: Callable[[Rectangle], bool] | None = None,
) -> Content:
    """``fonts`` keeps what was read of fonts between pages. Only show operators get glyphs of whose stretch of text
    ``is_wanted`` is true (default user space). Raises Unreadable."""
    resources = page.resources if isinstance(page.obj.get("/Resources"), pikepdf.Dictionary) else _inherited(page)
    reader = _Reader(pdf, fonts, is_wanted)
    return reader.read(page, resources, _State(), depth=0)


def _inherited(page: pikepdf.Page) -> pikepdf.Dictionary:
    try:
        resources = page.resources
    except (AttributeError, KeyError, ValueError, TypeError):
        return pikepdf.Dictionary()
    return resources if isinstance(resources, pikepdf.Dictionary) else pikepdf.Dictionary()


class _Reader:
    def __init__(
        self,
        pdf: pikepdf.Pdf,
        fonts: dict[tuple[int, int], FontCodes],
        is_wanted: Callable[[Rectangle], bool] | None,
    ) -> None:
        self._pdf = pdf
        self._fonts = fonts
        self.is_wanted = is_wanted
        self._budget = _MOST_INSTRUCTIONS
        self._open_forms: list[tuple[int, int]] = []

    def read(self, source: Any, resources: pikepdf.Dictionary, state: _State, depth: int) -> Content:
        instructions = self._instructions(source)
        self._budget -= len(instructions)
        if self._budget < 0:
            raise Unreadable
        content = Content(instructions, resources, source if isinstance(source, pikepdf.Stream) else None)
        _Run(self, content, state, depth).run()
        return content

    def _instructions(self, source: Any) -> list[Any]:
        """qpdf stops in the middle of a stream that has too many errors, and only says so in a warning."""
        self._pdf.get_warnings()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                instructions = list(pikepdf.parse_content_stream(source))
        except (pikepdf.PdfError, TypeError, ValueError, UserWarning) as error:
            raise Unreadable from error
        if self._pdf.get_warnings():
            raise Unreadable
        return instructions

    def font(self, resources: pikepdf.Dictionary, name: Any) -> FontCodes:
        return self.font_of(_entry(resources, "/Font", name))

    def font_of(self, font: Any) -> FontCodes:
        if not isinstance(font, pikepdf.Dictionary):
            return font_codes(None)
        key = font.objgen
        if key == (0, 0):
            return font_codes(font)
        if key not in self._fonts:
            self._fonts[key] = font_codes(font)
        return self._fonts[key]

    def form(self, resources: pikepdf.Dictionary, name: Any, state: _State, depth: int) -> Content | None:
        form = _entry(resources, "/XObject", name)
        if not isinstance(form, pikepdf.Stream) or form.get("/Subtype") != "/Form":
            return None
        if depth >= _DEEPEST_FORM or form.objgen in self._open_forms:
            return None
        own_resources = form.get("/Resources")
        self._open_forms.append(form.objgen)
        try:
            inner = replace(state, ctm=state.ctm.after(_matrix(form.get("/Matrix"))))
            return self.read(
                form, own_resources if isinstance(own_resources, pikepdf.Dictionary) else resources, inner, depth + 1
            )
        finally:
            self._open_forms.pop()


class _Run:
    """One pass over the instructions of one content stream."""

    def __init__(self, reader: _Reader, content: Content, state: _State, depth: int) -> None:
        self._reader = reader
        self._content = content
        self._state = state
        self._saved: list[_State] = []
        self._depth = depth
        self._line = self._text = _IDENTITY
        self._shown: tuple[list[bytes | float], FontCodes, float, float, tuple[float, float]] | None = None
        self._marked: list[int | None] = []

    def run(self) -> None:
        for index, instruction in enumerate(self._content.instructions):
            handle = _OPERATORS.get(str(instruction.operator))
            if handle is None:
                continue
            try:
                handle(self, index, instruction.operands)
            except (IndexError, TypeError, ValueError, ArithmeticError, NotImplementedError):
                continue  # Wrong operands: readers skip the operator, and so do we.

    def save(self, _index: int, _operands: Any) -> None:
        if len(self._saved) < _MOST_SAVED_STATES:
            self._saved.append(replace(self._state))

    def restore(self, _index: int, _operands: Any) -> None:
        if self._saved:
            self._state = self._saved.pop()

    def concatenate(self, _index: int, operands: Any) -> None:
        self._state.ctm = self._state.ctm.after(_six(operands))

    def begin_text(self, _index: int, _operands: Any) -> None:
        self._place(_IDENTITY)

    def set_font(self, _index: int, operands: Any) -> None:
        self._state.size = float(operands[1])
        self._state.font = self._reader.font(self._content.resources, operands[0])

    def graphics_state(self, _index: int, operands: Any) -> None:
        font = _entry(self._content.resources, "/ExtGState", operands[0]).get("/Font")
        if isinstance(font, pikepdf.Array):
            self._state.size = float(font[1])
            self._state.font = self._reader.font_of(font[0])

    def move(self, _index: int, operands: Any) -> None:
        self._next_line(float(operands[0]), float(operands[1]))

    def move_and_lead(self, _index: int, operands: Any) -> None:
        self._state.leading = -float(operands[1])
        self.move(_index, operands)

    def set_matrix(self, _index: int, operands: Any) -> None:
        self._place(_six(operands))

    def new_line(self, _index: int, _operands: Any) -> None:
        self._next_line(0, -self._state.leading)

    def _next_line(self, x: float, y: float) -> None:
        self._place(_moved(self._line, x, y))

    def show(self, index: int, operands: Any) -> None:
        self._show(index, [operands[0]])

    def show_on_new_line(self, index: int, operands: Any) -> None:
        self.new_line(index, operands)
        self._show(index, [operands[0]])

    def show_spaced_on_new_line(self, index: int, operands: Any) -> None:
        self._state.word_spacing, self._state.character_spacing = float(operands[0]), float(operands[1])
        self.new_line(index, operands)
        self._show(index, [operands[2]])

    def show_array(self, index: int, operands: Any) -> None:
        self._show(index, list(operands[0]))

    def _show(self, index: int, elements: list[Any]) -> None:
        state, font = self._state, self._state.font
        if font is None or not font.readable:
            self._content.unreadable = True
            return
        self._move_on()
        place = self._text if state.ctm is _IDENTITY else state.ctm.after(self._text)
        parts = [bytes(element) if isinstance(element, pikepdf.String) else float(element) for element in elements]
        spacing = state.character_spacing, state.word_spacing
        self._shown = parts, font, state.size, state.scale, spacing
        if self._is_wanted(place, _ANY_ADVANCE) and self._is_wanted(place, _advance(*self._shown)):
            glyphs = self._glyphs(parts, font, place)
            if glyphs.x:
                self._content.glyphs[index] = glyphs
        for opened in self._marked:
            if opened is not None:
                self._content.spoken[opened].shows.append(index)

    def _move_on(self) -> None:
        """Behind what was shown last. Most text is placed anew before more is shown: then nothing needs to be measured."""
        if self._shown is not None:
            self._text = _moved(self._text, _advance(*self._shown), 0)
            self._shown = None

    def _place(self, line: Matrix) -> None:
        self._line = self._text = line
        self._shown = None

    def _is_wanted(self, place: Matrix, advance: float) -> bool:
        if self._reader.is_wanted is None:
            return True
        size = abs(self._state.size) + abs(self._state.rise)
        # Kerning can lead back behind the beginning: as far again is looked at on either side.
        left, right = (0.0, advance) if advance >= 0 else (advance, 0.0)
        spread = right - left + size
        left, right = left - spread, right + spread
        if place.b == place.c == 0 and place.a > 0 and place.d > 0:
            across, up = place.a, place.d * size
            stretch = Rectangle(left * across + place.e, place.f - up, right * across + place.e, place.f + up)
        else:
            stretch = place.bounds(Rectangle(left, -size, right, size))
        return self._reader.is_wanted(stretch)

    def _glyphs(self, parts: list[bytes | float], font: FontCodes, place: Matrix) -> Glyphs:
        state, along = self._state, 0.0
        size, scale, spacing = state.size, state.scale, state.character_spacing
        em = _shorter_side(place, size * scale, size)
        a, b = place.a, place.b
        left, bottom = place.apply(0, state.rise)
        glyphs = Glyphs(font, em, [], [], [], [], [], [], [], bytearray())
        add_x, add_y, add_advance = glyphs.x.append, glyphs.y.append, glyphs.advance.append
        for number, part in enumerate(parts):
            if isinstance(part, float):
                along -= part / 1000 * size * scale
                continue
            for start, end, code, width in font.measured(part):
                add_x(a * along + left)
                add_y(b * along + bottom)
                advance = width * size + spacing
                if code == 32 and font.is_word_space(code, end - start):
                    advance += state.word_spacing
                add_advance(advance / size if size else 0.0)
                glyphs.start.append(start)
                glyphs.end.append(end)
                glyphs.code.append(code)
                along += advance * scale
            glyphs.element += [number] * (len(glyphs.x) - len(glyphs.element))
        glyphs.removed = bytearray(len(glyphs.x))
        return glyphs

    def draw(self, index: int, operands: Any) -> None:
        form = self._reader.form(self._content.resources, operands[0], self._state, self._depth)
        if form is not None:
            self._content.forms[index] = form

    def begin_marked(self, index: int, operands: Any) -> None:
        properties = operands[1] if len(operands) > 1 else None
        if isinstance(properties, pikepdf.Name):
            properties = _entry(self._content.resources, "/Properties", properties)
        text = properties.get("/ActualText") if isinstance(properties, pikepdf.Dictionary) else None
        self._marked.append(index if isinstance(text, pikepdf.String) else None)
        if isinstance(text, pikepdf.String):
            self._content.spoken[index] = Spoken(text_of(text))

    def end_marked(self, _index: int, _operands: Any) -> None:
        if self._marked:
            self._marked.pop()

    def set_number(self, name: str, operands: Any, factor: float = 1.0) -> None:
        setattr(self._state, name, float(operands[0]) * factor)


def _advance(
    parts: list[bytes | float], font: FontCodes, size: float, scale: float, spacing: tuple[float, float]
) -> float:
    """Of a whole show operator, in text space (9.4.4); ``spacing`` of characters and of words."""
    x = 0.0
    for part in parts:
        if isinstance(part, float):
            x -= part / 1000 * size
        else:
            width, count, spaces = font.measure(part)
            x += width * size + count * spacing[0] + spaces * spacing[1]
    return x * scale


_OPERATORS: dict[str, Callable[[_Run, int, Any], None]] = {
    "q": _Run.save,
    "Q": _Run.restore,
    "cm": _Run.concatenate,
    "gs": _Run.graphics_state,
    "Do": _Run.draw,
    "BT": _Run.begin_text,
    "Tf": _Run.set_font,
    "Td": _Run.move,
    "TD": _Run.move_and_lead,
    "Tm": _Run.set_matrix,
    "T*": _Run.new_line,
    "Tj": _Run.show,
    "'": _Run.show_on_new_line,
    '"': _Run.show_spaced_on_new_line,
    "TJ": _Run.show_array,
    "BDC": _Run.begin_marked,
    "BMC": _Run.begin_marked,
    "EMC": _Run.end_marked,
    "Tc": lambda run, _index, operands: run.set_number("character_spacing", operands),
    "Tw": lambda run, _index, operands: run.set_number("word_spacing", operands),
    "Tz": lambda run, _index, operands: run.set_number("scale", operands, 0.01),
    "TL": lambda run, _index, operands: run.set_number("leading", operands),
    "Ts": lambda run, _index, operands: run.set_number("rise", operands),
}


def _entry(resources: pikepdf.Dictionary, kind: str, name: Any) -> Any:
    entries = resources.get(kind)
    if not isinstance(entries, pikepdf.Dictionary) or not isinstance(name, pikepdf.Name):
        return pikepdf.Dictionary()
    return entries.get(name, pikepdf.Dictionary())


def _moved(matrix: Matrix, x: float, y: float) -> Matrix:
    a, b, c, d, e, f = matrix
    return Matrix(a, b, c, d, a * x + c * y + e, b * x + d * y + f)


def _six(operands: Any) -> Matrix:
    a, b, c, d, e, f = (float(operands[index]) for index in range(6))
    return Matrix(a, b, c, d, e, f)


def _matrix(value: Any) -> Matrix:
    try:
        return _six(value)
    except (IndexError, TypeError, ValueError, KeyError, NotImplementedError):
        return _IDENTITY


def _shorter_side(matrix: Matrix, x: float, y: float) -> float:
    across = math.hypot(matrix.a, matrix.b) * abs(x)
    up = math.hypot(matrix.c, matrix.d) * abs(y)
    return min(across, up)
