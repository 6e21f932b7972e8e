"""The port to a provider of remote certificates: three steps, in the order that PAdES prescribes, because the hash of the
certificate is part of what is signed.

``credential`` tells the certificate, ``authorize`` allows the signing of certain hashes, ``sign`` signs them. The first two
may take a person: they answer Pending. Failures raise ProviderFailed (``failures.py``)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from services.rendering.protocol.messages import Mechanism

__all__ = ["CertificateProvider", "Credential", "Grant", "Mechanism", "Pending", "Question"]


@dataclass(frozen=True)
class Credential:
    """A certificate that can be signed with: ``chain`` in DER, the signer's first; ``most_at_once`` hashes fit into one
    authorisation. ``bound``: an authorisation is for certain hashes only (SCAL 2). ``session``: what a person's login gave,
    for the next calls; opaque, secret."""

    id: str
    chain: tuple[bytes, ...]
    mechanisms: tuple[Mechanism, ...]
    bound: bool = True
    most_at_once: int = 1
    session: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Question:
    """Something that only the person knows, such as a one-time code: ``id`` as the provider calls it, ``label`` for
    people. ``hidden``: it is not to be seen while it is typed, as a PIN. ``numeric``: it is made of digits."""

    id: str
    label: str
    hidden: bool = False
    numeric: bool = False


@dataclass(frozen=True)
class Pending:
    """A person is needed, or time. Exactly one of: ``action_url`` to be visited, which comes back with a single-use code;
    ``questions`` to be answered; ``poll_after``, then ask again. ``session`` is to be given with the next call, opaque and
    secret. Nothing is worth asking after ``expires_at``."""

    session: str = field(repr=False)
    expires_at: datetime
    action_url: str | None = None
    questions: tuple[Question, ...] = ()
    poll_after: timedelta | None = None


@dataclass(frozen=True)
class Grant:
    """The provider's permission to sign, ``until`` a moment. ``secret`` is opaque, never logged, and sealed where it is
    kept."""

    secret: str = field(repr=False)
    until: datetime


class CertificateProvider(Protocol):
    """Thread-safe; remembers nothing that a restart may lose. ``idempotent``: it keeps its answers to ``sign`` by their keys,
    so that a request whose answer was lost is sent again; one that does not is asked for another permission then."""

    @property
    def idempotent(self) -> bool: ...

    def credential(
        self, session: str | None = None, answers: dict[str, str] | None = None, *, state: str | None = None
    ) -> Credential | Pending:
        """Tell the certificate. Where a person has to log in for that, ``answers`` and ``state`` are as of ``authorize``."""
        ...

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
        """Ask to be allowed to sign these hashes, at most ``credential.most_at_once``. ``label`` tells a person what is
        signed. ``answers`` to the questions, or ``{"code": ...}`` from the visited page, which comes back with ``state``. With
        the same ``idempotency_key`` it is the same request."""
        ...

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
        """Return a raw signature of each hash, in their order (of ECDSA: DER). They are not verified yet. Pending only with
        ``poll_after``."""
        ...
