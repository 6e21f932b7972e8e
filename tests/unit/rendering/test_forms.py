"""Fillable forms inside an uploaded PDF become fields (peer facts 3.4)."""

import io
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pytest
from pikepdf import Array, Dictionary, Name, String

from contracts.rpc.rendering import FieldValue
from contracts.types import FieldDefinition, FieldType
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.intake.preparing import Prepared, prepare
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing.verifying.reading import is_found
from tests.support.files import pdf_files
from tests.support.files.pdf_files import field
from tests.support.rendering.drawing import DOCUMENT, request, stored, text_in


def take(*fields: Dictionary, **options: Any) -> Prepared:
    return prepare(pdf_files.with_form(*fields), name="form", **options)


def one(*fields: Dictionary) -> Any:
    [found] = take(*fields).fields
    return found


def on(state: str) -> Dictionary:
    return Dictionary(N=Dictionary({f"/{state}": Dictionary(), "/Off": Dictionary()}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (field("Tx", "Full name"), {"name": "Full name", "type": FieldType.TEXT, "required": False}),
        (field("Tx", "A", Ff=2), {"required": True}),
        (field("Tx", "A", Ff=3), {"readonly": True, "required": False}),
        (field("Tx", "A", TU=String("Your name")), {"description": "Your name"}),
        (field("Tx", "A", Q=2, DA=String("/Helv 9 Tf 0 g")), {"preferences": {"align": "right", "font_size": 9}}),
        (field("Tx", "A", DA=String("/Helv 10.5 Tf 0 g")), {"preferences": {"font_size": 10.5}}),
        (field("Tx", "A", DA=String("/Helv 2 Tf 0 g")), {"preferences": {"font_size": 4}}),
        (field("Tx", "A", DA=String("/Helv 0 Tf 0 g")), {"preferences": {}}),
        (field("Tx", "A", Ff=1 << 24, MaxLen=8), {"type": FieldType.CELLS}),
        (field("Sig", "Buyer"), {"type": FieldType.SIGNATURE, "required": True}),
        (field("Sig", "Buyer initials"), {"type": FieldType.INITIALS}),
        (field("Btn", "Agreed", AP=on("Yes")), {"type": FieldType.CHECKBOX, "options": []}),
        (field("Ch", "Land", Ff=1 << 17, Opt=Array([String("Select one"), String("DE"), String("FR")])),
         {"type": FieldType.SELECT, "options": ["DE", "FR"]}),
        (field("Ch", "Lands", Ff=1 << 21, Opt=Array([Array([String("d"), String("DE")]), String("FR")])),
         {"type": FieldType.MULTIPLE, "options": ["DE", "FR"]}),
    ],
)  # fmt: skip
def test_types_of_fields(given: Any, expected: dict[str, Any]) -> None:
    found = one(given)
    for key, value in expected.items():
        assert getattr(found, key) == value


def test_dates_are_known_by_their_script() -> None:
    script = Dictionary(S=Name.JavaScript, JS=String('AFDate_FormatEx("dd/mm/yyyy");'))
    found = one(field("Tx", "Born", AA=Dictionary(F=script)))
    assert (found.type, found.preferences["format"]) == (FieldType.DATE, "DD/MM/YYYY")


def test_cells_have_their_width() -> None:
    found = one(field("Tx", "IBAN", (100, 600, 340, 620), Ff=1 << 24, MaxLen=24))
    assert found.areas[0].cell_w * 612 == pytest.approx(10)


def test_a_text_has_room_for_a_line() -> None:
    [area] = one(field("Tx", "A", (100, 600, 200, 603))).areas
    assert ((1 - area.y) * 792, area.h * 792) == (pytest.approx(605.5), pytest.approx(8))


def test_a_comb_of_cells_that_hold_no_letter_is_a_text() -> None:
    assert one(field("Tx", "A", (100, 600, 200, 620), Ff=1 << 24, MaxLen=100)).type is FieldType.TEXT


