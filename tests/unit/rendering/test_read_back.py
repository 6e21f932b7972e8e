"""The check after sealing: it passes what is right and notices what is not."""

import io

import pikepdf
import pytest

from contracts.types import FieldType
from services.rendering.jobs import fill, read_back, seal
from services.rendering.jobs.fill import Drawn
from services.rendering.jobs.geometry import Rectangle
from services.rendering.jobs.read_back import SealBroken, is_shown
from tests.support import drawing
from tests.support.pdf_files import A4, document, line
from tests.support.seals import NOW, finish, identity, sealed, text

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
        data = finish(seal.reserve(pdf, text(), identity().signer.size))
    return data, drawn, [item.field for item in items]


def check(data: bytes, drawn: list[Drawn], fields: list[object], pages: int = 1) -> str:
    return read_back.check(data, drawn, fields, pages=pages, certificate=identity().encoded[0])  # type: ignore[arg-type]


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


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_several_lines_on_a_turned_page(rotate: int) -> None:
    item = drawing.field_value("text", TEXTS[10], drawing.area(0.1, 0.1, 0.4, 0.2), name="Long")
    page = document(line("Agreement", y=20), media=A4, rotate=rotate)
    request = drawing.request(item, documents=[drawing.stored([(595, 842)])])
    with pikepdf.open(io.BytesIO(page)) as pdf:
        drawn = fill.fill_into(pdf, request.documents[0], request, {})
        data = finish(seal.reserve(pdf, text(), identity().signer.size))
    assert check(data, drawn, [item.field]) == "B-B"


def test_a_check_mark_is_text() -> None:
    item = drawing.field_value(FieldType.CHECKBOX, True, drawing.area(0.1, 0.1, 0.03, 0.02))
    request = drawing.request(item)
    with drawing.blank_pdf() as pdf:
        drawn = fill.fill_into(pdf, request.documents[0], request, {})
        data = finish(seal.reserve(pdf, text(), identity().signer.size))
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
        reserved = seal.reserve(pdf, text(), identity().signer.size)
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
