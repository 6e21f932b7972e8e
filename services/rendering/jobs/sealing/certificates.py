"""The key and the certificates of the seal: made on first start, or the operator's own PKCS#12 (or PKCS#11: ``token_keys``).

The private key is loaded and checked once and stays in the memory of the service's own processes; it never goes to a
child, because children parse files from outside.

Of a root that is made here the key is forgotten as soon as it has signed what it is there for: the leaf, and the list of
revoked certificates, which is empty and stays so. It is written nowhere. Whoever gets at our files can seal in our name, but
make no other certificate that our readers trust. Nothing needs it later: a leaf is never renewed, a new one has a new root.
"""

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from services.rendering.jobs.sealing.cms import CmsSigner, PrivateKey

KeyType = Literal["rsa-3072", "ec-p256"]

FILE = "signing.pem"
ROOT_FILE = "root.crt"
_ROOT_YEARS, _LEAF_YEARS = 40, 30
_TEMPORARY = ".signing-"
_BEGINNING_OF_A_KEY = b"-----BEGIN PRIVATE KEY-----"
_SMALLEST_RSA = 2048


class UnusableCertificate(Exception):
    """The operator's certificate or key cannot be used; the message says why and what to do."""


class KeyUnavailable(Exception):
    """The key, which is in a token, does not sign now; the message says why. It may later."""


@dataclass(frozen=True)
class Names:
    """What the certificates say about whose seal it is."""

    common_name: str = "Countersign Seal"
    organization: str = "Countersign"
    country: str | None = None

    def as_x509(self, common_name: str) -> x509.Name:
        attributes = [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, self.organization),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
        if self.country:
            attributes.insert(0, x509.NameAttribute(NameOID.COUNTRY_NAME, self.country))
        return x509.Name(attributes)


@dataclass(frozen=True)
class SealIdentity:
    """``chain`` is leaf first. ``revocation_list`` is there only for a chain of our own: the empty CRL of its root (RFC 5280,
    section 5; DER) that PAdES B-LT wants to see, good for as long as the leaf is."""

    key: PrivateKey
    chain: tuple[x509.Certificate, ...]
    revocation_list: bytes | None = field(default=None, repr=False)

    @cached_property
    def signer(self) -> CmsSigner:
        return CmsSigner(self.key, self.chain)

    @property
    def name(self) -> str:
        """The common name, else the organisation, of the sealing certificate."""
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):
            if values := self.chain[0].subject.get_attributes_for_oid(oid):
                return str(values[0].value)
        return self.chain[0].subject.rfc4514_string()

    @property
    def encoded(self) -> list[bytes]:
        """The chain in DER, leaf first."""
        return [certificate.public_bytes(serialization.Encoding.DER) for certificate in self.chain]

    @property
    def serial(self) -> int:
        """Of the leaf."""
        return self.chain[0].serial_number

    @property
    def expires_at(self) -> datetime:
        """The end of the shortest-lived certificate of the chain."""
        return min(certificate.not_valid_after_utc for certificate in self.chain)

    def problem(self, now: datetime) -> str | None:
        """Return why nothing may be sealed now, or None."""
        leaf = self.chain[0]
        if now < leaf.not_valid_before_utc:
            return f"the signing certificate is not valid before {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        if now >= self.expires_at:
            return f"the signing certificate expired on {self.expires_at:%Y-%m-%d %H:%M} UTC"
        return None


def load_or_make(directory: Path, names: Names, key_type: KeyType, now: datetime) -> SealIdentity:
    """The identity kept in ``directory``; made there when there is none.

    Several processes may start at once: each makes its own, the first to link the finished file into place wins and
    all of them load that one. The file is complete or absent, whatever is killed, and readable by its owner only.
    """
    path = directory / FILE
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        _put(path, make(names, key_type, now), _unless_there)
    identity = _read(path, now)
    _publish_root(directory / ROOT_FILE, identity)
    return identity


