"""Values on every kind of page: turned, cropped, scaled, broken, crowded."""

import io
from dataclasses import replace
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from services.rendering.jobs.drawing.fill import additions, faults, fill_into
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.jobs.sealing.verifying.reading import is_found
from tests.support.rendering.drawing import (
    LETTER,
    area,
    blank_pdf,
    field_value,
    picture_of,
    poppler_text,
    request,
    saved,
    stored,
    text_in,
)
from tests.support.rendering.filling import ATTACHMENTS, FILES, SIGNATURE, fill, found, is_blank, pixels

PAGES = [
    (rotation, crop, unit)
    for rotation in (0, 90, 180, 270)
    for crop in (None, (100.0, 50.0, 500.0, 650.0))
    for unit in (1.0, 2.5)
]


def odd_page(rotation: int, crop: tuple[float, ...] | None, unit: float) -> pikepdf.Pdf:
    pdf = blank_pdf()
    page = pdf.pages[0].obj
    page.Rotate = rotation
    if crop:
        page.CropBox = Array(crop)
    if unit != 1:
        page.UserUnit = unit
    return pdf


@pytest.mark.parametrize(("rotation", "crop", "unit"), PAGES)
def test_values_stand_upright_in_their_area_on_any_page(
    rotation: int, crop: tuple[float, ...] | None, unit: float
) -> None:
    box = area(0.2, 0.3, 0.4, 0.05)
    look = {"background": "#ffff00", "color": "#000000", "align": "left", "valign": "top"}
    pdf = odd_page(rotation, crop, unit)
    drawn = fill_into(pdf, stored(), request(field_value("text", "II", box, preferences=look)), {})
    data = saved(pdf)
    assert is_found("II", text_in(data, 1, drawn[0].rectangle))
    picture = picture_of(data, scale=2)
    yellow = picture.split()[2].point(lambda value: 255 if value < 100 else 0).getbbox()
    assert yellow is not None
    expected = (0.2 * picture.width, 0.3 * picture.height, 0.6 * picture.width, 0.35 * picture.height)
    assert yellow == pytest.approx(expected, abs=1.5)
    letters = picture.crop(yellow).split()[0].point(lambda value: 255 if value < 100 else 0).getbbox()
    assert letters is not None
    # Upright text at the left: its two strokes are near the left edge, higher than wide apart, and in the upper half.
    assert letters[0] < 0.1 * (yellow[2] - yellow[0])
    assert letters[2] < 0.25 * (yellow[2] - yellow[0])
    assert letters[3] - letters[1] > 1.2 * (letters[2] - letters[0])
    assert letters[1] < (yellow[3] - yellow[1]) / 3


@pytest.mark.parametrize(("rotation", "crop", "unit"), PAGES)
def test_an_overlay_has_the_coordinates_of_the_page_it_is_for(
    rotation: int, crop: tuple[float, ...] | None, unit: float
) -> None:
    pdf = odd_page(rotation, crop, unit)
    item = field_value("text", "Łódź II", area(0.2, 0.3, 0.4, 0.05))
    filled = request(item, field_value("signature", SIGNATURE, area(0.5, 0.6, 0.2, 0.1)), attachments=ATTACHMENTS)
    (overlay,), places = additions(pdf, stored(), filled, FILES)
    assert places == fill_into(odd_page(rotation, crop, unit), stored(), filled, FILES)
    assert overlay.page == 1
    assert is_found("Łódź II", text_in(overlay.sheet, 1, places[0].rectangle))
    with pikepdf.open(io.BytesIO(overlay.sheet)) as sheet:
        box = [float(value) for value in sheet.pages[0].obj.MediaBox]
        assert box == pytest.approx(list(crop or (0, 0, *LETTER)))


def test_only_pages_with_values_get_overlays() -> None:
    filled = request(field_value("text", "x", area(0.1, 0.1, 0.2, 0.02, page=3)), field_value("text", None))
    overlays, _ = additions(blank_pdf(4), stored([LETTER] * 4), filled, {})
    assert [one.page for one in overlays] == [3]


@pytest.mark.parametrize(
    "content",
    [
        b"q 0.5 0 0 0.5 100 100 cm",
        b"q q q 2 0 0 2 0 0 cm q",
        b"Q Q 0.5 0 0 0.5 300 300 cm",
        b"q Q Q 0.5 0 0 0.5 300 300 cm q",
        b"0.5 0 0 0.5 100 100 cm",
        b"BT /F9 12 Tf 0.5 0 0 0.5 100 100 Tm",
        b"q 0 0 10 10 re W n",
        b"1 0 0 RG (unclosed",
        b"0 1 0 rg 0 0 20 20 re f BI /W 1 /H 1 /BPC 8 /CS /G ID",
        b"[ (a) 5 <4",
        b"/Span BMC q BT",
        b"BI /W 1 /H 1 /BPC 8 /CS /G ID q EI q 0.5 0 0 0.5 100 100 cm",
    ],
)
def test_a_broken_page_cannot_move_or_clip_the_values(content: bytes) -> None:
    data, drawn = fill(field_value("text", "Ana Kowalska", area(0.5, 0.5, 0.3, 0.03)), pdf=blank_pdf(content=content))
    plain, _ = fill(field_value("text", "Ana Kowalska", area(0.5, 0.5, 0.3, 0.03)))
    assert is_found("Ana Kowalska", found(data, drawn[0]))
    assert pixels(data, drawn[0]).tobytes() == pixels(plain, drawn[0]).tobytes()


