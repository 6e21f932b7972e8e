"""A provider's credential and settings as rows keep them, and the way from files to their signatures that seals and signers'
confirmations have in common.

Files are prepared once, with a hole, and what was authorised is what is signed. A permission that may have been used is used up
before another one is asked for, and whoever keeps the keys of requests is never asked for a second signature by itself.
"""

import hashlib
import hmac
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from contracts.blobs import BlobRef
from contracts.evidence.sealed_text import NotOurs, seal, unseal
from contracts.providers import CertsignSettings
from contracts.rpc.rendering import FillRequest
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering.children.pool import JobRefused
from services.rendering.children.renderer import Renderer
from services.rendering.models import CertsignJob, CertsignSigning, Confirmation, ConfirmationSigning
from services.rendering.protocol.messages import Mechanism, Place, Signatory
from services.rendering.providers.certificates.certsign import CertificateProvider, Credential, Grant, Pending
from services.rendering.providers.failures import ProviderFailed
from services.rendering.rules import domain
from services.rendering.sealing.remote.provided import DRAWN
from services.rendering.settings import Settings
from services.rendering.signatures.sealer import ProviderSealer
from services.rendering.signatures.time_stamping import Assurance, TimeStampFailed

PDF = "application/pdf"
CREDENTIAL, AUTHORIZE, SIGN = "credential", "authorize", "sign"
MAY_HAVE_SIGNED = "may_have_signed"
"""What a failure is called after which nothing may be signed again before a person has looked."""

_LOOK_THERE = "it was asked before and may have signed: look there before you have it tried again"
_POLLED_FOR = timedelta(minutes=15)
_ROOM_FOR_TIME_STAMP, _ROOM_TO_SPARE = 16 * 1024, 4 * 1024
"""Octets. A prepared file is not made again, so what comes later must fit, also that of another authority."""

_VOID = {"grant_expired", "grant_used", "grant_refused"}
"""What an adapter calls it when the permission is worth nothing (any more) and another one can be had."""

_UNCLEAR = {"no_answer", "unavailable", "bad_answer", "invalid_request", "not_authorized"}
"""Failures after which nobody knows whether the provider has looked at PIN and code."""

Row = TypeVar("Row", CertsignJob, Confirmation)
Signing = CertsignSigning | ConfirmationSigning


# --- as rows keep it ------------------------------------------------------------------------------------------------------


def keepable(credential: Credential) -> dict[str, Any]:
    """The credential as JSON, without what is secret of it."""
    return {
        "id": credential.id,
        "chain": [b64encode(certificate).decode() for certificate in credential.chain],
        "mechanisms": [asdict(mechanism) for mechanism in credential.mechanisms],
        "bound": credential.bound,
        "most_at_once": credential.most_at_once,
    }


def kept_credential(prepared_for: Mapping[str, Any]) -> Credential:
    """The credential that a row keeps under ``credential``."""
    data = dict(prepared_for["credential"])
    chain = tuple(b64decode(certificate) for certificate in data.pop("chain"))
    mechanisms = tuple(Mechanism(**mechanism) for mechanism in data.pop("mechanisms"))
    return Credential(chain=chain, mechanisms=mechanisms, **data)


def mark_of(settings: CertsignSettings, secret: str) -> str:
    """Names settings without telling anything of them."""
    text = settings.model_dump_json().encode()
    return hmac.new(secret.encode(), b"certsign settings " + text, "sha256").hexdigest()


def counts_tries(settings: CertsignSettings, provider: CertificateProvider) -> bool:
    """Return whether settings have what a provider counts when it is wrong, each time that it is sent. Who keeps the keys of
    requests takes the same one for the same try."""
    return not provider.idempotent and bool(settings.authorization.pin or settings.authorization.totp)


def may_have_counted(failed: ProviderFailed) -> bool:
    """Return whether a PIN or a code may have been refused, and counted: it says so, its answer was lost or is none, or its
    words are not among those that are known."""
    return failed.counts or failed.code in _UNCLEAR


def opened(secret: str, purpose: str, sealed: str | None) -> str | None:
    """The text that was sealed; None where there is none, and when it is of another purpose, or LINK_SECRET was changed
    since."""
    if sealed is None:
        return None
    try:
        return unseal(secret, purpose, sealed)
    except NotOurs:
        return None


# --- files ----------------------------------------------------------------------------------------------------------------


def is_prepared(signings: Sequence[Signing], documents: int, signatory: Signatory) -> bool:
    """Return whether all files are there, and made for this certificate."""
    made_for = hashlib.sha256(signatory.chain[0]).hexdigest(), _name_of(signatory.mechanism)
    return len(signings) == documents and all(
        (signing.certificate_sha256, signing.mechanism) == made_for for signing in signings
    )