@pytest.mark.parametrize(
    "given",
    [
        field("Tx", "A", V=String("done")),
        field("Btn", "A", V=Name.Yes, AP=on("Yes")),
        field("Btn", "A", Ff=1 << 16),
        field("Tx", "A", F=2),
        field("Tx", "A", (100, 9000, 200, 9020)),
        field("Tx", "A", (100, 100, 100, 100)),
        field("Ch", "A", Opt=Array([])),
        Dictionary(T=String("no type"), Rect=Array([0, 0, 9, 9])),
    ],
)
def test_what_cannot_be_filled_in_makes_no_field(given: Any) -> None:
    assert take(given).fields == []


def test_an_empty_value_is_none() -> None:
    assert one(field("Tx", "A", V=String("  "))).name == "A"
    assert one(field("Btn", "A", V=Name.Off, AP=on("Yes"))).name == "A"


def test_radio_buttons_are_one_field_with_an_area_for_each_option() -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    parent = pdf.make_indirect(Dictionary(FT=Name.Btn, Ff=1 << 15, T=String("Pay"), Kids=Array([])))
    for index, state in enumerate(["card", "cash"]):
        box = Array([72, 700 - index * 30, 90, 718 - index * 30])
        kid = Dictionary(Type=Name.Annot, Subtype=Name.Widget, Parent=parent, AP=on(state), Rect=box)
        parent.Kids.append(pdf.make_indirect(kid))
    page.obj.Annots = Array(list(parent.Kids))
    pdf.Root.AcroForm = Dictionary(Fields=Array([parent]))
    [found] = prepare(pdf_files.saved(pdf), name="form").fields
    assert (found.type, found.name, found.options) == (FieldType.RADIO, "Pay", ["card", "cash"])
    assert [area.option for area in found.areas] == ["card", "cash"]


def test_names_lead_through_the_tree() -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf, rotate=90)
    kid = pdf.make_indirect(Dictionary(Subtype=Name.Widget, T=String("name"), Rect=Array([100, 200, 150, 400])))
    parent = pdf.make_indirect(Dictionary(T=String("buyer"), FT=Name.Tx, Ff=2, Kids=Array([kid])))
    kid.Parent = parent
    page.obj.Annots = Array([kid])
    pdf.Root.AcroForm = Dictionary(Fields=Array([parent]))
    [found] = prepare(pdf_files.saved(pdf), name="form").fields
    assert (found.name, found.type, found.required) == ("buyer.name", FieldType.TEXT, True)
    area = found.areas[0]
    # The page is turned: 612 x 792 is seen as 792 x 612.
    assert (area.w * 792, area.h * 612) == pytest.approx((200, 50))
    assert (area.x * 792, area.y * 612) == pytest.approx((200, 100))


def test_a_field_that_contains_itself_is_refused() -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    node = pdf.make_indirect(Dictionary(FT=Name.Tx, T=String("a"), Subtype=Name.Widget, Rect=Array([0, 0, 9, 9])))
    node.Kids = Array([node])
    node.Parent = node
    page.obj.Annots = Array([node])
    pdf.Root.AcroForm = Dictionary(Fields=Array([node]))
    with pytest.raises(Refused, match="a field contains itself"):
        prepare(pdf_files.saved(pdf), name="form")


def test_flatten_makes_the_form_part_of_the_page() -> None:
    given = field("Tx", "A", V=String("already here")), field("Tx", "B", (100, 500, 300, 520))
    prepared = take(*given, flatten=True)
    assert prepared.fields == []
    assert [notice.code for notice in prepared.report] == ["flattened"]
    with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
        assert "/AcroForm" not in pdf.Root
        assert "/Annots" not in pdf.pages[0].obj or len(pdf.pages[0].obj.Annots) == 0
    with pdfium.PdfDocument(prepared.file) as document:
        page = document[0]
        text = page.get_textpage()
        assert text.get_text_range() == "already here"
        text.close()
        page.close()


def notices(prepared: Prepared) -> dict[str, str]:
    return {notice.code: notice.message for notice in prepared.report}


