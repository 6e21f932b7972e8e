"""Sealing in this process, for tests of the jobs: an identity, and what the service does around them."""

import functools
import io
from datetime import UTC, datetime

import pikepdf

from services.rendering.jobs import certificates, cms, seal

NOW = datetime.now(UTC).replace(microsecond=0)


@functools.cache
def identity(kind: certificates.KeyType = "ec-p256", when: datetime = NOW) -> certificates.SealIdentity:
    return certificates.parse(certificates.make(certificates.Names("Test Seal", "Test"), kind, when))


def text(when: datetime = NOW) -> seal.SignatureText:
    return seal.SignatureText("Test Seal", "Tested", when)


def finish(reserved: seal.Reserved, who: certificates.SealIdentity | None = None, token: bytes | None = None) -> bytes:
    signer = (who or identity()).signer
    return cms.insert(
        reserved.data, reserved.start, reserved.size, signer.envelope(signer.sign(reserved.digest), token)
    )


def sealed(data: bytes, who: certificates.SealIdentity | None = None, when: datetime = NOW) -> bytes:
    """``data`` as it is, with our seal."""
    who = who or identity()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return finish(seal.reserve(pdf, text(when), who.signer.size), who)
