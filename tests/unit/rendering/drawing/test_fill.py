"""Values on pages: every type of field, how it looks, and that nothing leaves its area."""

import io
import re
from typing import Any

import pikepdf
import pytest
from PIL import Image

from contracts.types import Account
from services.rendering.jobs.drawing.fill import faults, fill_into
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.jobs.sealing.verifying.reading import is_found
from tests.support.rendering.drawing import (
    LETTER,
    area,
    attachment,
    blank_pdf,
    encoded,
    field_value,
    note,
    party,
    picture_of,
    request,
    saved,
    stored,
    text_in,
)
from tests.support.rendering.filling import (
    ATTACHMENTS,
    CONTRACT,
    FILES,
    PHOTO,
    SIGNATURE,
    fill,
    found,
    is_blank,
    pixels,
)


def _box(rectangle: pikepdf.Object) -> tuple[float, float, float, float]:
    left, bottom, right, top = (float(edge) for edge in rectangle.as_list())
    return left, bottom, right, top


# --- types ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "value", "definition", "expected"),
    [
        ("text", "Ana Kowalska", {}, "Ana Kowalska"),
        ("text", "Łódź, Ελλάδα, мир, שלום, 王小明", {}, "Łódź, Ελλάδα, мир, שלום, 王小明"),
        ("date", "2026-03-05", {"preferences": {"format": "DD/MM/YYYY"}}, "05/03/2026"),
        ("number", 1234.5, {"preferences": {"format": "usd"}}, "$1,234.50"),
        ("checkbox", True, {}, "✔"),
        ("radio", "Blue", {"options": ["Red", "Blue"]}, "Blue"),
        ("select", "Second", {"options": ["First", "Second"]}, "Second"),
        ("multiple", ["A", "C"], {"options": ["A", "B", "C"]}, "A, C"),
        ("phone", "+48 600 123 456", {"preferences": {"mask": -3}}, "+XX XXX XXX 456"),
        ("cells", "PL123", {}, "PL123"),
        ("heading", None, {"default_value": "Section 1"}, "Section 1"),
        ("verification", "done", {}, "Verified"),
        ("payment", 25, {"preferences": {"currency": "USD"}}, "$25.00"),
        ("file", [CONTRACT, PHOTO], {}, "📎\ufe0e Umowa żółw.pdf\n📎\ufe0e photo.jpg"),
    ],
)
def test_values_that_are_text(type_: str, value: Any, definition: dict[str, Any], expected: str) -> None:
    data, drawn = fill(field_value(type_, value, area(0.1, 0.1, 0.4, 0.05), **definition))
    assert [one.text for one in drawn] == [expected]
    assert is_found(expected, found(data, drawn[0]))
    assert not is_blank(pixels(data, drawn[0]))


@pytest.mark.parametrize("type_", ["signature", "initials", "image", "stamp"])
def test_pictures_fill_their_area_and_keep_their_proportions(type_: str) -> None:
    data, drawn = fill(field_value(type_, PHOTO, area(0.1, 0.1, 0.4, 0.05)))
    assert drawn[0].text is None
    picture = pixels(data, drawn[0])
    green = picture.convert("RGB").split()[0].point(lambda value: 255 if value < 100 else 0).getbbox()
    assert green is not None
    assert (green[2] - green[0]) / (green[3] - green[1]) == pytest.approx(1.5, rel=0.03)
    assert green[3] - green[1] == pytest.approx(picture.height, abs=2)
    assert (green[0] + green[2]) / 2 == pytest.approx(picture.width / 2, abs=2)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("text", None),
        ("text", ""),
        ("text", "  "),
        ("checkbox", False),
        ("multiple", []),
        ("signature", None),
        ("file", []),
        ("stamp", None),
        ("heading", None),
        ("radio", None),
    ],
)
def test_no_value_draws_nothing(type_: str, value: Any) -> None:
    pending = [party(completed_at=None, status="pending")]
    data, drawn = fill(field_value(type_, value, preferences={"background": "blue"}), parties=pending)
    assert drawn == []
    assert is_blank(picture_of(data))


def test_a_hidden_field_is_not_drawn() -> None:
    data, drawn = fill(field_value("text", "secret", preferences={"hidden": "true"}))
    assert drawn == []
    assert is_blank(picture_of(data))


