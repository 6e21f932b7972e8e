"""What a provider of remote certificates hands out: its certificates, and raw signatures. They come from outside, so they are
read here, in a child; asking is the business of the service.

Nothing of it enters a file before it was checked: the chain leads to a trusted root, is valid now and strong enough, and may
sign documents; each signature is one of the hash that it was asked for, made with the key of the first certificate.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing.cms import HASHES, PublicKey, holds, largest_signature
from services.rendering.protocol.messages import Mechanism, Signatory

SMALLEST_RSA = 2048
_LARGEST_RSA = 8192
_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_WEAK = {"md2", "md5", "sha1"}
_MOST_CERTIFICATES = 10
_LARGEST_CERTIFICATE = 32 * 1024
_FITTING = {"secp256r1": "sha256", "secp384r1": "sha384", "secp521r1": "sha512"}
"""A hash that is shorter than the curve weakens it, a longer one is cut."""

_ELSEWHERE = {
    ExtendedKeyUsageOID.SERVER_AUTH,
    ExtendedKeyUsageOID.CLIENT_AUTH,
    ExtendedKeyUsageOID.TIME_STAMPING,
    ExtendedKeyUsageOID.OCSP_SIGNING,
}
"""Purposes that are not the signing of documents. People's cards have certificates for clients alone."""


# --- the chain ------------------------------------------------------------------------------------------------------------


def check_chain(
    certificates: Sequence[bytes], mechanisms: Sequence[Mechanism], anchors: Sequence[bytes], now: datetime
) -> Signatory:
    """Check the certificates of a provider (DER, the signer's first, the others in any order). ``mechanisms`` are what the
    provider offers to sign with, ``anchors`` the trusted certificates (DER).

    Raises Refused, with what is wrong in a clause: they are no certificates, do not lead to an anchor, are not valid at
    ``now``, are too weak, or the signer's may not sign documents, or fits none of the mechanisms.
    """
    if not 0 < len(certificates) <= _MOST_CERTIFICATES or any(
        len(certificate) > _LARGEST_CERTIFICATE for certificate in certificates
    ):
        raise Refused("the provider names no certificate, or more than a chain has")
    try:
        leaf = x509.load_der_x509_certificate(certificates[0])
        key = leaf.public_key()
        _check_usage(leaf)
        path = _path(certificates, anchors, now)
        for certificate in path:
            _check_strength(certificate)
        mechanism = choose(mechanisms, key)
        return Signatory(
            chain=[certificate.dump() for certificate in path],
            name=_name(leaf),
            subject=leaf.subject.rfc4514_string(),
            issuer=leaf.issuer.public_bytes(),
            serial=f"{leaf.serial_number:x}",
            mechanism=mechanism,
            signature_size=largest_signature(key),  # type: ignore[arg-type]  # another kind has no mechanism
            valid_from=leaf.not_valid_before_utc,
            valid_to=min(certificate.not_valid_after for certificate in path),
            issuer_name=leaf.issuer.rfc4514_string(),
        )
    except (ValueError, TypeError, KeyError, UnsupportedAlgorithm) as error:
        raise Refused(f"the provider's certificate cannot be read ({type(error).__name__})") from error


def choose(mechanisms: Sequence[Mechanism], key: object) -> Mechanism:
    """The mechanism to sign with: of those that fit the key the one that most software knows. Raises Refused."""
    if isinstance(key, rsa.RSAPublicKey):
        by_preference = [Mechanism(algorithm, digest) for algorithm in ("rsa", "rsa-pss") for digest in HASHES]
    elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _FITTING:
        fitting = _FITTING[key.curve.name]
        by_preference = [Mechanism("ecdsa", digest) for digest in (fitting, *HASHES)]
    else:
        by_preference = []
    chosen = next((mechanism for mechanism in by_preference if mechanism in mechanisms), None)
    if chosen is None:
        raise Refused("the provider offers no supported way to sign with its key")
    return chosen