def forget_root_key(directory: Path, now: datetime) -> bool:
    """Take the root's key out of ``directory``, where earlier versions kept it; was there one?

    The file with the leaf's key is replaced whole, by one with a list of revoked certificates instead: whatever is killed, it
    is there, and what is left to do is done the next time. Several processes may do it at once. Raises OSError where the
    folder cannot be written to, UnusableCertificate.
    """
    path, forgotten = directory / FILE, False
    if path.exists() and _holds_root_key(path):
        _put(path, _pem(_read(path, now)), os.replace)
        forgotten = True
    for left in directory.glob(f"{_TEMPORARY}*"):  # of a process that was killed while it made the chain
        with contextlib.suppress(FileNotFoundError):
            if _holds_root_key(left):
                left.unlink()
                forgotten = True
    return forgotten


def make(names: Names, key_type: KeyType, now: datetime) -> bytes:
    """A new root and leaf: PEM of the leaf's key, leaf, root, list of revoked certificates."""
    _root_key, identity = issue(names, key_type, now)
    return _pem(identity)


def issue(names: Names, key_type: KeyType, now: datetime) -> tuple[PrivateKey, SealIdentity]:
    """A new root's key, which nobody may keep, and what it has certified."""
    root_key, leaf_key = _new_key(key_type), _new_key(key_type)
    root_name = names.as_x509(f"{names.organization} Root {secrets.token_hex(3)}")
    root = _certificate(root_name, root_name, root_key.public_key(), root_key, None, now, _ROOT_YEARS)
    leaf = _certificate(
        names.as_x509(names.common_name), root_name, leaf_key.public_key(), root_key, root, now, _LEAF_YEARS
    )
    return root_key, SealIdentity(leaf_key, (leaf, root), _empty_list(root_key, root, leaf, now))


def load_pkcs12(path: Path, password: str | None) -> SealIdentity:
    """The operator's key and chain. Raises UnusableCertificate with a plain reason."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnusableCertificate(f"SIGNING_PKCS12_FILE {path} cannot be read: {error.strerror}") from error
    try:
        stored = pkcs12.load_pkcs12(data, password.encode() if password else None)
    except ValueError as error:
        raise UnusableCertificate(f"{path} is not a PKCS#12 file, or SIGNING_PKCS12_PASSWORD is wrong") from error
    if stored.key is None or stored.cert is None:
        raise UnusableCertificate(f"{path} must hold a private key and its certificate")
    if not isinstance(stored.key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise UnusableCertificate(f"{path}: only RSA and elliptic curve keys can seal")
    if isinstance(stored.key, rsa.RSAPrivateKey):
        refuse_short(stored.key.public_key(), path)
    additional = [extra.certificate for extra in stored.additional_certs]
    return SealIdentity(stored.key, ordered(stored.cert.certificate, additional))


def refuse_short(key: rsa.RSAPublicKey, path: Path) -> None:
    """Raises UnusableCertificate for a key that nobody accepts; ``path`` is where its certificate is."""
    if key.key_size < _SMALLEST_RSA:
        raise UnusableCertificate(f"{path}: an RSA key of {key.key_size} bits is too short")


def read_anchors(directory: Path | None) -> list[bytes]:
    """Certificates (PEM or DER, ``*.pem``, ``*.crt``, ``*.cer``) that ``verify`` trusts besides our own root, in DER."""
    anchors: list[bytes] = []
    for path in sorted(directory.iterdir()) if directory else []:
        if path.suffix.lower() not in {".pem", ".crt", ".cer"}:
            continue
        data = path.read_bytes()
        try:
            certificates = (
                x509.load_pem_x509_certificates(data)
                if b"-----BEGIN" in data
                else [x509.load_der_x509_certificate(data)]
            )
        except ValueError as error:
            raise UnusableCertificate(f"{path} is not a certificate: {error}") from error
        anchors.extend(certificate.public_bytes(serialization.Encoding.DER) for certificate in certificates)
    return anchors


def _new_key(key_type: KeyType) -> PrivateKey:
    if key_type == "ec-p256":
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=3072)


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey,
    issuer_key: PrivateKey,
    issuer_certificate: x509.Certificate | None,
    now: datetime,
    years: int,
) -> x509.Certificate:
    """RFC 5280 profile. No extended key usage: readers that know only some purposes refuse the others."""
    root = issuer_certificate is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before((now - timedelta(hours=1)).replace(microsecond=0))
        .not_valid_after((now + timedelta(days=365.25 * years)).replace(microsecond=0))
        .add_extension(x509.BasicConstraints(ca=root, path_length=0 if root else None), critical=True)
        .add_extension(_key_usage(root=root), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )
    if issuer_certificate is not None:
        builder = builder.add_extension(_authority_key(issuer_certificate), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _empty_list(root_key: PrivateKey, root: x509.Certificate, leaf: x509.Certificate, now: datetime) -> bytes | None:
    """The list of revoked certificates until the leaf expires; None when it has."""
    if now >= leaf.not_valid_after_utc:
        return None
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(root.subject)
        .last_update((now - timedelta(minutes=5)).replace(microsecond=0))
        .next_update(leaf.not_valid_after_utc)
        .add_extension(x509.CRLNumber(int(now.timestamp())), critical=False)
        .add_extension(_authority_key(root), critical=False)
    )
    return builder.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def _key_usage(*, root: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not root,
        content_commitment=not root,
        key_cert_sign=root,
        crl_sign=root,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_key(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    subject_key = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key)


def ordered(leaf: x509.Certificate, candidates: list[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """The chain of ``leaf``, which comes first, each followed by its issuer as far as ``candidates`` have them."""
    chain, rest = [leaf], list(candidates)
    while chain[-1].subject != chain[-1].issuer:
        issuer = next((candidate for candidate in rest if _issued(chain[-1], candidate)), None)
        if issuer is None:
            break
        rest.remove(issuer)
        chain.append(issuer)
    return tuple(chain)


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _put(path: Path, content: bytes, place: Callable[[str, Path], None]) -> None:
    """Write it beside ``path`` and have it placed there, so that ``path`` is never half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY)  # mode 600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        place(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _unless_there(temporary: str, path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        os.link(temporary, path)


