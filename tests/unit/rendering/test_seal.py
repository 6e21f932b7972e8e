"""The place for the signature, and the finished file in the eyes of poppler, qpdf and pyHanko."""

import hashlib
import io
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, String

from services.rendering.jobs import cms, seal, verify
from tests.support.pdf_files import add_page, document, encrypted, field, line, saved, with_form
from tests.support.sealing import assert_sealed, pdf_text, pdfsig
from tests.support.seals import NOW, finish, identity, sealed, text


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
def test_a_sealed_file_is_valid_for_others(name: str, kind: str, tmp_path: Path) -> None:
    assert_sealed(sealed(FILES[name], identity(kind)), tmp_path)  # type: ignore[arg-type]


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
        reserved = seal.reserve(pdf, text(), 3000)
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
    material = seal.ValidationMaterial(who.encoded, (), [crl])
    with pikepdf.open(io.BytesIO(FILES["plain"])) as pdf:
        data = finish(seal.reserve(pdf, text(), who.signer.size, material), who)
    assert_sealed(data, tmp_path)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert [item.read_bytes() for item in pdf.Root.DSS.Certs] == who.encoded
        assert [item.read_bytes() for item in pdf.Root.DSS.CRLs] == [crl]
        assert "/OCSPs" not in pdf.Root.DSS


def test_room_is_kept_for_a_time_stamp() -> None:
    with pikepdf.open(io.BytesIO(FILES["plain"])) as pdf:
        reserved = seal.reserve(pdf, text(), identity().signer.size + 5000)
    signed = identity().signer.sign(reserved.digest)
    padded = cms.insert(reserved.data, reserved.start, reserved.size, identity().signer.envelope(signed))
    assert verify.verify(padded, [identity().encoded[-1]], NOW).checksum_status == "valid"


def test_the_text_stays_readable(tmp_path: Path) -> None:
    assert "plain" in pdf_text(sealed(FILES["plain"]), tmp_path)


def test_dates_are_written_in_utc() -> None:
    assert seal.pdf_date(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "D:20260102030405+00'00'"