def test_a_hidden_layer_that_was_left_open_does_not_hide_the_values() -> None:
    pdf = blank_pdf(content=b"/OC /Hidden BDC q")
    layer = pdf.make_indirect(Dictionary(Type=Name.OCG, Name=pikepdf.String("hidden")))
    pdf.pages[0].obj.Resources = Dictionary(Properties=Dictionary(Hidden=layer))
    pdf.Root.OCProperties = Dictionary(OCGs=Array([layer]), D=Dictionary(OFF=Array([layer])))
    data, drawn = fill(field_value("text", "Ana Kowalska"), pdf=pdf)
    assert not is_blank(pixels(data, drawn[0]))


def test_resources_that_pages_share_stay_as_they_are() -> None:
    pdf = blank_pdf(2)
    shared = pdf.make_indirect(Dictionary(XObject=Dictionary(), Font=Dictionary()))
    for page in pdf.pages:
        page.obj.Resources = shared
    pdf.Root.Shared = shared
    data, drawn = fill(
        field_value("text", "one", area(0.1, 0.1, 0.2, 0.02)),
        field_value("text", "two", area(0.1, 0.1, 0.2, 0.02, page=2)),
        pdf=pdf,
    )
    assert [is_found(one.text or "", found(data, one)) for one in drawn] == [True, True]
    with pikepdf.open(io.BytesIO(data)) as filled:
        assert list(filled.Root.Shared.XObject.keys()) == []


def test_a_page_without_resources_can_be_filled() -> None:
    pdf = blank_pdf()
    for key in ("/Resources", "/Contents"):
        if key in pdf.pages[0].obj:
            del pdf.pages[0].obj[key]
    data, drawn = fill(field_value("text", "Ana"), pdf=pdf)
    assert is_found("Ana", found(data, drawn[0]))


def test_a_filled_document_can_be_filled_again() -> None:
    pdf = blank_pdf()
    first = fill_into(pdf, stored(), request(field_value("text", "first", area(0.1, 0.1, 0.2, 0.02))), {})
    second = fill_into(pdf, stored(), request(field_value("text", "second", area(0.1, 0.2, 0.2, 0.02))), {})
    data = saved(pdf)
    assert is_found("first", found(data, first[0]))
    assert is_found("second", found(data, second[0]))


@pytest.mark.parametrize(
    "value",
    ["+43 660 123-4567", "03/05/2026", "“quoted” (text)", "ok 😀 12", "john@example.com", "≠ and ∉ and ≮", "≠ (א) ∉"],
)
def test_values_beside_text_of_the_other_direction_are_found(value: str) -> None:
    """pdfium turns a whole row around when a part of it runs from right to left."""
    row = [
        field_value("text", "שמואל", area(0.05, 0.1, 0.3, 0.03)),
        field_value("text", value, area(0.4, 0.1, 0.3, 0.03)),
    ]
    data, drawn = fill(*row)
    read_back.check_values(data, drawn, {})
    swapped = [replace(drawn[0], rectangle=drawn[1].rectangle)]
    with pytest.raises(read_back.SealBroken):
        read_back.check_values(data, swapped, {})


@pytest.mark.parametrize(
    "value",
    ["a" + "\u0301" * 254, "\u20dd" * 2_000, "\u0e33" * 255, "🏻" * 255, "\u0bcb" * 255, "\ua98f\ua9c0" * 3_000],
    ids=["accents", "circles", "thai", "skins", "tamil", "javanese"],
)
def test_what_goes_on_and_on_without_an_end_is_drawn_in_parts(value: str) -> None:
    """Shapers make one glyph of it, which no font can have: found when everybody had signed, and then never sealed."""
    item = field_value("text", value, area(0.05, 0.05, 0.9, 0.9))
    assert faults(request(item)) == {}
    data, drawn = fill(item)
    read_back.check_values(data, drawn, {})
    assert [one.text for one in drawn] == [value]


def test_many_fields_of_many_signers_are_all_found(tmp_path: Any) -> None:
    """Pain 2 of the users: ten signers, sixty fields each, long names, several scripts, rotated pages."""
    names = [
        "Maximiliane Freifrau von Mustermann-Beispiel",
        "Αλέξανδρος Παπαδόπουλος",
        "שמואל בן־דוד",
        "王小明",
        "Łukasz Żółć",
    ]
    pdf = blank_pdf(10)
    for number, page in enumerate(pdf.pages):
        page.obj.Rotate = 90 * (number % 4)
    items = [
        field_value(
            "text",
            f"{names[(page + row) % len(names)]} {page}{row}",
            area(0.05 + 0.3 * (row % 3), 0.04 + 0.045 * (row // 3), 0.27, 0.03, page=page),
            submitter=page,
        )
        for page in range(1, 11)
        for row in range(60)
    ]
    drawn = fill_into(pdf, stored([LETTER] * 10), request(*items), {})
    data = saved(pdf)
    assert len(drawn) == 600
    missing = [one.text for one in drawn if not is_found(one.text or "", found(data, one))]
    assert missing == []
    assert len(data) < 120_000
    assert "Maximiliane" in poppler_text(data, tmp_path)
