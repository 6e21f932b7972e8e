"""The border of an annotation or form field (ISO 32000-2, 12.5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pikepdf
from pikepdf import Name

from services.rendering.jobs.pdf.values import items_of, name_of, number_of

_WIDEST = 100.0
_MOST_DASHES = 10
_USUAL_DASHES = [3]
"""Where a dashed border does not say how long its dashes are (table 168)."""


@dataclass(frozen=True)
class Border:
    """``width`` and ``dashes`` (lengths of lines and gaps; none: the line is whole) in points; ``style`` as in table 168."""

    width: float = 1.0
    style: str = "/S"
    dashes: tuple[float, ...] = ()


def border_of(annotation: pikepdf.Dictionary) -> Border:
    """Read the border: a style (``/BS``) comes before the array of PDF 1.1 (``/Border``). Wrong values give the default."""
    style, array = annotation.get("/BS"), items_of(annotation.get("/Border"))
    if isinstance(style, pikepdf.Dictionary):
        dashes = (items_of(style.get("/D")) or _USUAL_DASHES) if style.get("/S") == Name.D else []
        return Border(_width(style.get("/W")), name_of(style.get("/S")) or "/S", _lengths(dashes))
    if len(array) < 3:
        return Border()
    dashes = items_of(array[3]) if len(array) > 3 else []
    return Border(_width(array[2]), "/D" if dashes else "/S", _lengths(dashes))


def _width(value: object) -> float:
    return min(max(number_of(value, 1.0), 0.0), _WIDEST)


def _lengths(dashes: Sequence[object]) -> tuple[float, ...]:
    lengths = tuple(number_of(length) for length in dashes[:_MOST_DASHES])
    return lengths if all(0 <= length < 1000 for length in lengths) and any(lengths) else ()
