"""A document that came signed keeps its signatures: values and seal are one incremental update."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from contracts.rpc.rendering import FieldValue
from contracts.stored_documents import StoredDocument
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.intake import preparing
from services.rendering.jobs.pdf.geometry import visible_page
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import signed_files
from services.rendering.jobs.sealing.verifying import read_back, verify
from services.rendering.protocol.messages import ValidationMaterial
from tests.support.files.pdf_files import A4, LETTER, document, encrypted, field, line, saved, signed, with_form
from tests.support.judges.documents.pixels import darkest
from tests.support.judges.documents.strict_reader import judged
from tests.support.rendering import drawing
from tests.support.rendering.sealing import assert_clean, pdf_text, pdfsig
from tests.support.rendering.seals import NOW, finish, identity, text


def stored_for(data: bytes) -> StoredDocument:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return drawing.stored([(float(page.mediabox[2]), float(page.mediabox[3])) for page in pdf.pages])


def filled_and_sealed(data: bytes, *values: FieldValue) -> tuple[bytes, list[fill.Drawn]]:
    request = drawing.request(*values, documents=[stored_for(data)])
    files = {"a1": drawing.signature_png()}
    with pikepdf.open(io.BytesIO(data)) as pdf:
        overlays, drawn = fill.additions(pdf, request.documents[0], request, files)
    return finish(signed_files.reserve(data, overlays, text(), identity().signer.size)), drawn


VALUES = (
    drawing.field_value("text", "Zażółć 漢字", drawing.area(0.1, 0.2, 0.5, 0.04), name="City"),
    drawing.field_value("signature", "a1", drawing.area(0.1, 0.5, 0.3, 0.08), name="Signature"),
)


def test_their_signature_stays_valid_and_ours_covers_everything(tmp_path: Path) -> None:
    theirs = signed(document(line("Theirs"), media=LETTER))
    data, _ = filled_and_sealed(theirs, *VALUES)
    assert data.startswith(theirs)
    said = pdfsig(data, tmp_path)
    assert said.count("Signature Validation: Signature is Valid.") == 2, said
    assert said.count("- Total document signed") == 1
    assert said.count("- Not total document signed") == 1
    assert_clean(data, tmp_path)


def test_the_values_are_seen_printed_and_read_back(tmp_path: Path) -> None:
    data, drawn = filled_and_sealed(signed(document(line("Theirs"), media=LETTER)), *VALUES)
    assert "Zażółć 漢字" in pdf_text(data, tmp_path)
    picture = drawing.picture_of(data)
    signature_box = (61, 396, 245, 459)
    assert darkest(picture.crop(signature_box)) < 128
    names = [value.field for value in VALUES]
    assert read_back.check(data, drawn, names, pages=1, certificate=identity().encoded[0]) == "B-B"
    with pikepdf.open(io.BytesIO(data)) as pdf:
        look: Any
        (look,) = [one for one in pdf.pages[0].Annots if "/AP" in one]
        assert (look.Subtype, look.FT) == ("/Widget", "/Sig"), "no annotation of another kind is added"
        assert look.F & 4, "printed"
        assert look.F & 128, "locked"


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_turned_and_cropped_pages(rotate: int) -> None:
    page = document(line("Theirs"), media=A4, rotate=rotate, crop=(30, 40, 500, 700))
    with pikepdf.open(io.BytesIO(page)) as pdf:
        shown = visible_page(pdf.pages[0])
    request = drawing.request(VALUES[0], documents=[drawing.stored([(shown.width, shown.height)])])
    data = signed(page)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        overlays, drawn = fill.additions(pdf, request.documents[0], request, {})
    sealed = finish(signed_files.reserve(data, overlays, text(), identity().signer.size))
    read_back.check(sealed, drawn, [], pages=1, certificate=identity().encoded[0])
    upright = drawing.picture_of(sealed)
    left, top, right, bottom = (
        round(part * size) for part, size in zip((0.1, 0.2, 0.6, 0.24), (shown.width, shown.height) * 2, strict=True)
    )
    assert darkest(upright.crop((left, top, right, bottom))) < 128


def assert_permitted(data: bytes) -> None:
    """Strict readers hold everything that was added for what the earlier signatures allow."""
    said = judged(data)
    assert all(one.permitted for one in said), said
    assert said[-1].whole_file


def test_a_strict_reader_permits_what_is_added_on_each_page(tmp_path: Path) -> None:
    """The look of a signature has one place on one page: several fields show the same signature."""
    theirs = signed(document(*(line(f"Page {number}") for number in (1, 2, 3)), media=LETTER))
    first = drawing.field_value("initials", "a1", *(drawing.area(0.8, 0.9, 0.1, 0.05, page=n) for n in (1, 2, 3)))
    data, drawn = filled_and_sealed(theirs, first, *VALUES)
    assert_permitted(data)
    assert read_back.check(data, drawn, [], pages=3, certificate=identity().encoded[0]) == "B-B"
    for number in (1, 2, 3):
        assert darkest(drawing.picture_of(data, number).crop((489, 712, 551, 753))) < 128
    verdict = verify.verify(data, [identity().encoded[-1]], NOW)
    assert [(one.field, one.integrity, one.changed_after_signing) for one in verdict.signatures] == [
        ("Theirs", "valid", False),
        ("Seal 1", "valid", False),
    ]
    assert pdfsig(data, tmp_path).count("Signature is Valid") == 4


def test_initials_on_each_of_many_pages() -> None:
    """As many places as there are pages, and one signature."""
    pages = range(1, 106)
    theirs = signed(document(*(line(f"Page {number}") for number in pages), media=LETTER))
    initials = drawing.field_value("initials", "a1", *(drawing.area(0.8, 0.9, 0.1, 0.05, page=one) for one in pages))
    data, _ = filled_and_sealed(theirs, initials)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert len(pdf.Root.AcroForm.Fields) == 106
    verdict = verify.verify(data, [identity().encoded[-1]], NOW)
    assert verdict.checksum_status == "valid"
    assert [one.field for one in verdict.signatures] == ["Theirs", "Seal 1"]


def test_verify_finds_nothing_wrong_with_what_was_added() -> None:
    data, _ = filled_and_sealed(signed(document(line("Theirs"), media=LETTER)), *VALUES)
    elsewhere = verify.verify(data, [identity().encoded[-1]], NOW)
    assert elsewhere.checksum_status == "valid"
    theirs, ours = elsewhere.signatures
    assert (theirs.integrity, theirs.changed_after_signing, theirs.indication) == ("valid", False, "INDETERMINATE")
    assert (ours.indication, ours.covers_whole_document) == ("TOTAL-PASSED", True)


def test_links_are_not_added() -> None:
    """An annotation of its own would be a change that strict readers call broken."""
    value = drawing.field_value("payment", "10", drawing.area(0.1, 0.2, 0.5, 0.04))
    value.field.preferences = {"price": 10, "currency": "EUR", "payment_url": "https://pay.example.com/1"}
    data, _ = filled_and_sealed(signed(document(line("Theirs"), media=LETTER)), value)
    assert_permitted(data)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert {str(one.Subtype) for one in pdf.pages[0].Annots} == {"/Widget"}


def test_a_seal_alone_changes_nothing_for_the_others() -> None:
    data, _ = filled_and_sealed(signed(document(line("Theirs"))))
    verdict = verify.verify(data, [identity().encoded[-1]], NOW)
    assert verdict.checksum_status == "valid"
    assert [signature.changed_after_signing for signature in verdict.signatures] == [False, False]


FORM = {
    "Name": field("Tx", "Name", (100, 700, 300, 720)),
    "Agreed": field("Btn", "Agreed", (100, 650, 120, 670)),
    "Colour": field("Ch", "Colour", (100, 600, 300, 620), Ff=1 << 17),
    "Sign": field("Sig", "Sign", (100, 500, 300, 560)),
    "Countersign": field("Sig", "Countersign", (320, 500, 520, 560)),
}


def form() -> bytes:
    """A text, a box to tick with its two looks, a list of values with labels, two signatures."""
    with pikepdf.open(io.BytesIO(with_form(*(pikepdf.Dictionary(dict(one.items())) for one in FORM.values())))) as pdf:
        _, agreed, colour, *_ = pdf.Root.AcroForm.Fields
        states = {
            name: pdf.make_stream(b"", Type=Name.XObject, Subtype=Name.Form, BBox=[0, 0, 20, 20]) for name in "YO"
        }
        looks = pdf.make_indirect(pikepdf.Dictionary({"/Y": states["Y"], "/Off": states["O"]}))
        agreed.AP = pdf.make_indirect(pikepdf.Dictionary(N=looks))
        agreed.AS = Name.Off
        colour.Opt = pikepdf.Array([pikepdf.Array(["r", "Red"]), pikepdf.Array(["b", "Blue"])])
        return saved(pdf)


def values_of(prepared: preparing.Prepared, **values: object) -> list[FieldValue]:
    """Values for the fields that were found in the form."""
    fields = {one.name: one for one in prepared.fields}
    return [
        drawing.field_value(
            str(fields[name].type),
            value,
            *(area.model_copy(update={"attachment_uuid": drawing.DOCUMENT}) for area in fields[name].areas),
            name=name,
            options=fields[name].options,
        )
        for name, value in values.items()
    ]


@pytest.mark.parametrize("certified", [None, 2, 3])
def test_values_go_into_the_fields_that_the_first_signer_left(certified: int | None, tmp_path: Path) -> None:
    theirs = signed(form(), certified=certified)
    prepared = preparing.prepare(theirs, name="form")
    assert [one.code for one in prepared.report if "closed" in one.code or "form_only" in one.code] == (
        ["form_only"] if certified else []
    )
    assert (prepared.pages[0].places is not None) is bool(certified)
    values = values_of(prepared, Name="Zoë Łącka", Agreed=True, Colour="Blue", Sign="a1", Countersign="a1")
    data, drawn = filled_and_sealed(theirs, *values)
    assert_permitted(data)
    assert read_back.check(data, drawn, [], pages=1, certificate=identity().encoded[0]) == "B-B"
    with pikepdf.open(io.BytesIO(data)) as pdf:
        name, agreed, colour, sign, countersign, *rest = pdf.Root.AcroForm.Fields
        assert (str(name.V), str(agreed.V), str(agreed.AS), str(colour.V)) == ("Zoë Łącka", "/Y", "/Y", "b")
        assert sign.V.objgen == countersign.V.objgen == rest[-1].V.objgen
        assert [str(one["/T"]) for one in rest] == ["Theirs", "Seal 1"]
        assert list(map(float, rest[-1].Rect)) == [0, 0, 0, 0], "what the form has no place for is not shown"
    assert "Zoë Łącka" in pdf_text(data, tmp_path)
    upright = drawing.picture_of(data)
    for box in (
        (100, 72, 300, 92),
        (100, 122, 120, 142),
        (100, 172, 300, 192),
        (100, 232, 300, 292),
        (320, 232, 520, 292),
    ):
        assert darkest(upright.crop(box)) < 128, box
    said = pdfsig(data, tmp_path)
    assert "Invalid" not in said
    assert verify.verify(data, [identity().encoded[-1]], NOW).checksum_status == "valid"


@pytest.mark.parametrize("certified", [None, 2])
@pytest.mark.parametrize("revision", [3, 4, 6])
def test_an_encrypted_file_stays_encrypted_and_its_signature_valid(
    revision: int, certified: int | None, tmp_path: Path
) -> None:
    """RC4, AES-128 and AES-256 without a password to open it: what is added is encrypted alike."""
    theirs = signed(encrypted(form(), revision=revision), certified=certified)
    prepared = preparing.prepare(theirs, name="form")
    assert (prepared.signed, prepared.file) == (True, theirs)
    assert "encryption_kept" in {notice.code for notice in prepared.report}
    data, drawn = filled_and_sealed(theirs, *values_of(prepared, Name="Zoë Łącka", Agreed=True, Sign="a1"))
    assert_permitted(data)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert pdf.is_encrypted
        assert str(pdf.Root.AcroForm.Fields[0].V) == "Zoë Łącka"
    assert read_back.check(data, drawn, [], pages=1, certificate=identity().encoded[0]) == "B-B"
    assert verify.verify(data, [identity().encoded[-1]], NOW).checksum_status == "valid"
    assert pdfsig(data, tmp_path).count("Signature Validation: Signature is Valid.") == 3, (
        "theirs, and ours in two places"
    )
    assert_clean(data, tmp_path)
    assert "Zoë Łącka" in pdf_text(data, tmp_path)


@pytest.mark.parametrize("looks", ["none", "one"])
def test_a_box_to_tick_without_looks_of_its_own(looks: str) -> None:
    with pikepdf.open(io.BytesIO(with_form(pikepdf.Dictionary(dict(FORM["Agreed"].items()))))) as pdf:
        if looks == "one":
            pdf.Root.AcroForm.Fields[0].AP = pikepdf.Dictionary(
                N=pdf.make_stream(b"", Type=Name.XObject, Subtype=Name.Form, BBox=[0, 0, 20, 20])
            )
        theirs = signed(saved(pdf), certified=2)
    data, drawn = filled_and_sealed(theirs, *values_of(preparing.prepare(theirs, name="form"), Agreed=True))
    assert_permitted(data)
    read_back.check(data, drawn, [], pages=1, certificate=identity().encoded[0])
    with pikepdf.open(io.BytesIO(data)) as pdf:
        agreed = pdf.Root.AcroForm.Fields[0]
        assert (str(agreed.V), str(agreed.AS), set(agreed.AP.N.keys())) == ("/Yes", "/Yes", {"/Yes"})


@pytest.mark.parametrize("certified", [2, 3])
def test_a_file_that_leaves_no_fields_gets_a_signature_that_is_not_seen(certified: int) -> None:
    theirs = signed(document(line("{{Sign;type=signature}}"), media=LETTER), certified=certified)
    prepared = preparing.prepare(theirs, name="certified")
    assert prepared.pages[0].places == []
    (tag,) = prepared.fields
    assert (tag.name, tag.areas) == ("Sign", [])
    data, _ = filled_and_sealed(theirs)
    assert_permitted(data)
    assert drawing.picture_of(data).tobytes() == drawing.picture_of(theirs).tobytes()


def test_what_a_file_was_taken_in_for_by_an_earlier_version_can_still_be_sealed(tmp_path: Path) -> None:
    """Those allowed annotations, as the author did: nobody's agreement gets stuck."""
    theirs = signed(document(line("Certified"), media=LETTER), certified=3)
    data, _ = filled_and_sealed(theirs, *VALUES)
    assert pdfsig(data, tmp_path).count("Signature is Valid") == 2


