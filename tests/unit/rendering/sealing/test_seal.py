"""The place for the signature, and the finished file in the eyes of poppler, qpdf and pyHanko."""

import hashlib
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, String
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import SigFieldSpec
from pyhanko.sign.signers import PdfSignatureMetadata, PdfSigner

from services.rendering.jobs.intake import preparing
from services.rendering.jobs.sealing import cms, reserving, signed_files
from services.rendering.jobs.sealing.certificates import KeyType
from services.rendering.jobs.sealing.verifying import verify
from services.rendering.protocol.messages import ValidationMaterial
from tests.support.files.pdf_files import add_page, document, encrypted, field, line, saved, signed, stranger, with_form
from tests.support.judges.documents.strict_reader import judged
from tests.support.rendering.sealing import assert_sealed, pdf_text, pdfsig
from tests.support.rendering.seals import NOW, finish, identity, sealed, text


def shared_annotations() -> bytes:
    """Two pages with the very same array of annotations."""
    pdf = pikepdf.new()
    shared = pdf.make_indirect(Array([Dictionary(Type=Name.Annot, Subtype=Name.Text, Rect=Array([0, 0, 9, 9]))]))
    for _ in range(2):
        add_page(pdf, line("shared")).obj.Annots = shared
    return saved(pdf)


def nonsense_where_arrays_belong() -> bytes:
    pdf = pikepdf.new()
    add_page(pdf, line("odd")).obj.Annots = Name.Nothing
    pdf.Root.AcroForm = Dictionary(Fields=String("none"), NeedAppearances=True, XFA=String("<xml/>"))
    pdf.Root.Extensions = Array([])
    return saved(pdf)


FILES = {
    "plain": document(line("plain")),
    "many pages": document(*(line(str(number)) for number in range(40))),
    "form": with_form(field("Tx", "name"), field("Sig", "Seal 1")),
    "shared annotations": shared_annotations(),
    "nonsense": nonsense_where_arrays_belong(),
    "object streams": saved(
        pikepdf.open(io.BytesIO(document(line("packed")))), object_stream_mode=pikepdf.ObjectStreamMode.generate
    ),
    "linearised": saved(pikepdf.open(io.BytesIO(document(line("web")))), linearize=True),
    "encrypted without password": encrypted(document(line("locked"))),
    "turned and cropped": document(line("turned"), rotate=90, crop=(50, 50, 300, 400), user_unit=2),
}


