"""A sealed file is read again before anybody gets it: is every value on the page, does the signature hold?

This is a check of our own work, made with other tools than those that did it: pdfium reads the text, and the signature is
taken apart here, without pyHanko, which takes ten times as long for what it offers beyond. ``verify`` is for files of others.
"""

import hashlib
import io
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pikepdf
import pypdfium2 as pdfium
from asn1crypto import cms as asn1_cms
from asn1crypto import tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509

from contracts.types import FieldDefinition
from services.rendering.jobs.drawing.fill import Drawn
from services.rendering.jobs.drawing.places import name_of
from services.rendering.jobs.forms import signature_fields
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pictures.placed import placed_pictures
from services.rendering.jobs.sealing import revocation
from services.rendering.jobs.sealing.cms import PublicKey, holds, mechanism_of
from services.rendering.jobs.sealing.verifying import reading

_SLACK = 3.0
"""Points around an area in which its text may reach: accents and descenders, rounding."""

_MOVED = 0.002
"""Of a picture's size: how far it may seem to move by rounding."""


class SealBroken(Exception):
    """The sealed file is not what it must be; the message says what is wrong, and with which field."""


class ValueMissing(SealBroken):
    """What was written onto ``page`` is not found there."""

    def __init__(self, field: str, page: int) -> None:
        super().__init__(f"Field '{field}': its value was not found on page {page} of the sealed file")
        self.page = page


def check(
    data: bytes, drawn: Sequence[Drawn], fields: Sequence[FieldDefinition], *, pages: int, certificate: bytes
) -> str:
    """Raises SealBroken unless ``data`` opens without repair, has ``pages`` pages, shows every text of ``drawn`` in its
    area, and is signed as a whole with ``certificate`` (DER). Returns the PAdES level of the signature."""
    signature, store, count = _open(data)
    if count != pages:
        raise SealBroken(f"the sealed file has {count} pages instead of {pages}")
    signed = _check_signature(data, signature, certificate)
    names = {field.uuid: name_of(field) for field in fields}
    check_values(data, drawn, names)
    return level_of(signed, store)


# --- values ---------------------------------------------------------------------------------------------------------------


def check_values(data: bytes, drawn: Sequence[Drawn], names: dict[str, str]) -> None:
    """Raises SealBroken naming the first field whose text or picture is not found in its place."""
    by_page: dict[int, list[Drawn]] = defaultdict(list)
    for entry in drawn:
        if entry.picture is not None or (entry.text and entry.text.strip()):
            by_page[entry.page].append(entry)
    if not by_page:
        return
    readable = _with_annotations_on_pages(data)
    with open_document(readable) as document:
        for page, expected in sorted(by_page.items()):
            _check_page(document, page, expected, names)
        pictured = {page: expected for page, expected in by_page.items() if any(entry.picture for entry in expected)}
        if pictured:
            with pikepdf.open(io.BytesIO(readable)) as pdf:
                for page, expected in sorted(pictured.items()):
                    opened = document[page - 1]
                    _check_pictures(placed_pictures(pdf.pages[page - 1], opened), page, expected, names)
                    opened.close()


def _check_page(document: pdfium.PdfDocument, page: int, expected: Sequence[Drawn], names: dict[str, str]) -> None:
    opened = document[page - 1]
    try:
        text = opened.get_textpage()
        turned = _right_to_left(text.get_text_range(errors="ignore"))
        for entry in expected:
            if entry.text and not is_shown(entry.text, reading.text_in(text, entry.rectangle, _SLACK), turned=turned):
                raise _not_found(entry, names)
        text.close()
    finally:
        opened.close()


def _check_pictures(
    pictures: list[tuple[str, Rectangle]], page: int, expected: Sequence[Drawn], names: dict[str, str]
) -> None:
    for entry in expected:
        if entry.picture is None:
            continue
        digest, place = entry.picture
        slack = _MOVED * max(1.0, place.width, place.height)
        if not any(
            digest_found == digest and all(abs(a - b) <= slack for a, b in zip(place_found, place, strict=True))
            for digest_found, place_found in pictures
        ):
            raise _not_found(entry, names)


def _not_found(entry: Drawn, names: dict[str, str]) -> ValueMissing:
    return ValueMissing(names.get(entry.field_uuid, entry.field_uuid), entry.page)


def is_shown(drawn: str, read: str, *, turned: bool = False) -> bool:
    """Nothing of the text is missing, and its letters and digits come in their order; those of a label underneath may stand
    between them. Where right-to-left text is near, extractors have an order of their own: pdfium turns a whole row of fields
    around (``turned``: there is such text on the page)."""
    if not reading.is_found(drawn, read):
        return False
    return turned or _right_to_left(drawn + read) or _in_order(_telling(drawn), _telling(read))


def _in_order(expected: str, text: str) -> bool:
    rest = iter(text)
    return all(character in rest for character in expected)


def _telling(text: str) -> str:
    """Without marks and signs, of which readers have their own opinions."""
    normal = unicodedata.normalize("NFKD", text)
    return "".join(
        character for character in normal if (kind := unicodedata.category(character))[0] == "L" or kind in {"Nd", "Sc"}
    )


def _right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(character) in {"R", "AL", "AN"} for character in text)


