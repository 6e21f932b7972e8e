"""The check after sealing: it passes what is right and notices what is not."""

import io
from dataclasses import replace
from typing import Any

import pikepdf
import pytest
from PIL import Image

from contracts.types import FieldType
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.drawing.fill import Drawn
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.sealing import reserving
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.jobs.sealing.verifying.read_back import SealBroken, is_shown
from tests.support.files.pdf_files import A4, document, line
from tests.support.rendering import drawing
from tests.support.rendering.seals import NOW, finish, identity, sealed, text

TEXTS = [
    "Ana Kowalska",
    "Zażółć gęślą jaźń",
    "漢字かな交じり文 2026",
    "한국어 이름",
    "שלום עולם 123",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "Ωμέγα Кириллица",
    "fi ffi \N{LATIN SMALL LIGATURE FI} — “quoted” €",
    "a very long text that has to be wrapped into several lines, because the area is not that wide, " * 2 + "yes",
    "e\N{COMBINING ACUTE ACCENT} decomposed",
    "1,234.50",
]


def filled(*values: str, pages: int = 1) -> tuple[bytes, list[Drawn], list[object]]:
    items = [
        drawing.field_value("text", value, drawing.area(0.1, 0.05 + 0.06 * number, 0.5, 0.05), name=f"Field {number}")
        for number, value in enumerate(values)
    ]
    request = drawing.request(*items, documents=[drawing.stored([(595, 842)] * pages)])
    with pikepdf.open(io.BytesIO(document(*[line("Agreement", y=20)] * pages, media=A4))) as pdf:
        drawn = fill.fill_into(pdf, request.documents[0], request, {})
        data = finish(reserving.reserve(pdf, text(), identity().signer.size))
    return data, drawn, [item.field for item in items]


def check(data: bytes, drawn: list[Drawn], fields: list[Any], pages: int = 1) -> str:
    return read_back.check(data, drawn, fields, pages=pages, certificate=identity().encoded[0])


def test_every_script_is_found_again() -> None:
    assert check(*filled(*TEXTS)) == "B-B"


@pytest.mark.parametrize("value", TEXTS)
def test_another_value_is_not_found(value: str) -> None:
    """The sealed file shows something else than what is stored: one character less, or another one."""
    for wrong in (value[1:], value[:-1] + "Q"):
        data, drawn, fields = filled(wrong)
        claimed = [Drawn(one.field_uuid, one.page, one.rectangle, value) for one in drawn]
        with pytest.raises(SealBroken, match="Field 'Field 0': its value was not found on page 1"):
            check(data, claimed, fields)


def test_a_value_in_the_wrong_place_is_not_found() -> None:
    data, drawn, fields = filled("Ana Kowalska")
    left, bottom, right, top = drawn[0].rectangle
    elsewhere = Rectangle(left, bottom - 300, right, top - 300)
    with pytest.raises(SealBroken, match="was not found"):
        check(data, [Drawn(drawn[0].field_uuid, 1, elsewhere, "Ana Kowalska")], fields)


def test_a_value_that_was_never_drawn_is_missed() -> None:
    field = drawing.field_value("text", "Ana", name="City").field
    with pytest.raises(SealBroken, match="Field 'City'"):
        check(sealed(document(line("x"))), [Drawn(field.uuid, 1, Rectangle(0, 0, 612, 792), "Ana")], [field])


def test_pictures_and_lines_have_no_text_to_find() -> None:
    drawn = [Drawn("x", 1, Rectangle(0, 0, 10, 10), None)]
    assert check(sealed(document(line("x"))), drawn, []) == "B-B"


PHOTO = Image.radial_gradient("L").resize((300, 200)).convert("RGB")
PICTURES = {"one": drawing.signature_png(), "two": drawing.signature_png((500, 300)), "three": drawing.encoded(PHOTO)}


def pictured(rotate: int, crop: tuple[float, ...] | None, unit: float) -> tuple[bytes, list[Drawn], list[object]]:
    """A signature with its note, initials in colour and a photo, on a page of that kind."""
    items = [
        drawing.field_value("signature", "one", drawing.area(0.1, 0.1, 0.3, 0.1), name="Sign"),
        drawing.field_value(
            "initials", "two", drawing.area(0.5, 0.1, 0.2, 0.1), preferences={"color": "blue"}, name="Initials"
        ),
        drawing.field_value("image", "three", drawing.area(0.1, 0.5, 0.3, 0.1), name="Photo"),
    ]
    request = drawing.request(
        *items,
        attachments=[drawing.attachment(uuid) for uuid in PICTURES],
        notes=[drawing.note(items[0], "I approve")],
    )
    with drawing.blank_pdf() as pdf:
        page = pdf.pages[0].obj
        page.Rotate = rotate
        page.UserUnit = unit
        if crop:
            page.CropBox = pikepdf.Array(crop)
        drawn = fill.fill_into(pdf, request.documents[0], request, PICTURES)
        data = finish(reserving.reserve(pdf, text(), identity().signer.size))
    return data, drawn, [item.field for item in items]


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("crop", [None, (100.0, 50.0, 500.0, 650.0)])
@pytest.mark.parametrize("unit", [1.0, 2.5])
def test_pictures_are_found_where_they_were_put(rotate: int, crop: tuple[float, ...] | None, unit: float) -> None:
    data, drawn, fields = pictured(rotate, crop, unit)
    assert [one.picture is None for one in drawn] == [False] * 3
    assert check(data, drawn, fields) == "B-B"