@pytest.mark.parametrize("kind", ["rsa-3072", "ec-p256"])
@pytest.mark.parametrize("name", FILES)
def test_a_sealed_file_is_valid_for_others(name: str, kind: KeyType, tmp_path: Path) -> None:
    assert_sealed(sealed(FILES[name], identity(kind)), tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_a_sealed_file_is_valid_for_pyhanko(name: str) -> None:
    verdict = verify.verify(sealed(FILES[name]), [identity().encoded[-1]], NOW)
    (signature,) = verdict.signatures
    assert (signature.indication, signature.level, signature.trust) == ("TOTAL-PASSED", "B-B", "trusted")
    assert signature.covers_whole_document


def test_pages_and_text_stay() -> None:
    with pikepdf.open(io.BytesIO(sealed(FILES["many pages"]))) as pdf:
        assert len(pdf.pages) == 40
        assert b"(39)" in pdf.pages[39].Contents.read_bytes()


def test_the_signature_covers_everything_but_itself() -> None:
    with pikepdf.open(io.BytesIO(FILES["plain"])) as pdf:
        reserved = reserving.reserve(pdf, text(), 3000)
    data = reserved.data
    assert data[reserved.start - 1 : reserved.start] == b"<"
    assert data[reserved.start : reserved.start + reserved.size] == b"0" * 6000
    assert data[reserved.start + reserved.size : reserved.start + reserved.size + 1] == b">"
    around = data[: reserved.start - 1] + data[reserved.start + reserved.size + 1 :]
    assert reserved.digest == hashlib.sha256(around).digest()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        (widget,) = pdf.Root.AcroForm.Fields
        assert [int(number) for number in widget.V.ByteRange] == [
            0,
            reserved.start - 1,
            reserved.start + reserved.size + 1,
            len(data) - reserved.start - reserved.size - 1,
        ]


def test_the_dictionary_says_what_pades_wants() -> None:
    when = datetime(2026, 11, 21, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    with pikepdf.open(io.BytesIO(sealed(FILES["plain"], when=when))) as pdf:
        (widget,) = pdf.Root.AcroForm.Fields
        signature = widget.V
        assert signature.SubFilter == "/ETSI.CAdES.detached"
        assert str(signature.M) == "D:20261121010405+00'00'"
        assert str(signature.Reason) == "Tested"
        assert "/Cert" not in signature
        assert pdf.Root.AcroForm.SigFlags == 3
        assert pdf.Root.Extensions.ESIC.BaseVersion == "/1.7"
        assert [annotation.objgen for annotation in pdf.pages[0].Annots] == [widget.objgen]


def test_a_taken_field_name_is_not_taken_twice() -> None:
    with pikepdf.open(io.BytesIO(sealed(FILES["form"]))) as pdf:
        names = [str(item.T) for item in pdf.Root.AcroForm.Fields]
    assert names == ["name", "Seal 1", "Seal 2"]


def test_only_the_first_page_gets_the_field() -> None:
    with pikepdf.open(io.BytesIO(sealed(FILES["shared annotations"]))) as pdf:
        assert [len(page.Annots) for page in pdf.pages] == [2, 1]


def test_viewers_are_not_asked_to_draw_fields_anew() -> None:
    with pikepdf.open(io.BytesIO(sealed(FILES["nonsense"]))) as pdf:
        assert set(pdf.Root.AcroForm.keys()) == {"/Fields", "/SigFlags"}


def test_a_file_full_of_placeholders_does_not_lead_astray(tmp_path: Path) -> None:
    """Zeros in angle brackets and byte ranges as text: the place is found by chance-made content."""
    bait = f"/ByteRange [ 0 1234567890 1234567890 1234567890 ] /Contents <{'0' * 6000}>"
    assert_sealed(sealed(document(line(bait), line("<" + "0" * 9000 + ">"))), tmp_path)


def test_a_changed_byte_breaks_the_seal(tmp_path: Path) -> None:
    data = bytearray(sealed(FILES["plain"]))
    data[data.index(b"stream\n") + 9] ^= 1
    assert "Signature is Valid" not in pdfsig(bytes(data), tmp_path)


def test_validation_material_goes_into_the_same_revision(tmp_path: Path) -> None:
    who = identity("rsa-3072")
    crl = who.revocation_list
    assert crl is not None
    material = ValidationMaterial(who.encoded, (), [crl])
    with pikepdf.open(io.BytesIO(FILES["plain"])) as pdf:
        data = finish(reserving.reserve(pdf, text(), who.signer.size, material), who)
    assert_sealed(data, tmp_path)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert [item.read_bytes() for item in pdf.Root.DSS.Certs] == who.encoded
        assert [item.read_bytes() for item in pdf.Root.DSS.CRLs] == [crl]
        assert "/OCSPs" not in pdf.Root.DSS


def test_room_is_kept_for_a_time_stamp() -> None:
    with pikepdf.open(io.BytesIO(FILES["plain"])) as pdf:
        reserved = reserving.reserve(pdf, text(), identity().signer.size + 5000)
    signed = identity().signer.sign(reserved.digest)
    padded = cms.insert(reserved.data, reserved.start, reserved.size, identity().signer.envelope(signed))
    assert verify.verify(padded, [identity().encoded[-1]], NOW).checksum_status == "valid"


def test_the_text_stays_readable(tmp_path: Path) -> None:
    assert "plain" in pdf_text(sealed(FILES["plain"]), tmp_path)


def test_dates_are_written_in_utc() -> None:
    assert reserving.pdf_date(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "D:20260102030405+00'00'"


# --- certification --------------------------------------------------------------------------------------------------------


def certified(data: bytes) -> bytes:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return finish(reserving.reserve(pdf, text(), identity().signer.size, certify=True))


def with_annotation(data: bytes) -> bytes:
    """A stamp, by somebody who has the file open."""
    writer = IncrementalPdfFileWriter(io.BytesIO(data))
    page, _ = writer.find_page_for_modification(0)
    stamp = {"/Type": "/Annot", "/Subtype": "/Stamp"}
    entries = {generic.pdf_name(key): generic.pdf_name(value) for key, value in stamp.items()}
    box = generic.ArrayObject(generic.NumberObject(number) for number in (10, 10, 90, 90))
    writer.register_annotation(
        page, writer.add_object(generic.DictionaryObject({**entries, generic.pdf_name("/Rect"): box}))
    )
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def with_visible_signature(data: bytes) -> bytes:
    spec, out = SigFieldSpec("Seen", on_page=0, box=(100, 100, 200, 150)), io.BytesIO()
    PdfSigner(PdfSignatureMetadata(field_name="Seen"), signer=stranger(), new_field_spec=spec).sign_pdf(
        IncrementalPdfFileWriter(io.BytesIO(data)), output=out
    )
    return out.getvalue()


def test_a_certified_file_is_valid_for_others(tmp_path: Path) -> None:
    data = certified(document(line("Agreement")))
    assert_sealed(data, tmp_path)
    (ours,) = judged(data)
    assert ours.permitted
    assert ours.whole_file
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert pdf.Root.Perms.DocMDP.objgen == pdf.Root.AcroForm.Fields[0].V.objgen
    assert verify.verify(data, [identity().encoded[-1]], NOW).signatures[0].indication == "TOTAL-PASSED"


def test_a_seal_certifies_only_where_that_is_asked_for() -> None:
    with pikepdf.open(io.BytesIO(sealed(document(line("Agreement"))))) as pdf:
        assert "/Perms" not in pdf.Root
        assert "/Reference" not in pdf.Root.AcroForm.Fields[0].V


@pytest.mark.parametrize(
    ("change", "permitted", "certified_permitted"),
    [(signed, True, True), (with_visible_signature, True, False), (with_annotation, False, False)],
    ids=["a signature that is not seen", "a signature that is seen", "a stamp"],
)
def test_what_may_follow_a_seal(
    change: Callable[[bytes], bytes], permitted: bool, certified_permitted: bool, tmp_path: Path
) -> None:
    """pdfsig looks at the signed bytes alone: for it each stays what it was."""
    page = document(line("Agreement"))
    for data, expected in ((sealed(page), permitted), (certified(page), certified_permitted)):
        changed = change(data)
        assert judged(changed)[0].permitted is expected
        said = verify.verify(changed, [identity().encoded[-1]], NOW).signatures[0]
        assert (said.indication, said.integrity) == ("TOTAL-PASSED" if expected else "TOTAL-FAILED", "valid")
        assert "Signature is Valid" in pdfsig(changed, tmp_path)


def test_a_certified_file_that_comes_back_can_be_sealed_again(tmp_path: Path) -> None:
    """Its pages stay as they are, as the certification wants it."""
    data = certified(document(line("Agreement")))
    prepared = preparing.prepare(data, name="agreement")
    assert prepared.pages[0].places == []
    again = finish(signed_files.reserve(data, [], text(), identity().signer.size))
    assert [one.permitted for one in judged(again)] == [True, True]
    assert pdfsig(again, tmp_path).count("Signature is Valid") == 2