def parse(pem: bytes, now: datetime | None = None) -> SealIdentity:
    """Return what ``make`` made. Loading checks an RSA key (100 ms): once per process.

    In what earlier versions made the root's key is in the place of the list that it would sign: ``now`` is when it does.
    """
    blocks = [b"-----BEGIN " + block for block in pem.split(b"-----BEGIN ")[1:]]
    keys = [serialization.load_pem_private_key(block, None) for block in blocks if _BEGINNING_OF_A_KEY in block]
    chain = tuple(x509.load_pem_x509_certificate(block) for block in blocks if b"BEGIN CERTIFICATE-----" in block)
    lists = [x509.load_pem_x509_crl(block) for block in blocks if b"BEGIN X509 CRL-----" in block]
    if not keys or not chain or keys[0].public_key() != chain[0].public_key():
        raise UnusableCertificate("the first key does not belong to the first certificate")
    leaf_key, *root_keys = keys
    listed = lists[0].public_bytes(serialization.Encoding.DER) if lists else None
    if root_keys and now is not None:
        listed = _empty_list(root_keys[0], chain[-1], chain[0], now)  # type: ignore[arg-type]  # we made it: RSA or EC
    return SealIdentity(leaf_key, chain, listed)  # type: ignore[arg-type]  # the same


def _holds_root_key(path: Path) -> bool:
    """Is there a key besides the leaf's?"""
    return path.read_bytes().count(_BEGINNING_OF_A_KEY) > 1


def _read(path: Path, now: datetime) -> SealIdentity:
    try:
        return parse(path.read_bytes(), now)
    except (OSError, ValueError) as error:
        raise UnusableCertificate(f"{path} cannot be used: {error}") from error


def _publish_root(path: Path, identity: SealIdentity) -> None:
    """For the operator to hand out: who trusts it sees the seal as trusted."""
    if not path.exists():
        temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        temporary.write_bytes(_certificate_pem(identity.chain[-1]))
        temporary.replace(path)


def _pem(identity: SealIdentity) -> bytes:
    listed = identity.revocation_list
    end = x509.load_der_x509_crl(listed).public_bytes(serialization.Encoding.PEM) if listed else b""
    return _key_pem(identity.key) + b"".join(map(_certificate_pem, identity.chain)) + end


def _key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
