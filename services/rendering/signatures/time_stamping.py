"""Time-stamps and proofs of non-revocation: what lifts a seal from PAdES B-B to B-T and B-LT. Only fetching is done here,
what comes back is read by a child.

The proofs are gathered before a document is sealed and go into the same revision as the signature, so that the signature
covers them and the whole file. Which authority will answer is known from a first time-stamp, asked for as a sample.
"""

import base64
import hashlib
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from contracts.runtime.http.outbound import Outbound, OutboundFailed, OutboundRefused
from contracts.runtime.monitoring import observe
from contracts.types import Notice
from services.rendering.children.pool import JobFailed
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing import cms
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.protocol.messages import Question, Token, ValidationMaterial
from services.rendering.signatures.signatories import ProviderIdentity

log = observe.logger(__name__)

_LARGEST_ANSWER = 64 * 1024
_LARGEST_PROOF = 4 * 2**20
_PROOF_KEPT = timedelta(hours=6)
_TRIED_AGAIN_AFTER = timedelta(minutes=10)
_ROOM_TO_SPARE = 1024
_REQUEST = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}


class TimeStampFailed(Exception):
    """No authority gave a usable time-stamp; the message says what each of them did. It names hosts, never a login."""


class CertificateRevoked(Exception):
    """Our own certificate, or the authority's, was revoked: nothing may be sealed with it."""


class NotProven(Exception):
    """Nobody proves that a certificate was not revoked; the message says what each of them did."""


@dataclass(frozen=True)
class Proof:
    """An answer that a certificate was not revoked: ``kind`` is ``ocsp`` or ``crl``; ``until`` when it may be used."""

    kind: str
    answer: bytes
    until: datetime


@dataclass(frozen=True)
class Assurance:
    """How far a seal can go now: room for the signature, proofs to put into the file, what is missing."""

    size: int
    stamped: bool = False
    material: ValidationMaterial = field(default_factory=ValidationMaterial)
    notices: tuple[Notice, ...] = ()
    until: datetime | None = None


