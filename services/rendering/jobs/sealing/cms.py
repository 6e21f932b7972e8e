"""The CMS signature of a seal (RFC 5652, PAdES baseline of EN 319 142-1), encoded by hand.

Everything that is the same for each document (certificates, algorithms, the signing certificate's hash) is encoded once.
What remains per document is a digest, one raw signature and a few lengths, so the cost is that of the raw signature.
pyHanko as documented re-checks the RSA key for every document, which costs a hundred times that.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def tlv(tag: int, content: bytes) -> bytes:
    """One DER element (ITU-T X.690): tag, definite length, content."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def integer(value: int) -> bytes:
    """A non-negative INTEGER."""
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def sequence(*parts: bytes) -> bytes:
    return tlv(0x30, b"".join(parts))


def set_of(parts: Sequence[bytes]) -> bytes:
    """DER wants the elements of a SET OF in the order of their encodings."""
    return tlv(0x31, b"".join(sorted(parts)))


def octets(value: bytes) -> bytes:
    return tlv(0x04, value)


def _time(moment: datetime) -> bytes:
    """A UTCTime until 2049, a GeneralizedTime from then on (RFC 5652, 11.3)."""
    moment = moment.astimezone(UTC)
    if moment.year < 2050:
        return tlv(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())
    return tlv(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


_DATA = bytes.fromhex("06092a864886f70d010701")
_SIGNED_DATA = bytes.fromhex("06092a864886f70d010702")
_CONTENT_TYPE = bytes.fromhex("06092a864886f70d010903")
_MESSAGE_DIGEST = bytes.fromhex("06092a864886f70d010904")
_SIGNING_TIME = bytes.fromhex("06092a864886f70d010905")
_SIGNING_CERTIFICATE_V2 = bytes.fromhex("060b2a864886f70d010910022f")
_TIME_STAMP_TOKEN = bytes.fromhex("060b2a864886f70d010910020e")
SHA256 = bytes.fromhex("300b0609608648016503040201")  # parameters absent: RFC 5754, section 2
_RSA_SHA256 = bytes.fromhex("300d06092a864886f70d01010b0500")
_ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")


@dataclass(frozen=True)
class Signed:
    """A signed SignerInfo, not yet in its envelope: ``signature`` is what a time-stamp is asked for."""

    attributes: bytes
    signature: bytes


class CmsSigner:
    """Signs digests with a key that is held open. ``chain`` is the leaf certificate first, then its issuers."""

    def __init__(self, key: PrivateKey, chain: Sequence[x509.Certificate]) -> None:
        self._key = key
        leaf = chain[0]
        encoded = [certificate.public_bytes(serialization.Encoding.DER) for certificate in chain]
        hashed = sequence(sequence(sequence(octets(hashlib.sha256(encoded[0]).digest()))))
        self._constant_attributes = [
            sequence(_CONTENT_TYPE, set_of([_DATA])),
            sequence(_SIGNING_CERTIFICATE_V2, set_of([hashed])),
        ]
        issuer_and_serial = sequence(leaf.issuer.public_bytes(), integer(leaf.serial_number))
        self._signer_prefix = integer(1) + issuer_and_serial + SHA256
        self._algorithm = _RSA_SHA256 if isinstance(key, rsa.RSAPrivateKey) else _ECDSA_SHA256
        certificates = tlv(0xA0, b"".join(sorted(encoded)))
        self._prefix = integer(1) + set_of([SHA256]) + sequence(_DATA) + certificates
        self.size = len(self.envelope(self.sign(bytes(32)))) + 16
        """Octets that a signature without time-stamp needs at most; an ECDSA signature varies by a few."""

    def sign(self, digest: bytes, at: datetime | None = None) -> Signed:
        """``digest`` is the SHA-256 of what is signed. ``at`` is stated as the time of signing: CAdES (EN 319 122-1) wants
        that, PAdES forbids it."""
        message_digest = sequence(_MESSAGE_DIGEST, set_of([octets(digest)]))
        times = [sequence(_SIGNING_TIME, set_of([_time(at)]))] if at is not None else []
        attributes = set_of([*self._constant_attributes, message_digest, *times])
        return Signed(attributes, self._raw(attributes))

    def envelope(self, signed: Signed, time_stamp: bytes | None = None) -> bytes:
        """The ContentInfo in DER; ``time_stamp`` is an RFC 3161 token over ``signed.signature``."""
        parts = [
            self._signer_prefix,
            b"\xa0" + signed.attributes[1:],  # [0] IMPLICIT SET OF; what is signed carries the universal tag
            self._algorithm,
            octets(signed.signature),
        ]
        if time_stamp is not None:
            parts.append(tlv(0xA1, sequence(_TIME_STAMP_TOKEN, set_of([time_stamp]))))
        signed_data = sequence(self._prefix, set_of([sequence(*parts)]))
        return sequence(_SIGNED_DATA, tlv(0xA0, signed_data))

    def _raw(self, attributes: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(attributes, padding.PKCS1v15(), hashes.SHA256())
        return self._key.sign(attributes, ec.ECDSA(hashes.SHA256()))


def has_time_stamp(envelope: bytes) -> bool:
    """Whether a signature that ``CmsSigner`` has made bears a time-stamp."""
    return _TIME_STAMP_TOKEN in envelope


def time_stamp_request(signature: bytes, nonce: int) -> bytes:
    """RFC 3161, 2.4.1: a TimeStampReq for ``signature`` that asks for the authority's certificate."""
    imprint = sequence(SHA256, octets(hashlib.sha256(signature).digest()))
    return sequence(integer(1), imprint, integer(nonce), tlv(0x01, b"\xff"))


class TooLarge(Exception):
    """The signature does not fit into the place that was kept for it."""


def insert(data: bytes, start: int, size: int, envelope: bytes) -> bytes:
    """Write ``envelope`` in hexadecimal over the ``size`` zeros at ``start`` (the inside of ``/Contents <...>``)."""
    encoded = envelope.hex().encode()
    if len(encoded) > size:
        raise TooLarge(f"{len(envelope)} octets, {size // 2} were reserved")
    return b"".join((data[:start], encoded, b"0" * (size - len(encoded)), data[start + size :]))
