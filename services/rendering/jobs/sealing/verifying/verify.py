"""Are the signatures in this PDF what they seem to be?

pyHanko checks the cryptography, the chain and what was changed since, but its verdict alone accepts published forgeries:
it ignores what follows the last ``%%EOF``, and other readers do not. So a signature counts only when, besides pyHanko,

(a) nothing but white space, and little of it, follows the last ``%%EOF``,
(b) qpdf reads the file without having to repair its cross-reference table,
(c) what was added since the signature is nothing, signature maintenance, or form filling that a later signature covers,
    after which there is nothing but maintenance.

So does what stands behind the CMS in the place that is kept for it, which no signature covers, unless it is zeros; and a
signature that an earlier version of the file carries and a later one dropped is listed as one after which it was changed.

Expiry of a certificate is reported apart from integrity. Each signature is checked on its own: hostile ones raise about
anything, and must not hide the others. Only what is found wrong with the file itself makes a signature malformed; what
fails for another reason could not be checked. The words are those of EN 319 102-1, clause 5.
"""

import asyncio
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from asn1crypto import cms, parser, x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.ades.report import AdESFailure, AdESIndeterminate
from pyhanko.sign.diff_analysis import ModificationLevel
from pyhanko.sign.fields import enumerate_sig_fields
from pyhanko.sign.validation.dss import DocumentSecurityStore
from pyhanko.sign.validation.errors import NoDSSFoundError, SignatureValidationError
from pyhanko.sign.validation.pdf_embedded import (
    EmbeddedPdfSignature,
    async_validate_pdf_signature,
    async_validate_pdf_timestamp,
)
from pyhanko.sign.validation.status import DocumentTimestampStatus, PdfSignatureStatus, SignatureCoverageLevel

from contracts.rpc.rendering import Verification, VerifiedSignature
from services.rendering.jobs.forms import signature_fields
from services.rendering.jobs.forms.signature_fields import SignatureField
from services.rendering.jobs.sealing.verifying.trust import (
    FAILED,
    INDETERMINATE,
    PADES,
    Note,
    Trust,
    indication_of,
    level,
    note,
    rely,
)

TIME_STAMP = "ETSI.RFC3161"

_PADDING = "The place that is kept for the signature holds more than the signature: it was put there afterwards"
_NO_RANGE = "its byte range is not valid"
_NO_CMS = "its contents are no CMS"
_MAINTENANCE = (ModificationLevel.NONE, ModificationLevel.LTA_UPDATES)
_SUPPORTED = {PADES, TIME_STAMP, "adbe.pkcs7.detached", "PBAD.PAdES"}


@dataclass(frozen=True)
class _View:
    """pyHanko's view of the file, as far as it gets: signature fields by name, the document security store."""

    reader: PdfFileReader | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    store: DocumentSecurityStore | None = None
    size: int = 0


class _Malformed(Exception):
    """The file is at fault; the message says how."""


@dataclass(frozen=True)
class _Finding:
    """``answer`` is complete but for what the other signatures of the file say about it; ``tampered`` is a change that was
    found without comparing versions of the file, in a sentence."""

    answer: VerifiedSignature
    order: int = 0
    modifications: ModificationLevel | None = None
    covers_file: bool = False
    document_time_stamp: bool = False
    tampered: str | None = None
    notes: list[Note] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.answer.integrity == "valid"


def verify(data: bytes, anchors: Sequence[bytes], now: datetime, *, sealed_here: bool = False) -> Verification:
    """Check every signature of ``data``. ``anchors`` are trusted certificates in DER.

    ``sealed_here``: this very file is known to be one of ours, so that what was added after a signature that it already
    carried when it came to us was added by us. Raises Refused (``Malformed PDF``) when it is none.
    """
    entries, trick = signature_fields.read(data)
    view = _open(data)
    if hidden := [name for name in view.fields if name not in {entry.field for entry in entries}]:
        entries += [SignatureField(name) for name in hidden]
        trick = trick or "Readers disagree about what this file holds"
    if not entries and trick and b"/ByteRange" in data:
        entries = [SignatureField("")]  # there was a signature, and nobody can read it any more
    findings = list(_check_all(view, entries, anchors, now, trick))
    if trick is None:  # else it is said already that nothing counts, and why
        findings += _removed(data, entries, anchors, now)
    findings.sort(key=lambda finding: finding.order)
    judged = [_judge(finding, findings, sealed_here=sealed_here) for finding in findings]
    return Verification(
        checksum_status=_status(judged, sealed_here=sealed_here), sealed_here=sealed_here, signatures=judged
    )


