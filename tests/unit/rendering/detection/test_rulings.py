"""Lines, boxes and cells, as programs draw them."""

import pytest

from services.rendering.jobs.detection.page import rulings
from services.rendering.jobs.detection.page.marks import Rule
from services.rendering.jobs.detection.page.rulings import Drawn, TooManyRules, cells, drawn
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.pdfium_paths import DrawnPath, Point, Shade

PAGE = Rectangle(0, 0, 600, 800)
BLACK, WHITE, GREY, LIGHT = (0, 0, 0), (255, 255, 255), (200, 200, 200), (240, 240, 255)


def path(*points: Point, stroke: Shade | None = None, fill: Shade | None = None, curved: bool = False) -> DrawnPath:
    return DrawnPath(points, is_closed=len(points) > 2, is_curved=curved, stroke=stroke, fill=fill)


def corners(left: float, bottom: float, right: float, top: float) -> tuple[Point, ...]:
    return (left, bottom), (right, bottom), (right, top), (left, top)


def read(*paths: DrawnPath) -> Drawn:
    return drawn(paths, lambda x, y: (x, y), PAGE)


def test_lines_rectangles_and_thin_areas_are_rules() -> None:
    line = read(path((50, 100), (250, 100), stroke=BLACK))
    assert line.level == [Rule(50, 250, 100)]
    frame = read(path(*corners(50, 100, 250, 130), stroke=BLACK))
    assert frame.level == [Rule(50, 250, 100), Rule(50, 250, 130)]
    assert frame.upright == [Rule(100, 130, 50), Rule(100, 130, 250)]
    bar = read(path(*corners(50, 100, 250, 101), fill=BLACK))
    assert bar.level == [Rule(50, 250, 100.5)]


def test_what_is_not_seen_or_not_straight_is_no_rule() -> None:
    nothing = read(
        path((50, 100), (250, 100), stroke=WHITE),
        path((50, 100), (250, 140), stroke=BLACK),
        path(*corners(50, 100, 250, 101), fill=WHITE),
        path((50, 900), (250, 900), stroke=BLACK),
        path((50, 100), (52, 100), stroke=BLACK),
    )
    assert (nothing.level, nothing.upright) == ([], [])


def test_rules_that_continue_each_other_are_one() -> None:
    pieces = read(
        *(path((x, 100.2 * (x % 2 == 0) + 100 * (x % 2)), (x + 10, 100), stroke=BLACK) for x in range(50, 100, 10))
    )
    assert len(pieces.level) == 1
    assert pieces.level[0].start == 50
    assert pieces.level[0].end == 100
    apart = read(path((50, 100), (90, 100), stroke=BLACK), path((95, 100), (120, 100), stroke=BLACK))
    assert len(apart.level) == 2


def test_a_border_painted_as_an_area_with_a_hole_is_a_rule() -> None:
    inner, whole = corners(50, 101, 250, 130), corners(50, 100, 250, 130)
    for first, second in ((inner, whole), (whole, inner)):
        below = read(path(*first, fill=BLACK), path(*second, fill=BLACK))
        assert below.level == [Rule(50, 250, 100.5)]
        assert (below.upright, below.dark) == ([], [])
    frame = read(path(*corners(50, 100, 250, 130), fill=BLACK), path(*corners(51, 101, 249, 129), fill=BLACK))
    assert (len(frame.level), len(frame.upright), frame.dark) == (2, 2, [])


def test_circles_tinted_and_shaded_areas() -> None:
    circle = read(path((100, 105), (102, 110), (105, 110), (110, 105), (105, 100), stroke=BLACK, curved=True))
    assert circle.rounds == [Rectangle(100, 100, 110, 110)]
    tinted = read(path(*corners(50, 100, 250, 120), fill=LIGHT))
    assert (tinted.tinted, tinted.dark) == ([Rectangle(50, 100, 250, 120)], [])
    shaded = read(path(*corners(50, 100, 250, 120), fill=GREY))
    assert (shaded.tinted, shaded.dark) == ([], [Rectangle(50, 100, 250, 120)])
    on_color = read(path(*corners(0, 0, 600, 800), fill=LIGHT), path(*corners(50, 100, 250, 120), fill=WHITE))
    assert on_color.level == [Rule(50, 250, 100), Rule(50, 250, 120)]


def test_round_corners_are_no_matter() -> None:
    box = read(
        path(
            (55, 100),
            (245, 100),
            (250, 105),
            (250, 125),
            (245, 130),
            (55, 130),
            (50, 125),
            (50, 105),
            stroke=BLACK,
            curved=True,
        )
    )
    assert box.level == [Rule(50, 250, 100), Rule(50, 250, 130)]
    assert box.upright == [Rule(100, 130, 50), Rule(100, 130, 250)]


def test_cells_are_the_smallest_rectangles() -> None:
    level = [Rule(0, 200, at) for at in (0, 20, 40)]
    upright = [Rule(0, 40, at) for at in (0, 80, 200)]
    boxes = [cell.box for cell in cells(level, upright)]
    assert boxes == [
        Rectangle(0, 20, 80, 40),
        Rectangle(80, 20, 200, 40),
        Rectangle(0, 0, 80, 20),
        Rectangle(80, 0, 200, 20),
    ]


def test_a_cell_may_go_over_two_rows() -> None:
    level = [Rule(0, 200, 0), Rule(80, 200, 20), Rule(0, 200, 40)]
    upright = [Rule(0, 40, at) for at in (0, 80, 200)]
    assert Rectangle(0, 0, 80, 40) in [cell.box for cell in cells(level, upright)]


def test_rows_whose_outer_sides_are_not_drawn_have_cells() -> None:
    level = [Rule(0, 200, at) for at in (0, 20)]
    boxes = [cell.box for cell in cells(level, [Rule(0, 20, 80)])]
    assert boxes == [Rectangle(0, 0, 80, 20), Rectangle(80, 0, 200, 20)]
    assert cells(level, []) == []  # lines to write on


def test_too_many_rules_are_no_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulings, "MOST_RULES", 10)
    with pytest.raises(TooManyRules):
        read(*(path((50, 10 * y), (250, 10 * y), stroke=BLACK) for y in range(12)))
    monkeypatch.setattr(rulings, "_MOST_STEPS", 50)
    with pytest.raises(TooManyRules):
        cells([Rule(0, 200, 10 * y) for y in range(10)], [Rule(0, 100, 10 * x) for x in range(20)])
