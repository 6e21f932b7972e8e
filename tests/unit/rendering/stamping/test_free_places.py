"""Free places on a page, found cell by cell, against a reading of the same rules that tries every place."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.rendering.rules.free_places import (
    Cells,
    Rectangle,
    at,
    centred,
    is_within,
    least_covering,
    lowest,
    near,
    overlap,
)

PAGE = (100.0, 200.0)
SIZE = (20.0, 30.0)


def blank() -> Cells:
    """Cells of ten points."""
    return Cells(PAGE, [0] * 20, 10)


def free(cells: Cells, size: tuple[float, float] = SIZE, inset: float = 0.0) -> list[tuple[float, float]]:
    return [(round(x, 6), round(y, 6)) for x, y in cells.free(size, inset)]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ((10, 10, 20, 20), True),
        ((19, 19, 30, 30), True),
        ((20, 10, 30, 20), False),
        ((10, 20, 20, 30), False),
        ((0, 0, 10, 10), False),
        ((19.995, 10, 30, 20), False),
        ((12, 12, 13, 13), True),
        ((0, 12, 30, 13), True),
    ],
)
def test_rectangles_that_touch_do_not_overlap(other: Rectangle, expected: bool) -> None:
    assert overlap((10, 10, 20, 20), other) is expected
    assert overlap(other, (10, 10, 20, 20)) is expected


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((0, 0, 100, 200), True),
        ((-0.005, -0.005, 100.005, 200.005), True),
        ((-1, 0, 9, 9), False),
        ((0, -1, 9, 9), False),
        ((91, 0, 101, 9), False),
        ((0, 191, 9, 201), False),
    ],
)
def test_what_is_on_the_page(box: Rectangle, expected: bool) -> None:
    assert is_within(box, PAGE) is expected


@pytest.mark.parametrize(
    ("anchor", "corner"),
    [
        ((40, 100, 60, 130), (40, 100)),
        ((45, 110, 55, 120), (40, 100)),
        ((0, 0, 4, 4), (0, 0)),
        ((96, 196, 100, 200), (80, 170)),
    ],
)
def test_the_middle_but_on_the_page(anchor: Rectangle, corner: tuple[float, float]) -> None:
    assert centred(anchor, SIZE, PAGE) == at(corner, SIZE) == (*corner, corner[0] + 20, corner[1] + 30)


def test_free_places_from_the_bottom_right_to_the_top_left() -> None:
    places = free(blank())
    assert (places[0], places[1], places[-1]) == ((80, 0), (70, 0), (0, 170))
    assert len(places) == 9 * 18
    assert free(blank(), (100, 200)) == [(0, 0)]
    assert free(blank(), (101, 10)) == free(blank(), (10, 201)) == []


def test_an_inset_is_kept_on_all_four_sides() -> None:
    assert free(blank(), (60, 160), 20) == [(20, 20)]
    assert free(blank(), (60, 160), 15) == [(20, 20)]
    assert free(blank(), (61, 160), 20) == free(blank(), (60, 161), 20) == []


def test_what_is_taken_is_not_free() -> None:
    cells = blank().take([(0, 0, 100, 195), (30, 0, 70, 200)])
    assert free(cells, (10, 5)) == []
    assert free(blank().take([(0, 0, 100, 190)]), (10, 5))[0] == (90, 190)
    assert free(blank().take([(0, 10, 100, 200)]), (10, 5))[0] == (90, 0)
    assert free(blank().take([(10, 0, 100, 200)]), (10, 200)) == [(0, 0)]
    assert free(blank().take([(0, 0, 90, 200)]), (10, 200)) == [(90, 0)]
    assert free(blank().take([(10, 0, 10, 200)]), (100, 200)) == [(0, 0)]
    assert free(blank().take([(-500, -500, -1, -1), (300, 300, 400, 400)]), (100, 200)) == [(0, 0)]


def test_cells_are_two_points_or_more() -> None:
    columns = {x for x, _ in Cells.blank((612.0, 792.0)).free((72.0, 700.0))}
    assert sorted(columns)[1] == pytest.approx(2, abs=0.03)
    wide = sorted({x for x, _ in Cells.blank((4000.0, 2000.0)).free((72.0, 1900.0))})
    assert wide[1] == pytest.approx(10)
    assert list(Cells.blank((1.5, 1.0)).free((1.5, 1.0))) == [(0, 0)]


def test_how_much_of_a_box_is_taken() -> None:
    cells = blank().take([(0, 0, 20, 20)])
    assert cells.taken_in((0, 0, 20, 20)) == 4
    assert cells.taken_in((10, 10, 30, 30)) == 1
    assert cells.taken_in((20, 20, 40, 40)) == 0
    assert cells.taken_in((0, 0, 100, 200)) == 4
    assert cells.taken_in((10, 0, 10, 20)) == 0
    assert blank().take([(0, 0, 100, 20)]).taken_in((10, 0, 20, 10)) == 1
    assert Cells.blank((1.5, 1.0)).take([(0, 0, 1.5, 1)]).taken_in((0, 0, 1.5, 1)) == 1


def test_the_nearest_place() -> None:
    taken = blank().take([(40, 100, 60, 130)])
    assert near(taken, SIZE, at((42, 112), SIZE)) in (at((40, 130), SIZE), at((60, 110), SIZE), at((20, 110), SIZE))
    assert near(taken, SIZE, at((40, 139), SIZE)) == at((40, 140), SIZE)
    assert near(blank(), SIZE, at((33, 77), SIZE)) == at((30, 80), SIZE)
    assert near(blank().take([(0, 0, 100, 200)]), SIZE, at((0, 0), SIZE)) is None


TALL = (100.0, 300.0)


@pytest.mark.parametrize(
    ("taken", "corner"),
    [
        ([], (60, 20)),
        ([(60, 0, 100, 60)], (40, 20)),
        ([(0, 50, 100, 300)], (60, 20)),
        ([(0, 40, 100, 300)], (70, 10)),
        ([(0, 30, 100, 300)], (80, 0)),
        ([(0, 30, 100, 100)], (80, 0)),
        ([(0, 0, 100, 60)], (60, 60)),
        ([(0, 10, 100, 270)], (80, 270)),
        ([(0, 10, 100, 100), (0, 150, 100, 300)], (60, 100)),
    ],
)
def test_the_bottom_margin_before_anything_else(taken: list[Rectangle], corner: tuple[float, float]) -> None:
    """Off the page's edges where there is room for it; in the margin at its edge before anywhere above it."""
    assert lowest(Cells(TALL, [0] * 30, 10).take(taken), SIZE, TALL) == at(corner, SIZE)


