"""Pictures of values for the signing page: laid over the page's picture they are the sealed file, pixel for pixel."""

import base64
import io
import itertools
from contextlib import ExitStack
from typing import Any

import pikepdf
import pytest
from pikepdf import Array
from PIL import Image, ImageChops

from contracts.errors import ServiceError
from contracts.rpc.rendering import AreaToDraw, DrawnArea, DrawValues, FieldValue, FillRequest
from contracts.types import Account
from services.rendering.children import renderer
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.pdf.geometry import visible_page
from services.rendering.jobs.previews.pages import draw_page
from services.rendering.jobs.previews.values import draw_values
from services.rendering.rules import domain
from tests.support.judges.documents.pixels import compared
from tests.support.rendering.drawing import (
    area,
    attachment,
    blank_pdf,
    encoded,
    field_value,
    note,
    party,
    request,
    saved,
    signature_png,
    stored,
)

SIGNATURE = "5f0c5d0e-0000-4000-8000-00000000abcd"
PHOTO = "5f0c5d0e-0000-4000-8000-00000000beef"
CONTRACT = "5f0c5d0e-0000-4000-8000-00000000f11e"
GRADIENT = Image.merge("RGB", [Image.radial_gradient("L"), Image.linear_gradient("L"), Image.new("L", (256, 256), 90)])
FILES = {SIGNATURE: signature_png(), PHOTO: encoded(GRADIENT.resize((900, 600)), "JPEG"), CONTRACT: b""}
ATTACHMENTS = [attachment(SIGNATURE), attachment(PHOTO, "photo.jpg"), attachment(CONTRACT, "Umowa żółw.pdf")]

LONG = "A lease of a flat of three rooms, with a cellar and the use of the garden, from the first of May on. " * 3
RTL = "שלום עולם 12, مرحبا بالعالم"
OPTIONS: dict[str, Any] = {"options": ["Red", "Blue"]}
WIDE, FLAT = (0.35, 0.03), (0.35, 0.012)


def values() -> list[FieldValue]:
    """Every type of field, and the preferences that change how it looks, each in a place of its own."""
    wanted: list[tuple[str, Any, tuple[float, float], dict[str, Any]]] = [
        ("text", "Ana Kowalska", WIDE, {}),
        ("text", LONG, (0.35, 0.09), {}),
        ("text", "Łódź, Ελλάδα, мир, 王小明 ✔ 😀", WIDE, {"font": "Times", "font_type": "bold_italic"}),
        ("text", RTL, WIDE, {"color": "blue", "align": "left"}),
        ("text", "too long for so flat an area, so it becomes small", (0.2, 0.012), {"font": "Courier"}),
        ("text", "4111 1111 1111 1234", WIDE, {"mask": -4, "background": "white"}),
        ("text", "g", WIDE, {"font_size": 24, "valign": "bottom", "align": "right", "background": "#ffee00"}),
        ("date", "2026-03-05", WIDE, {"format": "D MMMM YYYY", "align": "center"}),
        ("number", 1234567.891, WIDE, {"format": "eur", "align": "right", "valign": "top"}),
        ("checkbox", True, (0.03, 0.025), {}),
        ("radio", "Blue", WIDE, {"color": "#ff0088"}),
        ("select", "Red", WIDE, {}),
        ("multiple", ["Red", "Blue"], WIDE, {}),
        ("cells", "AB12345678", (0.4, 0.02), {}),
        ("phone", "+4312345678", WIDE, {}),
        ("heading", "A heading", WIDE, {"font_size": 16}),
        ("signature", SIGNATURE, (0.4, 0.06), {"with_signature_id": True}),
        ("signature", SIGNATURE, (0.4, 0.035), {"color": "blue"}),
        ("initials", SIGNATURE, (0.08, 0.03), {"align": "left"}),
        ("image", PHOTO, (0.2, 0.1), {"align": "right"}),
        ("file", [CONTRACT], WIDE, {}),
        ("strikethrough", None, WIDE, {}),
        ("strikethrough", None, (0.3, 0.07), {"color": "black"}),
        ("stamp", None, (0.25, 0.07), {}),
        ("verification", "yes", FLAT, {}),
        ("payment", 12.5, WIDE, {"currency": "usd"}),
    ]
    found, column, down = [], 0, 0.02
    for type_, value, (width, height), preferences in wanted:
        if down + height > 0.97:
            column, down = column + 1, 0.02
        place = area(0.05 + 0.48 * column, down, width, height)
        found.append(field_value(type_, value, place, preferences=preferences, **OPTIONS))
        down += height + 0.018
    return found