def _status(signatures: Sequence[VerifiedSignature], *, sealed_here: bool) -> str:
    """The worst that is said of any of them: what is known to be wrong counts for more than what could not be checked."""
    if not signatures:
        return "unsigned"
    if any(
        signature.integrity == "invalid" or (signature.changed_after_signing and not sealed_here)
        for signature in signatures
    ):
        return "invalid"
    return "valid" if all(signature.integrity == "valid" for signature in signatures) else "unknown"


# --- one signature ------------------------------------------------------------------------------------------------------


def _check_all(
    view: _View, entries: list[SignatureField], anchors: Sequence[bytes], now: datetime, trick: str | None
) -> Iterator[_Finding]:
    """A signature that is shown in several places is the value of as many fields; the first one names it."""
    seen: set[str] = set()
    holding: set[bytes] = set()
    archived = _archive_times(view, entries, anchors, now)
    for number, entry in enumerate(entries):
        try:
            if entry.field in seen:
                raise _Malformed("a second field of the same name")
            seen.add(entry.field)
            if entry.contents in holding:
                continue
            if entry.sub_filter in _SUPPORTED and not _has_byte_range(entry, view.size):
                raise _Malformed(_NO_RANGE)
            embedded = _embedded(view, entry)
            stated = str(embedded.sig_object.get("/SubFilter", "")).removeprefix("/")
            proven_at = _kept_since(archived, embedded.signed_revision, now)
            finding = (
                _check(replace(entry, sub_filter=stated), embedded, Trust(anchors, view.store, proven_at))
                if stated in _SUPPORTED
                else _unsupported(entry, number)
            )
        except Exception as error:  # a hostile signature raises about anything, and the next one still counts
            finding = _failed(entry, number, view, error)
        if finding.holds:
            holding.add(entry.contents)
        yield _tricked(finding, trick) if trick else finding


def _archive_times(
    view: _View, entries: list[SignatureField], anchors: Sequence[bytes], now: datetime
) -> list[tuple[int, datetime]]:
    """The versions of the file with a document time-stamp that can be relied on, and their times, the newest first: each is
    checked at the time that the one after it proves (EN 319 102-1, 5.6.3)."""
    times: list[tuple[int, datetime]] = []
    stamps = []
    for entry in entries:
        if entry.sub_filter == TIME_STAMP and _has_byte_range(entry, view.size):
            with suppress(Exception):  # what is wrong with it is told when its turn comes
                stamps.append(_embedded(view, entry))
    for embedded in sorted(stamps, key=lambda stamp: stamp.signed_revision, reverse=True):
        with suppress(Exception):
            status = _validate_stamp(embedded, Trust(anchors, view.store, times[-1][1] if times else now))
            if _holds(status) and status.coverage >= SignatureCoverageLevel.ENTIRE_REVISION:
                times.append((embedded.signed_revision, status.timestamp))
    return times


def _kept_since(archived: list[tuple[int, datetime]], revision: int, now: datetime) -> datetime:
    """Since when, at least, the version of the file is proven to be there; ``now`` where nothing proves it."""
    return min((moment for later, moment in archived if later > revision), default=now)


def _removed(data: bytes, entries: list[SignatureField], anchors: Sequence[bytes], now: datetime) -> Iterator[_Finding]:
    """Yield what the signatures are worth in the version of the file that they were made for."""
    for entry, earlier in signature_fields.removed(data, entries):
        for finding in _check_all(_open(earlier), [entry], anchors, now, None):
            message = "This signature was removed from the document by a later change"
            answer = finding.answer.model_copy(update={"covers_whole_document": False, "changed_after_signing": True})
            yield replace(finding, answer=answer, covers_file=False, tampered=message)


def _embedded(view: _View, entry: SignatureField) -> EmbeddedPdfSignature:
    if view.reader is None:
        raise ValueError("the file cannot be read")
    if entry.field not in view.fields:
        raise _Malformed("readers disagree whether it is there")
    return EmbeddedPdfSignature(view.reader, view.fields[entry.field], entry.field)