def test_the_bottom_margin_of_a_low_page_is_as_high_as_a_stamp_off_its_edge() -> None:
    low = (100.0, 70.0)
    assert lowest(Cells(low, [0] * 70, 100), SIZE, low) == at((62, 18), SIZE)
    higher = (100.0, 120.0)
    taken = Cells(higher, [0] * 120, 100).take([(0, 40, 100, 60)])
    assert lowest(taken, SIZE, higher) == at((74, 6), SIZE), "not above, where it could be further off the edge"


def test_without_a_free_place_there_is_none() -> None:
    full = blank().take([(0, 0, 100, 200)])
    assert lowest(full, SIZE, PAGE) is None
    assert least_covering(full, blank(), SIZE) is None


def test_the_least_ink_the_lowest_of_several() -> None:
    drawn = blank().take([(0, 0, 100, 200)])
    assert least_covering(blank(), drawn, SIZE) == at((80, 0), SIZE)
    spots = blank().take([(0, 0, 100, 100), (0, 130, 100, 200)])
    assert least_covering(blank(), spots, SIZE) == at((80, 100), SIZE)
    assert least_covering(blank().take([(0, 90, 100, 140)]), spots, SIZE) == at((80, 0), SIZE)


RECTANGLES = st.tuples(*[st.integers(0, 20).map(lambda number: number * 5.0)] * 4).map(
    lambda edges: (min(edges[0], edges[2]), min(edges[1], edges[3]), max(edges[0], edges[2]), max(edges[1], edges[3]))
)


@settings(max_examples=60, deadline=None)
@given(st.lists(RECTANGLES, max_size=4))
def test_every_place_is_tried(taken: list[Rectangle]) -> None:
    expected = {
        (x * 10.0, y * 10.0)
        for x, y in product(range(9), range(18))
        if not any(overlap(at((x * 10.0, y * 10.0), SIZE), _whole_cells(one)) for one in taken)
    }
    assert set(free(blank().take(taken))) == expected


def _whole_cells(box: Rectangle) -> Rectangle:
    """The cells that a rectangle touches; one without an inside touches the edge between two, or nothing."""
    left, bottom, right, top = box
    return (left // 10 * 10, bottom // 10 * 10, -(-right // 10) * 10, -(-top // 10) * 10)
