"""Pages as pictures."""

import io

import pikepdf
import pytest
from pikepdf import Dictionary, String
from PIL import Image, ImageChops

from contracts.fields.boxes import FieldBox
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.drawing.flatten import flatten
from services.rendering.jobs.pdf.geometry import visible_page
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.previews.pages import MOST_PIXELS, draw_page
from tests.support.files import pdf_files
from tests.support.files.odd_files import ODD
from tests.support.judges.pixels import compared
from tests.support.rendering.drawing import area, blank_pdf, field_value, request, stored
from tests.support.rendering.intake import take


def drawn(data: bytes, page: int = 1, width: int = 400) -> Image.Image:
    return Image.open(io.BytesIO(draw_page(data, page, width)))


def red(picture: Image.Image) -> tuple[int, int, int, int] | None:
    return picture.getchannel("G").point(lambda value: 255 if value < 128 else 0).getbbox()


@pytest.mark.parametrize("name", [name for name, (make, _) in ODD.items() if make().startswith(b"%PDF")])
def test_what_is_shown_is_what_will_be_sealed(name):
    """The picture is of the stored file; what sealing makes of that, without values, looks the same."""
    data = ODD[name][0]()
    stored_file = take(data).file
    with pikepdf.open(io.BytesIO(stored_file)) as pdf:
        flatten(pdf)
        sealed = pdf_files.saved(pdf)
    assert compared(drawn(stored_file, width=800), drawn(sealed, width=800)).share < 0.001


@pytest.mark.parametrize("width", [1, 333, 1400, 2000])
def test_width_is_kept(width):
    assert drawn(pdf_files.document(""), width=width).width == width


def test_a_turned_and_cropped_page_is_upright():
    box = pdf_files.filled_rectangle(100, 200, 50, 20)
    picture = drawn(pdf_files.document(box, crop=(50, 100, 250, 300), rotate=90, user_unit=3))
    assert picture.size == (400, 400)
    assert red(picture) == pytest.approx((200, 100, 240, 200), abs=1)


def test_second_page():
    data = pdf_files.document("", pdf_files.filled_rectangle(0, 0, 612, 792))
    assert red(drawn(data)) is None
    assert red(drawn(data, page=2)) is not None


def test_boxes_of_fields_are_where_their_values_will_be():
    """On a turned and cropped page with a user unit, too: values are drawn into the frames."""
    pdf = blank_pdf()
    page = pdf.pages[0].obj
    page.Rotate, page.CropBox, page.UserUnit = 90, pikepdf.Array([20, 30, 600, 780]), 1.5
    visible = visible_page(pdf.pages[0])
    place = area(0.2, 0.3, 0.4, 0.05)
    item = field_value("text", "Ana", place, preferences={"background": "red"})
    document = stored([(visible.width, visible.height)])
    fill_into(pdf, document, request(item, documents=[document]), {})
    box = FieldBox(x=0.2, y=0.3, w=0.4, h=0.05, page=1, label="Vorname ü 名", role=6)
    plain, boxed = (
        Image.open(io.BytesIO(draw_page(pdf_files.saved(pdf), 1, 1000, boxes))).convert("RGB") for boxes in ((), [box])
    )
    changed = ImageChops.difference(plain, boxed).getbbox()
    assert changed == pytest.approx(red(plain), abs=1)
    assert ImageChops.difference(plain, boxed).crop((230, 200, 400, 280)).getbbox() is not None


def test_boxes_too_small_for_their_name_and_off_the_page_are_no_trouble():
    odd = [(0.5, 0.5, 0.0, 0.0), (0.1, 0.1, -0.2, 0.1), (-1, -1, 0.1, 0.1), (0.9, 0.9, 5, 5), (0.1, 0.1, 0.002, 0.4)]
    boxes = [FieldBox(x=x, y=y, w=w, h=h, page=1, label="long name " * 10) for x, y, w, h in odd]
    assert Image.open(io.BytesIO(draw_page(pdf_files.document(""), 1, 300, boxes))).width == 300


@pytest.mark.parametrize("page", [0, -1, 2])
def test_pages_that_are_not_there(page):
    with pytest.raises(Refused, match=f"no page {page}; it has 1"):
        draw_page(pdf_files.document(""), page)


@pytest.mark.parametrize("size", [(3, 14_400), (14_400, 3), (14_400, 14_400)])
def test_pixels_are_limited(size):
    picture = drawn(pdf_files.document("", media=(0, 0, *size)), width=100_000)
    assert picture.width * picture.height <= MOST_PIXELS * 1.01


def test_form_fields_are_seen_and_not_marked():
    empty = pdf_files.field("Tx", "Empty", (100, 600, 300, 630))
    with pikepdf.open(io.BytesIO(pdf_files.with_form(empty))) as pdf:
        blank = drawn(pdf_files.saved(pdf))
        assert blank.convert("L").getextrema() == (255, 255)
        appearance = pdf.make_stream(b"1 0 0 rg 0 0 200 30 re f")
        appearance.Subtype, appearance.BBox = pikepdf.Name.Form, pikepdf.Array([0, 0, 200, 30])
        widget = pdf.pages[0].obj.Annots[0]
        widget.AP, widget.V = Dictionary(N=appearance), String("x")
        assert red(drawn(pdf_files.saved(pdf))) is not None


def test_what_is_no_pdf_is_refused():
    with pytest.raises(Refused):
        draw_page(b"%PDF-1.7 nothing", 1)
