"""Pages as pictures."""

import io
from typing import Any

import pikepdf
import pytest
from pikepdf import Dictionary, Name, String
from PIL import Image, ImageChops

from contracts.fields.boxes import FieldBox
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.drawing.flatten import flatten
from services.rendering.jobs.pdf.geometry import visible_page
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.previews.pages import MOST_PIXELS, draw_page
from tests.support.files import pdf_files
from tests.support.files.odd_files import ODD
from tests.support.judges.documents.pixels import compared
from tests.support.rendering.drawing import area, blank_pdf, field_value, request, stored
from tests.support.rendering.intake import take


def drawn(data: bytes, page: int = 1, width: int = 400) -> Image.Image:
    return Image.open(io.BytesIO(draw_page(data, page, width)))


def red(picture: Image.Image) -> tuple[int, int, int, int] | None:
    return picture.getchannel("G").point(lambda value: 255 if value < 128 else 0).getbbox()


@pytest.mark.parametrize("name", [name for name, (make, _) in ODD.items() if make().startswith(b"%PDF")])
def test_what_is_shown_is_what_will_be_sealed(name: str) -> None:
    """The picture is of the stored file; what sealing makes of that, without values, looks the same."""
    data = ODD[name][0]()
    stored_file = take(data).file
    with pikepdf.open(io.BytesIO(stored_file)) as pdf:
        flatten(pdf)
        sealed = pdf_files.saved(pdf)
    assert compared(drawn(stored_file, width=800), drawn(sealed, width=800)).share < 0.001


@pytest.mark.parametrize("width", [1, 333, 1400, 2000])
def test_width_is_kept(width: int) -> None:
    assert drawn(pdf_files.document(""), width=width).width == width


def test_a_turned_and_cropped_page_is_upright() -> None:
    box = pdf_files.filled_rectangle(100, 200, 50, 20)
    picture = drawn(pdf_files.document(box, crop=(50, 100, 250, 300), rotate=90, user_unit=3))
    assert picture.size == (400, 400)
    assert red(picture) == pytest.approx((200, 100, 240, 200), abs=1)


def test_second_page() -> None:
    data = pdf_files.document("", pdf_files.filled_rectangle(0, 0, 612, 792))
    assert red(drawn(data)) is None
    assert red(drawn(data, page=2)) is not None


GREY_SCAN, PHOTOGRAPH, FEW_COLOURS = "scan in grey", "photograph", "colours"


