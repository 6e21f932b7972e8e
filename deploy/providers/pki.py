"""The certificates of a local provider: a root, an issuing CA, what they issue, and who says whether it was revoked.

Keys and certificates are made at the first start and kept in a folder. Certificates name the provider's own address for OCSP
and lists; when that has changed, they are issued anew, below the same root.
"""

import os
import secrets
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

DER, PEM = serialization.Encoding.DER, serialization.Encoding.PEM
_ROOT_DAYS, _ISSUER_DAYS, _LEAF_DAYS = 20 * 365, 10 * 365, 2 * 365
_ANSWER_HOURS = 24
_ORGANIZATION = "Local Trust Provider (for tests only)"
_OCSP, _TSA = "OCSP responder", "Time-stamping authority"


@dataclass(frozen=True)
class Issued:
    """A key and its certificate."""

    key: Key
    certificate: x509.Certificate

    @property
    def encoded(self) -> bytes:
        return self.certificate.public_bytes(DER)


class Authorities:
    """``leaves``: names of who gets a certificate to sign with, and the kind of their key (``rsa-3072``, ``p256``, ``p384``).
    ``url``: where ``answer`` is served. ``revoked``: names of those whose certificates are; may be changed at any time."""

    def __init__(self, folder: Path, url: str, leaves: Mapping[str, str]) -> None:
        self._folder, self._url, self._leaves = folder / "certificates", url.rstrip("/"), dict(leaves)
        self.revoked: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (self._folder / "root.pem").exists():
            self._write("root", self._make_root())
        self.root = self._read("root")
        address = self._folder / "url"
        if not address.exists() or address.read_text() != self._url:
            self._issue_all()
            address.write_text(self._url)
        self.issuer = self._read("issuer")
        self._responder, self.time_stamping = self._read("ocsp"), self._read("tsa")
        self.signers = {name: self._read(f"signer-{name}") for name in self._leaves}

    def chain(self, name: str) -> list[bytes]:
        """The certificates of a signer in DER, its own first."""
        return [self.signers[name].encoded, self.issuer.encoded, self.root.encoded]

    @cached_property
    def anchor(self) -> str:
        """The root, in PEM."""
        return self.root.certificate.public_bytes(PEM).decode()

    # --- who was revoked

    def answer(self, path: str, body: bytes | None = None) -> bytes | None:
        """Return what is served below ``/ca/``: ``root.crl``, ``issuer.crl``, ``root.crt``, ``ocsp`` (by POST, or by GET with
        the request in the path); None for anything else."""
        if path == "root.crl":
            return self._list(self.root, [])
        if path == "issuer.crl":
            return self._list(self.issuer, [self.signers[name].certificate.serial_number for name in self.revoked])
        if path == "root.crt":
            return self.root.encoded
        if path == "ocsp" and body is not None:
            return self._ocsp(body)
        if path.startswith("ocsp/"):
            return self._ocsp(b64decode(unquote(path.removeprefix("ocsp/"))))
        return None

    def _list(self, issuer: Issued, serials: list[int]) -> bytes:
        now = _now()
        builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.certificate.subject)
        builder = builder.last_update(now - timedelta(minutes=5)).next_update(now + timedelta(hours=_ANSWER_HOURS))
        for serial in serials:
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - timedelta(minutes=5))
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign(issuer.key, hashes.SHA256()).public_bytes(DER)

    def _ocsp(self, request: bytes) -> bytes:
        serial = ocsp.load_der_ocsp_request(request).serial_number
        by_serial = {
            signer.certificate.serial_number: name
            for name, signer in [*self.signers.items(), (_TSA, self.time_stamping)]
        }
        name = by_serial.get(serial)
        if name is None:
            return ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.UNAUTHORIZED).public_bytes(DER)
        signer_asked_about = self.time_stamping if name == _TSA else self.signers[name]
        now, revoked = _now(), name in self.revoked
        builder = ocsp.OCSPResponseBuilder().add_response(
            cert=signer_asked_about.certificate,
            issuer=self.issuer.certificate,
            algorithm=hashes.SHA1(),  # noqa: S303 - only names the issuer, and is what everybody asks with
            cert_status=ocsp.OCSPCertStatus.REVOKED if revoked else ocsp.OCSPCertStatus.GOOD,
            this_update=now,
            next_update=now + timedelta(hours=_ANSWER_HOURS),
            revocation_time=now - timedelta(minutes=5) if revoked else None,
            revocation_reason=x509.ReasonFlags.cessation_of_operation if revoked else None,
        )
        builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, self._responder.certificate)
        builder = builder.certificates([self._responder.certificate])
        return builder.sign(self._responder.key, hashes.SHA256()).public_bytes(DER)

    # --- making and keeping

    def _make_root(self) -> Issued:
        key = _new_key("p384")
        return Issued(key, _certificate("Local Root", key, None, _ROOT_DAYS, _authority(1)))

    def _issue_all(self) -> None:
        key = self._kept_key("issuer", "p256")
        lists = _lists(f"{self._url}/ca/root.crl")
        issuer = Issued(key, _certificate("Local Issuing CA", key, self.root, _ISSUER_DAYS, [*_authority(0), lists]))
        self._write("issuer", issuer)
        no_check: x509.ExtensionType = x509.OCSPNoCheck()
        responder = [*_signing(content=False), _usage(ExtendedKeyUsageOID.OCSP_SIGNING), no_check]
        self._issue("ocsp", _OCSP, "p256", issuer, responder)
        ask = [_lists(f"{self._url}/ca/issuer.crl"), _ask_ocsp(f"{self._url}/ca/ocsp")]
        stamping = [*_signing(content=False), _usage(ExtendedKeyUsageOID.TIME_STAMPING), *ask]
        self._issue("tsa", _TSA, "rsa-2048", issuer, stamping)
        for name, kind in self._leaves.items():
            self._issue(f"signer-{name}", f"Example Ltd ({name})", kind, issuer, [*_signing(content=True), *ask])

    def _issue(self, name: str, common_name: str, kind: str, issuer: Issued, extensions: list[Any]) -> None:
        key = self._kept_key(name, kind)
        self._write(name, Issued(key, _certificate(common_name, key, issuer, _LEAF_DAYS, extensions)))

    def _kept_key(self, name: str, kind: str) -> Key:
        return self._read(name).key if (self._folder / f"{name}.pem").exists() else _new_key(kind)

    def _read(self, name: str) -> Issued:
        pem = (self._folder / f"{name}.pem").read_bytes()
        # Checking an RSA key takes 100 ms, and this one was made here.
        key = serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        assert isinstance(key, Key)
        return Issued(key, x509.load_pem_x509_certificate(pem))

    def _write(self, name: str, issued: Issued) -> None:
        """Whole or not at all, readable by nobody else."""
        self._folder.mkdir(exist_ok=True, mode=0o700)
        key = issued.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        temporary = self._folder / f".{name}-{secrets.token_hex(4)}"
        descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key + issued.certificate.public_bytes(PEM))
        temporary.replace(self._folder / f"{name}.pem")


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _new_key(kind: str) -> Key:
    if kind.startswith("rsa-"):
        return rsa.generate_private_key(65537, int(kind.removeprefix("rsa-")))
    return ec.generate_private_key({"p256": ec.SECP256R1(), "p384": ec.SECP384R1(), "p521": ec.SECP521R1()}[kind])