def test_no_changes_at_all_is_refused_with_what_to_do() -> None:
    with pytest.raises(Refused, match=r"allows no changes at all, and a signature is one\. Ask for a version without"):
        preparing.prepare(signed(document(line("Certified")), certified=1), name="certified")


def test_fields_that_a_signature_locks_are_left_alone() -> None:
    theirs = signed(form(), locks="Include")  # The field "Other", which is not there.
    assert {one.name for one in preparing.prepare(theirs, name="form").fields} == set(FORM)
    locked = signed(form(), locks="Include", locked=("Name", "Sign"))
    prepared = preparing.prepare(locked, name="form")
    assert {one.name for one in prepared.fields} == {"Agreed", "Colour", "Countersign"}
    (closed,) = [one for one in prepared.report if one.code == "form_field_closed"]
    assert "“Name” and “Sign”" in closed.message
    over_it = values_of(preparing.prepare(form(), name="form"), Name="Above")  # Somebody may put a field there.
    data, _ = filled_and_sealed(locked, *values_of(prepared, Agreed=True, Countersign="a1"), *over_it)
    assert_permitted(data)


@pytest.mark.parametrize("places", [1, 2])
def test_fields_whose_places_are_objects_of_their_own_are_drawn_by_the_seal_or_not_at_all(places: int) -> None:
    """Readers that compare versions of a file do not follow them."""
    with pikepdf.open(io.BytesIO(with_form(field("Tx", "Name"), field("Tx", "Other", (100, 500, 300, 530))))) as pdf:
        first, second = pdf.Root.AcroForm.Fields
        parent = pdf.make_indirect(
            pikepdf.Dictionary(FT=Name.Tx, T=pikepdf.String("Name"), Kids=[first, second][:places])
        )
        if places == 1:
            del pdf.pages[0].Annots[1]
        for kid in (first, second):
            del kid["/T"], kid["/FT"]
            kid.Parent = parent
        pdf.Root.AcroForm.Fields = pikepdf.Array([parent])
        twice = saved(pdf)
    theirs = signed(twice)
    data, _ = filled_and_sealed(theirs, *values_of(preparing.prepare(theirs, name="form"), Name="Twice"))
    assert_permitted(data)
    prepared = preparing.prepare(signed(twice, certified=2), name="form")
    assert (prepared.fields, prepared.pages[0].places) == ([], [])
    assert "form_field_closed" in {one.code for one in prepared.report}


def test_nothing_is_written_into_a_form_of_which_adobe_shows_another_part() -> None:
    with pikepdf.open(io.BytesIO(form())) as pdf:
        pdf.Root.AcroForm.XFA = pdf.make_stream(b"<xdp:xdp xmlns:xdp='http://ns.adobe.com/xdp/'></xdp:xdp>")
        with_xfa = saved(pdf)
    theirs = signed(with_xfa)
    data, _ = filled_and_sealed(theirs, *values_of(preparing.prepare(theirs, name="form"), Name="Zoë"))
    assert_permitted(data)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert "/V" not in pdf.Root.AcroForm.Fields[0]
    assert preparing.prepare(signed(with_xfa, certified=2), name="form").pages[0].places == []


def test_a_form_stays_a_form(tmp_path: Path) -> None:
    theirs = signed(with_form(field("Tx", "name", V=pikepdf.String("kept"))))
    data, _ = filled_and_sealed(theirs, *VALUES)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert str(pdf.Root.AcroForm.Fields[0].V) == "kept"
    assert_clean(data, tmp_path)


def test_validation_material_goes_along() -> None:
    who = identity("rsa-3072")
    crl = who.revocation_list
    assert crl is not None
    material = ValidationMaterial(who.encoded, (), [crl])
    reserved = signed_files.reserve(signed(document(line("x"))), [], text(), who.signer.size, material)
    with pikepdf.open(io.BytesIO(finish(reserved, who))) as pdf:
        assert len(pdf.Root.DSS.Certs) == 2
        assert [item.read_bytes() for item in pdf.Root.DSS.CRLs] == [crl]


