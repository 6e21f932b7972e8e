"""Sealing of one file at a time: a child made it ready, this process signs it with its key, a child reads it back."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from prometheus_client import Counter

from contracts.types import FieldDefinition
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing import cms
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.protocol import Place, Reserved, SignatureText, ValueDrawn
from services.rendering.sealing.time_stamping import Assurance, TimeStampFailed, TimeStamping

SEALED = Counter("rendering_seals_total", "Files sealed", ["level"])


class Sealer:
    """Makes sealed files. One per process, thread-safe."""

    def __init__(self, identity: SealIdentity, renderer: Renderer, stamping: TimeStamping, reason: str) -> None:
        self.identity, self._renderer, self._stamping, self._reason = identity, renderer, stamping, reason

    def place(self, assurance: Assurance, signed_at: datetime) -> Place:
        text = SignatureText(self.identity.name, self._reason, signed_at)
        return Place(text, assurance.size, assurance.material)

    def assurance(self, moment: datetime, *, with_time_stamp: bool = True) -> Assurance:
        """Raises TimeStampFailed, CertificateRevoked; without a time-stamp neither."""
        return self._stamping.assurance(moment) if with_time_stamp else self._stamping.plain()

    def sign(self, unsigned: Reserved, assurance: Assurance) -> bytes:
        """The sealed file. Raises TimeStampFailed."""
        signed = self.identity.signer.sign(unsigned.digest)
        token = self._stamping.stamp(signed.signature) if assurance.stamped else None
        try:
            return cms.insert(
                unsigned.data, unsigned.start, unsigned.size, self.identity.signer.envelope(signed, token)
            )
        except cms.TooLarge as error:
            self._stamping.forget()
            raise TimeStampFailed(f"the time-stamp is larger than the sample: {error}") from error

    def sign_statement(self, data: bytes, moment: datetime, *, with_time_stamp: bool) -> tuple[bytes, bool]:
        """A detached signature of ``data`` (CMS, DER), CAdES baseline B-B, or B-T with a time-stamp; whether it has one. Raises
        TimeStampFailed."""
        signer = self.identity.signer
        signed = signer.sign(hashlib.sha256(data).digest(), moment)
        stamped = with_time_stamp and self._stamping.configured
        return signer.envelope(signed, self._stamping.stamp(signed.signature) if stamped else None), stamped

    def check(
        self,
        data: bytes,
        *,
        pages: int,
        drawn: Sequence[ValueDrawn] = (),
        fields: Sequence[FieldDefinition] = (),
    ) -> str:
        """Read the file back; its PAdES level. Raises JobRefused."""
        level = self._renderer.check_seal(data, self.identity.encoded[0], pages=pages, drawn=drawn, fields=fields)
        SEALED.labels(level).inc()
        return level
