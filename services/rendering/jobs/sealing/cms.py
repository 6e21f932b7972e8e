"""The CMS signature of a seal (RFC 5652, PAdES baseline of EN 319 142-1), encoded by hand.

Everything that is the same for each document (certificates, algorithms, the signing certificate's hash) is encoded once.
What remains per document is a digest, one raw signature and a few lengths, so the cost is that of the raw signature.
pyHanko as documented re-checks the RSA key for every document, which costs a hundred times that.

The raw signature may be made elsewhere, by a provider: ``CmsEncoder`` tells what is to be signed, and puts the signature into
its envelope. ``CmsSigner`` has the key.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from services.rendering.protocol.messages import Mechanism, Signatory

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


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
_DIGESTS = {
    "sha256": SHA256,
    "sha384": bytes.fromhex("300b0609608648016503040202"),
    "sha512": bytes.fromhex("300b0609608648016503040203"),
}
HASHES = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
_SIGNATURES = {
    Mechanism("rsa", "sha256"): bytes.fromhex("300d06092a864886f70d01010b0500"),
    Mechanism("rsa", "sha384"): bytes.fromhex("300d06092a864886f70d01010c0500"),
    Mechanism("rsa", "sha512"): bytes.fromhex("300d06092a864886f70d01010d0500"),
    Mechanism("ecdsa", "sha256"): bytes.fromhex("300a06082a8648ce3d040302"),
    Mechanism("ecdsa", "sha384"): bytes.fromhex("300a06082a8648ce3d040303"),
    Mechanism("ecdsa", "sha512"): bytes.fromhex("300a06082a8648ce3d040304"),
}
_RSASSA_PSS = bytes.fromhex("06092a864886f70d01010a")
_MGF1 = bytes.fromhex("06092a864886f70d010108")
_ROOM_TO_SPARE = 16


def signature_algorithm(mechanism: Mechanism) -> bytes:
    """The AlgorithmIdentifier of the mechanism in DER. Raises KeyError for one that is not known here."""
    if mechanism.algorithm != "rsa-pss":
        return _SIGNATURES[mechanism]
    return sequence(_RSASSA_PSS, pss_parameters(mechanism.hash))


def pss_parameters(digest: str) -> bytes:
    """RSASSA-PSS-params (RFC 4055, section 3.1) in DER: the same hash for the mask, and a salt as long as the hash."""
    hash_algorithm = _DIGESTS[digest]
    mask, salt = sequence(_MGF1, hash_algorithm), integer(HASHES[digest].digest_size)
    return sequence(tlv(0xA0, hash_algorithm), tlv(0xA1, mask), tlv(0xA2, salt))


def mechanism_of(algorithm: bytes) -> Mechanism | None:
    """The mechanism that an AlgorithmIdentifier of ``signature_algorithm`` names."""
    every = (Mechanism(name, digest) for name in ("rsa", "rsa-pss", "ecdsa") for digest in _DIGESTS)
    return next((mechanism for mechanism in every if signature_algorithm(mechanism) == algorithm), None)


def largest_signature(key: PublicKey) -> int:
    """Octets of the longest raw signature of the key; of an elliptic curve it is a sequence of two integers in DER."""
    if isinstance(key, rsa.RSAPublicKey):
        return (key.key_size + 7) // 8
    whole = b"\xff" * ((key.key_size + 7) // 8)
    return len(sequence(*[tlv(0x02, b"\x00" + whole)] * 2))


def holds(key: PublicKey, mechanism: Mechanism, digest: bytes, signature: bytes) -> bool:
    """Return whether ``signature`` (of an elliptic curve: in DER) is one of ``digest``."""
    digested = Prehashed(HASHES[mechanism.hash])
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, digest, ec.ECDSA(digested))
        elif mechanism.algorithm == "rsa-pss":
            # The salt is as long as the file says (cms.signature_algorithm).
            salt = padding.PSS(padding.MGF1(HASHES[mechanism.hash]), padding.PSS.DIGEST_LENGTH)
            key.verify(signature, digest, salt, digested)
        else:
            key.verify(signature, digest, padding.PKCS1v15(), digested)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Signed:
    """A signed SignerInfo, not yet in its envelope: ``signature`` is what a time-stamp is asked for."""

    attributes: bytes
    signature: bytes


class CmsEncoder:
    """Makes the CMS of one certificate's signatures, wherever they are made. ``chain`` is in DER, the leaf certificate first,
    then its issuers; ``issuer`` (a Name in DER) and ``serial`` are the leaf's. ``signature_size``: octets that a raw signature
    has at most."""

    def __init__(
        self, chain: Sequence[bytes], issuer: bytes, serial: int, mechanism: Mechanism, signature_size: int
    ) -> None:
        self.mechanism = mechanism
        hashed = sequence(sequence(sequence(octets(hashlib.sha256(chain[0]).digest()))))
        self._constant_attributes = [
            sequence(_CONTENT_TYPE, set_of([_DATA])),
            sequence(_SIGNING_CERTIFICATE_V2, set_of([hashed])),
        ]
        digest_algorithm = _DIGESTS[mechanism.hash]
        self._signer_prefix = integer(1) + sequence(issuer, integer(serial)) + digest_algorithm
        self._algorithm = signature_algorithm(mechanism)
        certificates = tlv(0xA0, b"".join(sorted(chain)))
        self._prefix = integer(1) + set_of([digest_algorithm]) + sequence(_DATA) + certificates
        longest = Signed(self.attributes(bytes(HASHES[mechanism.hash].digest_size)), bytes(signature_size))
        self.size = len(self.envelope(longest)) + _ROOM_TO_SPARE
        """Octets that a signature without time-stamp needs at most."""

    @classmethod
    def of(cls, signatory: Signatory) -> "CmsEncoder":
        """For signatures that a provider makes."""
        return cls(
            signatory.chain,
            signatory.issuer,
            int(signatory.serial, 16),
            signatory.mechanism,
            signatory.signature_size,
        )

    def digest(self, data: bytes, start: int, size: int) -> bytes:
        """The mechanism's hash of a file but for ``<``, the ``size`` digits at ``start``, and ``>`` (ISO 32000-2, 12.8.1)."""
        digest = hashlib.new(self.mechanism.hash)
        with memoryview(data) as view:
            digest.update(view[: start - 1])
            digest.update(view[start + size + 1 :])
        return digest.digest()

    def attributes(self, digest: bytes, at: datetime | None = None) -> bytes:
        """The signed attributes in DER. ``digest`` is the mechanism's hash of what is signed. ``at`` is stated as the time of
        signing: CAdES (EN 319 122-1) wants that, PAdES forbids it."""
        message_digest = sequence(_MESSAGE_DIGEST, set_of([octets(digest)]))
        times = [sequence(_SIGNING_TIME, set_of([_time(at)]))] if at is not None else []
        return set_of([*self._constant_attributes, message_digest, *times])

    def to_be_signed(self, attributes: bytes) -> bytes:
        """The hash that a provider is asked to sign."""
        return hashlib.new(self.mechanism.hash, attributes).digest()

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


