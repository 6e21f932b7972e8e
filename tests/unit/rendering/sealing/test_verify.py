"""Which signatures count: good ones, forged ones, tricks that readers disagree about. The files are made here, by class of
attack (EU DSS and Ruhr-Universität Bochum describe them: ISA, SWA, USF, shadow documents)."""

import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from asn1crypto import cms, tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from pikepdf import Array, Dictionary, Name, String
from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, NameObject, NumberObject
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.xref import XRefStream
from pyhanko.sign.signers import PdfSignatureMetadata, PdfSigner, SimpleSigner
from pyhanko.sign.signers.pdf_byterange import PdfSignedData
from pyhanko.sign.timestamps import TimeStamper
from pyhanko_certvalidator.registry import SimpleCertificateStore

from contracts.rpc.rendering import Verification, VerifiedSignature
from services.rendering.jobs.forms import signature_fields
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import certificates, reserving
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.jobs.sealing.verifying.verify import verify
from services.rendering.protocol.messages import ValidationMaterial
from tests.support.files.altered_files import SHADOWS, hole, padded, without_signature
from tests.support.files.pdf_files import (
    document,
    encrypted,
    field,
    line,
    saved,
    signed,
    stranger,
    unlisted_cross_references,
    with_form,
)
from tests.support.rendering.intake import take
from tests.support.rendering.sealing import pdfsig
from tests.support.rendering.seals import NOW, finish, identity, sealed, text
from tests.support.servers.providers.tsa import authority

GOOD = sealed(document(line("Agreed: 100 EUR")))
ANCHORS = [identity().encoded[-1]]


def look(data: bytes, anchors: list[bytes] | None = None, now: datetime = NOW, *, here: bool = False) -> Verification:
    return verify(data, ANCHORS if anchors is None else anchors, now, sealed_here=here)


def only(verdict: Verification) -> VerifiedSignature:
    (signature,) = verdict.signatures
    return signature


def said(signature: VerifiedSignature) -> str:
    return " ".join(note["content"] for note in signature.verification_result)


# --- good ones ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rsa-3072", "ec-p256"])
def test_our_own_seal(kind: certificates.KeyType) -> None:
    who = identity(kind)
    verdict = look(sealed(document(line("x")), who), [who.encoded[-1]])
    signature = only(verdict)
    assert verdict.checksum_status == "valid"
    assert not verdict.sealed_here
    assert (signature.indication, signature.sub_indication) == ("TOTAL-PASSED", None)
    assert (signature.integrity, signature.trust, signature.level) == ("valid", "trusted", "B-B")
    assert (signature.signature_type, signature.digest) == ("ETSI.CAdES.detached", "sha256")
    assert (signature.signer_name, signature.signing_reason, signature.field) == ("Test Seal", "Tested", "Seal 1")
    assert signature.signing_time == NOW
    assert signature.covers_whole_document
    assert not signature.changed_after_signing
    assert signature.certificate_valid_to == who.chain[0].not_valid_after_utc


def test_a_file_without_signatures() -> None:
    assert look(document(line("x"))) == Verification(checksum_status="unsigned")


def test_who_is_not_known_here_is_not_trusted_but_intact() -> None:
    verdict = look(GOOD, [])
    signature = only(verdict)
    assert verdict.checksum_status == "valid"
    assert (signature.integrity, signature.trust) == ("valid", "untrusted")
    assert (signature.indication, signature.sub_indication) == ("INDETERMINATE", "NO_CERTIFICATE_CHAIN_FOUND")


def test_a_self_signed_certificate_that_nobody_knows_has_no_chain() -> None:
    signature = only(look(signed(document(line("x")))))
    assert (signature.indication, signature.sub_indication) == ("INDETERMINATE", "NO_CERTIFICATE_CHAIN_FOUND")
    assert "does not lead to a root that is known here" in said(signature)