def test_radio_and_multiple_tick_the_areas_of_their_options() -> None:
    boxes = [area(0.1, 0.1 * row, 0.03, 0.02, option=option) for row, option in enumerate(["Red", "Blue", ""], 1)]
    _, drawn = fill(field_value("radio", "Blue", *boxes, options=["Red", "Blue", ""]))
    assert [(one.text, round(792 - one.rectangle.top)) for one in drawn] == [("✔", 158)]
    _, drawn = fill(field_value("multiple", ["Red", "Option 3"], *boxes, options=["Red", "Blue", ""]))
    assert [round(792 - one.rectangle.top) for one in drawn] == [79, 238]


def test_a_check_mark_is_in_the_middle_of_its_area() -> None:
    data, drawn = fill(field_value("checkbox", True, area(0.2, 0.2, 0.2, 0.05), preferences={"color": "blue"}))
    picture = pixels(data, drawn[0])
    ink = picture.convert("L").point(lambda value: 255 if value < 200 else 0).getbbox()
    assert ink is not None
    assert (ink[0] + ink[2]) / 2 == pytest.approx(picture.width / 2, abs=2)
    assert (ink[1] + ink[3]) / 2 == pytest.approx(picture.height / 2, abs=2)
    assert 0.6 < (ink[3] - ink[1]) / picture.height < 0.9
    assert (0, 33, 166) in set(picture.get_flattened_data())


@pytest.mark.parametrize(
    ("text", "more", "columns"),
    [
        ("ABC", {}, {"A": 0, "B": 1, "C": 2}),
        ("AB", {"preferences": {"align": "right"}}, {"A": 8, "B": 9}),
        ("אב", {}, {"א": 9, "ב": 8}),
        ("ABCDEFGHIJKLMNOPQRST", {}, {"A": 0, "C": 1, "T": 9}),
    ],
)
def test_cells_have_one_character_each(text: str, more: dict[str, Any], columns: dict[str, int]) -> None:
    width = 0.04
    data, drawn = fill(field_value("cells", text, area(0.1, 0.1, 0.4, 0.03, cell_w=width), **more))
    assert is_found(text, found(data, drawn[0]))
    box = drawn[0].rectangle
    for character, column in columns.items():
        left = box.left + column * width * LETTER[0]
        inside = (left - 0.5, box.bottom, left + width * LETTER[0] + 0.5, box.top)
        assert character in text_in(data, 1, inside)