def _path(certificates: Sequence[bytes], anchors: Sequence[bytes], now: datetime) -> list[asn1_x509.Certificate]:
    """From the signer's certificate to the anchor."""
    # Only here: it takes a tenth of a second to load, and most children check signatures and no chain.
    import asyncio

    from pyhanko_certvalidator import CertificateValidator, ValidationContext
    from pyhanko_certvalidator.errors import PathBuildingError, PathError, ValidationError

    leaf, *intermediates = [asn1_x509.Certificate.load(encoded, strict=True) for encoded in certificates]
    context = ValidationContext(
        trust_roots=[asn1_x509.Certificate.load(anchor) for anchor in anchors],
        moment=now,
        allow_fetching=False,
        weak_hash_algos=_WEAK,
    )
    try:
        valid_path = asyncio.run(CertificateValidator(leaf, intermediates, context).async_validate_path())
    except PathBuildingError as error:
        raise Refused("the provider's certificate does not lead to a trusted root") from error
    except (ValidationError, PathError) as error:
        raise Refused(f"the provider's chain of certificates does not hold: {_in_words(error)}") from error
    path = list(reversed(list(valid_path.iter_certs(include_root=True))))
    for certificate in path:  # pyHanko does not look at the dates of a trusted one
        if not certificate.not_valid_before <= now <= certificate.not_valid_after:
            raise Refused(
                f"a certificate of the provider's chain is valid from {certificate.not_valid_before:%Y-%m-%d} to"
                f" {certificate.not_valid_after:%Y-%m-%d} only"
            )
    return path


def _in_words(error: Exception) -> str:
    return str(error).strip().rstrip(".")[:300] or type(error).__name__


def _check_usage(leaf: x509.Certificate) -> None:
    """RFC 5280, 4.2.1.3 and 4.2.1.12: without these extensions there is no restriction."""
    with suppress(x509.ExtensionNotFound):
        usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
        if not (usage.digital_signature or usage.content_commitment):
            raise Refused("the provider's certificate is not for signatures")
    with suppress(x509.ExtensionNotFound):
        purposes = set(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        if purposes <= _ELSEWHERE and purposes != {ExtendedKeyUsageOID.CLIENT_AUTH}:
            raise Refused(
                "the provider's certificate is for servers, time-stamps or OCSP answers and not for documents"
            )


def _check_strength(certificate: asn1_x509.Certificate) -> None:
    info = certificate.public_key
    if info.algorithm in ("rsa", "rsassa_pss"):
        if not SMALLEST_RSA <= info.bit_size <= _LARGEST_RSA:
            raise Refused(f"an RSA key of the provider's chain has {info.bit_size} bits, {SMALLEST_RSA} are the least")
    elif info.algorithm != "ec" or info.curve[1] not in _CURVES:
        raise Refused("a key of the provider's chain is of a kind that is not accepted")
    if certificate.self_issued != "yes" and certificate.hash_algo in _WEAK:
        raise Refused(
            f"a certificate of the provider's chain is signed with {certificate.hash_algo.upper()}, which can be forged"
        )


def _name(leaf: x509.Certificate) -> str:
    for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):
        if values := leaf.subject.get_attributes_for_oid(oid):
            return str(values[0].value)
    return leaf.subject.rfc4514_string()


# --- raw signatures -------------------------------------------------------------------------------------------------------


def check_signatures(
    certificate: bytes, mechanism: Mechanism, digests: Sequence[bytes], signatures: Sequence[bytes]
) -> list[bytes]:
    """Check that each signature is one of the hash at its place in ``digests``, made with the key of ``certificate`` (DER);
    return them as they go into a file: those of an elliptic curve in DER.

    Raises Refused, with what is wrong in a clause; then none of them may be used.
    """
    key = x509.load_der_x509_certificate(certificate).public_key()
    assert isinstance(key, PublicKey), "check_chain saw to it"
    if len(signatures) != len(digests):
        raise Refused(f"the provider gave {len(signatures)} signatures of {len(digests)} hashes")
    checked = []
    for number, (digest, signature) in enumerate(zip(digests, signatures, strict=True), 1):
        valid = _valid_form(key, mechanism, digest, signature)
        if valid is None:
            other_digests = (other for other in digests if other != digest)
            if any(_valid_form(key, mechanism, other, signature) is not None for other in other_digests):
                raise Refused(f"the provider's signature {number} is of another hash: they are not in order")
            raise Refused(
                f"the provider's signature {number} was not made with its certificate's key over what was sent"
            )
        checked.append(valid)
    return checked


def _valid_form(key: PublicKey, mechanism: Mechanism, digest: bytes, signature: bytes) -> bytes | None:
    """The form of the signature that holds; None when none does."""
    return next((form for form in _forms(key, signature) if holds(key, mechanism, digest, form)), None)


def _forms(key: PublicKey, signature: bytes) -> Iterable[bytes]:
    """A signature of an elliptic curve comes in DER, or as its two integers of the curve's length (IEEE P1363)."""
    if not isinstance(key, ec.EllipticCurvePublicKey):
        yield signature
        return
    with suppress(ValueError):
        yield encode_dss_signature(*decode_dss_signature(signature))
    length = (key.key_size + 7) // 8
    if len(signature) == 2 * length:
        first, second = signature[:length], signature[length:]
        yield encode_dss_signature(int.from_bytes(first, "big"), int.from_bytes(second, "big"))
