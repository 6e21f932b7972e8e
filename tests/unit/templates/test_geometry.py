"""Boxes on pages: which are taken as they are, which are points, which lie off the page, and what is cut."""

import math
from typing import Any

import pytest

from contracts.problems import Problems
from contracts.rpc.templates import AreaInput
from contracts.types import Area, PageSize
from services.templates.rules import geometry

LETTER, WIDE = PageSize(width=612, height=792), PageSize(width=1000, height=500)
INSIDE = {"x": 0.1, "y": 0.2, "w": 0.3, "h": 0.04}


def placed(**area: Any) -> tuple[Area | None, list[dict[str, str]]]:
    problems = Problems()
    given = AreaInput(**(INSIDE | area))
    return geometry.placed(given, [LETTER, WIDE], "d-1", "areas[0]", problems), problems.entries


def box(area: Area | None) -> tuple[float, float, float, float] | None:
    return (area.x, area.y, area.w, area.h) if area else None


@pytest.mark.parametrize(
    ("area", "on_page"),
    [
        ({"x": 61.2, "w": 306, "y": 0, "h": 79.2}, (0.1, 0, 0.5, 0.1)),
        ({"x": 100, "w": 500, "y": 0, "h": 50, "page": 2}, (0.1, 0, 0.5, 0.1)),
        ({"x": 0, "w": 1 + 1e-6}, (0, 0.2, 1, 0.04)),
        ({"x": 0, "w": 1.00001}, (0, 0.000253, 0.001634, 0.000051)),
        ({"x": geometry.OVERHANG, "w": 1}, (0.002, 0.2, 0.998, 0.04)),
        ({"x": -geometry.OVERHANG, "y": -geometry.OVERHANG}, (0, 0, 0.298, 0.038)),
        (
            {"x": 0.12345678, "y": 0.12345678, "w": 0.12345678, "h": 0.12345678},
            (0.123457, 0.123457, 0.123457, 0.123457),
        ),
    ],
)
def test_where_a_box_is(area: dict[str, Any], on_page: tuple[float, ...]) -> None:
    result, problems = placed(**({"y": 0.2} | area))
    assert problems == []
    assert box(result) == on_page


@pytest.mark.parametrize(
    ("area", "about", "reason"),
    [
        ({"x": 612, "y": 10}, "areas[0].x", "is off page 1 (612 x 792 points)"),
        ({"x": 1}, "areas[0].x", "is off page 1 (0 to 1)"),
        ({"y": 700, "x": 0, "h": 100}, "areas[0].h", "reaches beyond the edge of page 1 (612 x 792 points)"),
        ({"x": -0.0021}, "areas[0].x", "is off page 1 (0 to 1)"),
        ({"cell_w": math.inf}, "areas[0]", "must have finite numbers"),
        ({"cell_w": math.nan}, "areas[0]", "must have finite numbers"),
    ],
)
def test_what_is_said_of_a_box_off_the_page(area: dict[str, Any], about: str, reason: str) -> None:
    assert placed(**area) == (None, [{"field": about, "reason": reason}])


@pytest.mark.parametrize(
    ("cell_w", "kept"), [(None, None), (0, None), (-0.1, None), (0.12345678, 0.123457), (0.999, 0.999)]
)
def test_a_cell_has_a_width_or_none(cell_w: float | None, kept: float | None) -> None:
    result, _ = placed(cell_w=cell_w)
    assert result is not None
    assert result.cell_w == kept


@pytest.mark.parametrize(("option", "kept"), [("Yes", "Yes"), (" ", None), (None, None)])
def test_an_area_stands_for_an_option_or_none(option: str | None, kept: str | None) -> None:
    result, _ = placed(option=option)
    assert result is not None
    assert result.option == kept
    ((found,), _) = geometry.place_found([Area(**INSIDE, option=option and option.strip())], [LETTER], "d-1", "Field")
    assert found.option == kept


@pytest.mark.parametrize(
    "off",
    [
        {"x": math.nan},
        {"h": math.inf},
        {"page": 0},
        {"page": 3},
        {"w": 0},
        {"h": 0},
        {"w": -0.1},
        {"h": -0.1},
        {"x": 1},
        {"y": 1},
        {"x": 1.5},
        {"y": 1.5},
        {"x": -0.3},
        {"y": -0.04},
        {"x": -0.4},
        {"y": -0.4},
    ],
)
def test_what_a_file_says_off_its_page_is_left_out_and_told(off: dict[str, Any]) -> None:
    areas, (notice,) = geometry.place_found([Area(**(INSIDE | off))], [LETTER, WIDE], "d-1", "Field")
    assert areas == []
    assert (notice.code, notice.page) == ("area_off_page", off.get("page", 1))


@pytest.mark.parametrize(
    ("over", "cut"),
    [
        ({"x": 0.9}, (0.9, 0.2, 0.1, 0.04)),
        ({"x": -0.1}, (0, 0.2, 0.2, 0.04)),
        ({"y": -0.03}, (0.1, 0, 0.3, 0.01)),
        ({"y": 0.99}, (0.1, 0.99, 0.3, 0.01)),
    ],
)
def test_what_reaches_over_the_edge_is_cut(over: dict[str, Any], cut: tuple[float, ...]) -> None:
    ((area,), notices) = geometry.place_found([Area(**(INSIDE | over))], [LETTER, WIDE], "d-1", "Field")
    assert notices == []
    assert box(area) == pytest.approx(cut)
