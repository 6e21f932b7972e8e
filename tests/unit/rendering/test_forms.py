"""Fillable forms inside an uploaded PDF become fields (peer facts 3.4)."""

import io

import pikepdf
import pypdfium2 as pdfium
import pytest
from pikepdf import Array, Dictionary, Name, String

from contracts.types import FieldType
from services.rendering.jobs.intake import Prepared, prepare
from services.rendering.jobs.refused import Refused
from tests.support import pdf_files
from tests.support.pdf_files import field


def take(*fields: Dictionary, **options) -> Prepared:
    return prepare(pdf_files.with_form(*fields), name="form", **options)


def one(*fields: Dictionary):
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
def test_types_of_fields(given, expected):
    found = one(given)
    for key, value in expected.items():
        assert getattr(found, key) == value


def test_dates_are_known_by_their_script():
    script = Dictionary(S=Name.JavaScript, JS=String('AFDate_FormatEx("dd/mm/yyyy");'))
    found = one(field("Tx", "Born", AA=Dictionary(F=script)))
    assert (found.type, found.preferences["format"]) == (FieldType.DATE, "DD/MM/YYYY")


def test_cells_have_their_width():
    found = one(field("Tx", "IBAN", (100, 600, 340, 620), Ff=1 << 24, MaxLen=24))
    assert found.areas[0].cell_w * 612 == pytest.approx(10)


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
def test_what_cannot_be_filled_in_makes_no_field(given):
    assert take(given).fields == []


def test_an_empty_value_is_none():
    assert one(field("Tx", "A", V=String("  "))).name == "A"
    assert one(field("Btn", "A", V=Name.Off, AP=on("Yes"))).name == "A"


def test_radio_buttons_are_one_field_with_an_area_for_each_option():
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


def test_names_lead_through_the_tree():
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
    assert (area.w * 792, area.h * 612) == (pytest.approx(200), pytest.approx(50))
    assert (area.x * 792, area.y * 612) == (pytest.approx(200), pytest.approx(100))


def test_a_field_that_contains_itself_is_refused():
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    node = pdf.make_indirect(Dictionary(FT=Name.Tx, T=String("a"), Subtype=Name.Widget, Rect=Array([0, 0, 9, 9])))
    node.Kids = Array([node])
    node.Parent = node
    page.obj.Annots = Array([node])
    pdf.Root.AcroForm = Dictionary(Fields=Array([node]))
    with pytest.raises(Refused, match="a field contains itself"):
        prepare(pdf_files.saved(pdf), name="form")


def test_flatten_makes_the_form_part_of_the_page():
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


def xfa(pdf: pikepdf.Pdf, *, dynamic: bool) -> bytes:
    pdf.Root.AcroForm.XFA = Array([String("template"), pdf.make_stream(b"<template/>")])
    if dynamic:
        pdf.Root.NeedsRendering = True
        pdf.Root.AcroForm.Fields = Array([])
        pdf.pages[0].obj.Annots = Array([])
    return pdf_files.saved(pdf)


def test_xfa_goes_and_the_ordinary_fields_stay():
    with pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A")))) as pdf:
        prepared = prepare(xfa(pdf, dynamic=False), name="form")
    assert [notice.code for notice in prepared.report] == ["xfa_removed"]
    assert [found.name for found in prepared.fields] == ["A"]
    with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
        assert "/XFA" not in pdf.Root.AcroForm
        assert len(pdf.pages[0].obj.Annots) == 1


def test_a_dynamic_xfa_form_is_refused():
    with (
        pikepdf.open(io.BytesIO(pdf_files.with_form(field("Tx", "A")))) as pdf,
        pytest.raises(Refused, match="dynamic XFA form"),
    ):
        prepare(xfa(pdf, dynamic=True), name="form")
