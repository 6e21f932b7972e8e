"""Page geometry: a box drawn through it appears where the area says, as pdfium and poppler draw the page."""

import io
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from contracts.types import Area
from services.rendering.jobs.pdf.geometry import (
    Matrix,
    Rectangle,
    area_to_rectangle,
    clip,
    rectangle_to_area,
    state_plainly,
    visible_page,
)
from tests.support.files import pdf_files

SCALE = 2

boxes = st.tuples(st.integers(-300, 300), st.integers(-300, 300), st.integers(120, 700), st.integers(120, 700)).map(
    lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3])
)
areas = st.tuples(*[st.floats(0, 0.9)] * 2, *[st.floats(0.05, 0.5)] * 2).map(
    lambda xywh: Area(x=xywh[0], y=xywh[1], w=min(xywh[2], 1 - xywh[0]), h=min(xywh[3], 1 - xywh[1]))
)
rotations = st.sampled_from([None, 0, 90, 180, 270, -90, -180, -270, 450, 45, 100, -100, 90.0, pikepdf.Name.Wrong])


def draw_area(media: Any, crop: Any, rotate: int, area: Area) -> tuple[Image.Image, Rectangle]:
    """The page as pdfium draws it, with the area filled; and the area in pixels, origin bottom left."""
    with pikepdf.open(io.BytesIO(pdf_files.document("", media=media, crop=crop, rotate=rotate))) as pdf:
        page = pdf.pages[0]
        visible = visible_page(page)
        rectangle = area_to_rectangle(area, visible)
        matrix = " ".join(f"{number:.6f}" for number in visible.matrix)
        box = pdf_files.filled_rectangle(rectangle.left, rectangle.bottom, rectangle.width, rectangle.height)
        page.obj.Contents = pdf.make_stream(f"q {matrix} cm {box} Q".encode())
        data = pdf_files.saved(pdf)
    with pdfium.PdfDocument(data) as document:
        picture = document[0].render(scale=SCALE).to_pil().convert("RGB")
    return picture, Rectangle(*(number * SCALE for number in rectangle))


@settings(max_examples=60, deadline=None)
@given(media=boxes, crop=st.none() | boxes, rotate=rotations, area=areas)
def test_a_box_drawn_through_the_matrix_is_where_the_area_says(media: Any, crop: Any, rotate: int, area: Any) -> None:
    if crop and (
        min(media[2], crop[2]) - max(media[0], crop[0]) < 60 or min(media[3], crop[3]) - max(media[1], crop[1]) < 60
    ):
        crop = None
    picture, expected = draw_area(media, crop, rotate, area)
    red = picture.getchannel("G").point(lambda value: 255 if value < 128 else 0).getbbox()
    assert red is not None
    left, top, right, bottom = red
    seen = Rectangle(left, picture.height - bottom, right, picture.height - top)
    for one, other in zip(seen, expected, strict=True):
        assert abs(one - other) <= 1.01, (seen, expected)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_size_is_upright_and_in_points(rotate: int) -> None:
    data = pdf_files.document("", media=(10, 20, 210, 320), crop=(10, 20, 110, 320), rotate=rotate, user_unit=2.5)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        visible = visible_page(pdf.pages[0])
    upright = (visible.width, visible.height)
    assert upright == ((250, 750) if rotate in (0, 180) else (750, 250))
    assert visible.rotation == rotate


def test_inherited_attributes_are_found() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.document(""))) as pdf:
        page, tree = pdf.pages[0], pdf.Root.Pages
        del page.obj["/MediaBox"]
        tree.MediaBox = pikepdf.Array([0, 0, 400, 300])
        tree.Rotate = 90
        visible = visible_page(page)
    assert (visible.width, visible.height, visible.rotation) == (300, 400, 90)


@pytest.mark.parametrize(
    ("media", "crop", "box"),
    [
        ((600, 800, 0, 0), None, (0, 0, 600, 800)),
        ((0, 0, 600, 800), (900, 900, 999, 999), (0, 0, 600, 800)),
        ((0, 0, 600, 800), (-50, -50, 300, 5000), (0, 0, 300, 800)),
        ((0, 0, 0, 800), None, (0, 0, 612, 792)),
        (("a", 0, 1, 2), None, (0, 0, 612, 792)),
        ((1, 2), None, (0, 0, 612, 792)),
    ],
)
def test_boxes_that_readers_correct(media: Any, crop: Any, box: tuple[int, ...]) -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    page.obj.MediaBox = pikepdf.Array(list(media))
    if crop:
        page.obj.CropBox = pikepdf.Array(list(crop))
    assert visible_page(page).box == box


def test_a_ring_of_parents_ends() -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    page.obj.Parent = pdf.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.Pages))
    page.obj.Parent.Parent = page.obj.Parent
    del page.obj["/MediaBox"]
    assert visible_page(page).box == (0, 0, 612, 792)


@pytest.mark.parametrize("unit", [0, -3, "x"])
def test_senseless_user_units_count_as_one(unit: Any) -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    page.obj.UserUnit = unit
    assert visible_page(page).user_unit == 1


def test_state_plainly_leaves_one_reading() -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf, rotate=-90, crop=(5000, 5000, 6000, 6000))
    page.obj.UserUnit = -1
    visible = visible_page(page)
    state_plainly(page, visible)
    assert page.obj.Rotate == 270
    assert list(page.obj.CropBox) == [0, 0, 612, 792]
    assert "/UserUnit" not in page.obj
    assert visible_page(page) == visible


@given(area=areas, rotate=st.sampled_from([0, 90, 180, 270]), unit=st.sampled_from([0.5, 1, 3]))
@settings(max_examples=30, deadline=None)
def test_areas_survive_the_way_through_default_user_space(area: Any, rotate: int, unit: Any) -> None:
    data = pdf_files.document("", media=(7, -9, 407, 591), rotate=rotate, user_unit=unit)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        visible = visible_page(pdf.pages[0])
    there = visible.to_default_space(area_to_rectangle(area, visible))
    back = rectangle_to_area(visible.from_default_space(there), visible, page=1)
    for key in ("x", "y", "w", "h"):
        assert getattr(back, key) == pytest.approx(getattr(area, key), abs=1e-9)


def test_clip_keeps_what_lies_on_the_page() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.document(""))) as pdf:
        visible = visible_page(pdf.pages[0])
    assert clip(Rectangle(-10, 780, 100, 900), visible) == (0, 780, 100, 792)
    assert clip(Rectangle(700, 0, 800, 10), visible) is None


def test_after_does_the_first_matrix_first() -> None:
    move, double = Matrix(1, 0, 0, 1, 10, 0), Matrix(2, 0, 0, 2, 0, 0)
    assert double.after(move).apply(1, 1) == (22, 2)
    assert move.after(double).apply(1, 1) == (12, 2)
