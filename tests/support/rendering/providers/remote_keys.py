"""A provider's certificates and keys in this process, for tests of what is done with remote signatures."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.x509.oid import NameOID

from services.rendering.jobs.sealing.cms import HASHES
from services.rendering.protocol.messages import Mechanism

NOW = datetime.now(UTC).replace(microsecond=0)
DER = serialization.Encoding.DER


@functools.cache
def new_key(kind: str) -> Any:
    """``rsa-<bits>``, the name of a curve, ``dsa`` or ``ed25519``. Made once per run: making an RSA key takes long."""
    curves: dict[str, type[ec.SECP256R1 | ec.SECP384R1 | ec.SECP521R1 | ec.SECP192R1]] = {
        "p256": ec.SECP256R1,
        "p384": ec.SECP384R1,
        "p521": ec.SECP521R1,
        "p192": ec.SECP192R1,
    }
    if kind in curves:
        return ec.generate_private_key(curves[kind]())
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind == "dsa":
        return dsa.generate_private_key(2048)
    return rsa.generate_private_key(65537, int(kind.removeprefix("rsa-").partition(":")[0]))


@dataclass(frozen=True)
class Issued:
    """``chain``: the signer's certificate, that of the issuing CA, the root."""

    key: Any
    chain: tuple[x509.Certificate, ...]

    @property
    def encoded(self) -> list[bytes]:
        return [one.public_bytes(DER) for one in self.chain]

    @property
    def root(self) -> bytes:
        return self.encoded[-1]

    def sign(self, mechanism: Mechanism, digest: bytes) -> bytes:
        """As a provider does: of the hash."""
        digested = HASHES[mechanism.hash]
        if mechanism.algorithm == "ecdsa":
            signature = self.key.sign(digest, ec.ECDSA(Prehashed(digested)))
        elif mechanism.algorithm == "rsa-pss":
            salt = padding.PSS(padding.MGF1(digested), padding.PSS.DIGEST_LENGTH)
            signature = self.key.sign(digest, salt, Prehashed(digested))
        else:
            signature = self.key.sign(digest, padding.PKCS1v15(), Prehashed(digested))
        assert isinstance(signature, bytes)
        return signature


def issue(
    kind: str = "rsa-2048",
    *,
    signing: bool = True,
    since: datetime = NOW - timedelta(days=1),
    until: datetime = NOW + timedelta(days=30),
    issuer_until: datetime = NOW + timedelta(days=3000),
    issuer_is_ca: bool = True,
    issuer_kind: str = "p256",
    digest: Any = None,
    purposes: Sequence[x509.ObjectIdentifier] = (),
) -> Issued:
    """A chain of three whose first is of a key of that ``kind``."""
    root_key, issuer_key, key = new_key("p384"), new_key(issuer_kind), new_key(kind)
    early = NOW - timedelta(days=4000)
    root = _certificate("Root", root_key, "Root", root_key, early, NOW + timedelta(days=9000), ca=True)
    issuer = _certificate("Issuing CA", issuer_key, "Root", root_key, early, issuer_until, ca=issuer_is_ca)
    leaf = _certificate(
        "Acme Remote Seal",
        key,
        "Issuing CA",
        issuer_key,
        since,
        until,
        signing=signing,
        digest=digest,
        purposes=purposes,
    )
    return Issued(key, (leaf, issuer, root))


def _certificate(
    name: str,
    key: Any,
    issuer: str,
    issuer_key: Any,
    since: datetime,
    until: datetime,
    *,
    ca: bool = False,
    signing: bool = True,
    digest: Any = None,
    purposes: Sequence[x509.ObjectIdentifier] = (),
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=signing and not ca,
                content_commitment=signing and not ca,
                key_encipherment=not signing,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=ca,
                crl_sign=ca,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    return builder.sign(issuer_key, digest or hashes.SHA256())


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Acme"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