def with_kids(names: list[str], on_page: list[int], **entries: Any) -> bytes:
    """A button with a widget for each name in ``/Kids``; the page lists them in the order ``on_page``, downwards."""
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    parent = pdf.make_indirect(Dictionary(FT=Name.Btn, T=String("Pay"), Kids=Array([]), **entries))
    for name in names:
        kid = Dictionary(Type=Name.Annot, Subtype=Name.Widget, Parent=parent, AP=on(name))
        parent.Kids.append(pdf.make_indirect(kid))
    for row, index in enumerate(on_page):
        parent.Kids[index].Rect = Array([72, 700 - row * 30, 90, 718 - row * 30])
    page.obj.Annots = Array([parent.Kids[index] for index in on_page])
    pdf.Root.AcroForm = Dictionary(Fields=Array([parent]))
    return pdf_files.saved(pdf)


def test_labels_of_radio_buttons_follow_the_field_not_the_page() -> None:
    data = with_kids(["0", "1", "2"], [2, 0, 1], Ff=1 << 15, Opt=Array([String("A"), String("B"), String("C")]))
    [found] = prepare(data, name="form").fields
    assert [area.option for area in found.areas] == ["C", "A", "B"]
    assert found.areas[0].y < found.areas[1].y < found.areas[2].y


@pytest.mark.parametrize(
    ("names", "flags", "type_", "options"),
    [
        (["Yes", "Yes"], 0, FieldType.CHECKBOX, []),
        (["One", "Two"], 0, FieldType.RADIO, ["One", "Two"]),
        (["One", "One", "Two"], 1 << 15, FieldType.RADIO, ["One", "Two"]),
        (["One"], 1 << 15, FieldType.RADIO, ["One"]),
        (["#ec#97#ac", "C#12"], 1 << 15, FieldType.RADIO, ["여", "C#12"]),
    ],
)
def test_buttons_with_several_places(names: list[str], flags: int, type_: Any, options: Any) -> None:
    [found] = prepare(with_kids(names, list(range(len(names))), Ff=flags), name="form").fields
    assert (found.type, found.options, len(found.areas)) == (type_, options, len(names))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('AFDate_FormatEx("dd.mm.yyyy");', "DD.MM.YYYY"),
        ("AFDate_KeystrokeEx('mmm d, yyyy')", "MMM D, YYYY"),
        ("AFDate_Format(2);", "MM/DD/YY"),
        ("AFDate_Format(11)", "MMMM D, YYYY"),
        ("AFDate_Format(13)", None),
        ('AFDate_FormatEx("dd/mm/yyyy HH:MM")', None),
        ("AFDate_FormatEx()", "no date"),
        ("AFNumber_Format(2, 0)", "no date"),
    ],
)
def test_formats_of_dates(script: str, expected: Any) -> None:
    found = one(field("Tx", "Born", AA=Dictionary(K=Dictionary(S=Name.JavaScript, JS=String(script)))))
    assert (found.type is FieldType.DATE) is (expected != "no date")
    assert found.preferences.get("format") == (None if expected == "no date" else expected)


def test_what_the_form_says_of_all_fields_holds_for_each() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A"), field("Tx", "B", (9, 9, 99, 29), Q=0)))) as pdf:
        pdf.Root.AcroForm.Q, pdf.Root.AcroForm.DA = 1, String("/Helv 14 Tf 0 g")
        first, second = prepare(pdf_files.saved(pdf), name="form").fields
    assert first.preferences == {"align": "center", "font_size": 14}
    assert second.preferences == {"font_size": 14}


def test_a_list_of_all_countries_is_a_choice() -> None:
    options = Array([String(f"Country {number}") for number in range(250)])
    assert len(one(field("Ch", "Country", Ff=1 << 17, Opt=options)).options) == 250


# What became of each field is told