def roomy_assurance(sealer: ProviderSealer, faults: int, settings: Settings) -> Assurance:
    """Return what goes into the files before they are signed; with room for whatever time-stamp will come. Raises
    TimeStampFailed."""
    try:
        assurance = sealer.assurance(now())
    except TimeStampFailed:
        if not domain.goes_without_time_stamp(faults + 1, settings.tsa_attempts):
            raise
        assurance = sealer.assurance(now(), with_time_stamp=False)
    if assurance.stamped:
        return replace(assurance, size=assurance.size + _ROOM_TO_SPARE)
    return replace(assurance, size=assurance.size + _ROOM_FOR_TIME_STAMP) if sealer.stamps else assurance


@dataclass(frozen=True)
class Preparation:
    """What makes files ready for a provider's signature."""

    renderer: Renderer
    blobs: BlobStore
    sealer: ProviderSealer
    place: Place
    attachments: Sequence[bytes]

    def prepared(self, request: FillRequest, uuid: str, file: BlobRef, key: str) -> dict[str, Any]:
        """Fill a document in, with a hole for the signature, and store it under ``key``. Returns what its row says of it."""
        data = self.blobs.get(file)
        filled = self.renderer.fill_and_reserve(request, uuid, data, self.attachments, self.place)
        attributes, digest = self.sealer.to_be_signed(filled.reserved)
        return {
            "document": uuid,
            "prepared": self.store(filled.reserved.data, key).model_dump(mode="json"),
            "start": filled.reserved.start,
            "size": filled.reserved.size,
            "drawn": DRAWN.dump_python(list(filled.drawn), mode="json"),
            "conformance": filled.conformance,
            "mechanism": _name_of(self.sealer.identity.signatory.mechanism),
            "certificate_sha256": self.sealer.identity.sha256,
            "attributes": attributes,
            "hash": digest,
        }

    def store(self, data: bytes, key: str) -> BlobRef:
        """Store a PDF under ``key``."""
        return stored(self.blobs, data, key)


def stored(blobs: BlobStore, data: bytes, key: str) -> BlobRef:
    """A PDF under a key that was noted down before, so that it is found whatever is killed."""
    prefix, _, name = key.rpartition("/")
    return blobs.put(data, PDF, f"{prefix}/", name=name)


def _name_of(mechanism: Mechanism) -> str:
    return f"{mechanism.algorithm}-{mechanism.hash}"


# --- permission and signatures --------------------------------------------------------------------------------------------


class Rows(ABC, Generic[Row]):
    """A table whose rows ask for signatures: its transactions, and what it calls things. ``grants`` and ``sessions`` are the
    purposes of sealed texts; a grant that ends within ``last_moment`` is not used any more, the answer might come too late."""

    grants: str
    sessions: str
    last_moment: timedelta

    @abstractmethod
    def session_of(self, row: Row, step: str) -> str | None:
        """The sealed session, if the next request may be this step."""

    @abstractmethod
    def key(self, row: Row, step: str) -> str:
        """Names a request for ever: whatever is killed, the same one is sent again under it, and no other one."""

    @abstractmethod
    def begin_authorization(self, row: Row, code: str) -> Row:
        """The permission is void, for the reason that ``code`` says: the next request is another one."""

    @abstractmethod
    def keep_grant(self, row: Row, sealed: str, until: datetime) -> Row:
        """The provider permits it."""


@dataclass(frozen=True)
class SigningBatch(Generic[Row]):
    """What a provider is asked to sign for a row, in one authorisation. ``keeps_grant``: the permission is written down before
    it is used, because another one costs something, or because this one may only be used under its key."""

    row: Row
    provider: CertificateProvider
    credential: Credential
    signatory: Signatory
    signings: Sequence[Signing]
    keeps_grant: bool = True

    @property
    def hashes(self) -> tuple[bytes, ...]:
        return tuple(signing.hash for signing in self.signings)


@dataclass(frozen=True)
class AtWork(Generic[Row]):
    """The provider needs time: it is asked again ``after`` that, ``until`` then, with its sealed ``session``."""

    row: Row
    session: str
    until: datetime
    after: timedelta


class PermissionVoid(Exception):
    """The permission was refused, and may have been used up by a request whose answer was lost: another one is asked for."""

    def __init__(self, failed: ProviderFailed) -> None:
        super().__init__(failed)
        self.failed = failed