def _with_annotations_on_pages(data: bytes) -> bytes:
    """On a document that came signed, values are the looks of form fields, which pdfium does not count as text of the page."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        looks = {number: _shown_fields(page) for number, page in enumerate(pdf.pages)}
        if not any(looks.values()):
            return data
        for number, page in enumerate(pdf.pages):
            page.obj.Annots = pikepdf.Array(looks[number])
        del pdf.Root.AcroForm
        pdf.flatten_annotations("all")
        output = io.BytesIO()
        pdf.save(output, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
        return output.getvalue()


def _shown_fields(page: pikepdf.Page) -> list[pikepdf.Object]:
    annotations = page.obj.get("/Annots")
    if not isinstance(annotations, pikepdf.Array):
        return []
    widgets = [
        annotation
        for annotation in annotations
        if isinstance(annotation, pikepdf.Dictionary) and annotation.get("/Subtype") == "/Widget"
    ]
    return [annotation for annotation in widgets if "/AP" in annotation and _has_room(annotation)]


def _has_room(widget: pikepdf.Dictionary) -> bool:
    """Return whether anything of it can be seen: a seal without a look has a place without a size."""
    left, bottom, right, top = (float(edge) for edge in widget.Rect.as_list())
    return left != right and bottom != top


# --- signature ------------------------------------------------------------------------------------------------------------


def _open(data: bytes) -> tuple[dict[str, Any], dict[str, list[bytes]], int]:
    """Our signature (the last one), the validation material, the number of pages."""
    try:
        with pikepdf.open(io.BytesIO(data)) as pdf:
            signed_fields = [
                field for field in pdf.Root.AcroForm.Fields if field.get("/FT") == "/Sig" and "/V" in field
            ]
            signature = {
                "ByteRange": [int(number) for number in signed_fields[-1].V.ByteRange],
                "Contents": bytes(signed_fields[-1].V.Contents),
                "SubFilter": str(signed_fields[-1].V.SubFilter),
            }
            store: Any = pdf.Root.get("/DSS", pikepdf.Dictionary())
            material = {
                key: [item.read_bytes() for item in store.get(key, ())] for key in ("/Certs", "/OCSPs", "/CRLs")
            }
            count = len(pdf.pages)
            warnings = [str(warning) for warning in pdf.get_warnings()]
    except (pikepdf.PdfError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise SealBroken("the sealed file cannot be opened") from error
    if (problem := signature_fields.structure_problem(data, warnings)) is not None:
        raise SealBroken(f"the sealed file is damaged: {problem}")
    return signature, material, count


def _check_signature(data: bytes, signature: Any, certificate: bytes) -> asn1_cms.SignedData:
    if signature["SubFilter"] != "/ETSI.CAdES.detached":
        raise SealBroken("the seal is of another kind than it must be")
    zero, before, after, rest = signature["ByteRange"]
    gap = data[before:after]
    if zero != 0 or after + rest != len(data) or gap != b"<" + signature["Contents"].hex().encode() + b">":
        raise SealBroken("the seal does not cover the whole file")
    signed = asn1_cms.ContentInfo.load(signature["Contents"])["content"]
    (signer,) = signed["signer_infos"]
    mechanism = mechanism_of(signer["signature_algorithm"].dump())
    if mechanism is None:
        raise SealBroken("the seal is signed in another way than it must be")
    digest = hashlib.new(mechanism.hash, data[:before])
    digest.update(data[after:])
    attributes = {attribute["type"].native: attribute["values"] for attribute in signer["signed_attrs"]}
    if attributes["message_digest"][0].native != digest.digest():
        raise SealBroken("the seal is for other content")
    digest_named = tsp.SigningCertificateV2.load(attributes["signing_certificate_v2"][0].dump())["certs"][0][
        "cert_hash"
    ].native
    if digest_named != hashlib.sha256(certificate).digest():
        raise SealBroken("the seal names another certificate")
    key = x509.load_der_x509_certificate(certificate).public_key()
    assert isinstance(key, PublicKey), "the certificates of seals were checked"
    content = b"\x31" + signer["signed_attrs"].dump()[1:]
    if not holds(key, mechanism, hashlib.new(mechanism.hash, content).digest(), signer["signature"].native):
        raise SealBroken("the seal's signature does not hold")
    return signed


def level_of(signed: asn1_cms.SignedData, store: Mapping[str, Sequence[bytes]]) -> str:
    """The PAdES level, short of the archive level, by what is in the file: a time-stamp was checked when it came
    (``time_stamp``), proofs when they were fetched."""
    if (stamp := time_stamp_of(signed)) is None:
        return "B-B"
    certificates = [asn1_x509.Certificate.load(data) for data in store["/Certs"]]
    certificates += [choice.chosen for source in (signed, stamp) for choice in source["certificates"]]
    leaves = [signer_of(source) for source in (signed, stamp)]
    needed = revocation.needing_proof([leaf for leaf in leaves if leaf is not None], certificates, set())
    proven = all(revocation.proven(certificate, store["/CRLs"], store["/OCSPs"]) for certificate in needed)
    return "B-LT" if proven and None not in leaves and (store["/CRLs"] or store["/OCSPs"]) else "B-T"


def time_stamp_of(signed: asn1_cms.SignedData) -> asn1_cms.SignedData | None:
    """The time-stamp that a signature bears."""
    (signer,) = signed["signer_infos"]
    for attribute in signer["unsigned_attrs"] or ():
        if attribute["type"].native == "signature_time_stamp_token":
            return attribute["values"][0]["content"]
    return None


def signer_of(signed: asn1_cms.SignedData) -> asn1_x509.Certificate | None:
    """The certificate of who signed, as far as the CMS has it."""
    identifier = signed["signer_infos"][0]["sid"].chosen
    for choice in signed["certificates"]:
        certificate = choice.chosen
        if isinstance(identifier, asn1_cms.IssuerAndSerialNumber):
            if certificate.serial_number == identifier["serial_number"].native:
                return certificate
        elif certificate.key_identifier == identifier.native:
            return certificate
    return None