def test_each_field_is_accounted_for() -> None:
    prepared = take(
        field("Tx", "Full name"),
        field("Tx", "Town", (100, 560, 300, 580)),
        field("Btn", "Agreed", (100, 520, 120, 540), AP=on("Yes")),
        field("Tx", "Place", (100, 480, 300, 500), V=String("Bergen")),
        field("Btn", "Send", (100, 440, 300, 460), Ff=1 << 16),
        field("Ch", "Nothing", (100, 400, 300, 420), Opt=Array([])),
        field("Tx", "Secret", (100, 360, 300, 380), F=2),
        field("Tx", "Unseen", (100, 360, 300, 380), F=32),
        field("Tx", "Far", (100, 9000, 200, 9020)),
        field("Sig", "No size", (0, 0, 0, 0)),
        field("Tx", "Dot", (300, 300, 301, 320)),
        field("Tx", "Askew", (500, 100, 520, 300), MK=Dictionary(R=90)),
    )
    assert notices(prepared) == {
        "form_fields_imported": "4 form fields of the PDF became fields: 3 text, 1 checkbox.",
        "form_field_kept": "The form field “Place” already holds a value; it stays as it is.",
        "form_field_skipped": "The form fields “Send” and “Nothing” are buttons, or choices without usable options; they stay "
        "as they are.",
        "form_field_hidden": "The form fields “Secret” and “Unseen” are hidden in the PDF; they became no fields.",
        "form_field_off_page": "The form fields “Far” and “No size” lie off their pages or have no size; they became no "
        "fields.",
        "form_field_too_small": "The form field “Dot” is too small for anything to be read in it; it became no field.",
        "form_field_turned": "The form field “Askew” is turned on its page; what is filled in stands upright there.",
    }
    assert [found.name for found in prepared.fields] == ["Full name", "Town", "Agreed", "Askew"]


def test_a_long_list_is_cut_short() -> None:
    filled = [field("Tx", f"F{number}", V=String("x")) for number in range(50)]
    [kept] = take(*filled).report
    assert kept.message.startswith("The form fields “F0”, “F1”, ")
    assert kept.message.endswith("“F19” and 30 more already hold values; they stay as they are.")
    assert kept.page == 1


def test_a_widget_that_is_upright_on_a_turned_page_is_not_askew() -> None:
    data = pdf_files.with_form(field("Tx", "A", MK=Dictionary(R=90)), rotate=90)
    assert "form_field_turned" not in notices(prepare(data, name="form"))


# Values that are there already


@pytest.mark.parametrize(
    "given",
    [
        field("Btn", "A", AS=Name.Yes, AP=on("Yes")),
        field("Ch", "A", Ff=1 << 17, Opt=Array([String("DE"), String("FR")]), V=String("FR")),
        field("Ch", "A", Ff=1 << 21, Opt=Array([String("DE"), String("FR")]), V=Array([String("FR")])),
    ],
)
def test_what_holds_a_value_is_left_to_it(given: Any) -> None:
    prepared = take(given)
    assert prepared.fields == []
    assert list(notices(prepared)) == ["form_field_kept"]


def look(pdf: pikepdf.Pdf, content: bytes) -> pikepdf.Stream:
    stream = pdf.make_stream(content)
    stream.Type, stream.Subtype, stream.BBox = Name.XObject, Name.Form, Array([0, 0, 200, 30])
    stream.Resources = Dictionary(Font=Dictionary(Helv=pdf_files.standard_font(pdf, "Helvetica")))
    return stream


def test_a_choice_that_asks_to_choose_is_empty_and_its_request_goes_from_the_paper() -> None:
    options = Array([Array([String("0"), String("Please select")]), String("DE")])
    with pikepdf.open(
        io.BytesIO(pdf_files.with_form(field("Ch", "Land", Ff=1 << 17, Opt=options, V=String("0"))))
    ) as pdf:
        frame = b"1 0 0 RG 1 1 198 28 re S /Tx BMC q BT /Helv 12 Tf 4 10 Td (Please select) Tj ET Q EMC"
        pdf.pages[0].obj.Annots[0].AP = Dictionary(N=look(pdf, frame))
        prepared = prepare(pdf_files.saved(pdf), name="form")
    [found] = prepared.fields
    assert (found.type, found.options) == (FieldType.SELECT, ["DE"])
    with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
        widget = pdf.pages[0].obj.Annots[0]
        assert "/V" not in widget
        assert b"re S" in widget.AP.N.read_bytes()
        assert b"Please" not in widget.AP.N.read_bytes()


# Odd trees


def test_two_fields_of_one_name_are_one_unless_their_types_differ() -> None:
    prepared = take(
        field("Tx", "Name"), field("Tx", "Name", (100, 500, 300, 530)), field("Sig", "Name", (100, 400, 300, 430))
    )
    assert [(found.type, len(found.areas)) for found in prepared.fields] == [
        (FieldType.TEXT, 2),
        (FieldType.SIGNATURE, 1),
    ]


