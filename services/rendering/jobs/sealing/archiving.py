"""The archive time-stamp of PAdES B-LTA (EN 319 142-1, 5.4.3 and 5.5): an update at the end of a sealed file with the proofs
that it lacks and a time-stamp over everything before.

What is before is not changed by a byte. It is renewed in the same way, by another one, while the authority's certificate is in
force: with the proof that this certificate was not revoked until then.
"""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pikepdf
from asn1crypto import cms, x509
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.generic import pdf_name
from pyhanko.sign.fields import SigFieldSpec, enumerate_sig_fields
from pyhanko.sign.signers.cms_embedder import PdfCMSEmbedder, SigIOSetup, SigObjSetup
from pyhanko.sign.signers.pdf_byterange import DocumentTimestamp

from services.rendering.jobs.forms import signature_fields
from services.rendering.jobs.forms.signature_fields import SignatureField
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import revocation, signed_files
from services.rendering.jobs.sealing.time_stamp import checked_token
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.protocol.messages import ArchiveFound, ArchiveSurvey, Reserved, ValidationMaterial

TIME_STAMP = "ETSI.RFC3161"
_OURS = "Seal "
_FIELD = "Archive"
_ODD = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What asn1crypto raises for what is no CMS."""


@dataclass(frozen=True)
class _Signature:
    entry: SignatureField
    content: cms.SignedData

    @property
    def is_time_stamp(self) -> bool:
        return self.entry.sub_filter == TIME_STAMP

    @property
    def parts(self) -> list[cms.SignedData]:
        """The signature, and the time-stamp that it bears."""
        stamp = None if self.is_time_stamp else read_back.time_stamp_of(self.content)
        return [self.content] if stamp is None else [self.content, stamp]

    @property
    def leaves(self) -> list[x509.Certificate]:
        return [leaf for part in self.parts if (leaf := read_back.signer_of(part)) is not None]

    @property
    def certificates(self) -> list[x509.Certificate]:
        return [choice.chosen for part in self.parts for choice in part["certificates"] if choice.name == "certificate"]


def survey(data: bytes, authority: Sequence[bytes]) -> ArchiveSurvey:
    """Find out which proofs of non-revocation the file lacks. What stamped it last is always asked about anew: that its
    certificate was good until now is what the next time-stamp keeps. Raises Refused when it is no sealed file."""
    signatures, store = _read(data)
    seal, newest = _seal(signatures), _newest_stamp(signatures)
    stamper = [x509.Certificate.load(encoded) for encoded in authority]
    known_certificates = [x509.Certificate.load(encoded) for encoded in store["/Certs"]]
    known_certificates += [
        *stamper,
        *(certificate for signature in signatures for certificate in signature.certificates),
    ]
    known_certificates = list({certificate.dump(): certificate for certificate in known_certificates}.values())

    renewed = revocation.needing_proof(newest.leaves if newest else [], known_certificates, set())
    of_seal_and_authority = revocation.needing_proof([*seal.leaves, *stamper[:1]], known_certificates, set())
    every = revocation.needing_proof(
        [leaf for signature in signatures for leaf in signature.leaves], known_certificates, set()
    )

    def lacking(certificates: Sequence[x509.Certificate]) -> list[x509.Certificate]:
        return [
            certificate
            for certificate in certificates
            if not revocation.proven(certificate, store["/CRLs"], store["/OCSPs"])
        ]

    required = {certificate.dump(): certificate for certificate in [*renewed, *lacking(of_seal_and_authority)]}
    return ArchiveSurvey(
        required=[revocation.question_about(certificate, known_certificates) for certificate in required.values()],
        others=[
            revocation.question_about(certificate, known_certificates)
            for certificate in lacking(every)
            if certificate.dump() not in required
        ],
        certificates=[certificate.dump() for certificate in known_certificates],
    )


def reserve(data: bytes, material: ValidationMaterial, size: int) -> Reserved:
    """Add proofs and a place for a time-stamp of at most ``size`` octets. Raises Refused when the file is damaged."""
    try:
        writer = signed_files.opened(data)
        if material:
            signed_files.add_material(writer, material)
        names_in_use = {name for name, _value, _field in enumerate_sig_fields(writer)}
        name = next(
            name for number in range(1, len(names_in_use) + 2) if (name := f"{_FIELD} {number}") not in names_in_use
        )
        steps = PdfCMSEmbedder(SigFieldSpec(name)).write_cms(name, writer)
        field = next(steps).get_object()
        signed_files.show(field, _nothing(writer))  # PDF/A wants each field to have a look
        steps.send(SigObjSetup(sig_placeholder=DocumentTimestamp(bytes_reserved=2 * size)))
        prepared, output = steps.send(SigIOSetup(md_algorithm="sha256"))
    except signed_files.ODD as error:
        raise Refused("The sealed file cannot be added to.") from error
    return Reserved(
        data=output.getvalue(),
        start=prepared.reserved_region_start + 1,
        size=2 * size,
        digest=prepared.document_digest,
    )


def check(data: bytes) -> ArchiveFound:
    """Read an archived file back. Raises Refused unless it opens without repair, and ends with a time-stamp that holds and
    covers all of it."""
    signatures, store = _read(data)
    last = max(signatures, key=lambda signature: signature.entry.end)
    zero, before, after, rest = last.entry.byte_range
    if not last.is_time_stamp or zero != 0 or after + rest != len(data):
        raise Refused("the archive time-stamp does not cover the whole file")
    if data[before:after] != b"<" + last.entry.contents.hex().encode() + b">":
        raise Refused("the archive time-stamp leaves something out")
    digest = hashlib.sha256(data[:before])
    digest.update(data[after:])
    try:
        token = checked_token(cms.ContentInfo.load(last.entry.contents), digest.digest())
    except _ODD as error:
        raise Refused(f"the archive time-stamp cannot be read ({type(error).__name__})") from error
    level = read_back.level_of(_seal(signatures).content, store)
    ends = [x509.Certificate.load(encoded).not_valid_after for encoded in token.certificates]
    return ArchiveFound("B-LTA" if level == "B-LT" else level, token.time, min(ends))


def _read(data: bytes) -> tuple[list[_Signature], dict[str, list[bytes]]]:
    """The signatures, and what the document security store has. What is no CMS is nobody's."""
    entries, problem = signature_fields.read(data)
    if problem is not None:
        raise Refused(f"the sealed file is damaged: {problem}")
    signatures = []
    for entry in entries:
        try:
            signature = _Signature(entry, cms.ContentInfo.load(entry.contents)["content"])
            signature.certificates, signature.leaves  # noqa: B018 - reads all that is asked for later
        except _ODD:
            continue
        signatures.append(signature)
    if not any(not signature.is_time_stamp for signature in signatures):
        raise Refused("the file is not sealed")
    with pikepdf.open(io.BytesIO(data)) as pdf:
        dss: Any = pdf.Root.get("/DSS", pikepdf.Dictionary())
        store = {key: [item.read_bytes() for item in dss.get(key, ())] for key in ("/Certs", "/OCSPs", "/CRLs")}
    return signatures, store


def _seal(signatures: Sequence[_Signature]) -> _Signature:
    """Our own: the newest that is named as ours are, else the newest of all."""
    by_age = sorted(
        (signature for signature in signatures if not signature.is_time_stamp),
        key=lambda signature: signature.entry.end,
    )
    return next((signature for signature in reversed(by_age) if signature.entry.field.startswith(_OURS)), by_age[-1])


def _newest_stamp(signatures: Sequence[_Signature]) -> _Signature | None:
    return max(
        (signature for signature in signatures if signature.is_time_stamp),
        key=lambda signature: signature.entry.end,
        default=None,
    )


def _nothing(writer: Any) -> Any:
    empty = generic.StreamObject(
        {
            pdf_name("/Type"): pdf_name("/XObject"),
            pdf_name("/Subtype"): pdf_name("/Form"),
            pdf_name("/BBox"): generic.ArrayObject([generic.NumberObject(0)] * 4),
            pdf_name("/Resources"): generic.DictionaryObject(),
        },
        stream_data=b"",
    )
    return writer.add_object(empty)