def test_a_strike_goes_through_and_a_cross_over() -> None:
    data, drawn = fill(
        field_value("strikethrough", None, area(0.1, 0.1, 0.3, 0.02)),
        field_value("strikethrough", None, area(0.5, 0.1, 0.3, 0.2), preferences={"color": "#0000ff"}),
    )
    once, cross = pixels(data, drawn[0]), pixels(data, drawn[1])
    middle = once.getpixel((once.width // 2, once.height // 2))
    assert isinstance(middle, tuple)
    assert middle[0] > 180 > 100 > max(middle[1:3])
    assert once.getpixel((once.width // 2, 1)) == (255, 255, 255)
    assert cross.getpixel((cross.width // 2, cross.height // 2)) == (0, 0, 255)
    assert cross.getpixel((cross.width // 4, cross.height // 4)) == (0, 0, 255)
    assert cross.getpixel((cross.width // 2, 5)) == (255, 255, 255)


def test_nothing_is_drawn_where_a_duty_stamp_goes() -> None:
    data, drawn = fill(field_value("dutystamp", None, area(0.1, 0.1, 0.3, 0.2), preferences={"background": "blue"}))
    assert drawn == []
    assert is_blank(picture_of(data))


def test_files_link_to_where_they_can_be_had() -> None:
    data, drawn = fill(field_value("file", [CONTRACT]))
    with pikepdf.open(io.BytesIO(data)) as pdf:
        (link,) = pdf.pages[0].obj.Annots
        assert str(link.A.URI) == "https://sign.example.com/e/k3VtR9mQzXw2Lp"
        assert [float(value) for value in link.Rect] == pytest.approx(list(drawn[0].rectangle), abs=0.001)


@pytest.mark.parametrize("rotation", [0, 90])
def test_each_name_leads_to_its_own_file_where_the_account_wants_that(rotation: int) -> None:
    """One under the other, also where a name takes several lines or runs from right to left; together they are the area."""
    names = [
        "11.pdf",
        "\u05d7\u05d5\u05d6\u05d4 \u05e9\u05db\u05d9\u05e8\u05d5\u05ea.pdf",
        "A rather long name of a file that is broken into lines.pdf",
    ]
    uuids = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(3)]
    files = [
        attachment(uuid, name).model_copy(update={"url": f"https://sign.example.com/file/{number}"})
        for number, (uuid, name) in enumerate(zip(uuids, names, strict=True))
    ]
    item = field_value("file", uuids, area(0.1, 0.1, 0.18, 0.12), preferences={"font_size": 10})
    pdf = blank_pdf()
    pdf.pages[0].obj.Rotate = rotation
    drawn = fill_into(pdf, stored(), request(item, attachments=files), dict.fromkeys(uuids, b"%PDF-1.7"))
    data = saved(pdf)
    links = [(str(one.A.URI)[-1], _box(one.Rect)) for one in pdf.pages[0].obj.Annots]
    assert [number for number, _ in links] == ["0", "1", "2"]
    read = [text_in(data, 1, box) for _, box in links]
    for name, there in zip(names, read, strict=True):
        assert is_found(name, there), read
        assert not any(is_found(other, there) for other in names if other != name), read
    boxes = [box for _, box in links]
    whole = [
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    ]
    assert whole == pytest.approx(list(drawn[0].rectangle), abs=0.001)


def test_one_file_without_a_link_and_a_number_of_files_lead_to_the_submission() -> None:
    linked = attachment(CONTRACT, "a.pdf").model_copy(update={"url": "https://sign.example.com/file/1"})
    several = field_value("file", [CONTRACT, PHOTO])
    tiny = field_value("file", [CONTRACT, CONTRACT], area(0.1, 0.5, 0.02, 0.012))
    for item, files in ((several, [linked, attachment(PHOTO)]), (tiny, [linked])):
        pdf = blank_pdf()
        fill_into(pdf, stored(), request(item, attachments=files), FILES)
        assert [str(one.A.URI) for one in pdf.pages[0].obj.Annots] == ["https://sign.example.com/e/k3VtR9mQzXw2Lp"]


def test_a_payment_states_the_amount_and_links_to_where_it_is_paid() -> None:
    preferences = {"price": 1250, "currency": "AUD", "payment_url": "https://pay.example.com/inv/7"}
    data, drawn = fill(field_value("payment", None, preferences=preferences))
    assert drawn[0].text == "A$1,250.00"
    with pikepdf.open(io.BytesIO(data)) as pdf:
        (link,) = pdf.pages[0].obj.Annots
        assert str(link.A.URI) == "https://pay.example.com/inv/7"
    for others in ({"price": 5}, {"price": 5, "payment_url": "javascript:alert(1)"}, {"payment_url": "https://a.b"}):
        data, drawn = fill(field_value("payment", None, preferences=others))
        assert [one.text for one in drawn] == (["$5.00"] if "price" in others else [])
        with pikepdf.open(io.BytesIO(data)) as pdf:
            assert "/Annots" not in pdf.pages[0].obj


def test_what_is_no_picture_is_shown_as_a_file() -> None:
    _, drawn = fill(field_value("image", CONTRACT))
    assert drawn[0].text == "📎\ufe0e Umowa żółw.pdf"


def test_a_stamp_says_who_signed() -> None:
    signers = [party(), party(2, role="Landlord", name="Bob")]
    data, drawn = fill(field_value("stamp", None, area(0.1, 0.1, 0.3, 0.1)), parties=signers)
    expected = (
        "Digitally signed by\nAna Kowalska\nana@example.com\nRole: First Party\nNov 21, 2026, 2:05:07\u00a0PM CET"
    )
    assert drawn[0].text == expected
    assert is_found(expected, found(data, drawn[0]))


def test_a_stamp_in_the_background_hides_nothing() -> None:
    white = encoded(Image.new("RGB", (300, 200), (255, 255, 255)))
    for position, hidden in (("background", False), ("foreground", True)):
        item = field_value("stamp", PHOTO, area(0.1, 0.1, 0.4, 0.05), preferences={"position": position})
        pdf = blank_pdf(content=b"0 0 0 rg 0 0 612 792 re f")
        drawn = fill_into(pdf, stored(), request(item, attachments=ATTACHMENTS), {**FILES, PHOTO: white})
        data = saved(pdf)
        picture = pixels(data, drawn[0])
        assert (picture.getpixel((picture.width // 2, picture.height // 2)) == (255, 255, 255)) == hidden
        read_back.check_values(data, drawn, {})


# --- signatures -----------------------------------------------------------------------------------------------------------


def test_a_signature_is_drawn_without_its_margins() -> None:
    data, drawn = fill(field_value("signature", SIGNATURE, area(0.1, 0.1, 0.3, 0.1)))
    assert drawn[0].text is None
    picture = pixels(data, drawn[0])
    ink = picture.convert("L").point(lambda value: 255 if value < 128 else 0).getbbox()
    assert ink is not None
    assert ink[2] - ink[0] > 0.97 * picture.width


@pytest.mark.parametrize(("name", "expected"), [("red", (217, 23, 23)), ("#00aa00", (0, 170, 0))])
def test_a_signature_takes_the_colour_of_its_field(name: str, expected: tuple[int, int, int]) -> None:
    data, drawn = fill(field_value("signature", SIGNATURE, area(0.1, 0.1, 0.4, 0.1), preferences={"color": name}))
    assert expected in set(pixels(data, drawn[0]).get_flattened_data())


@pytest.mark.parametrize("wide", [True, False])
def test_reason_name_and_time_stand_beside_a_signature(wide: bool) -> None:
    box = area(0.05, 0.1, 0.6, 0.06) if wide else area(0.05, 0.1, 0.35, 0.12)
    item = field_value("signature", SIGNATURE, box)
    data, drawn = fill(item, notes=[note(item, "I approve")])
    expected = (
        f"ID: {SIGNATURE.upper()} Reason: I approve Ana Kowalska ana@example.com Nov 21, 2026, 2:05:07\u00a0PM CET"
    )
    assert " ".join((drawn[0].text or "").split("\n")) == expected
    assert is_found(expected, found(data, drawn[0]))
    whole = drawn[0].rectangle
    half = (whole.left + whole.right) / 2
    beside = text_in(data, 1, (half, whole.bottom - 3, whole.right + 3, whole.top + 3))
    assert is_found(expected, beside) == wide
    picture = pixels(data, drawn[0])
    upper = picture.crop((0, 0, picture.width // 2 if wide else picture.width, picture.height // 2))
    assert not is_blank(upper)


@pytest.mark.parametrize("size", [(0.2, 0.08), (0.25, 0.06), (0.3, 0.05), (0.35, 0.12), (0.12, 0.1), (0.6, 0.03)])
def test_the_id_of_a_signature_is_printed_whole(size: tuple[float, float]) -> None:
    item = field_value("signature", SIGNATURE, area(0.05, 0.1, *size))
    data, drawn = fill(item, account=Account(with_signature_id=True))
    printed = "".join((drawn[0].text or "").split())
    assert printed.startswith(f"ID:{SIGNATURE.upper()}Digitallysignedby")
    assert "..." not in printed
    assert is_found(drawn[0].text or "", found(data, drawn[0]))


def test_nobody_has_digitally_signed_before_they_have_completed() -> None:
    item = field_value("signature", SIGNATURE, area(0.05, 0.1, 0.35, 0.12))
    stamp = field_value("stamp", None, area(0.05, 0.3, 0.35, 0.12))
    waiting = [party(status="opened", completed_at=None)]
    _, drawn = fill(item, stamp, account=Account(with_signature_id=True), parties=waiting)
    assert len(drawn) == 1
    printed = " ".join((drawn[0].text or "").split("\n"))
    assert printed.startswith(f"ID: {SIGNATURE.upper()} Ana Kowalska ana@example.com Nov 21, 2026")
    _, drawn = fill(item, notes=[note(item, "I approve")], parties=waiting)
    assert "Reason: I approve Ana Kowalska" in " ".join((drawn[0].text or "").split("\n"))


def test_the_account_may_want_ids_on_signatures() -> None:
    item = field_value("signature", SIGNATURE, area(0.05, 0.1, 0.35, 0.12))
    _, drawn = fill(item, account=Account(with_signature_id=True, time_zone="Asia/Tokyo"))
    assert "Digitally signed by Ana Kowalska ana@example.com" in (drawn[0].text or "").replace("\n", " ")
    assert "10:05:07\u00a0PM JST" in (drawn[0].text or "")


def test_the_signers_own_zone_is_printed_when_it_is_known() -> None:
    item = field_value("signature", SIGNATURE, area(0.05, 0.1, 0.35, 0.12))
    _, drawn = fill(item, notes=[note(item, "ok")], parties=[party(time_zone="America/New_York")])
    assert "8:05:07\u00a0AM EST" in (drawn[0].text or "")


def test_in_a_tiny_area_the_note_gives_way_and_the_signature_stays() -> None:
    item = field_value("signature", SIGNATURE, area(0.1, 0.1, 0.08, 0.02))
    data, drawn = fill(item, notes=[note(item, "A long reason why this was signed by me today")])
    assert "ID:" not in (drawn[0].text or "")
    assert "..." in (drawn[0].text or "")
    picture = pixels(data, drawn[0])
    assert not is_blank(picture.crop((0, 0, picture.width, picture.height // 2)))


def test_a_signature_that_is_no_picture_is_refused() -> None:
    with pytest.raises(Refused, match=r"Field 'Sign here' has the attachment .* not a picture"):
        fill(field_value("signature", CONTRACT, name="Sign here"))


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(Refused, match="Field 'Sign here' has the attachment gone, whose file is missing"):
        fill(field_value("signature", "gone", name="Sign here"))


# --- preferences ----------------------------------------------------------------------------------------------------------


def test_text_has_the_font_size_and_colour_of_its_field() -> None:
    preferences = {"font": "Times", "font_type": "bold_italic", "font_size": 14, "color": "#ff0000"}
    data, drawn = fill(field_value("text", "Hello", area(0.1, 0.1, 0.4, 0.05), preferences=preferences))
    with pikepdf.open(io.BytesIO(data)) as pdf:
        form = pdf.pages[0].obj.Resources.XObject.CountersignFill0
        assert "LiberationSerif-BoldItalic" in str(form.Resources.Font.F1.BaseFont)
        content = form.read_bytes()
        assert b"1 0 0 rg" in content
        assert b"/F1 14 Tf" in content
    assert (255, 0, 0) in set(pixels(data, drawn[0]).get_flattened_data())


@pytest.mark.parametrize(
    ("background", "expected"), [("blue", (0, 33, 166)), ("black", (0, 0, 0)), ("#fe9", (255, 238, 153))]
)
def test_the_background_fills_the_area(background: str, expected: tuple[int, int, int]) -> None:
    preferences = {"background": background, "color": "white"}
    data, drawn = fill(field_value("text", "Hello", area(0.1, 0.1, 0.4, 0.05), preferences=preferences))
    picture = pixels(data, drawn[0])
    assert picture.getpixel((2, 2)) == expected
    assert picture.getpixel((picture.width - 4, picture.height - 4)) == expected


def test_the_default_size_grows_with_the_page() -> None:
    sizes = []
    for width, height in (LETTER, (1224.0, 1584.0)):
        pdf = blank_pdf(size=(width, height))
        fill_into(pdf, stored([(width, height)]), request(field_value("text", "Hello")), {})
        content = pdf.pages[0].obj.Resources.XObject.CountersignFill0.read_bytes()
        sizes.append(float(content.split(b"/F1 ")[1].split()[0]))
    assert sizes == [11, 22]


# --- nothing leaves its area ----------------------------------------------------------------------------------------------


def test_long_text_shrinks_and_wraps_within_its_area() -> None:
    text = "A rather long value that does not fit on one line of this small field at all"
    data, drawn = fill(field_value("text", text, area(0.1, 0.1, 0.26, 0.023)))
    assert is_found(text, found(data, drawn[0]))
    around = picture_of(data, scale=3)
    box = drawn[0].rectangle
    around.paste((255, 255, 255), _pixel_box(box, 3))
    assert is_blank(around), "ink outside of the area"


def _pixel_box(box: tuple[float, float, float, float], scale: float) -> tuple[int, int, int, int]:
    left, bottom, right, top = box
    return (
        int(left * scale) - 1,
        int((LETTER[1] - top) * scale) - 1,
        int(right * scale) + 1,
        int((LETTER[1] - bottom) * scale) + 1,
    )


def test_a_text_that_fits_nowhere_is_refused_by_name() -> None:
    item = field_value("text", "word " * 500, area(0.1, 0.1, 0.2, 0.02), name="Remarks")
    reason = r"has 2500 characters, but in its area on page 1 there is room for (\d+), .* \(122 x 16 points\)"
    with pytest.raises(Refused, match=f"Field 'Remarks' {reason}"):
        fill(item)
    (told,) = faults(request(item)).values()
    found = re.fullmatch(reason, told)
    room = int(found[1]) if found else 0
    assert 100 < room < 300
    kept = ("word " * 500)[:room]
    assert faults(request(field_value("text", kept, *item.field.areas))) == {}
    fill(field_value("text", kept, *item.field.areas))


def test_cells_say_how_many_characters_they_have_room_for() -> None:
    item = field_value("cells", "1234567890" * 10, area(0.1, 0.1, 0.2, 0.02, cell_w=0.02), name="Number")
    (told,) = faults(request(item)).values()
    assert re.match(r"has 100 characters, but .* room for 5\d,", told)


def test_a_stamp_is_refused_an_area_that_is_too_small_for_it() -> None:
    sizes = ((0.03, 0.004), (0.05, 0.02), (0.1, 0.02), (0.2, 0.06))
    items = [field_value("stamp", None, area(0.1, 0.1 + row * 0.1, *size)) for row, size in enumerate(sizes)]
    tiny, *others = items
    assert list(faults(request(*items))) == [tiny.field.uuid]
    data, drawn = fill(*others)
    read_back.check_values(data, drawn, {})
    assert [(one.text or "").count("\n") for one in drawn] == [1, 3, 3]


def test_names_of_files_always_find_room() -> None:
    name = "Scan of the passport of " + "Ana " * 200 + "Kowalska.pdf"
    for size in ((0.3, 0.03), (0.08, 0.012), (0.02, 0.008), (0.005, 0.004)):
        item = field_value("file", [CONTRACT, PHOTO], area(0.1, 0.1, *size))
        named = [attachment(CONTRACT, name), attachment(PHOTO, "photo.jpg")]
        assert faults(request(item, attachments=named)) == {}
        data, drawn = fill(item, attachments=named)
        read_back.check_values(data, drawn, {})
        assert len(drawn) == 1
        if size[0] == 0.3:
            assert re.fullmatch(r"📎\ufe0e Scan of the pass.*…ska\.pdf\n📎\ufe0e photo\.jpg", drawn[0].text or "")


def test_undrawable_characters_are_refused_by_name() -> None:
    item = field_value("text", "ok \u0860", name="Remarks")
    reason = "has characters that no font can draw: '\u0860' (U+0860 SYRIAC LETTER MALAYALAM NGA)"
    with pytest.raises(Refused, match=re.escape(f"Field 'Remarks' {reason}")):
        fill(item)
    assert list(faults(request(item)).values()) == [reason]


def test_a_file_name_nobody_can_draw_is_still_shown() -> None:
    _, drawn = fill(field_value("file", [PHOTO]), attachments=[attachment(PHOTO, "\u0860.jpg")])
    assert drawn[0].text == "📎\ufe0e \ufffd.jpg"


def test_a_page_that_is_not_there_is_refused_by_name() -> None:
    item = field_value("text", "x", area(0.1, 0.1, 0.2, 0.02, page=2), name="Remarks")
    with pytest.raises(Refused, match="Field 'Remarks': the document has no page 2"):
        fill(item)
    assert list(faults(request(item)).values()) == ["has an area on page 2, which the document does not have"]


def test_what_fits_has_no_faults_and_pictures_are_not_looked_at() -> None:
    assert faults(request(field_value("text", "Ana"), field_value("signature", SIGNATURE))) == {}


def test_fields_of_other_documents_are_left_out() -> None:
    other = area(0.1, 0.1, 0.2, 0.02, attachment_uuid="another")
    nameless = area(0.1, 0.2, 0.2, 0.02, attachment_uuid="")
    _, drawn = fill(field_value("text", "x", other), field_value("text", "y", nameless))
    assert [one.text for one in drawn] == ["y"]
    second = request(field_value("text", "y", nameless), documents=[stored(document="first"), stored()])
    assert fill_into(blank_pdf(), stored(), second, {}) == []