def of_kind(kind: str) -> bytes:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf, "q 612 0 0 792 0 0 cm /Picture Do Q")
    if kind == GREY_SCAN:
        words = Image.open(io.BytesIO(draw_page(pdf_files.document(page_of_words()), 1, 1000))).convert("L")
        shadow = Image.radial_gradient("L").resize(words.size).point(lambda value: 255 - value // 6)
        grain = Image.effect_noise(words.size, 12).point(lambda value: min(value + 127, 255))
        picture = ImageChops.multiply(ImageChops.multiply(words, shadow), grain)
    elif kind == PHOTOGRAPH:
        bands = [Image.effect_noise((600, 800), 30), Image.radial_gradient("L").resize((600, 800))]
        picture = Image.merge("RGB", (ImageChops.multiply(*bands), bands[1], ImageChops.invert(bands[1])))
    else:
        picture = Image.new("RGB", (8, 8), (3, 90, 201))
    stream = pdf.make_stream(picture.tobytes())
    stream.Type, stream.Subtype = Name.XObject, Name.Image
    stream.ColorSpace = Name.DeviceGray if picture.mode == "L" else Name.DeviceRGB
    stream.Width, stream.Height, stream.BitsPerComponent = *picture.size, 8
    page.obj.Resources.XObject = Dictionary(Picture=stream)
    return pdf_files.saved(pdf)


def page_of_words() -> str:
    sentence = (
        "What they hear of the business of each other, in whatever form, {0} is kept secret until {0}/{0} by both. "
    )
    return "".join(pdf_files.line(sentence.format(97 * row)[:95], 60, 740 - 15 * row, 11) for row in range(45))


def likeness(one: Image.Image, other: Image.Image) -> float:
    """SSIM (Wang, Bovik, Sheikh, Simoncelli 2004) of the luminance over squares of 8 pixels; 1 is the same."""
    size = (one.width // 8, one.height // 8)
    x, y = (picture.convert("L").crop((0, 0, 8 * size[0], 8 * size[1])) for picture in (one, other))
    total = 0.0
    for row in range(size[1]):
        for column in range(size[0]):
            box = (8 * column, 8 * row, 8 * column + 8, 8 * row + 8)
            a, b = x.crop(box).tobytes(), y.crop(box).tobytes()
            mean_a, mean_b = sum(a) / 64, sum(b) / 64
            var_a, var_b = (sum((v - m) ** 2 for v in part) / 63 for part, m in ((a, mean_a), (b, mean_b)))
            both = sum((v - mean_a) * (w - mean_b) for v, w in zip(a, b, strict=True)) / 63
            total += ((2 * mean_a * mean_b + 6.5025) * (2 * both + 58.5225)) / (
                (mean_a**2 + mean_b**2 + 6.5025) * (var_a + var_b + 58.5225)
            )
    return total / (size[0] * size[1])


def light(data: bytes, width: int = 800) -> tuple[bytes, Image.Image]:
    picture = draw_page(data, 1, width, light=True)
    return picture, Image.open(io.BytesIO(picture)).convert("RGB")


def test_a_page_of_text_for_a_phone_weighs_little_and_looks_the_same() -> None:
    """60 KB is the budget of a page of plain text at the width of a phone; the PNG of today has five times as much."""
    data = pdf_files.document(page_of_words())
    picture, shown = light(data)
    exact = drawn(data, width=800).convert("RGB")
    assert len(picture) < 60_000 < len(draw_page(data, 1, 800)) / 3
    extremes: Any = ImageChops.difference(shown, exact).getextrema()
    assert max(high for _, high in extremes) <= 8
    assert likeness(shown, exact) > 0.999


@pytest.mark.parametrize("content", ["0.93 g 0 0 612 400 re f 0 g ", "0.2 0.43 0.71 rg 50 50 300 300 re f 0 g "])
def test_areas_keep_their_very_colour(content: str) -> None:
    data = pdf_files.document(content + page_of_words())
    _, shown = light(data)
    assert ImageChops.difference(shown, drawn(data, width=800).convert("RGB")).getbbox() is None


def test_few_colours_are_the_very_same() -> None:
    data = of_kind(FEW_COLOURS)
    assert light(data)[1].getcolors() == drawn(data, width=800).convert("RGB").getcolors()


@pytest.mark.parametrize(("kind", "least"), [(GREY_SCAN, 0.975), (PHOTOGRAPH, 0.9)])
def test_a_page_that_is_a_photograph_anyway_may_lose_what_nobody_sees(kind: str, least: float) -> None:
    data = of_kind(kind)
    picture, shown = light(data)
    exact = drawn(data, width=800).convert("RGB")
    assert picture[:4] == b"RIFF"
    assert picture[12:16] == b"VP8 "  # lossy
    assert len(picture) < 0.7 * len(draw_page(data, 1, 800))
    assert likeness(shown, exact) > least
    assert compared(shown, exact).share < 0.002


def test_a_logo_makes_no_photograph_of_a_page() -> None:
    with pikepdf.open(io.BytesIO(of_kind(PHOTOGRAPH))) as pdf:
        pdf.pages[0].obj.Contents = pdf.make_stream(b"q 90 0 0 90 20 690 cm /Picture Do Q " + page_of_words().encode())
        data = pdf_files.saved(pdf)
    assert light(data)[0][12:16] == b"VP8L"


def test_boxes_of_fields_are_where_their_values_will_be() -> None:
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


def test_boxes_too_small_for_their_name_and_off_the_page_are_no_trouble() -> None:
    odd = [(0.5, 0.5, 0.0, 0.0), (0.1, 0.1, -0.2, 0.1), (-1, -1, 0.1, 0.1), (0.9, 0.9, 5, 5), (0.1, 0.1, 0.002, 0.4)]
    boxes = [FieldBox(x=x, y=y, w=w, h=h, page=1, label="long name " * 10) for x, y, w, h in odd]
    assert Image.open(io.BytesIO(draw_page(pdf_files.document(""), 1, 300, boxes))).width == 300


@pytest.mark.parametrize("page", [0, -1, 2])
def test_pages_that_are_not_there(page: int) -> None:
    with pytest.raises(Refused, match=f"no page {page}; it has 1"):
        draw_page(pdf_files.document(""), page)


@pytest.mark.parametrize("size", [(3, 14_400), (14_400, 3), (14_400, 14_400)])
def test_pixels_are_limited(size: tuple[int, ...]) -> None:
    picture = drawn(pdf_files.document("", media=(0, 0, *size)), width=100_000)
    assert picture.width * picture.height <= MOST_PIXELS * 1.01


def test_form_fields_are_seen_and_not_marked() -> None:
    empty = pdf_files.field("Tx", "Empty", (100, 600, 300, 630))
    with pikepdf.open(io.BytesIO(pdf_files.with_form(empty))) as pdf:
        blank = drawn(pdf_files.saved(pdf))
        assert blank.convert("L").getextrema() == (255, 255)
        appearance = pdf.make_stream(b"1 0 0 rg 0 0 200 30 re f")
        appearance.Subtype, appearance.BBox = pikepdf.Name.Form, pikepdf.Array([0, 0, 200, 30])
        widget = pdf.pages[0].obj.Annots[0]
        widget.AP, widget.V = Dictionary(N=appearance), String("x")
        assert red(drawn(pdf_files.saved(pdf))) is not None


def test_what_is_no_pdf_is_refused() -> None:
    with pytest.raises(Refused):
        draw_page(b"%PDF-1.7 nothing", 1)