def page_of(rotation: int, crop: tuple[float, ...] | None, unit: float) -> pikepdf.Pdf:
    pdf = blank_pdf(content=b"0.9 g 40 40 300 700 re f")
    page = pdf.pages[0].obj
    page.Rotate = rotation
    if crop:
        page.CropBox = Array(crop)
    if unit != 1:
        page.UserUnit = unit
    return pdf


def drawn(filled: FillRequest, width: int = 1400, *asked: AreaToDraw) -> list[DrawnArea]:
    wanted = asked or [
        AreaToDraw(field_uuid=one.field.uuid, area=number)
        for one in filled.values
        for number in range(len(one.field.areas))
    ]
    # However busy the machine is: nothing is left for a second call.
    return draw_values(DrawValues(**dict(filled), areas=list(wanted), width=width), FILES, clock=lambda: 0.0)


def laid_over(page: Image.Image, answers: list[DrawnArea]) -> Image.Image:
    """As a browser does it whose page is as wide as the picture."""
    whole = page.convert("RGBA")
    for one in answers:
        if one.picture:
            picture = Image.open(io.BytesIO(base64.b64decode(one.picture))).convert("RGBA")
            assert abs(one.w * whole.width - picture.width) < 0.01
            assert abs(one.h * whole.height - picture.height) < 0.01
            whole.alpha_composite(picture, (round(one.x * whole.width), round(one.y * whole.height)))
    return whole.convert("RGB")


PAGES = [
    (0, None, 1),
    (90, None, 1),
    (180, (20, 30, 600, 780), 1),
    (270, (-50, 100, 400, 900), 2.0),
    (90, (10.5, 20.25, 595.3, 780.7), 1.5),
]


@pytest.mark.parametrize(("rotation", "crop", "unit"), PAGES)
def test_laid_over_the_page_they_are_the_filled_file(
    rotation: int, crop: tuple[float, ...] | None, unit: float
) -> None:
    pdf = page_of(rotation, crop, unit)
    visible = visible_page(pdf.pages[0])
    empty = Image.open(io.BytesIO(draw_page(saved(pdf), 1)))
    document = stored([(round(visible.width, 3), round(visible.height, 3))])
    filled = request(*values(), attachments=ATTACHMENTS, documents=[document])
    answers = drawn(filled)
    assert [one.field_uuid for one in answers if one.picture is None] == []
    fill_into(pdf, document, filled, FILES)
    sealed = Image.open(io.BytesIO(draw_page(saved(pdf), 1)))
    assert compared(sealed, empty).ink > 50_000
    comparison = compared(sealed, laid_over(empty, answers))
    assert comparison.share < 0.001, comparison


def test_a_stamp_in_the_background_is_multiplied_with_what_is_under_it() -> None:
    """As a browser does it with ``mix-blend-mode: multiply`` (services/gateway/pages/static/document.css)."""
    pdf = blank_pdf(content=b"0.5 0.9 0.6 rg 100 500 200 200 re f")
    empty = Image.open(io.BytesIO(draw_page(saved(pdf), 1))).convert("RGB")
    item = field_value("stamp", PHOTO, area(0.1, 0.1, 0.5, 0.3), preferences={"position": "background"})
    filled = request(item, attachments=ATTACHMENTS)
    (answer,) = drawn(filled)
    layer = laid_over(Image.new("RGB", empty.size, "white"), [answer])
    fill_into(pdf, stored(), filled, FILES)
    sealed = Image.open(io.BytesIO(draw_page(saved(pdf), 1)))
    assert compared(sealed, ImageChops.multiply(empty, layer)).share < 0.001
    assert compared(sealed, laid_over(empty, [answer])).share > 0.1


def test_a_note_beside_a_signature_and_a_party_s_time_zone_are_in_the_picture() -> None:
    item = field_value("signature", SIGNATURE, area(0.1, 0.1, 0.5, 0.06))
    filled = request(item, attachments=ATTACHMENTS)
    pictures = [
        drawn(one)[0].picture
        for one in (
            filled,
            filled.model_copy(update={"notes": [note(item, "I agree")]}),
            filled.model_copy(update={"notes": [note(item, "I agree")], "parties": [party(time_zone="Asia/Tokyo")]}),
        )
    ]
    assert len(set(pictures)) == 3


