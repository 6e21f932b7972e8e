"""Whom a signature comes from, and whether that may be relied on: chain, dates, revocation, algorithms, PAdES level.

Integrity is not looked at here. The words are those of EN 319 102-1, clause 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asn1crypto import x509
from pyhanko.sign.ades.report import AdESFailure, AdESIndeterminate, AdESSubIndic
from pyhanko.sign.validation.dss import DocumentSecurityStore
from pyhanko.sign.validation.pdf_embedded import EmbeddedPdfSignature
from pyhanko_certvalidator import ValidationContext

from services.rendering.jobs.sealing import revocation

PASSED, FAILED, INDETERMINATE = "TOTAL-PASSED", "TOTAL-FAILED", "INDETERMINATE"
PADES = "ETSI.CAdES.detached"
_WEAK = {"md5", "sha1"}

Note = dict[str, str]


def note(kind: str, content: str) -> Note:
    """``kind``: info, warning or error."""
    return {"type": kind, "content": content}


@dataclass(frozen=True)
class Trust:
    """Trusted roots, what the file brings along for the check, and the time of the check: now, or a time before, at which an
    archive time-stamp proves that what is checked was there."""

    anchors: Sequence[bytes]
    store: DocumentSecurityStore | None
    now: datetime

    @property
    def proofs(self) -> tuple[list[bytes], list[bytes]]:
        """Revocation lists and OCSP answers of the file (DER)."""
        if self.store is None:
            return [], []
        return (
            [item.get_object().data for item in self.store.crls],
            [item.get_object().data for item in self.store.ocsps],
        )

    def context(self, moment: datetime | None = None) -> ValidationContext:
        """A context is used up by one validation. ``moment``: a time before now that is proven."""
        roots = [x509.Certificate.load(anchor) for anchor in self.anchors]
        crls, ocsps = self.proofs
        return ValidationContext(
            trust_roots=roots,
            other_certs=list(self.store.load_certs()) if self.store else [],
            crls=crls,
            ocsps=ocsps,
            moment=moment or self.now,
            best_signature_time=moment or self.now,
            retroactive_revinfo=True,
            allow_fetching=False,
        )


@dataclass(frozen=True)
class Reliance:
    """``trusted`` is one word: trusted, untrusted, expired, revoked."""

    indication: str
    sub_indication: str | None
    trusted: str
    notes: list[Note]


def rely(embedded: EmbeddedPdfSignature, status: Any, trust: Trust, moment: datetime) -> Reliance:
    """May the certificate be relied on at ``moment`` (a proven time, else now)?"""
    certificate: x509.Certificate = status.signing_cert
    notes: list[Note] = []
    problem: AdESSubIndic | None = status.trust_problem_indic
    if problem is not None and status.validation_path is None and certificate.self_signed != "no":
        problem = AdESIndeterminate.NO_CERTIFICATE_CHAIN_FOUND  # pyHanko has a word of its own for those
    trusted = "trusted" if problem is None and status.validation_path is not None else "untrusted"
    if status.md_algorithm in _WEAK:
        notes.append(note("warning", f"Weak digest ({status.md_algorithm.upper()}): forgeries are feasible"))
        problem = problem or AdESIndeterminate.CRYPTO_CONSTRAINTS_FAILURE_NO_POE
        trusted = "untrusted"
    if status.revocation_details is not None or _revoked(embedded, certificate, trust, moment):
        notes.append(note("error", "The certificate was revoked"))
        problem = problem or AdESIndeterminate.REVOKED_NO_POE
        trusted = "revoked"
    elif not certificate.not_valid_before <= moment <= certificate.not_valid_after:
        # pyHanko does not look when the signer's certificate is itself a trusted one.
        over = moment > certificate.not_valid_after
        date = certificate.not_valid_after if over else certificate.not_valid_before
        word = "expired on" if over else "is not valid before"
        notes.append(
            note("warning", f"The certificate {word} {date:%Y-%m-%d}, and no trusted time-stamp says when it was used")
        )
        problem = problem or AdESIndeterminate.OUT_OF_BOUNDS_NO_POE
        trusted = "expired" if over else "untrusted"
    if trusted == "trusted":
        notes.append(note("info", "The certificate leads to a root that is trusted here"))
    elif problem == AdESIndeterminate.NO_CERTIFICATE_CHAIN_FOUND:
        notes.append(note("warning", "The certificate does not lead to a root that is known here"))
    if problem is None:
        return Reliance(PASSED, None, trusted, notes)
    return Reliance(indication_of(problem), problem.standard_name, trusted, notes)


def indication_of(why: AdESSubIndic) -> str:
    """The indication that a sub-indication belongs to."""
    return FAILED if isinstance(why, AdESFailure) else INDETERMINATE


def level(
    embedded: EmbeddedPdfSignature, status: Any, trust: Trust, *, sub_filter: str | None, signed_attributes: set[str]
) -> str | None:
    """The PAdES level that the signature has by its form, short of the archive level; None for other kinds."""
    if sub_filter != PADES or "signing_certificate_v2" not in signed_attributes:
        return None
    stamp = status.timestamp_validity
    if stamp is None or not (stamp.intact and stamp.valid):
        return "B-B"
    if trust.store is None:
        return "B-T"
    certificates = [status.signing_cert, *embedded.other_embedded_certs, stamp.signing_cert, *trust.store.load_certs()]
    roots = {bytes(anchor) for anchor in trust.anchors}
    needed = revocation.needing_proof([status.signing_cert, stamp.signing_cert], certificates, roots)
    return "B-LT" if all(revocation.proven(certificate, *trust.proofs) for certificate in needed) else "B-T"


def _revoked(embedded: EmbeddedPdfSignature, certificate: x509.Certificate, trust: Trust, moment: datetime) -> bool:
    """By a proof in the file. pyHanko asks only those whom the certificate itself names."""
    if trust.store is None:
        return False
    certificates = [*trust.anchors, *(issuer.dump() for issuer in embedded.other_embedded_certs)]
    certificates += [issuer.dump() for issuer in trust.store.load_certs()]
    since = revocation.revoked_since(certificate.dump(), certificates, *trust.proofs)
    return since is not None and since <= moment
