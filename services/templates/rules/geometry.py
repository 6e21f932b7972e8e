"""Where fields are: from what an API user writes to fractions of the visible page."""

import math
from collections.abc import Iterable

from contracts.problems import Problems
from contracts.rpc.templates import AreaInput
from contracts.types import Area, Notice, PageSize

OVERHANG = 0.002
"""A box may stick out of the page by this fraction (a bit more than a point of Letter or A4): rounding, not a mistake."""

_ONE = 1 + 1e-6
_NOT_IN_FORM = (
    "is not a form field of the document, whose signatures allow nothing else to be filled in (see places of its pages); "
    "without areas the field is shown in the audit trail alone"
)
_NO_SIZE = "must be above 0: a part of the page (0.2), or points (120)"
"""Samples of other services have 0 here, in the place of a number."""


def placed(area: AreaInput, pages: list[PageSize], document_uuid: str, path: str, problems: Problems) -> Area | None:
    """The area as fractions of its page. Any of x, y, w, h above 1 makes all of them points of that page, from top left.

    None, with the problem noted, when the page is not there or the box is not on it.
    """
    if not all(math.isfinite(value) for value in (area.x, area.y, area.w, area.h, area.cell_w or 0.0)):
        problems.add(path, "must have finite numbers")
        return None
    if not 1 <= area.page <= len(pages):
        problems.add(f"{path}.page", f"must be between 1 and {len(pages)}, the number of pages of the document")
        return None
    page = pages[area.page - 1]
    points = max(area.x, area.y, area.w, area.h) > _ONE
    across, down = (page.width, page.height) if points else (1.0, 1.0)
    for name, value in (("w", area.w), ("h", area.h)):
        if value <= 0:
            problems.add(f"{path}.{name}", _NO_SIZE)
            return None
    size = f"{page.width:g} x {page.height:g} points" if points else "0 to 1"
    for start, length, side, names in ((area.x, area.w, across, ("x", "w")), (area.y, area.h, down, ("y", "h"))):
        if start < -OVERHANG * side or start >= side:
            problems.add(f"{path}.{names[0]}", f"is off page {area.page} ({size})")
            return None
        if start + length > side * (1 + OVERHANG):
            problems.add(f"{path}.{names[1]}", f"reaches beyond the edge of page {area.page} ({size})")
            return None
    result = _placed(area, across, down, document_uuid)
    if not page.takes(result):
        problems.add(path, _NOT_IN_FORM)
        return None
    return result


def _placed(area: AreaInput, across: float, down: float, document_uuid: str) -> Area:
    cell = None if area.cell_w is None or area.cell_w <= 0 else area.cell_w / across
    return _on_page(
        area.x / across, area.y / down, area.w / across, area.h / down, area.page, document_uuid, area.option, cell
    )


def place_found(
    areas: Iterable[Area], pages: list[PageSize], document_uuid: str, name: str
) -> tuple[list[Area], list[Notice]]:
    """Areas of a tag or form field, cut to the page; those that lie off it are left out and reported."""
    on_pages, notices = [], []
    for area in areas:
        off = (
            not all(math.isfinite(value) for value in (area.x, area.y, area.w, area.h))
            or not 1 <= area.page <= len(pages)
            or min(area.w, area.h) <= 0
            or area.x >= 1
            or area.y >= 1
            or area.x + area.w <= 0
            or area.y + area.h <= 0
        )
        if off:
            message = f"field {name!r} lies off the page and was left out there"
            notices.append(Notice(code="area_off_page", message=message, page=area.page))
            continue
        on_pages.append(_on_page(area.x, area.y, area.w, area.h, area.page, document_uuid, area.option, area.cell_w))
    return on_pages, notices


def _on_page(
    x: float, y: float, w: float, h: float, page: int, document_uuid: str, option: str | None, cell_w: float | None
) -> Area:
    left, top = max(x, 0.0), max(y, 0.0)
    right, bottom = min(x + w, 1.0), min(y + h, 1.0)
    return Area(
        x=round(left, 6),
        y=round(top, 6),
        w=round(right - left, 6),
        h=round(bottom - top, 6),
        page=page,
        attachment_uuid=document_uuid,
        option=option or None,
        cell_w=None if cell_w is None else round(min(cell_w, 1.0), 6),
    )