class CmsSigner(CmsEncoder):
    """Signs digests (SHA-256) with a key that is held open. ``chain`` is the leaf certificate first, then its issuers."""

    def __init__(self, key: PrivateKey, chain: Sequence[x509.Certificate]) -> None:
        self._key = key
        super().__init__(
            [certificate.public_bytes(serialization.Encoding.DER) for certificate in chain],
            chain[0].issuer.public_bytes(),
            chain[0].serial_number,
            Mechanism("rsa" if isinstance(key, rsa.RSAPrivateKey) else "ecdsa"),
            largest_signature(key.public_key()),
        )

    def sign(self, digest: bytes, at: datetime | None = None) -> Signed:
        """Sign what has this digest; ``at`` as in ``attributes``."""
        attributes = self.attributes(digest, at)
        return Signed(attributes, self._raw(attributes))

    def _raw(self, attributes: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(attributes, padding.PKCS1v15(), hashes.SHA256())
        return self._key.sign(attributes, ec.ECDSA(hashes.SHA256()))


def has_time_stamp(envelope: bytes) -> bool:
    """Return whether a signature that ``CmsSigner`` has made bears a time-stamp."""
    return _TIME_STAMP_TOKEN in envelope


def time_stamp_request(digest: bytes, nonce: int) -> bytes:
    """RFC 3161, 2.4.1: a TimeStampReq for what has this SHA-256, that asks for the authority's certificate."""
    imprint = sequence(SHA256, octets(digest))
    return sequence(integer(1), imprint, integer(nonce), tlv(0x01, b"\xff"))


class TooLarge(Exception):
    """The signature does not fit into the place that was kept for it."""


def insert(data: bytes, start: int, size: int, envelope: bytes) -> bytes:
    """Write ``envelope`` in hexadecimal over the ``size`` zeros at ``start`` (the inside of ``/Contents <...>``)."""
    encoded = envelope.hex().encode()
    if len(encoded) > size:
        raise TooLarge(f"{len(envelope)} octets, {size // 2} were reserved")
    return b"".join((data[:start], encoded, b"0" * (size - len(encoded)), data[start + size :]))