def _open(data: bytes) -> _View:
    fields: dict[str, Any] = {}
    store = None
    try:
        reader = PdfFileReader(io.BytesIO(data), strict=False)
        if reader.encrypted:
            reader.decrypt(b"")  # qpdf has opened it without a password
        for name, _value, signature_field in enumerate_sig_fields(reader, filled_status=True):
            fields.setdefault(name, signature_field)
    except Exception:
        return _View(size=len(data))
    try:
        store = DocumentSecurityStore.read_dss(reader)
    except NoDSSFoundError:
        pass
    except Exception:
        store = None
    return _View(reader, fields, store, len(data))


def _check(entry: SignatureField, embedded: EmbeddedPdfSignature, trust: Trust) -> _Finding:
    try:
        status = _validate(entry, embedded, trust, None)
    except SignatureValidationError as error:
        if error.ades_subindication != AdESIndeterminate.NO_SIGNING_CERTIFICATE_FOUND or not _drop_time_stamps(
            embedded
        ):
            raise
        finding = _finding(entry, embedded, _validate(entry, embedded, trust, None), trust, None)
        content = (
            "The time-stamp does not hold the certificate of its authority and cannot be checked: it proves no time"
        )
        finding.notes.append(note("warning", content))
        return finding
    stamp = getattr(status, "timestamp_validity", None)
    if stamp is not None and stamp.intact and stamp.valid and trust.now <= stamp.signing_cert.not_valid_after:
        # The proofs in the file were current when it was stamped, which may be years ago.
        then = _validate(entry, embedded, trust, stamp.timestamp)
        if isinstance(then, PdfSignatureStatus) and then.timestamp_validity and then.timestamp_validity.trusted:
            return _finding(entry, embedded, then, trust, stamp.timestamp)
    return _finding(entry, embedded, status, trust, None)


def _validate(
    entry: SignatureField, embedded: EmbeddedPdfSignature, trust: Trust, moment: datetime | None
) -> PdfSignatureStatus | DocumentTimestampStatus:
    if entry.sub_filter == TIME_STAMP:
        return _validate_stamp(embedded, trust)
    signer, authority = trust.context(moment), trust.context(moment)
    return asyncio.run(
        async_validate_pdf_signature(embedded, signer_validation_context=signer, ts_validation_context=authority)
    )


def _validate_stamp(embedded: EmbeddedPdfSignature, trust: Trust) -> DocumentTimestampStatus:
    """The proofs in the file were current when it was stamped: they count for as long as the authority's certificate does."""
    status = asyncio.run(async_validate_pdf_timestamp(embedded, trust.context()))
    if _holds(status) or trust.now > status.signing_cert.not_valid_after:
        return status
    then = asyncio.run(async_validate_pdf_timestamp(embedded, trust.context(status.timestamp)))
    return then if _holds(then) else status


def _holds(status: DocumentTimestampStatus) -> bool:
    return bool(status.intact and status.valid and status.trusted)


def _drop_time_stamps(embedded: EmbeddedPdfSignature) -> bool:
    """Leave the time-stamps of the signature out of account, which it does not cover; False when there are none."""
    attributes = embedded.signer_info["unsigned_attrs"] or ()
    remaining = [attribute for attribute in attributes if attribute["type"].native != "signature_time_stamp_token"]
    embedded.signer_info["unsigned_attrs"] = remaining
    return len(remaining) < len(attributes)


