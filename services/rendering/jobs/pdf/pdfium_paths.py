"""What is drawn on a page with lines: each path's corners, as pdfium has them. Coordinates are default user space."""

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2.raw as pdfium_raw

from services.rendering.jobs.pdf.geometry import Matrix
from services.rendering.jobs.pdf.pdfium_text import fast

_DEEPEST = 6
"""Forms (XObjects) within forms."""

_LINE, _CURVE, _MOVE = 0, 1, 2

_address, _int, _unsigned = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
_get_object = fast(pdfium_raw.FPDFPage_GetObject, _address, _address, _int)
_get_object_of_form = fast(pdfium_raw.FPDFFormObj_GetObject, _address, _address, ctypes.c_ulong)
_get_type = fast(pdfium_raw.FPDFPageObj_GetType, _int, _address)
_get_matrix = fast(pdfium_raw.FPDFPageObj_GetMatrix, _int, _address, _address)
_get_mode = fast(pdfium_raw.FPDFPath_GetDrawMode, _int, _address, _address, _address)
_get_fill = fast(pdfium_raw.FPDFPageObj_GetFillColor, _int, _address, *[_address] * 4)
_get_stroke = fast(pdfium_raw.FPDFPageObj_GetStrokeColor, _int, _address, *[_address] * 4)
_count_segments = fast(pdfium_raw.FPDFPath_CountSegments, _int, _address)
_get_segment = fast(pdfium_raw.FPDFPath_GetPathSegment, _address, _address, _int)
_get_point = fast(pdfium_raw.FPDFPathSegment_GetPoint, _int, _address, _address, _address)
_get_segment_type = fast(pdfium_raw.FPDFPathSegment_GetType, _int, _address)
_get_close = fast(pdfium_raw.FPDFPathSegment_GetClose, _int, _address)

Point = tuple[float, float]
Shade = tuple[int, int, int]


class TooManyObjects(Exception):
    """The page has more objects, or corners of paths, than are read."""


@dataclass(frozen=True)
class DrawnPath:
    """One part of a path, without a break: its corners in order. ``stroke`` and ``fill`` are the colours (0 to 255 each) of its
    line and of what is inside, None where there is none or it is not seen."""

    points: tuple[Point, ...]
    is_closed: bool
    is_curved: bool
    stroke: Shade | None
    fill: Shade | None


class PageObjects:
    """The objects of one page while pdfium has it open. ``most``: objects and corners together that are read at most."""

    def __init__(self, page: pdfium_raw.FPDF_PAGE, most: int) -> None:
        self._page = page
        self._left = self._most = most
        self._float = (ctypes.c_float * 2)()
        self._numbers = (_unsigned * 4)()
        start, step = ctypes.addressof(self._numbers), ctypes.sizeof(_unsigned)
        self._parts = tuple(range(start, start + 4 * step, step))
        self._x = ctypes.addressof(self._float)
        self._y = self._x + ctypes.sizeof(ctypes.c_float)
        self._matrix = pdfium_raw.FS_MATRIX()

    @property
    def spent(self) -> int:
        """Return how many objects and corners were read."""
        return self._most - self._left

    def paths(self) -> Iterator[DrawnPath]:
        """All paths in the order in which they are drawn, those in forms (XObjects) too. Raises TooManyObjects."""
        count = max(pdfium_raw.FPDFPage_CountObjects(self._page), 0)
        page = ctypes.cast(self._page, _address).value
        for index in range(count):
            yield from self._of(_get_object(page, index), Matrix(1, 0, 0, 1, 0, 0), 0)

    def _of(self, drawn: int | None, to_page: Matrix, depth: int) -> Iterator[DrawnPath]:
        self._spend(1)
        if not drawn:
            return
        kind = _get_type(drawn)
        if kind == pdfium_raw.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
            inner = to_page.after(self._own_matrix(drawn))
            form = ctypes.cast(drawn, pdfium_raw.FPDF_PAGEOBJECT)
            for index in range(max(pdfium_raw.FPDFFormObj_CountObjects(form), 0)):
                yield from self._of(_get_object_of_form(drawn, index), inner, depth + 1)
        elif kind == pdfium_raw.FPDF_PAGEOBJ_PATH:
            yield from self._path(drawn, to_page.after(self._own_matrix(drawn)))

    def _path(self, drawn: int, to_page: Matrix) -> Iterator[DrawnPath]:
        _get_mode(drawn, self._parts[0], self._parts[1])
        is_filled, is_stroked = self._numbers[0] != 0, self._numbers[1] != 0
        stroke = self._color(_get_stroke, drawn) if is_stroked else None
        fill = self._color(_get_fill, drawn) if is_filled else None
        if stroke is None and fill is None:
            return
        count = max(_count_segments(drawn), 0)
        self._spend(count)
        points: list[Point] = []
        is_closed = is_curved = False
        for index in range(count):
            segment = _get_segment(drawn, index)
            if not segment or not _get_point(segment, self._x, self._y):
                continue
            kind = _get_segment_type(segment)
            if kind == _MOVE and points:
                yield DrawnPath(tuple(points), is_closed, is_curved, stroke, fill)
                points, is_closed, is_curved = [], False, False
            is_curved |= kind == _CURVE
            x, y = to_page.apply(self._float[0], self._float[1])
            if not (math.isfinite(x) and math.isfinite(y)):
                return
            points.append((x, y))
            is_closed |= _get_close(segment) == 1
        if points:
            yield DrawnPath(tuple(points), is_closed, is_curved, stroke, fill)

    def _color(self, get: object, drawn: int) -> Shade | None:
        """None when it is transparent."""
        is_known = get(drawn, *self._parts)  # type: ignore[operator]
        red, green, blue, alpha = self._numbers
        return (red, green, blue) if is_known and alpha > 0 else None

    def _own_matrix(self, drawn: int) -> Matrix:
        matrix = self._matrix
        if not _get_matrix(drawn, ctypes.addressof(matrix)):
            return Matrix(1, 0, 0, 1, 0, 0)
        return Matrix(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooManyObjects
