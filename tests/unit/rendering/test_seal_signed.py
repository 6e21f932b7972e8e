"""A document that came signed keeps its signatures: values and seal are one incremental update."""

import io
from pathlib import Path

import pikepdf
import pytest

from contracts.stored_documents import StoredDocument
from services.rendering.jobs import fill, read_back, seal, seal_signed, verify
from services.rendering.jobs.refused import Refused
from tests.support import drawing
from tests.support.pdf_files import A4, LETTER, document, field, line, signed, with_form
from tests.support.sealing import assert_clean, pdf_text, pdfsig
from tests.support.seals import NOW, finish, identity, text


def stored_for(data: bytes) -> StoredDocument:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return drawing.stored([(float(page.mediabox[2]), float(page.mediabox[3])) for page in pdf.pages])


def filled_and_sealed(data: bytes, *values: object) -> tuple[bytes, list[fill.Drawn]]:
    request = drawing.request(*values, documents=[stored_for(data)])  # type: ignore[arg-type]
    files = {"a1": drawing.signature_png()}
    with pikepdf.open(io.BytesIO(data)) as pdf:
        overlays = fill.overlay_pdf(pdf, request.documents[0], request, files)
        drawn = fill.drawn_values(pdf, request.documents[0], request, files)
    return finish(seal_signed.reserve(data, overlays, text(), identity().signer.size)), drawn


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
    assert picture.crop(signature_box).convert("L").getextrema()[0] < 128
    names = [value.field for value in VALUES]
    assert read_back.check(data, drawn, names, pages=1, certificate=identity().encoded[0]) == "B-B"
    with pikepdf.open(io.BytesIO(data)) as pdf:
        stamps = [one for one in pdf.pages[0].Annots if one.Subtype == "/Stamp"]
        assert len(stamps) == 1
        assert stamps[0].F & 4, "printed"
        assert stamps[0].F & 128, "locked"


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_turned_and_cropped_pages(rotate: int) -> None:
    page = document(line("Theirs"), media=A4, rotate=rotate, crop=(30, 40, 500, 700))
    with pikepdf.open(io.BytesIO(page)) as pdf:
        shown = fill.visible_page(pdf.pages[0])
    request = drawing.request(VALUES[0], documents=[drawing.stored([(shown.width, shown.height)])])
    data = signed(page)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        overlays = fill.overlay_pdf(pdf, request.documents[0], request, {})
        drawn = fill.drawn_values(pdf, request.documents[0], request, {})
    sealed = finish(seal_signed.reserve(data, overlays, text(), identity().signer.size))
    read_back.check(sealed, drawn, [], pages=1, certificate=identity().encoded[0])
    upright = drawing.picture_of(sealed)
    left, top, right, bottom = (
        round(part * size) for part, size in zip((0.1, 0.2, 0.6, 0.24), (shown.width, shown.height) * 2, strict=True)
    )
    assert upright.crop((left, top, right, bottom)).convert("L").getextrema()[0] < 128


def test_verify_tells_of_the_later_change_but_knows_its_own_work() -> None:
    data, _ = filled_and_sealed(signed(document(line("Theirs"), media=LETTER)), *VALUES)
    anchors = [identity().encoded[-1]]
    elsewhere = verify.verify(data, anchors, NOW)
    assert elsewhere.checksum_status == "invalid"
    theirs, ours = elsewhere.signatures
    assert (theirs.integrity, theirs.changed_after_signing, theirs.indication) == ("valid", True, "TOTAL-FAILED")
    assert (ours.indication, ours.covers_whole_document) == ("TOTAL-PASSED", True)
    here = verify.verify(data, anchors, NOW, sealed_here=True)
    assert here.checksum_status == "valid"
    assert here.signatures[0].changed_after_signing
    assert here.signatures[0].indication == "INDETERMINATE"


def test_a_seal_alone_changes_nothing_for_the_others() -> None:
    data, _ = filled_and_sealed(signed(document(line("Theirs"))))
    verdict = verify.verify(data, [identity().encoded[-1]], NOW)
    assert verdict.checksum_status == "valid"
    assert [signature.changed_after_signing for signature in verdict.signatures] == [False, False]


@pytest.mark.parametrize(("level", "why"), [(1, "forbids all changes"), (2, "nothing but its own form")])
def test_what_the_author_forbids_is_not_done(level: int, why: str) -> None:
    data = signed(document(line("Certified"), media=LETTER), certified=level)
    with pytest.raises(Refused, match=why):
        filled_and_sealed(data, *VALUES)


def test_an_author_may_allow_annotations(tmp_path: Path) -> None:
    data, _ = filled_and_sealed(signed(document(line("Certified"), media=LETTER), certified=3), *VALUES)
    assert pdfsig(data, tmp_path).count("Signature is Valid") == 2


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
    material = seal.ValidationMaterial(who.encoded, (), [crl])
    reserved = seal_signed.reserve(signed(document(line("x"))), {}, text(), who.signer.size, material)
    with pikepdf.open(io.BytesIO(finish(reserved, who))) as pdf:
        assert len(pdf.Root.DSS.Certs) == 2
        assert [item.read_bytes() for item in pdf.Root.DSS.CRLs] == [crl]


def test_garbage_is_refused_not_crashed_on() -> None:
    with pytest.raises(Refused, match="cannot be added to"):
        seal_signed.reserve(b"%PDF-1.7\nnothing", {}, text(), 3000)