def test_what_cannot_be_drawn_is_named_and_the_others_are_drawn() -> None:
    small = area(0.1, 0.1, 0.02, 0.006)
    items = [
        field_value("text", LONG, small, name="Remarks"),
        field_value("text", "\u0378", name="Odd"),
        field_value("image", "missing", name="Photo"),
        field_value("text", "fine"),
    ]
    answers = drawn(request(*items))
    problems = [one.problem for one in answers]
    assert [(one or "").split(",")[0].split(":")[0] for one in problems] == [
        "has 303 characters",
        "has characters that no font can draw",
        "has the attachment missing",
        "",
    ]
    assert [one.picture is None for one in answers] == [True, True, True, False]


def test_nothing_is_drawn_for_what_is_blank_hidden_or_not_there() -> None:
    chosen = field_value("radio", "Blue", area(0.1, 0.1, 0.03, 0.03, option="Red"), **OPTIONS)
    hidden = field_value("text", "x", preferences={"hidden": True})
    off = field_value("text", "x", area(0.1, 0.1, 0.1, 0.1, page=2))
    unfinished = field_value("stamp", None)
    filled = request(chosen, hidden, off, unfinished, parties=[party(completed_at=None)])
    unknown = [AreaToDraw(field_uuid="nobody", area=0), AreaToDraw(field_uuid=chosen.field.uuid, area=5)]
    wanted = [AreaToDraw(field_uuid=one.field.uuid, area=0) for one in filled.values]
    answers = drawn(filled, 1400, *wanted, *unknown)
    assert len(answers) == 6
    assert [one for one in answers if one.picture or one.problem] == []


def test_a_picture_of_a_whole_page_stays_small_and_what_is_too_much_is_asked_for_again() -> None:
    noise = Image.effect_noise((900, 1200), 90).convert("RGB")
    file = {PHOTO: encoded(noise, "JPEG")}
    item = field_value("image", PHOTO, *[area(0, 0, 1, 1)] * 8)
    filled = request(item, attachments=[attachment(PHOTO, "photo.jpg")], account=Account())
    wanted = [AreaToDraw(field_uuid=item.field.uuid, area=number) for number in range(8)]
    answers = draw_values(DrawValues(**dict(filled), areas=wanted, width=4000), file)
    assert 1 <= len(answers) < 8
    first = answers[0]
    assert first.media_type == "image/jpeg"
    picture = Image.open(io.BytesIO(base64.b64decode(first.picture or "")))
    assert 1_800_000 < picture.width * picture.height <= 2_050_000
    assert (first.y, first.h) == (0, 1)


def test_what_takes_too_long_is_left_out_and_asked_for_again_but_never_the_first() -> None:
    items = [field_value("text", str(number)) for number in range(4)]
    filled = request(*items)
    areas = [AreaToDraw(field_uuid=one.field.uuid, area=0) for one in items]
    order = DrawValues(**dict(filled), areas=areas)
    for step, count in ((10.0, 1), (0.5, 2), (0.0, 4)):
        ticks = itertools.count()
        answers = draw_values(order, {}, clock=lambda: next(ticks) * step)  # noqa: B023
        assert [one.field_uuid for one in answers] == [one.field.uuid for one in items[:count]]
        assert all(one.picture for one in answers)


def test_no_more_files_are_fetched_at_once_than_there_is_room_for() -> None:
    assert domain.affordable([], 10) == 0
    assert domain.affordable([{"a": 100}, {}, {"b": 1}], 10) == 1
    assert domain.affordable([{"a": 5}, {"a": 5}, {"b": 5}, {"c": 1}, {}], 10) == 3
    assert domain.affordable([{}, {"a": 11}], 10) == 1


def test_previews_leave_a_child_to_what_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "PREVIEW_WAIT", 0.01)
    for children, at_once in ((1, 1), (2, 1), (4, 3)):
        previews = renderer.Previews(children)
        with ExitStack() as under_way:
            for _ in range(at_once):
                under_way.enter_context(previews.turn())
            with pytest.raises(ServiceError) as refused, previews.turn():
                pass
            assert refused.value.code == "unavailable"
        with previews.turn():
            pass