def test_long_names_that_begin_alike_stay_apart() -> None:
    path = "form[0].page[0].part[0]." * 20
    names = [
        found.name for found in take(field("Tx", f"{path}a"), field("Tx", f"{path}b", (100, 500, 300, 530))).fields
    ]
    assert len(set(names)) == 2
    assert {len(name) for name in names} == {255}
    assert all(name.startswith(path[:240]) for name in names)


def test_a_widget_that_is_listed_twice_counts_once() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A")))) as pdf:
        pdf.pages[0].obj.Annots.append(pdf.pages[0].obj.Annots[0])
        [found] = prepare(pdf_files.saved(pdf), name="form").fields
    assert len(found.areas) == 1


def test_a_name_that_is_no_text_and_parents_that_lead_in_a_circle() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A"), field("Tx", "B", (9, 9, 99, 29))))) as pdf:
        one_, other = pdf.pages[0].obj.Annots
        one_.T, one_.TU = 42, Array([])
        other.Parent = pdf.make_indirect(Dictionary(T=String("up")))
        other.Parent.Parent = other.Parent
        first, second = prepare(pdf_files.saved(pdf), name="form").fields
    assert (first.name, first.description) == ("", None)
    assert second.name.endswith("up.B")


def test_widgets_that_no_form_lists_are_fields_as_well() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A")))) as pdf:
        del pdf.Root.AcroForm
        with pytest.warns(pikepdf.exceptions.PageCopyWarning):
            data = pdf_files.saved(pdf)
    [found] = prepare(data, name="form").fields
    assert found.name == "A"


# XFA


def xfa(pdf: pikepdf.Pdf, *, dynamic: bool) -> bytes:
    pdf.Root.AcroForm.XFA = Array([String("template"), pdf.make_stream(b"<template/>")])
    if dynamic:
        pdf.Root.NeedsRendering = True
        pdf.Root.AcroForm.Fields = Array([])
        pdf.pages[0].obj.Annots = Array([])
    return pdf_files.saved(pdf)


def test_xfa_goes_and_the_ordinary_fields_stay() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A")))) as pdf:
        prepared = prepare(xfa(pdf, dynamic=False), name="form")
    assert [notice.code for notice in prepared.report] == ["xfa_removed", "form_fields_imported"]
    assert [found.name for found in prepared.fields] == ["A"]
    with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
        assert "/XFA" not in pdf.Root.AcroForm
        assert len(pdf.pages[0].obj.Annots) == 1


def without_widgets(text: str, *packets: bytes) -> pikepdf.Pdf:
    pdf = pikepdf.open(io.BytesIO(pdf_files.document(pdf_files.line(text))))
    streams = [part for packet in packets for part in (String("packet"), pdf.make_stream(packet))]
    pdf.Root.AcroForm = Dictionary(Fields=Array([]), XFA=Array(streams))
    return pdf


REQUIRED = b"<config><acrobat7><dynamicRender>\n required</dynamicRender></acrobat7></config>"


def test_a_dynamic_xfa_form_is_refused() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A")))) as pdf:
        flagged = xfa(pdf, dynamic=True)
    configured = pdf_files.saved(without_widgets("Open me elsewhere", b"<template/>", REQUIRED))
    waiting = pdf_files.saved(without_widgets("Please wait... If this message is not replaced", b"<template/>"))
    for data in (flagged, configured, waiting, pdf_files.signed(waiting), pdf_files.encrypted(waiting)):
        with pytest.raises(Refused, match="dynamic XFA form"):
            prepare(data, name="form")


def test_an_xfa_form_that_was_printed_is_a_document() -> None:
    prepared = prepare(pdf_files.saved(without_widgets("Filled in", b"<template/>")), name="form")
    assert [notice.code for notice in prepared.report] == ["xfa_removed"]


def test_the_xfa_part_of_a_signed_form_stays_and_is_told_of() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A")))) as pdf:
        data = pdf_files.signed(xfa(pdf, dynamic=False))
    prepared = prepare(data, name="form")
    assert prepared.file == data
    assert "xfa_kept" in notices(prepared)