def test_a_cross_reference_stream_that_does_not_list_itself_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """qpdf warns of it and reads it as all others do; a third of the signed files of a public corpus are so."""
    write = XRefStream.write_to_stream

    def write_others(self: XRefStream, *given: Any, **more: Any) -> None:
        del self.position_dict[max(self.position_dict, key=lambda key: key[1])]
        write(self, *given, **more)

    monkeypatch.setattr(XRefStream, "write_to_stream", write_others)
    data = signed(unlisted_cross_references(line("x")))
    monkeypatch.undo()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert any("xref stream itself is missing" in str(warning) for warning in pdf.get_warnings())
    assert look(data).checksum_status == "valid"
    assert "Signature is Valid" in pdfsig(data, tmp_path)
    prepared = take(data)
    assert (prepared.signed, prepared.file) == (True, data)
    assert look(data + b"1 0 obj null endobj").checksum_status == "invalid"


@pytest.mark.parametrize("revision", [3, 4, 6])
@pytest.mark.parametrize("typed", [True, False])
def test_an_encrypted_file_that_is_signed(revision: int, typed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in /Contents is not encrypted, also where the signature has no /Type, which it need not have."""
    if not typed:
        plain = PdfSignedData.__init__

        def without_type(self: PdfSignedData, *given: Any, **more: Any) -> None:
            plain(self, *given, **more)
            del self["/Type"]

        monkeypatch.setattr(PdfSignedData, "__init__", without_type)
    writer, out = IncrementalPdfFileWriter(io.BytesIO(encrypted(document(line("x")), revision=revision))), io.BytesIO()
    writer.encrypt(b"")
    PdfSigner(PdfSignatureMetadata("Theirs", md_algorithm="sha256"), signer=stranger()).sign_pdf(writer, output=out)
    data = out.getvalue()
    assert look(data).checksum_status == "valid"
    [entry], problem = signature_fields.read(data)
    assert problem is None
    assert cms.ContentInfo.load(entry.contents)["content_type"].native == "signed_data"


def test_a_time_stamp_without_the_certificate_of_its_authority_spoils_nothing(tmp_path: Path) -> None:
    class Bare(TimeStamper):  # type: ignore[misc]  # pyHanko's types are not read
        """An authority that was not asked for its certificate (RFC 3161, ``certReq``)."""

        async def async_request_tsa_response(self, req: tsp.TimeStampReq) -> tsp.TimeStampResp:
            answer = tsp.TimeStampResp.load(tsa.stamp(req.dump()))
            message = answer["time_stamp_token"]["content"].copy()
            del message["certificates"]
            token = cms.ContentInfo({"content_type": "signed_data", "content": message})
            return tsp.TimeStampResp({"status": answer["status"], "time_stamp_token": token})

    writer, out = IncrementalPdfFileWriter(io.BytesIO(document(line("x")))), io.BytesIO()
    with authority() as tsa:
        PdfSigner(
            PdfSignatureMetadata("Theirs", md_algorithm="sha256"), signer=stranger(), timestamper=Bare()
        ).sign_pdf(writer, output=out)
    data = out.getvalue()
    verdict = look(data)
    assert (verdict.checksum_status, only(verdict).timestamp) == ("valid", None)
    assert "proves no time" in said(only(verdict))
    assert "Signature is Valid" in pdfsig(data, tmp_path)
    assert look(data.replace(b"/F1", b"/F2")).checksum_status == "invalid"


def test_a_later_signature_does_not_break_an_earlier_one() -> None:
    verdict = look(signed(GOOD))
    assert verdict.checksum_status == "valid"
    ours, theirs = verdict.signatures
    assert (ours.field, ours.covers_whole_document, ours.changed_after_signing) == ("Seal 1", False, False)
    assert (theirs.field, theirs.covers_whole_document) == ("Theirs", True)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r\n\r\n  "])
def test_a_little_white_space_at_the_end_does_no_harm(end: bytes) -> None:
    data = GOOD.rstrip() + end
    assert len(data) != len(GOOD) or data == GOOD
    found = signature_fields.structure_problem(data, [])
    assert found is None


# --- certificates -----------------------------------------------------------------------------------------------------------


def expired_identity() -> SealIdentity:
    return identity("ec-p256", NOW - timedelta(days=31 * 365.25))


@pytest.mark.parametrize("anchor", ["root", "leaf", "none"])
def test_an_expired_certificate_is_reported_apart(anchor: str) -> None:
    """Neither ``invalid`` integrity nor plain trust; also when the signer's own certificate is the trusted one, where
    pyHanko does not look at its dates."""
    who = expired_identity()
    anchors = {"root": [who.encoded[-1]], "leaf": [who.encoded[0]], "none": []}[anchor]
    verdict = look(sealed(document(line("old")), who), anchors)
    signature = only(verdict)
    assert verdict.checksum_status == "valid"
    assert (signature.integrity, signature.trust, signature.indication) == ("valid", "expired", "INDETERMINATE")
    if anchor != "none":
        assert signature.sub_indication == "OUT_OF_BOUNDS_NO_POE"
    assert "expired on" in said(signature)


def test_a_certificate_from_the_future() -> None:
    who = identity("ec-p256", NOW + timedelta(days=900))
    signature = only(look(sealed(document(line("x")), who), [who.encoded[0]]))
    assert signature.trust == "untrusted"
    assert signature.indication == "INDETERMINATE"
    assert "not valid before" in said(signature)


def test_a_revoked_certificate() -> None:
    """The list is in the file, signed by the root."""
    root_key, who = certificates.issue(certificates.Names("Test Seal", "Test"), "ec-p256", NOW)
    revoked = x509.RevokedCertificateBuilder().serial_number(who.chain[0].serial_number)
    entry = revoked.revocation_date(NOW - timedelta(minutes=30)).build()
    builder = x509.CertificateRevocationListBuilder().issuer_name(who.chain[-1].subject)
    builder = builder.last_update(NOW - timedelta(minutes=10)).next_update(NOW + timedelta(days=1))
    crl = builder.add_revoked_certificate(entry).sign(root_key, hashes.SHA256())
    material = ValidationMaterial(who.encoded, (), [crl.public_bytes(serialization.Encoding.DER)])
    with pikepdf.open(io.BytesIO(document(line("x")))) as pdf:
        data = finish(reserving.reserve(pdf, text(), who.signer.size, material), who)
    signature = only(look(data, [who.encoded[-1]]))
    assert (signature.trust, signature.indication) == ("revoked", "INDETERMINATE")
    assert signature.sub_indication == "REVOKED_NO_POE"
    assert "revoked" in said(signature)


def test_sha1_is_flagged_as_weak() -> None:
    who = identity("rsa-3072")
    signer = SimpleSigner(
        signing_cert=asn1_x509.Certificate.load(who.encoded[0]),
        signing_key=_pyhanko_key(who),
        cert_registry=SimpleCertificateStore(),
    )
    writer, out = IncrementalPdfFileWriter(io.BytesIO(document(line("weak")))), io.BytesIO()
    metadata = PdfSignatureMetadata(field_name="Weak", md_algorithm="sha1")
    PdfSigner(metadata, signer=signer).sign_pdf(writer, output=out)
    signature = only(look(out.getvalue(), [who.encoded[-1]]))
    assert signature.integrity == "valid"
    assert (signature.digest, signature.trust, signature.indication) == ("sha1", "untrusted", "INDETERMINATE")
    assert str(signature.sub_indication).startswith("CRYPTO_CONSTRAINTS_FAILURE")
    assert "SHA1" in said(signature)


def _pyhanko_key(who: SealIdentity) -> object:
    from asn1crypto.keys import PrivateKeyInfo

    return PrivateKeyInfo.load(
        who.key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


# --- tampered ---------------------------------------------------------------------------------------------------------------


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def with_other_digit(data: bytes, at: int) -> bytes:
    return data[:at] + (b"1" if data[at : at + 1] != b"1" else b"2") + data[at + 1 :]


def incremental(data: bytes, content: bytes) -> bytes:
    """The page shows something else, by a well-formed update behind the signature."""
    writer = IncrementalPdfFileWriter(io.BytesIO(data))
    page = writer.root["/Pages"]["/Kids"][0]
    stream = page.raw_get("/Contents").get_object()
    stream.strip_filters()
    stream._data = content
    stream._encoded_data = None
    writer.update_container(stream)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def bare_tail(data: bytes) -> bytes:
    """Incremental saving attack: objects and a cross-reference table, but no ``%%EOF`` of their own."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        page, catalog = pdf.pages[0].objgen[0], pdf.Root.objgen[0]
        pages, size = pdf.Root.Pages.objgen[0], len(pdf.objects) + 1
    body = b"BT /F1 12 Tf 72 700 Td (Agreed: 9 EUR) Tj ET"
    objects: dict[Any, bytes] = {
        size: b"<< /Length %d >>\nstream\n%s\nendstream" % (len(body), body),
        page: b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R >>" % (pages, size),
        catalog: b"<< /Type /Catalog /Pages %d 0 R >>" % pages,
    }
    out, offsets = bytearray(data), dict[Any, int]()
    for number, content in objects.items():
        offsets[number] = len(out)
        out += b"\n%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n"
    for number in sorted(offsets):
        out += b"%d 1\n%010d 00000 n \n" % (number, offsets[number] + 1)
    previous = int(data[data.rindex(b"startxref") :].split()[1])
    out += b"trailer\n<< /Size %d /Root %d 0 R /Prev %d >>\nstartxref\n%d\n" % (size + 1, catalog, previous, start)
    return bytes(out)


def contents_replaced(data: bytes, by: bytes) -> bytes:
    start, end = hole(data)
    return data[:start] + by * ((end - start) // len(by)) + data[end:]


def byte_range_replaced(data: bytes, by: bytes) -> bytes:
    found = re.search(rb"/ByteRange (\[[^\]]*\] *)", data)
    assert found
    return data[: found.start(1)] + by.ljust(len(found[1])) + data[found.end(1) :]


START, END = hole(GOOD)
TAMPERED = {
    "a byte of the page": flipped(GOOD, GOOD.index(b"stream\n") + 10),
    "a byte of the signature": with_other_digit(GOOD, len(GOOD[START:END].rstrip(b"0")) + START - 20),
    "the time": GOOD.replace(b"(D:2", b"(D:1", 1),
    "garbage behind the end": GOOD + b"\nGARBAGE " * 20,
    "white space without end": GOOD + b" " * 20_000,
    "a lonely object behind the end": GOOD + b"\n99 0 obj\n<<>>\nendobj\n",
    "incremental saving without an end": bare_tail(GOOD),
    "cut off at the end": GOOD[:-60],
    "cut off at the signature": GOOD[: END + 40],
    "byte range empty": byte_range_replaced(GOOD, b"[]"),
    "byte range null": byte_range_replaced(GOOD, b"null"),
    "byte range negative": byte_range_replaced(GOOD, b"[0 -1 -1 -1]"),
    "byte range with one part": byte_range_replaced(GOOD, b"[0 %d]" % START),
    "byte range short": byte_range_replaced(GOOD, b"[0 10 20 10]"),
    "byte range beyond the file": byte_range_replaced(GOOD, b"[0 %d %d 99999999]" % (START - 1, END + 1)),
    "gap larger than the signature": byte_range_replaced(
        GOOD, b"[0 %d %d %d]" % (START - 1, END + 60, len(GOOD) - END - 60)
    ),
    "contents all zeros": contents_replaced(GOOD, b"00"),
    "contents of another kind": contents_replaced(GOOD, b"3000"),
}


UPDATED = {name: change(GOOD) for name, change in SHADOWS.items()}
UPDATED["a page exchanged by an update"] = incremental(GOOD, b"BT /F1 12 Tf 72 700 Td (Agreed: 9 EUR) Tj ET")
"""Well-formed changes behind the signature. Whether they are ours is decided by the file's own hash (``sealed_here``)."""


@pytest.mark.parametrize("name", UPDATED)
def test_a_later_change_of_what_is_seen_is_told(name: str, tmp_path: Path) -> None:
    """The signed bytes are what they were, as pdfsig says."""
    verdict = look(UPDATED[name])
    assert verdict.checksum_status == "invalid"
    signature = verdict.signatures[0]
    assert (signature.integrity, signature.changed_after_signing) == ("valid", True)
    assert (signature.indication, signature.sub_indication) == ("TOTAL-FAILED", "FORMAT_FAILURE")
    assert not signature.covers_whole_document
    other = pdfsig(UPDATED[name], tmp_path)
    assert "Signature is Valid" in other
    assert "- Total document signed" not in other


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_tampered_with_is_never_valid(name: str) -> None:
    verdict = look(TAMPERED[name])
    assert verdict.checksum_status == "invalid"
    signature = only(verdict)
    assert signature.indication != "TOTAL-PASSED"
    assert any(note["type"] == "error" for note in signature.verification_result)


@pytest.mark.parametrize("name", TAMPERED)
def test_that_a_like_file_was_sealed_here_helps_no_forger(name: str) -> None:
    """``sealed_here`` only excuses additions that we made; integrity stays what it is."""
    assert look(TAMPERED[name], here=True).checksum_status == "invalid"


WHOLE = {
    "our seal": GOOD,
    "a signature behind it": signed(GOOD),
    "somebody else's": signed(document(line("x"))),
    "certified": signed(document(line("x")), certified=2),
    "a form": signed(with_form(field("Tx", "Name")), certified=3),
    "cross-references that do not list themselves": signed(unlisted_cross_references(line("x"))),
}


@pytest.mark.parametrize("name", [*WHOLE, *TAMPERED, *UPDATED])
def test_pdfsig_comes_to_the_same_verdict(name: str, tmp_path: Path) -> None:
    """A file is valid here when each signature is for pdfsig, and the last one covers the whole file."""
    data = {**WHOLE, **TAMPERED, **UPDATED}[name]
    words = re.findall(r"Signature Validation: (.*)|- (Total|Not total) document signed", pdfsig(data, tmp_path))
    verdicts, cover = [verdict for verdict, _ in words if verdict], [part for _, part in words if part]
    whole = set(verdicts) == {"Signature is Valid."} and cover[-1:] == ["Total"]
    assert (look(data).checksum_status == "valid") is whole is (name in WHOLE)


@pytest.mark.parametrize("name", ["empty", "null", "negative", "beyond the file"])
def test_a_byte_range_that_is_none_is_a_fault_of_the_format(name: str) -> None:
    signature = only(look(TAMPERED[f"byte range {name}"]))
    assert (signature.indication, signature.sub_indication) == ("TOTAL-FAILED", "FORMAT_FAILURE")


def test_contents_that_are_no_signature_are_a_fault_of_the_format() -> None:
    """Whatever broke them, no signing certificate is to be looked for."""
    start, end = hole(GOOD)
    data = GOOD[:start] + b"ff" + GOOD[start + 2 : end] + GOOD[end:]
    signature = only(look(data))
    assert (signature.indication, signature.sub_indication) == ("TOTAL-FAILED", "FORMAT_FAILURE")


def test_words_for_what_happened() -> None:
    words = {name: only(look(TAMPERED[name])) for name in ("a byte of the page", "garbage behind the end")}
    page, garbage = words.values()
    assert (page.indication, page.sub_indication, page.integrity) == ("TOTAL-FAILED", "HASH_FAILURE", "invalid")
    assert (garbage.indication, garbage.sub_indication) == ("TOTAL-FAILED", "FORMAT_FAILURE")
    assert "content after the end" in said(garbage)
    changed = only(look(UPDATED["a page exchanged by an update"]))
    assert (changed.integrity, changed.changed_after_signing) == ("valid", True)
    assert (changed.indication, changed.sub_indication) == ("TOTAL-FAILED", "FORMAT_FAILURE")
    assert "changed after this signature" in said(changed)


def test_the_forged_tail_shows_something_else_to_other_readers() -> None:
    """Otherwise the test above would be about nothing."""
    with pikepdf.open(io.BytesIO(TAMPERED["incremental saving without an end"])) as pdf:
        assert b"9 EUR" in pdf.pages[0].Contents.read_bytes()
        assert "/AcroForm" not in pdf.Root


def test_a_bad_signature_does_not_hide_a_good_one() -> None:
    data = signed(GOOD)
    verdict = look(with_other_digit(data, len(GOOD[START:END].rstrip(b"0")) + START - 20))
    assert verdict.checksum_status == "invalid"
    assert {signature.field for signature in verdict.signatures} == {"Seal 1", "Theirs"}
    theirs = next(signature for signature in verdict.signatures if signature.field == "Theirs")
    assert theirs.signer_name == "Somebody Else"


def test_kinds_that_nobody_checks_any_more_are_listed() -> None:
    old = GOOD.replace(b"/ETSI.CAdES.detached", b"/adbe.x509.rsa_sha1\n")
    signature = only(look(old))
    assert look(old).checksum_status == "unknown"
    assert (signature.signature_type, signature.integrity) == ("adbe.x509.rsa_sha1", "unknown")
    assert (signature.indication, signature.sub_indication) == ("INDETERMINATE", "GENERIC")
    assert "cannot be checked" in said(signature)


def test_two_fields_of_one_name() -> None:
    """The second one is not what the first one's check was about."""
    with pikepdf.open(io.BytesIO(GOOD)) as pdf:
        other = Dictionary(FT=Name.Sig, T=String("Seal 1"), V=Dictionary(SubFilter=Name("/ETSI.CAdES.detached")))
        pdf.Root.AcroForm.Fields.append(pdf.make_indirect(other))
        verdict = look(saved(pdf))
    assert verdict.checksum_status == "invalid"
    assert len(verdict.signatures) == 2


def test_fields_that_contain_themselves() -> None:
    pdf = pikepdf.new()
    pdf.add_blank_page()
    ring = pdf.make_indirect(Dictionary(T=String("ring")))
    ring.Kids = Array([ring])
    pdf.Root.AcroForm = Dictionary(Fields=Array([ring]))
    assert look(saved(pdf)).checksum_status == "unsigned"


# --- what is put behind the signature, in the place that is kept for it -----------------------------------------------------


@pytest.mark.parametrize("at", [0, 10, -2])
def test_junk_in_the_padding_is_a_change(at: int, tmp_path: Path) -> None:
    """No signature covers it, and each that is there still holds: poppler, too, sees that not all of the file is signed."""
    data = padded(GOOD, at, b"4a")
    assert "Total document signed" in pdfsig(GOOD, tmp_path)
    said_by_poppler = pdfsig(data, tmp_path)
    assert "Signature is Valid" in said_by_poppler
    verdict = look(data)
    signature = only(verdict)
    assert verdict.checksum_status == "invalid"
    assert (signature.indication, signature.sub_indication) == ("TOTAL-FAILED", "FORMAT_FAILURE")
    assert (signature.integrity, signature.covers_whole_document, signature.changed_after_signing) == (
        "valid",
        False,
        True,
    )
    assert "holds more than the signature" in said(signature)


def test_junk_in_the_padding_of_an_earlier_signature() -> None:
    """The later one covers it and holds, so it was there when that was made; the earlier one's signer never saw it."""
    verdict = look(signed(padded(GOOD, -20, b"4a4a")))
    ours, theirs = verdict.signatures
    assert verdict.checksum_status == "invalid"
    assert (ours.indication, ours.changed_after_signing) == ("TOTAL-FAILED", True)
    assert (theirs.integrity, theirs.covers_whole_document, theirs.changed_after_signing) == ("valid", True, False)


def test_a_signature_whose_length_is_not_written_down(tmp_path: Path) -> None:
    """BER of indefinite length, as streaming tools write it: two end marks of zeros, then zeros of padding."""
    start, end = hole(GOOD)
    der = cms.ContentInfo.load(bytes.fromhex(GOOD[start:end].decode()))
    ber = b"\x30\x80" + der["content_type"].dump() + b"\xa0\x80" + der["content"].untag().dump() + bytes(4)
    data = GOOD[:start] + ber.hex().encode().ljust(end - start, b"0") + GOOD[end:]
    assert data != GOOD
    assert "Signature is Valid" in pdfsig(data, tmp_path)
    assert look(data).checksum_status == "valid"
    assert look(padded(data, 0, b"01")).checksum_status == "invalid"


# --- signatures that an update dropped --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["form", "field", "value"])
def test_a_removed_signature_is_told(how: str, tmp_path: Path) -> None:
    """Readers that look at the form only see a file that nobody has signed; poppler finds some by their place on the page."""
    data = without_signature(GOOD, how)
    assert data.startswith(GOOD)
    assert "- Total document signed" not in pdfsig(data, tmp_path)
    assert signature_fields.read(data) == ([], None)
    verdict = look(data)
    signature = only(verdict)
    assert verdict.checksum_status == "invalid"
    assert (signature.field, signature.signer_name, signature.signing_time) == ("Seal 1", "Test Seal", NOW)
    assert (signature.indication, signature.sub_indication) == ("TOTAL-FAILED", "FORMAT_FAILURE")
    assert (signature.integrity, signature.covers_whole_document, signature.changed_after_signing) == (
        "valid",
        False,
        True,
    )
    assert "was removed from the document" in said(signature)


@pytest.mark.parametrize("how", ["field", "value"])
def test_a_later_signature_hides_no_removal(how: str) -> None:
    verdict = look(signed(without_signature(GOOD, how)))
    assert verdict.checksum_status == "invalid"
    ours, theirs = verdict.signatures
    assert (ours.field, ours.changed_after_signing) == ("Seal 1", True)
    assert "was removed from the document" in said(ours)
    assert (theirs.field, theirs.integrity, theirs.changed_after_signing) == ("Theirs", "valid", False)


def test_one_of_two_signatures_is_removed() -> None:
    verdict = look(without_signature(signed(GOOD), "value"))
    assert verdict.checksum_status == "invalid"
    assert {one.field for one in verdict.signatures} == {"Seal 1", "Theirs"}
    assert all(one.changed_after_signing for one in verdict.signatures)


def test_two_removed_signatures_are_told_once_each() -> None:
    verdict = look(without_signature(signed(GOOD), "form"))
    assert [one.field for one in verdict.signatures] == ["Seal 1", "Theirs"]
    assert all("was removed from the document" in said(one) for one in verdict.signatures)


def test_a_signature_that_is_there_is_not_called_removed() -> None:
    """Somebody writes other numbers that end where it ends."""
    writer, out = IncrementalPdfFileWriter(io.BytesIO(GOOD)), io.BytesIO()
    writer.set_info(DictionaryObject({NameObject("/ByteRange"): ArrayObject(map(NumberObject, (0, 0, 0, len(GOOD))))}))
    writer.write(out)
    assert re.search(rb"/ByteRange\s*\[\s*0 0 0 %d\s*\]" % len(GOOD), out.getvalue())
    assert "removed" not in said(only(look(out.getvalue())))


@pytest.mark.parametrize(
    "data",
    [
        document(b"BT (/ByteRange [0 9 18 40]) Tj ET % %%EOF"),
        document(b"/ByteRange [0 1 2 99999999]"),
        document(b"/ByteRange [0 1 2 3] " * 2000),
    ],
)
def test_what_only_looks_like_a_signature(data: bytes) -> None:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        plain = saved(pdf, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.generalized)
    assert b"/ByteRange" in plain
    assert look(plain) == Verification(checksum_status="unsigned")


def test_an_attached_signed_file_is_no_earlier_version() -> None:
    with pikepdf.open(io.BytesIO(document(line("Annex attached")))) as pdf:
        pdf.attachments["annex.pdf"] = pikepdf.AttachedFileSpec(  # type: ignore[call-arg]  # its stub has the other names without their defaults
            pdf, GOOD, filename="annex.pdf"
        )
        data = saved(pdf, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.generalized)
    assert GOOD in data
    assert look(data) == Verification(checksum_status="unsigned")


# --- what we cannot check ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyError("/Size"), MemoryError(), RecursionError("too deep"), NotImplementedError()])
@pytest.mark.parametrize("place", ["async_validate_pdf_signature", "rely", "level", "PdfFileReader"])
def test_an_error_of_ours_says_nothing_about_the_signature(
    place: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    genuine = only(look(GOOD))
    monkeypatch.setattr(f"services.rendering.jobs.sealing.verifying.verify.{place}", fails)
    verdict = look(GOOD)
    signature = only(verdict)
    assert verdict.checksum_status == "unknown"
    assert (signature.field, signature.integrity) == ("Seal 1", "unknown")
    assert (signature.indication, signature.sub_indication) == ("INDETERMINATE", "GENERIC")
    assert "could not be checked" in said(signature)
    assert "malformed" not in said(signature)
    assert genuine.certificate_sha256 is not None
    assert signature.certificate_sha256 == genuine.certificate_sha256, "whose it seems to be is told all the same"


def test_an_error_of_ours_hides_no_forgery(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is seen without the part that failed still counts."""

    def fails(*_: object) -> None:
        raise KeyError("/Size")

    monkeypatch.setattr("services.rendering.jobs.sealing.verifying.verify.rely", fails)
    for name in ("garbage behind the end", "byte range null", "contents all zeros"):
        assert look(TAMPERED[name]).checksum_status == "invalid", name


def test_a_signature_without_the_certificate_of_its_signer() -> None:
    start, end = hole(GOOD)
    message = cms.ContentInfo.load(bytes.fromhex(GOOD[start:end].decode()))
    message["content"]["certificates"] = []
    data = GOOD[:start] + message.dump(force=True).hex().encode().ljust(end - start, b"0") + GOOD[end:]
    verdict = look(data)
    assert (verdict.checksum_status, only(verdict).integrity) == ("invalid", "invalid")
    assert "the certificate of its signer is not in it" in said(only(verdict))


@pytest.mark.parametrize("revision", [3, 4, 6])
def test_an_encrypted_file_that_opens_without_a_password(revision: int, tmp_path: Path) -> None:
    writer, out = IncrementalPdfFileWriter(io.BytesIO(encrypted(document(line("x")), revision=revision))), io.BytesIO()
    writer.encrypt(b"")
    metadata = PdfSignatureMetadata(field_name="Theirs", md_algorithm="sha256")
    PdfSigner(metadata, signer=stranger()).sign_pdf(writer, output=out)
    assert "Signature is Valid" in pdfsig(out.getvalue(), tmp_path)
    verdict = look(out.getvalue())
    assert (verdict.checksum_status, only(verdict).covers_whole_document) == ("valid", True)


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7\n", b"<html></html>", GOOD[200:900]])
def test_what_is_no_pdf(data: bytes) -> None:
    with pytest.raises(Refused, match="Malformed PDF"):
        look(data)


def test_a_password() -> None:
    with pytest.raises(Refused, match="protected by a password"):
        look(encrypted(document(line("x")), user="open sesame"))


@pytest.mark.parametrize(
    ("text_", "expected"),
    [
        ("D:20261121030405Z", datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)),
        ("D:20261121030405+02'00'", datetime(2026, 11, 21, 1, 4, 5, tzinfo=UTC)),
        ("D:20261121030405-05'30", datetime(2026, 11, 21, 8, 34, 5, tzinfo=UTC)),
        ("20261121", datetime(2026, 11, 21, tzinfo=UTC)),
        ("D:20261399", None),
        ("D:00000000000000Z", None),
        ("yesterday", None),
        ("", None),
        ("D:99991231235959-99'99'", None),
    ],
)
def test_dates_as_pdf_writes_them(text_: str, expected: datetime | None) -> None:
    assert signature_fields.parse_pdf_date(text_) == expected
