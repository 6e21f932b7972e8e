"""Sealing of one file at a time: a child made it ready, this process signs it with its key or a provider does with theirs, a
child reads it back."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from prometheus_client import Counter

from contracts.types import FieldDefinition
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing import cms
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.protocol.messages import Place, Reserved, SignatureText, ValueDrawn
from services.rendering.signatures.signatories import ProviderIdentity
from services.rendering.signatures.time_stamping import Assurance, TimeStampFailed, TimeStamping

SEALED = Counter("rendering_seals_total", "Files sealed", ["level"])


class Finisher:
    """Makes sealed files of files with a hole and of signatures, whoever made those. Thread-safe."""

    def __init__(
        self, identity: SealIdentity | ProviderIdentity, renderer: Renderer, stamping: TimeStamping, reason: str
    ) -> None:
        self._signatory, self._renderer, self._stamping, self._reason = identity, renderer, stamping, reason

    def place(self, assurance: Assurance, signed_at: datetime) -> Place:
        text = SignatureText(self._signatory.name, self._reason, signed_at)
        return Place(text, assurance.size, assurance.material)

    def assurance(self, moment: datetime, *, with_time_stamp: bool = True) -> Assurance:
        """Raises TimeStampFailed, CertificateRevoked; without a time-stamp neither."""
        return self._stamping.assurance(moment) if with_time_stamp else self._stamping.plain()

    def finish(self, unsigned: Reserved, signed: cms.Signed, *, stamped: bool) -> bytes:
        """The sealed file. Raises TimeStampFailed."""
        token = self._stamping.stamp(signed.signature) if stamped else None
        try:
            return cms.insert(
                unsigned.data, unsigned.start, unsigned.size, self._signatory.signer.envelope(signed, token)
            )
        except cms.TooLarge as error:
            self._stamping.forget()
            raise TimeStampFailed(f"the time-stamp is larger than the sample: {error}") from error

    def check(
        self,
        data: bytes,
        *,
        pages: int,
        drawn: Sequence[ValueDrawn] = (),
        fields: Sequence[FieldDefinition] = (),
    ) -> str:
        """Read the file back; its PAdES level. Raises JobRefused."""
        level = self._renderer.check_seal(data, self._signatory.encoded[0], pages=pages, drawn=drawn, fields=fields)
        SEALED.labels(level).inc()
        return level


class Sealer(Finisher):
    """Signs with this installation's own key. One per process."""

    def __init__(self, identity: SealIdentity, renderer: Renderer, stamping: TimeStamping, reason: str) -> None:
        super().__init__(identity, renderer, stamping, reason)
        self.identity = identity

    def sign(self, unsigned: Reserved, assurance: Assurance) -> bytes:
        """The sealed file. Raises TimeStampFailed."""
        return self.finish(unsigned, self.identity.signer.sign(unsigned.digest), stamped=assurance.stamped)

    def sign_detached(self, data: bytes, moment: datetime, *, with_time_stamp: bool) -> tuple[bytes, bool]:
        """A detached signature of ``data`` (CMS, DER), CAdES baseline B-B, or B-T with a time-stamp; whether it has one. Raises
        TimeStampFailed."""
        signer = self.identity.signer
        signed = signer.sign(hashlib.sha256(data).digest(), moment)
        stamped = with_time_stamp and self._stamping.configured
        return signer.envelope(signed, self._stamping.stamp(signed.signature) if stamped else None), stamped


class ProviderSealer(Finisher):
    """Has its files signed by a provider: tells what is to be signed, and takes the signature."""

    def __init__(self, identity: ProviderIdentity, renderer: Renderer, stamping: TimeStamping, reason: str) -> None:
        super().__init__(identity, renderer, stamping, reason)
        self.identity = identity

    def to_be_signed(self, unsigned: Reserved) -> tuple[bytes, bytes]:
        """The signed attributes of the file in DER, and their hash, which the provider is asked to sign."""
        signer = self.identity.signer
        attributes = signer.attributes(signer.digest(unsigned.data, unsigned.start, unsigned.size))
        return attributes, signer.to_be_signed(attributes)

    def refuse_revoked(self, moment: datetime) -> None:
        """Raises CertificateRevoked."""
        self._stamping.refuse_revoked(moment)

    @property
    def stamps(self) -> bool:
        """Return whether there is an authority for time-stamps."""
        return self._stamping.configured