# Filled in


RECTANGLES = {
    "Full name": (120, 600, 320, 620),
    "IBAN": (120, 560, 320, 580),
    "Born": (120, 520, 220, 540),
    "Land": (120, 480, 220, 500),
    "Agreed": (120, 440, 135, 455),
    "Already": (120, 400, 320, 420),
}
VALUES = {
    "Full name": "Zoë Ångström",
    "IBAN": "DE02",
    "Born": "1999-12-31",
    "Land": "FR",
    "Agreed": True,
    "Pay": "cash",
}
READ = {
    "Full name": "Zoë Ångström",
    "IBAN": "DE02",
    "Born": "31.12.1999",
    "Land": "FR",
    "Agreed": "✔",
    "Already": "Bergen",
}
CARD, CASH = (240, 440, 255, 455), (270, 440, 285, 455)


def whole_form(**page: Any) -> bytes:
    """One field of each kind, and one that somebody filled in."""
    script = Dictionary(S=Name.JavaScript, JS=String('AFDate_FormatEx("dd.mm.yyyy");'))
    given = [
        field("Tx", "Full name", RECTANGLES["Full name"], DA=String("/Helv 10 Tf 0 g")),
        field("Tx", "IBAN", RECTANGLES["IBAN"], Ff=1 << 24, MaxLen=20),
        field("Tx", "Born", RECTANGLES["Born"], AA=Dictionary(F=script)),
        field("Ch", "Land", RECTANGLES["Land"], Ff=1 << 17, Opt=Array([String("DE"), String("FR")])),
        field("Btn", "Agreed", RECTANGLES["Agreed"], AP=on("Yes")),
        field("Tx", "Already", RECTANGLES["Already"], V=String("Bergen")),
    ]
    with pikepdf.open(io.BytesIO(pdf_files.with_form(*given, **page))) as pdf:
        parent = pdf.make_indirect(Dictionary(FT=Name.Btn, Ff=1 << 15, T=String("Pay"), Kids=Array([])))
        for state, box in (("card", CARD), ("cash", CASH)):
            kid = Dictionary(Type=Name.Annot, Subtype=Name.Widget, Parent=parent, AP=on(state), Rect=Array(list(box)))
            parent.Kids.append(pdf.make_indirect(kid))
        pdf.pages[0].obj.Annots.extend(list(parent.Kids))
        pdf.Root.AcroForm.Fields.append(parent)
        return pdf_files.saved(pdf)


@pytest.mark.parametrize(
    "page",
    [{}, {"rotate": 90}, {"rotate": 180, "crop": (100, 380, 400, 640)}, {"rotate": 270, "user_unit": 2}],
    ids=str,
)
def test_what_is_filled_in_stands_where_the_form_had_it(page: dict[str, Any]) -> None:
    prepared = prepare(whole_form(**page), name="form")
    assert {found.name for found in prepared.fields} == {*VALUES}
    items = []
    for found in prepared.fields:
        definition = found.model_dump(exclude={"role", "condition"})
        definition["areas"] = [area.model_copy(update={"attachment_uuid": DOCUMENT}) for area in found.areas]
        kept = FieldDefinition(uuid=found.name, submitter_uuid="s", role="First", **definition)
        items.append(FieldValue(field=kept, value=VALUES[found.name], submitter_id=1))
    sizes = [(size.width, size.height) for size in prepared.pages]
    with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
        fill_into(pdf, stored(sizes), request(*items), {})
        assert "/AcroForm" not in pdf.Root
        data = pdf_files.saved(pdf)
    for name, text in READ.items():
        assert is_found(text, text_in(data, 1, RECTANGLES[name])), name
    cells = [(120 + 10 * number, 560, 130 + 10 * number, 580) for number in range(5)]
    if page.get("rotate", 0) == 0:  # Else the page turns what the form meant to be read from left to right.
        assert [text_in(data, 1, cell).strip() for cell in cells] == [*"DE02", ""]
    assert is_found("✔", text_in(data, 1, CASH))
    assert text_in(data, 1, CARD).strip() == ""
