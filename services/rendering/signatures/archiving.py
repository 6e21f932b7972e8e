"""The step from PAdES B-LT to B-LTA, at the end of sealing and again years later: ``Archiver.archive`` takes a file and gives
it back longer. Children work on the file, the authorities are asked here."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.runtime.clock import now
from contracts.runtime.monitoring import observe
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing import cms
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.protocol.messages import Question, Token, ValidationMaterial
from services.rendering.signatures.time_stamping import CertificateRevoked, NotProven, Proof, TimeStamping

log = observe.logger(__name__)

LEVEL = "B-LTA"
_KNOWN_FOR = timedelta(hours=6)
_ROOM_TO_SPARE = 1024


class NotArchived(Exception):
    """The file does not come to B-LTA now; the message says why. The file that was given is as good as it was."""


@dataclass(frozen=True)
class Archived:
    """A file with a new archive time-stamp; ``until`` the authority's certificates last."""

    data: bytes
    stamped_at: datetime
    until: datetime


class Archiver:
    """Thread-safe. Remembers for some hours who gives time-stamps, and proofs that many files need. ``identity`` is that of our
    own seals: a chain that was made here brings its list of revoked certificates along."""

    def __init__(self, renderer: Renderer, stamping: TimeStamping, identity: SealIdentity) -> None:
        self._renderer, self._stamping, self._identity = renderer, stamping, identity
        self._lock = threading.Lock()
        self._sample: tuple[Token, datetime] | None = None
        self._proofs: dict[tuple[str, ...], Proof] = {}

    def archive(self, data: bytes) -> Archived:
        """Add the proofs that the file lacks, and a time-stamp over all of it. Raises NotArchived, TimeStampFailed,
        CertificateRevoked, and what children raise."""
        moment = now()
        sample = self._authority(moment)
        survey = self._renderer.survey_archive(data, sample.certificates)
        proofs = [self._prove(question, survey.certificates, moment) for question in survey.required]
        for question in survey.others:
            try:
                proofs.append(self._prove(question, survey.certificates, moment))
            except (NotArchived, CertificateRevoked) as error:
                log.info("archive.not_proven", subject=question.subject, reason=str(error))
        material = ValidationMaterial(
            certificates=survey.certificates,
            ocsp_responses=list(dict.fromkeys(proof.answer for proof in proofs if proof.kind == "ocsp")),
            revocation_lists=list(dict.fromkeys(proof.answer for proof in proofs if proof.kind != "ocsp")),
        )
        reserved = self._renderer.reserve_archive(data, material, len(sample.token) + _ROOM_TO_SPARE)
        token = self._stamping.stamp_digest(reserved.digest)
        if token.certificates[0] != sample.certificates[0]:
            self._forget()  # another authority answers now: whose proofs the file lacks
            raise NotArchived("the authority answers with another certificate than a moment ago")
        try:
            archived = cms.insert(reserved.data, reserved.start, reserved.size, token.token)
        except cms.TooLarge as error:
            self._forget()
            raise NotArchived(f"the time-stamp is larger than the sample: {error}") from error
        if not archived.startswith(data):
            raise NotArchived("the file would not be the same any more")
        checked = self._renderer.check_archive(archived)
        if checked.level != LEVEL:
            raise NotArchived(f"its seal is PAdES {checked.level} only")
        return Archived(archived, checked.stamped_at, checked.until)

    def _authority(self, moment: datetime) -> Token:
        with self._lock:
            if self._sample is None or self._sample[1] <= moment:
                self._sample = self._stamping.sample(), moment + _KNOWN_FOR
            return self._sample[0]

    def _forget(self) -> None:
        with self._lock:
            self._sample = None

    def _prove(self, question: Question, certificates: Sequence[bytes], moment: datetime) -> Proof:
        """Raises NotArchived, CertificateRevoked."""
        own_certificate, own_list = self._identity.chain[0], self._identity.revocation_list
        if own_list is not None and question.serial == f"{own_certificate.serial_number:x}":
            return Proof("crl", own_list, own_certificate.not_valid_after_utc)
        key = (question.serial, *question.ocsp, *question.crl)
        with self._lock:
            kept_proof = self._proofs.get(key)
        if kept_proof is not None and kept_proof.until > moment:
            return kept_proof
        try:
            proof = self._stamping.prove(question, certificates, moment)
        except NotProven as error:
            raise NotArchived(f"no proof of non-revocation for {question.subject} ({error})") from error
        with self._lock:
            self._proofs = {name: stored for name, stored in self._proofs.items() if stored.until > moment}
            self._proofs[key] = Proof(proof.kind, proof.answer, min(proof.until, moment + _KNOWN_FOR))
        return proof