class Signatures(Generic[Row]):
    """How the files of a row get their signatures. Thread-safe; remembers nothing."""

    def __init__(self, rows: Rows[Row], renderer: Renderer, secret: str) -> None:
        self._rows: Rows[Row] = rows
        self._renderer, self._secret = renderer, secret

    def session(self, row: Row, step: str) -> str | None:
        """Return what the provider wants to have with the next request, if that is this step."""
        return opened(self._secret, f"{self._rows.sessions} {step}", self._rows.session_of(row, step))

    def sealed_session(self, step: str, session: str) -> str:
        """Return what ``session`` opens."""
        return seal(self._secret, f"{self._rows.sessions} {step}", session)

    def obtain(
        self, batch: SigningBatch[Row], permitted: Callable[[Row], tuple[Row, Grant]]
    ) -> tuple[Row, dict[int, bytes]] | AtWork[Row]:
        """Have these files signed: the signatures, which were verified, by the numbers of their documents. ``permitted`` asks
        for a permission, where none is kept that is still good. Raises ProviderFailed, PermissionVoid, and what ``permitted``
        does."""
        row, provider, hashes = batch.row, batch.provider, batch.hashes
        asked_before = row.grant is not None
        grant = self._kept_grant(row, provider)
        unwritten = grant is None
        if grant is None:
            if asked_before:
                row = self._rows.begin_authorization(row, "grant_expired")
            row, grant = permitted(row)
            if batch.keeps_grant:
                row, unwritten = self._keep(row, grant), False
        try:
            answer = provider.sign(
                batch.credential,
                grant,
                hashes,
                batch.signatory.mechanism,
                session=self.session(row, SIGN),
                idempotency_key=self._rows.key(row, SIGN),
            )
        except ProviderFailed as failed:
            if failed.code not in _VOID and unwritten:
                row = self._keep(row, grant)
            raise self._not_signed(row, provider, failed, asked_before=asked_before) from failed
        if isinstance(answer, Pending):
            if answer.poll_after is None:
                raise ProviderFailed("bad_answer", "a signature can only be waited for", retryable=False)
            return self.at_work(self._keep(row, grant) if unwritten else row, provider, SIGN, answer)
        leaf = batch.signatory.chain[0]
        try:
            valid = self._renderer.check_signatures(leaf, batch.signatory.mechanism, hashes, answer)
        except JobRefused as refused:
            raise ProviderFailed("bad_signature", refused.reason, retryable=False) from refused
        return row, {signing.number: signature for signing, signature in zip(batch.signings, valid, strict=True)}

    def at_work(self, row: Row, provider: CertificateProvider, step: str, pending: Pending) -> AtWork[Row]:
        """Return how it is asked again that needs time for ``step``. Raises ProviderFailed when that time is over."""
        assert pending.poll_after is not None
        known_until = row.session_until if self.session(row, step) is not None else None
        until = known_until or min(pending.expires_at, now() + _POLLED_FOR)
        if now() >= until:
            message = "the provider did not finish within its time"
            if step == SIGN and provider.idempotent:
                raise ProviderFailed(MAY_HAVE_SIGNED, f"{message} ({_LOOK_THERE})", retryable=False)
            self._rows.begin_authorization(row, "too_slow")
            raise ProviderFailed("too_slow", message, retryable=True)
        return AtWork(row, self.sealed_session(step, pending.session), until, pending.poll_after)

    def _kept_grant(self, row: Row, provider: CertificateProvider) -> Grant | None:
        """The permission that was given before, if it is still good."""
        if row.grant is None or row.grant_until is None:
            return None
        # Whoever keeps keys is asked again under this one, however long ago it was: it may have signed.
        used = self.session(row, SIGN) is not None or provider.idempotent
        if not used and now() >= row.grant_until - self._rows.last_moment:
            return None
        secret = opened(self._secret, self._rows.grants, row.grant)
        return None if secret is None else Grant(secret, row.grant_until)

    def _keep(self, row: Row, grant: Grant) -> Row:
        return self._rows.keep_grant(row, seal(self._secret, self._rows.grants, grant.secret), grant.until)

    def _not_signed(
        self, row: Row, provider: CertificateProvider, failed: ProviderFailed, *, asked_before: bool
    ) -> Exception:
        if asked_before and not failed.retryable and provider.idempotent:
            # It knows what it did under this key. Under another one it might sign a second time.
            return ProviderFailed(MAY_HAVE_SIGNED, f"{failed.message} ({_LOOK_THERE})", retryable=False)
        if failed.code in _VOID or (asked_before and not failed.retryable and not failed.counts):
            self._rows.begin_authorization(row, failed.code)
            return PermissionVoid(failed)
        return failed