def _finding(
    entry: SignatureField,
    embedded: EmbeddedPdfSignature,
    status: PdfSignatureStatus | DocumentTimestampStatus,
    trust: Trust,
    proven: datetime | None,
) -> _Finding:
    tampered = _PADDING if any(embedded.pkcs7_content[parser.peek(embedded.pkcs7_content) :]) else None
    covers_file = status.coverage == SignatureCoverageLevel.ENTIRE_FILE and tampered is None
    certificate: x509.Certificate = status.signing_cert
    digested = {attribute["type"].native for attribute in embedded.signer_info["signed_attrs"] or ()}
    problem = _integrity_problem(status, digested)
    reliance = rely(embedded, status, trust, proven or trust.now)
    indication, sub_indication, notes = reliance.indication, reliance.sub_indication, reliance.notes
    stamp = status.timestamp if entry.sub_filter == TIME_STAMP else _stamp_time(status)
    if problem:
        indication, sub_indication = FAILED, problem[0]
        notes.insert(0, note("error", problem[1]))
    else:
        notes.insert(0, note("info", "The signed content is intact"))
        if status.modification_level == ModificationLevel.FORM_FILLING:
            content = "Later signatures or values of form fields were added, which this signature allows"
            notes.append(note("info", content))
    if stamp and not proven and entry.sub_filter != TIME_STAMP:
        notes.append(
            note("warning", "The time-stamp comes from an authority that is not known here: it proves no time")
        )
    answer = VerifiedSignature(
        field=entry.field,
        signer_name=_common_name(certificate.subject) or entry.name,
        issuer=_common_name(certificate.issuer),
        signing_reason=entry.reason,
        signing_time=_utc(getattr(status, "signer_reported_dt", None)) or entry.claimed_time,
        timestamp=_utc(stamp),
        signature_type=entry.sub_filter,
        digest=status.md_algorithm,
        level=level(embedded, status, trust, sub_filter=entry.sub_filter, signed_attributes=digested),
        indication=indication,
        sub_indication=sub_indication,
        integrity="invalid" if problem else "valid",
        trust=reliance.trusted,
        covers_whole_document=covers_file,
        changed_after_signing=False,
        certificate_valid_from=_utc(certificate.not_valid_before),
        certificate_valid_to=_utc(certificate.not_valid_after),
        certificate_sha256=certificate.sha256.hex(),
    )
    return _Finding(
        answer=answer,
        order=embedded.signed_revision,
        modifications=status.modification_level,
        covers_file=covers_file,
        document_time_stamp=entry.sub_filter == TIME_STAMP,
        tampered=tampered,
        notes=notes,
    )


def _integrity_problem(status: Any, signed_attributes: set[str]) -> tuple[str, str] | None:
    """EN 319 102-1 sub-indication and a sentence."""
    if not status.valid:
        return "SIG_CRYPTO_FAILURE", "The signature does not belong to the certificate or was changed"
    if not status.intact:
        return "HASH_FAILURE", "The signed content was changed"
    if "message_digest" not in signed_attributes:
        return "FORMAT_FAILURE", "The signature names no digest of the document"
    if status.coverage is None or status.coverage < SignatureCoverageLevel.ENTIRE_REVISION:
        return "FORMAT_FAILURE", "The signature does not cover all of the document that it was made for"
    return None


def _stamp_time(status: Any) -> datetime | None:
    stamp = status.timestamp_validity
    return stamp.timestamp if stamp is not None and stamp.intact and stamp.valid else None


# --- findings that need no cryptography ----------------------------------------------------------------------------------


def _unsupported(entry: SignatureField, number: int) -> _Finding:
    kind = entry.sub_filter or "without a type"
    answer = _stated(entry, INDETERMINATE, "GENERIC", "unknown")
    return _Finding(answer, order=number, notes=[note("error", f"Signatures of the type {kind} cannot be checked")])


def _failed(entry: SignatureField, number: int, view: _View, error: Exception) -> _Finding:
    """The check came to no end: is that the file's fault, or ours?"""
    if entry.sub_filter is not None and entry.sub_filter not in _SUPPORTED:
        return _unsupported(entry, number)
    why = error.ades_subindication if isinstance(error, SignatureValidationError) else None
    message = (
        error.failure_message if isinstance(error, SignatureValidationError) else f"{type(error).__name__}: {error}"
    )
    fault = str(error) if isinstance(error, _Malformed) else _fault(entry, view)
    if fault or isinstance(why, AdESFailure):
        if why is None or fault == _NO_CMS:
            why = AdESFailure.FORMAT_FAILURE
        answer = _stated(entry, indication_of(why), why.standard_name, "invalid")
        content = f"The signature is malformed ({fault or message})"
    else:
        answer = _stated(entry, INDETERMINATE, why.standard_name if why else "GENERIC", "unknown")
        content = f"The signature could not be checked ({message[:200]})"
    return _Finding(answer, order=number, notes=[note("error", content)])


def _fault(entry: SignatureField, view: _View) -> str | None:
    """Return what is wrong with the signature as it stands in the file, and needs no cryptography to be seen; None: nothing."""
    if not _has_byte_range(entry, view.size):
        return _NO_RANGE
    try:
        message = cms.ContentInfo.load(entry.contents)
        message.native  # noqa: B018 - reads all that is in it
    except ValueError:
        return _NO_CMS
    if message["content_type"].native != "signed_data":
        return "its contents are no CMS of signed data"
    signers, certificates = message["content"]["signer_infos"], message["content"]["certificates"]
    if len(signers) != 1:
        return "it has not one signer"
    if not any(
        _identifies(signers[0]["sid"], certificate.chosen)
        for certificate in certificates
        if certificate.name == "certificate"
    ):
        return "the certificate of its signer is not in it"
    return None