def _orphan(pdf: pikepdf.Pdf) -> Dictionary:
    """Material for a signature that is not in the file."""
    entry = Dictionary(Cert=Array([pdf.make_stream(identity().encoded[0])]), TU=pikepdf.String("D:20260101000000Z"))
    return Dictionary(Certs=entry.Cert, VRI=Dictionary({f"/{'AB' * 20}": entry}))


@pytest.mark.parametrize(
    ("store", "grows"),
    [
        (_orphan, True),
        (lambda _: Dictionary(), True),
        (lambda _: Dictionary(Certs=Array([1, 2])), False),
        (lambda _: Name.None_, False),
    ],
)
def test_validation_material_that_came_along_does_no_harm(
    store: Callable[[pikepdf.Pdf], pikepdf.Object], grows: bool, tmp_path: Path
) -> None:
    """Where it is none, the file was accepted all the same: it must not fail when everybody has signed."""
    who = identity("rsa-3072")
    assert who.revocation_list is not None
    with pikepdf.open(io.BytesIO(document(line("x")))) as pdf:
        pdf.Root.DSS = store(pdf)
        theirs = signed(saved(pdf))
    material = ValidationMaterial(who.encoded, (), [who.revocation_list])
    data = finish(signed_files.reserve(theirs, [], text(), who.signer.size, material), who)
    assert pdfsig(data, tmp_path).count("Signature Validation: Signature is Valid.") == 2
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert (isinstance(pdf.Root.DSS, Dictionary) and "/CRLs" in pdf.Root.DSS) is grows
    if grows:
        assert_permitted(data)


def test_garbage_is_refused_not_crashed_on() -> None:
    with pytest.raises(Refused, match="cannot be added to"):
        signed_files.reserve(b"%PDF-1.7\nnothing", [], text(), 3000)