class TimeStamping:
    """Thread-safe. Without URLs every seal is B-B and nothing is called. ``to_authorities`` leads to ``urls``, ``outbound`` to
    whomever certificates name."""

    def __init__(
        self,
        urls: list[str],
        timeout: float,
        identity: SealIdentity | ProviderIdentity,
        renderer: Renderer,
        outbound: Outbound,
        to_authorities: Outbound,
    ) -> None:
        self._urls, self._timeout = urls, timeout
        self._identity, self._renderer = identity, renderer
        self._outbound, self._to_authorities = outbound, to_authorities
        self._lock, self._asking = threading.Lock(), threading.Lock()
        self._known: Assurance | None = None
        self._asked_until: datetime | None = None

    @property
    def configured(self) -> bool:
        return bool(self._urls)

    def plain(self) -> Assurance:
        """A seal without time-stamp."""
        return Assurance(size=self._identity.signer.size)

    def assurance(self, now: datetime) -> Assurance:
        """Return what to reserve and to embed. Raises TimeStampFailed when no authority answers, CertificateRevoked."""
        if not self._urls:
            return self.plain()
        with self._lock:
            if self._known is None or self._known.until is None or self._known.until <= now:
                self._known = self._gather(now)
            return self._known

    def stamp(self, signature: bytes) -> bytes:
        """An RFC 3161 token over ``signature``, from the first authority that gives one."""
        return self.stamp_digest(hashlib.sha256(signature).digest()).token

    def stamp_digest(self, digest: bytes) -> Token:
        """The same over what has this SHA-256. Raises TimeStampFailed."""
        return self._ask_all(digest)

    def forget(self) -> None:
        """Forget what was known: the authority answers with another certificate or a larger token."""
        with self._lock:
            self._known = None

    # --- time-stamps

    def sample(self) -> Token:
        """A time-stamp of nothing, which tells who gives them. Raises TimeStampFailed."""
        return self._ask_all(secrets.token_bytes(hashlib.sha256().digest_size))

    def _ask_all(self, digest: bytes) -> Token:
        failures = []
        for url in self._urls:
            try:
                return self._ask(url, digest)
            except (OutboundFailed, OutboundRefused, JobFailed, _BadAnswer) as error:
                failures.append(f"{urlsplit(url).hostname}: {error.reason}")
                log.warning("time_stamp.failed", authority=urlsplit(url).hostname, reason=error.reason)
        raise TimeStampFailed("; ".join(failures))

    def _ask(self, url: str, digest: bytes) -> Token:
        nonce = secrets.randbits(63)
        query = cms.time_stamp_request(digest, nonce)
        address, login = _without_login(url)
        answer = self._to_authorities.post(
            address,
            query,
            {**_REQUEST, **login},
            connect_timeout=self._timeout,
            total_timeout=self._timeout,
            max_response=_LARGEST_ANSWER + 1,
        )
        if answer.status != HTTPStatus.OK:
            raise _BadAnswer(f"answered {answer.status}")
        if len(answer.data) > _LARGEST_ANSWER:
            raise _BadAnswer("answered too much")
        return self._renderer.read_time_stamp(answer.data, digest, nonce)

    # --- proofs

    def _gather(self, now: datetime) -> Assurance:
        sample = self.sample()
        size = self._identity.signer.size + len(sample.token) + _ROOM_TO_SPARE
        own_certificates = self._identity.encoded
        certificates = list(dict.fromkeys([*own_certificates, *sample.certificates]))
        proofs = _Proofs(now + _PROOF_KEPT)
        if own_list := self._identity.revocation_list:
            proofs.revocation_lists.append(own_list)
        for question in self._renderer.revocation_questions(
            [own_certificates[0], sample.certificates[0]], certificates
        ):
            if not (own_list and question.serial == f"{self._identity.serial:x}"):
                try:
                    proofs.add(self.prove(question, certificates, now))
                except NotProven as error:
                    proofs.missing.append(
                        f"No proof of non-revocation for {question.subject} ({error}): the level stays B-T"
                    )
        material = ValidationMaterial(certificates, proofs.ocsp_responses, proofs.revocation_lists)
        if proofs.missing:
            # Half of the proofs prove nothing: the level stays B-T, and the file does not grow.
            material, proofs.until = ValidationMaterial(), now + _TRIED_AGAIN_AFTER
        notices = tuple(Notice(code="no_revocation_data", message=message) for message in proofs.missing)
        return Assurance(size=size, stamped=True, material=material, notices=notices, until=proofs.until)

    def refuse_revoked(self, now: datetime) -> None:
        """Raises CertificateRevoked when somebody whom the certificates name says that one of them was revoked. Who does not
        answer says nothing. Asked for again after some time only."""
        with self._asking:  # many submissions are ready at once: one of them asks
            if self._asked_until is not None and now < self._asked_until:
                return
            certificates = self._identity.encoded
            until = now + _PROOF_KEPT
            for question in self._renderer.revocation_questions([certificates[0]], certificates):
                try:
                    until = min(until, self.prove(question, certificates, now).until)
                except NotProven as error:
                    log.info("revocation.not_told", subject=question.subject, reason=str(error))
                    until = min(until, now + _TRIED_AGAIN_AFTER)
            self._asked_until = until

    def prove(self, question: Question, certificates: Sequence[bytes], now: datetime) -> "Proof":
        """Have it proven that a certificate was not revoked. Raises NotProven, CertificateRevoked."""
        reasons = []
        for kind in ("ocsp", "crl"):
            for url in question.ocsp if kind == "ocsp" else question.crl:
                try:
                    answer = self._outbound.fetch(url, max_bytes=_LARGEST_PROOF, timeout=self._timeout).data
                    verdict = self._renderer.check_revocation(kind, answer, question.serial, certificates, now)
                except (OutboundFailed, OutboundRefused, JobFailed) as error:
                    reasons.append(f"{urlsplit(url).hostname}: {error.reason}")
                    continue
                if verdict.until is None:
                    raise CertificateRevoked(f"{question.subject}: {verdict.revoked}")
                return Proof(kind, answer, verdict.until)
        raise NotProven("; ".join(reasons) or "its certificate names nobody to ask")


def _without_login(url: str) -> tuple[str, dict[str, str]]:
    """The URL without the login that may be in it, and the header that says it (RFC 7617)."""
    parts = urlsplit(url)
    if parts.username is None and parts.password is None:
        return url, {}
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return address, {"Authorization": f"Basic {base64.b64encode(login).decode()}"}


class _BadAnswer(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class _Proofs:
    until: datetime
    ocsp_responses: list[bytes] = field(default_factory=list)
    revocation_lists: list[bytes] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, proof: Proof) -> None:
        (self.ocsp_responses if proof.kind == "ocsp" else self.revocation_lists).append(proof.answer)
        self.until = min(self.until, proof.until)