def test_a_picture_that_is_another_one_or_elsewhere_is_missed() -> None:
    data, drawn, fields = pictured(90, None, 1.0)
    sign, initials, photo = drawn
    assert sign.picture
    assert initials.picture
    (digest, (left, bottom, right, top)) = sign.picture
    wrong = [
        replace(sign, picture=(initials.picture[0], sign.picture[1])),
        replace(sign, picture=(digest, initials.picture[1])),
        replace(sign, picture=(digest, Rectangle(left + 2, bottom, right + 2, top))),
        replace(sign, picture=(digest, Rectangle(left, bottom, right, top + 2))),
    ]
    for one in wrong:
        with pytest.raises(SealBroken, match="Field 'Sign': its value was not found on page 1"):
            check(data, [one, initials, photo], fields)


def test_a_picture_that_the_page_does_not_draw_is_missed() -> None:
    data, drawn, _ = pictured(0, None, 1.0)
    for change in (b"/Im2 Do", b"/Im1 Do"):
        with pikepdf.open(io.BytesIO(data)) as pdf:
            form = pdf.pages[0].Resources.XObject.CountersignFill0
            form.write(form.read_bytes().replace(change, b"" if change == b"/Im2 Do" else b"/Im2 Do"))
            broken = drawing.saved(pdf)
        with pytest.raises(SealBroken, match="was not found"):
            read_back.check_values(broken, drawn, {})
    with pikepdf.open(io.BytesIO(data)) as pdf:
        mask = pdf.pages[0].Resources.XObject.CountersignFill0.Resources.XObject.Im1.SMask
        mask.write(b"\xff" * (int(mask.Width) * int(mask.Height)))
        broken = drawing.saved(pdf)
    with pytest.raises(SealBroken, match="was not found"):
        read_back.check_values(broken, drawn, {})


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_several_lines_on_a_turned_page(rotate: int) -> None:
    item = drawing.field_value("text", TEXTS[10], drawing.area(0.1, 0.1, 0.4, 0.2), name="Long")
    page = document(line("Agreement", y=20), media=A4, rotate=rotate)
    request = drawing.request(item, documents=[drawing.stored([(595, 842)])])
    with pikepdf.open(io.BytesIO(page)) as pdf:
        drawn = fill.fill_into(pdf, request.documents[0], request, {})
        data = finish(reserving.reserve(pdf, text(), identity().signer.size))
    assert check(data, drawn, [item.field]) == "B-B"


def test_a_check_mark_is_text() -> None:
    item = drawing.field_value(FieldType.CHECKBOX, True, drawing.area(0.1, 0.1, 0.03, 0.02))
    request = drawing.request(item)
    with drawing.blank_pdf() as pdf:
        drawn = fill.fill_into(pdf, request.documents[0], request, {})
        data = finish(reserving.reserve(pdf, text(), identity().signer.size))
    assert drawn[0].text
    assert check(data, drawn, [item.field]) == "B-B"


def test_the_number_of_pages() -> None:
    data, drawn, fields = filled("x", pages=3)
    assert check(data, drawn, fields, pages=3) == "B-B"
    with pytest.raises(SealBroken, match="3 pages instead of 2"):
        check(data, drawn, fields, pages=2)


GOOD = sealed(document(line("good")))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (GOOD.replace(b"stream\n", b"stream\r", 1), "other content"),
        (GOOD + b"\ngarbage that other readers may read", "damaged"),
        (GOOD + b"\n" * 3, "does not cover the whole file"),
        (GOOD[:-40], "damaged"),
        (document(line("never sealed")), "cannot be opened"),
        (b"no PDF", "cannot be opened"),
    ],
)
def test_a_file_that_is_not_what_it_must_be(data: bytes, why: str) -> None:
    with pytest.raises(SealBroken, match=why):
        check(data, [], [])


def test_a_seal_of_somebody_else() -> None:
    stranger = identity("ec-p256", NOW.replace(year=NOW.year - 1))
    with pytest.raises(SealBroken, match="names another certificate"):
        check(sealed(document(line("x")), stranger), [], [])


def test_a_signature_that_does_not_hold() -> None:
    with pikepdf.open(io.BytesIO(document(line("x")))) as pdf:
        reserved = reserving.reserve(pdf, text(), identity().signer.size)
    other = reserved.__class__(reserved.data, reserved.start, reserved.size, bytes(32))
    with pytest.raises(SealBroken, match="other content"):
        check(finish(other), [], [])


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        ("Name: Ana\r\nKowalska", "Ana Kowalska", True),
        ("Ana  Kowal\u00adska", "Ana Kowalska", True),
        ("ﬁne", "fine", True),
        ("Ana", "Anna", False),
        ("", "x", False),
        ("םלוע םולש", "שלום עולם", True),
        ("שלום", "שלוט", False),
        ("12-א", "א-12", True),
        ("13-א", "א-12", False),
        ("abc", "cba", False),
        ("21 EUR", "12 EUR", False),
        ("N1a2m EUeR:", "12 EUR", True),
    ],
)
def test_what_counts_as_shown(found: str, wanted: str, expected: bool) -> None:
    assert is_shown(wanted, found) is expected
