"""A provider of certificates in this process: a real key under a root of its own, real permissions, and faults at will."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from contracts.evidence.sealed_text import seal
from contracts.providers import CERTSIGN, CertsignOrder, CertsignSettings
from services.rendering.jobs.sealing import certificates
from services.rendering.jobs.sealing.certificates import KeyType, SealIdentity
from services.rendering.providers.certificates.certsign import Credential, Grant, Mechanism, Pending
from services.rendering.providers.failures import ProviderFailed
from tests.support.services.secret_settings import LINK_SECRET

Fault = Callable[[], None]


def lost() -> None:
    """The request was not answered."""
    raise ProviderFailed("no_answer", "the provider did not answer", retryable=True)


def identity(name: str = "Meier GmbH Seal", kind: KeyType = "ec-p256") -> SealIdentity:
    names = certificates.Names(name, "Meier GmbH")
    return certificates.parse(certificates.make(names, kind, datetime.now(UTC) - timedelta(days=1)))


def root_of(own: SealIdentity) -> str:
    return own.chain[-1].public_bytes(serialization.Encoding.PEM).decode()


@dataclass
class RemoteKey:
    """A CertificateProvider. A permission is for certain hashes and used once; a request with the ``idempotency_key`` of an
    earlier one is that request. ``before`` and ``after`` are called by each step's name, before and after it is done: what
    they raise is what the caller sees, whatever was done."""

    own: SealIdentity = field(default_factory=identity)
    most_at_once: int = 100
    idempotent: bool = True
    shuffled: bool = False
    polls: int = 0
    before: dict[str, list[Fault]] = field(default_factory=dict)
    after: dict[str, list[Fault]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    permitted: list[tuple[bytes, ...]] = field(default_factory=list)
    signed: list[bytes] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    _grants: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _answers: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def credential(
        self, session: str | None = None, answers: dict[str, str] | None = None, *, state: str | None = None
    ) -> Credential | Pending:
        self._fault(self.before, "credential")
        algorithm = "rsa" if isinstance(self.own.key, rsa.RSAPrivateKey) else "ecdsa"
        self._fault(self.after, "credential")
        return Credential("key-1", tuple(self.own.encoded), (Mechanism(algorithm),), most_at_once=self.most_at_once)

    def authorize(
        self,
        credential: Credential,
        hashes: tuple[bytes, ...],
        mechanism: Mechanism,
        label: str,
        *,
        session: str | None = None,
        answers: dict[str, str] | None = None,
        state: str | None = None,
        idempotency_key: str,
    ) -> Grant | Pending:
        self._fault(self.before, "authorize")
        assert len(hashes) <= credential.most_at_once
        with self._lock:
            number = f"grant {len(self._grants)}"
            self._grants[number] = hashes
            self.permitted.append(hashes)
            self.labels.append(label)
        self._fault(self.after, "authorize")
        return Grant(number, datetime.now(UTC) + timedelta(minutes=5))

    def sign(
        self,
        credential: Credential,
        grant: Grant,
        hashes: tuple[bytes, ...],
        mechanism: Mechanism,
        *,
        session: str | None = None,
        idempotency_key: str,
    ) -> tuple[bytes, ...] | Pending:
        self._fault(self.before, "sign")
        if self.polls:
            self.polls -= 1
            soon = timedelta(seconds=2)
            return Pending(session=f"session {self.polls}", expires_at=datetime.now(UTC) + soon * 60, poll_after=soon)
        with self._lock:
            if idempotency_key not in self._answers or not self.idempotent:
                if grant.secret in self._used:
                    raise ProviderFailed("refused", "the permission was used already", retryable=False)
                assert self._grants[grant.secret] == hashes, "what was authorised is what is signed"
                self._used.add(grant.secret)
                self.signed.extend(hashes)
                self._answers[idempotency_key] = tuple(self._raw(one) for one in hashes)
            signatures = self._answers[idempotency_key]
        self._fault(self.after, "sign")
        return tuple(reversed(signatures)) if self.shuffled else signatures

    def _raw(self, digest: bytes) -> bytes:
        if isinstance(self.own.key, rsa.RSAPrivateKey):
            return self.own.key.sign(digest, padding.PKCS1v15(), Prehashed(hashes.SHA256()))
        return self.own.key.sign(digest, ec.ECDSA(Prehashed(hashes.SHA256())))

    def _fault(self, faults: dict[str, list[Fault]], step: str) -> None:
        if faults is self.before:
            self.calls[step] += 1
        waiting = faults.get(step)
        if waiting:
            waiting.pop(0)()


def order(own: SealIdentity, **more: Any) -> CertsignOrder:
    """The order of an account whose provider has this key."""
    settings = CertsignSettings(url="https://sign.example.com", trust_anchors=[root_of(own)], **more)
    return CertsignOrder(settings=seal(LINK_SECRET, CERTSIGN, settings.model_dump_json()), provider="sign.example.com")