def _certificate(
    common_name: str, key: Key, issuer: Issued | None, days: int, extensions: list[Any]
) -> x509.Certificate:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
    now = _now()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is not None:
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
        builder = builder.add_extension(authority, critical=False)
    for extension in extensions:
        critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage | x509.ExtendedKeyUsage)
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer.key if issuer else key, hashes.SHA256())


def _authority(path_length: int) -> list[Any]:
    return [x509.BasicConstraints(ca=True, path_length=path_length), _key_usage(certificates=True)]


def _signing(*, content: bool) -> list[Any]:
    return [x509.BasicConstraints(ca=False, path_length=None), _key_usage(content=content)]


def _key_usage(*, certificates: bool = False, content: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        content_commitment=content,
        key_cert_sign=certificates,
        crl_sign=certificates,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _usage(purpose: x509.ObjectIdentifier) -> x509.ExtendedKeyUsage:
    return x509.ExtendedKeyUsage([purpose])


def _lists(url: str) -> x509.CRLDistributionPoints:
    point = x509.DistributionPoint([x509.UniformResourceIdentifier(url)], None, None, None)
    return x509.CRLDistributionPoints([point])


def _ask_ocsp(url: str) -> x509.AuthorityInformationAccess:
    address = x509.UniformResourceIdentifier(url)
    return x509.AuthorityInformationAccess([x509.AccessDescription(AuthorityInformationAccessOID.OCSP, address)])
