"""Sealing in this process, for tests of the jobs: an identity, and what the service does around them."""

import functools
import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pikepdf
from cryptography.hazmat.primitives import serialization

from services.rendering.jobs.sealing import certificates, cms, reserving
from services.rendering.protocol import messages

NOW = datetime.now(UTC).replace(microsecond=0)


@functools.cache
def identity(kind: certificates.KeyType = "ec-p256", when: datetime = NOW) -> certificates.SealIdentity:
    return certificates.parse(certificates.make(certificates.Names("Test Seal", "Test"), kind, when))


def text(when: datetime = NOW) -> messages.SignatureText:
    return messages.SignatureText("Test Seal", "Tested", when)


def reserved(data: bytes, size: int, when: datetime = NOW) -> messages.Reserved:
    """``data`` as it is, with a place for a seal of that size."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return reserving.reserve(pdf, text(when), size)


def finish(
    reserved: messages.Reserved, who: certificates.SealIdentity | None = None, token: bytes | None = None
) -> bytes:
    signer = (who or identity()).signer
    return cms.insert(
        reserved.data, reserved.start, reserved.size, signer.envelope(signer.sign(reserved.digest), token)
    )


def sealed(data: bytes, who: certificates.SealIdentity | None = None, when: datetime = NOW) -> bytes:
    """``data`` as it is, with our seal."""
    who = who or identity()
    return finish(reserved(data, who.signer.size, when), who)


def chain_of_earlier_version(folder: Path, *, beside: bool = False) -> certificates.SealIdentity:
    """A chain as earlier versions left it: with the root's key; ``beside`` as well in a file of a process that was killed."""
    names = certificates.Names("Test Seal", "Test")
    root_key, made = certificates.issue(names, "ec-p256", NOW - timedelta(days=400))
    leaf, root = (certificate.public_bytes(serialization.Encoding.PEM) for certificate in made.chain)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / certificates.FILE).write_bytes(_in_pem(made.key) + leaf + _in_pem(root_key) + root)
    (folder / certificates.ROOT_FILE).write_bytes(root)
    if beside:
        (folder / ".signing-killed").write_bytes((folder / certificates.FILE).read_bytes())
    return made


def keys_in(folder: Path) -> set[bytes]:
    """The public halves of all private keys that are in the clear in any file of the folder."""
    content = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    found = re.findall(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", content, re.DOTALL)
    return {public_half(serialization.load_pem_private_key(one, None).public_key()) for one in found}


def public_half(key: Any) -> bytes:
    encoded: bytes = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encoded


def _in_pem(key: cms.PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