def _has_byte_range(entry: SignatureField, size: int) -> bool:
    numbers = entry.byte_range
    return bool(numbers) and len(numbers) % 2 == 0 and min(numbers) >= 0 and entry.end <= size


def _identifies(sid: cms.SignerIdentifier, certificate: x509.Certificate) -> bool:
    if sid.name == "subject_key_identifier":
        return bool(certificate.key_identifier == sid.native)
    issuer_and_serial = sid.chosen
    return bool(
        certificate.issuer == issuer_and_serial["issuer"]
        and certificate.serial_number == issuer_and_serial["serial_number"].native
    )


def _stated(entry: SignatureField, indication: str, sub_indication: str, integrity: str) -> VerifiedSignature:
    return VerifiedSignature(
        field=entry.field,
        signer_name=entry.name,
        signing_reason=entry.reason,
        signing_time=entry.claimed_time,
        signature_type=entry.sub_filter,
        indication=indication,
        sub_indication=sub_indication,
        integrity=integrity,
        trust="untrusted",
        covers_whole_document=False,
        changed_after_signing=False,
        certificate_sha256=_certificate_in(entry.contents),
    )


def _certificate_in(contents: bytes) -> str | None:
    """The SHA-256 of the signer's certificate in a CMS that came to no verdict: so that whose it seems to be can be told."""
    try:
        message = cms.ContentInfo.load(contents)["content"]
        (signer,) = message["signer_infos"]
        certificates = [choice.chosen for choice in message["certificates"] if choice.name == "certificate"]
        return next((choice.sha256.hex() for choice in certificates if _identifies(signer["sid"], choice)), None)
    except Exception:  # hostile contents raise about anything
        return None


def _tricked(finding: _Finding, trick: str) -> _Finding:
    """Rules a and b: whatever the cryptography says, it is not about what a reader sees."""
    answer = finding.answer.model_copy(
        update={
            "indication": FAILED,
            "sub_indication": finding.answer.sub_indication
            if finding.answer.indication == FAILED
            else "FORMAT_FAILURE",
            "integrity": "invalid",
            "covers_whole_document": False,
            "changed_after_signing": True,
        }
    )
    intact = [note for note in finding.notes if note["type"] != "info"]
    return replace(finding, answer=answer, covers_file=False, notes=[note("error", trick), *intact])


# --- what the signatures say about each other ----------------------------------------------------------------------------


def _judge(finding: _Finding, findings: list[_Finding], *, sealed_here: bool) -> VerifiedSignature:
    """Rule c, and the archive level, which a later document time-stamp gives."""
    answer, notes = finding.answer, list(finding.notes)
    updates: dict[str, Any] = {}
    if finding.tampered:
        updates["changed_after_signing"] = True
        notes.insert(0, note("error", finding.tampered))
        if finding.answer.indication != FAILED:
            updates |= {"indication": FAILED, "sub_indication": "FORMAT_FAILURE"}
    elif finding.holds and not _only_permitted_changes(finding, findings):
        updates["changed_after_signing"] = True
        if sealed_here:
            notes.append(note("warning", "Fields were filled in and sealed here after this signature was made"))
        else:
            updates |= {"indication": FAILED, "sub_indication": "FORMAT_FAILURE"}
            notes.append(note("error", "The document was changed after this signature was made"))
    later = [other for other in findings if other.order > finding.order]
    if answer.level == "B-LT" and any(other.document_time_stamp and other.holds for other in later):
        updates["level"] = "B-LTA"
    return answer.model_copy(update={**updates, "verification_result": notes})


def _only_permitted_changes(finding: _Finding, findings: list[_Finding]) -> bool:
    if finding.modifications in _MAINTENANCE:
        return True
    covered = any(
        other.holds and (other.covers_file or (other.order > finding.order and other.modifications in _MAINTENANCE))
        for other in findings
        if other is not finding
    )
    return finding.modifications == ModificationLevel.FORM_FILLING and covered


def _common_name(name: x509.Name) -> str | None:
    native = name.native
    value = native.get("common_name") or native.get("organization_name")
    return ", ".join(value) if isinstance(value, list) else value


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
