"""Several PDFs become one."""

import io
from pathlib import Path

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, String

from services.rendering.jobs.drawing import fill
from services.rendering.jobs.merging import merge
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import signed_files
from tests.support.files.pdf_files import LETTER, add_page, document, encrypted, field, line, saved, signed, with_form
from tests.support.judges.documents.pixels import darkest
from tests.support.rendering import drawing
from tests.support.rendering.sealing import assert_clean, pdf_text
from tests.support.rendering.seals import finish, identity, sealed, text


def merged(*files: bytes, title: str = "Both") -> tuple[bytes, list[str]]:
    pdf, warnings = merge.merge(files, title)
    return merge.save(pdf), warnings


def test_all_pages_in_order(tmp_path: Path) -> None:
    data, warnings = merged(
        document(line("one"), line("two")), document(line("three"), rotate=90), document(line("four"))
    )
    assert warnings == []
    assert pdf_text(data, tmp_path).split() == ["one", "two", "three", "four"]
    assert_clean(data, tmp_path)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert [int(page.obj.get("/Rotate", 0)) for page in pdf.pages] == [0, 0, 90, 0]
        assert str(pdf.docinfo["/Title"]) == "Both"


def test_one_file_is_enough() -> None:
    with pikepdf.open(io.BytesIO(merged(document(line("alone")))[0])) as pdf:
        assert len(pdf.pages) == 1


def test_the_same_file_twice(tmp_path: Path) -> None:
    form = with_form(field("Tx", "name", V=String("x")))
    data, _ = merged(form, form)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert len({str(item.T) for item in pdf.Root.AcroForm.Fields}) == 2
    assert_clean(data, tmp_path)


def test_what_our_seal_shows_on_a_signed_file_stays() -> None:
    """It is one signature, however many places it has."""
    theirs = signed(document(line("one"), line("two"), media=LETTER))
    areas = [drawing.area(0.1, 0.2, 0.5, 0.04, page=page) for page in (1, 2)]
    stored = drawing.stored([(612.0, 792.0)] * 2)
    request = drawing.request(drawing.field_value("text", "filled", *areas), documents=[stored])
    with pikepdf.open(io.BytesIO(theirs)) as pdf:
        overlays, _ = fill.additions(pdf, stored, request, {})
    data, warnings = merged(
        document(line("plain")), finish(signed_files.reserve(theirs, overlays, text(), identity().signer.size))
    )
    assert warnings == ["File 2: 2 signatures removed; a signature is only valid in its own file"]
    assert [darkest(drawing.picture_of(data, page).crop((61, 158, 367, 190))) < 128 for page in (2, 3)] == [True] * 2


@pytest.mark.parametrize("make", [sealed, signed])
def test_signatures_go_and_a_warning_says_so(make: object, tmp_path: Path) -> None:
    data, warnings = merged(document(line("plain")), make(document(line("signed"))))  # type: ignore[operator]
    assert warnings == ["File 2: 1 signature removed; a signature is only valid in its own file"]
    assert pdf_text(data, tmp_path).split() == ["plain", "signed"]
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert b"/ByteRange" not in data
        for page in pdf.pages:
            assert all(one.get("/FT") != "/Sig" for one in page.obj.get("/Annots", []))
        assert "/SigFlags" not in pdf.Root.get("/AcroForm", {})
    assert_clean(data, tmp_path)


def test_a_visible_signature_keeps_its_looks() -> None:
    pdf = pikepdf.new()
    page = add_page(pdf)
    looks = pdf.make_stream(b"0 0 100 50 re f", Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 100, 50]))
    widget = field("Sig", "Theirs", V=Dictionary(Type=Name.Sig, ByteRange=Array([0, 1, 2, 3]), Contents=String("x")))
    widget.Type, widget.Subtype, widget.AP = Name.Annot, Name.Widget, Dictionary(N=looks)
    widget = pdf.make_indirect(widget)
    page.obj.Annots = Array([widget])
    pdf.Root.AcroForm = Dictionary(Fields=Array([widget]), SigFlags=3)
    data, warnings = merged(saved(pdf))
    assert len(warnings) == 1
    with pikepdf.open(io.BytesIO(data)) as result:
        (stamp,) = result.pages[0].Annots
        assert stamp.Subtype == "/Stamp"
        assert stamp.AP.N.read_bytes() == b"0 0 100 50 re f"
        assert "/V" not in stamp


def test_form_fields_of_a_signed_file_stay() -> None:
    data, _ = merged(signed(with_form(field("Tx", "name", V=String("kept")))))
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert [str(item.V) for item in pdf.Root.AcroForm.Fields] == ["kept"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "File 2: malformed PDF."),
        (b"hello", "File 2: malformed PDF."),
        (encrypted(document(line("x")), user="sesame"), "File 2 is protected by a password."),
    ],
)
def test_which_file_is_wrong(bad: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        merge.merge([document(line("x")), bad], "x")


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MOST_PAGES", 3)
    with pytest.raises(Refused, match="more than 3 pages"):
        merge.merge([document(line("1"), line("2")), document(line("3"), line("4"))], "x")
    pdf = pikepdf.new()
    with pytest.raises(Refused, match=r"no pages|malformed"):  # as strict as qpdf was told to be in this process
        merge.merge([saved(pdf)], "x")
