"""Paths in the operators of a page's content (ISO 32000-2, 8.5.2)."""

import itertools

from services.rendering.jobs.pdf.geometry import Rectangle

_CURVE = 0.5523
"""How far the control points of a quarter of a circle are from its ends, in radii."""


def numbers(*values: float) -> str:
    return " ".join(f"{value:.3f}".rstrip("0").rstrip(".") for value in values)


def ellipse(area: Rectangle) -> str:
    """The path of the ellipse that fills the area."""
    x, y, across, up = (area.left + area.right) / 2, (area.bottom + area.top) / 2, area.width / 2, area.height / 2
    path = [f"{numbers(area.right, y)} m"]
    for (x0, y0), (x1, y1) in itertools.pairwise([(1, 0), (0, 1), (-1, 0), (0, -1), (1, 0)]):
        curve = [(x0 + _CURVE * x1, y0 + _CURVE * y1), (x1 + _CURVE * x0, y1 + _CURVE * y0), (x1, y1)]
        path.append(" ".join(numbers(x + right * across, y + higher * up) for right, higher in curve) + " c")
    return " ".join(path) + " h"
