"""What a provider of remote certificates hands out: which chains are relied on, which signatures enter a file."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing.returned import check_chain, check_signatures, choose
from services.rendering.protocol.messages import Mechanism
from tests.support.rendering.providers.remote_keys import NOW, Issued, issue, new_key

RSA, PSS, EC = Mechanism("rsa"), Mechanism("rsa-pss"), Mechanism("ecdsa")
ALL = [Mechanism(name, digest) for name in ("rsa", "rsa-pss", "ecdsa") for digest in ("sha256", "sha384", "sha512")]
DOCUMENT_SIGNING = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.36")
"""RFC 9336."""
KEYS = ["rsa-2048", "rsa-3072", "p256", "p384", "p521"]


def mechanisms_of(kind: str) -> list[Mechanism]:
    return [one for one in ALL if (one.algorithm == "ecdsa") == kind.startswith("p")]


def digests(mechanism: Mechanism, count: int = 3) -> list[bytes]:
    return [hashlib.new(mechanism.hash, b"document %d" % number).digest() for number in range(count)]


# --- the chain --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEYS)
def test_a_chain_that_leads_to_an_anchor_is_told_from_leaf_to_root(kind: str) -> None:
    one = issue(kind)
    leaf = one.chain[0]
    found = check_chain(one.encoded, ALL, [one.root], NOW)
    assert list(found.chain) == one.encoded
    assert (found.name, found.subject) == ("Acme Remote Seal", "CN=Acme Remote Seal,O=Acme")
    assert (found.issuer, int(found.serial, 16)) == (leaf.issuer.public_bytes(), leaf.serial_number)
    assert (found.valid_from, found.valid_to) == (leaf.not_valid_before_utc, leaf.not_valid_after_utc)
    assert found.mechanism in mechanisms_of(kind)


def test_the_others_may_come_in_any_order_and_without_the_root() -> None:
    one = issue("p256")
    leaf, issuer, root = one.encoded
    for given in ([leaf, root, issuer], [leaf, issuer]):
        assert list(check_chain(given, [EC], [root], NOW).chain) == [leaf, issuer, root]


def test_what_ends_earlier_above_the_leaf_counts() -> None:
    one = issue("p256", until=NOW + timedelta(days=30), issuer_until=NOW + timedelta(days=5))
    assert check_chain(one.encoded, [EC], [one.root], NOW).valid_to == NOW + timedelta(days=5)


def _sha1(one: Issued) -> list[bytes]:
    """The leaf as if it were signed with SHA-1; whether its signature holds is looked at after that."""
    ecdsa_sha256, ecdsa_sha1 = bytes.fromhex("06082a8648ce3d040302"), bytes.fromhex("06072a8648ce3d0401")
    leaf = one.encoded[0]
    assert leaf.count(ecdsa_sha256) == 2
    # The lengths around it change: encoded anew from its parts.
    from asn1crypto import x509 as asn1_x509

    certificate = asn1_x509.Certificate.load(leaf)
    certificate["signature_algorithm"]["algorithm"] = "sha1_ecdsa"
    certificate["tbs_certificate"]["signature"]["algorithm"] = "sha1_ecdsa"
    changed: bytes = certificate.dump(force=True)
    assert ecdsa_sha1 in changed
    return [changed, *one.encoded[1:]]


REFUSED: dict[str, tuple[Callable[[], Issued], Callable[[Issued], Sequence[bytes]], str]] = {
    "nothing": (lambda: issue("p256"), lambda one: [], "names no certificate"),
    "too many": (lambda: issue("p256"), lambda one: one.encoded * 4, "names no certificate, or more"),
    "one that is too long": (lambda: issue("p256"), lambda one: [one.encoded[0] + bytes(40_000)], "or more than"),
    "garbage": (lambda: issue("p256"), lambda one: [b"\x30\x03\x02\x01\x00"], "cannot be read"),
    "garbage above the leaf": (lambda: issue("p256"), lambda one: [one.encoded[0], b"\x30\x03\x02\x01\x00"], "cannot be"),
    "a cut one": (lambda: issue("p256"), lambda one: [one.encoded[0][:-20], *one.encoded[1:]], "cannot be read"),
    "the issuer is missing": (lambda: issue("p256"), lambda one: [one.encoded[0]], "does not lead to a trusted root"),
    "expired": (lambda: issue("p256", until=NOW - timedelta(hours=1)), lambda one: one.encoded, "expired"),
    "not yet valid": (lambda: issue("p256", since=NOW + timedelta(hours=1)), lambda one: one.encoded, "not valid until"),
    "its issuer expired": (lambda: issue("p256", issuer_until=NOW - timedelta(days=1)), lambda one: one.encoded, "expired"),
    "its issuer is no CA": (lambda: issue("p256", issuer_is_ca=False), lambda one: one.encoded, "is not a CA"),
    "not for signatures": (lambda: issue("p256", signing=False), lambda one: one.encoded, "not for signatures"),
    "for a server": (lambda: issue("p256", purposes=[ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), lambda one: one.encoded, "for servers"),
    "for time-stamps": (lambda: issue("p256", purposes=[ExtendedKeyUsageOID.TIME_STAMPING]), lambda one: one.encoded, "for servers"),
    "a short key": (lambda: issue("rsa-1024"), lambda one: one.encoded, "1024 bits"),
    "a short key above": (lambda: issue("p256", issuer_kind="rsa-1024"), lambda one: one.encoded, "1024"),
    "an odd curve": (lambda: issue("p192"), lambda one: one.encoded, "not accepted|no supported way to sign"),
    "another kind of key": (lambda: issue("ed25519"), lambda one: one.encoded, "not accepted|no supported way to sign"),
    "DSA": (lambda: issue("dsa"), lambda one: one.encoded, "not accepted|no supported way to sign"),
    "SHA-1": (lambda: issue("p256"), _sha1, "SHA1|does not hold"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_signed_with_what_is_not_relied_on(case: str) -> None:
    make, given, message = REFUSED[case]
    one = make()
    with pytest.raises(Refused, match=message) as caught:
        check_chain(given(one), ALL, [issue("p256").root, one.root], NOW)
    assert len(str(caught.value)) < 400
    check_chain(issue("p256").encoded, ALL, [issue("p256").root], NOW)


@pytest.mark.parametrize(
    "purposes",
    [
        [ExtendedKeyUsageOID.EMAIL_PROTECTION, ExtendedKeyUsageOID.CLIENT_AUTH],
        [ExtendedKeyUsageOID.CLIENT_AUTH],
        [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE],
        [DOCUMENT_SIGNING],
        [DOCUMENT_SIGNING, ExtendedKeyUsageOID.SERVER_AUTH],
    ],
)
def test_what_is_for_documents_or_may_be_signs(purposes: list[x509.ObjectIdentifier]) -> None:
    one = issue("p256", purposes=purposes)
    assert check_chain(one.encoded, [EC], [one.root], NOW).chain == one.encoded


def test_a_root_that_is_not_trusted_is_none() -> None:
    """Even when the provider sends it along."""
    one, other = issue("p256"), issue("p521")
    with pytest.raises(Refused, match="does not lead to a trusted root"):
        check_chain(one.encoded, [EC], [], NOW)
    strangers = [_self_signed(other)]
    with pytest.raises(Refused, match="does not lead to a trusted root"):
        check_chain(one.encoded, [EC], strangers, NOW)


def _self_signed(_one: Issued) -> bytes:
    from services.rendering.jobs.sealing import certificates

    return certificates.parse(certificates.make(certificates.Names(), "ec-p256", NOW)).encoded[-1]


@pytest.mark.parametrize(
    ("kind", "offered", "chosen"),
    [
        ("rsa-2048", ALL, Mechanism("rsa", "sha256")),
        ("rsa-2048", [Mechanism("rsa-pss", "sha384"), Mechanism("rsa", "sha512")], Mechanism("rsa", "sha512")),
        ("rsa-2048", [Mechanism("rsa-pss", "sha256"), EC], Mechanism("rsa-pss", "sha256")),
        ("p256", ALL, Mechanism("ecdsa", "sha256")),
        ("p384", ALL, Mechanism("ecdsa", "sha384")),
        ("p521", ALL, Mechanism("ecdsa", "sha512")),
        ("p384", [EC, RSA], Mechanism("ecdsa", "sha256")),
        ("p521", [Mechanism("ecdsa", "sha384")], Mechanism("ecdsa", "sha384")),
    ],
)
def test_the_mechanism_is_one_that_fits_the_key(kind: str, offered: list[Mechanism], chosen: Mechanism) -> None:
    assert choose(offered, new_key(kind).public_key()) == chosen


@pytest.mark.parametrize(
    ("kind", "offered"), [("rsa-2048", [EC]), ("p256", [RSA, PSS]), ("p256", []), ("ed25519", ALL)]
)
def test_a_key_that_nothing_fits_signs_nothing(kind: str, offered: list[Mechanism]) -> None:
    with pytest.raises(Refused, match="no supported way to sign"):
        choose(offered, new_key(kind).public_key())


# --- raw signatures ---------------------------------------------------------------------------------------------------


def in_halves(kind: str, signature: bytes) -> bytes:
    """As IEEE P1363 writes it: r and s of the curve's length."""
    length = {"p256": 32, "p384": 48, "p521": 66}[kind]
    return b"".join(number.to_bytes(length, "big") for number in decode_dss_signature(signature))


@pytest.mark.parametrize(("kind", "mechanism"), [(kind, one) for kind in KEYS for one in mechanisms_of(kind)])
def test_signatures_of_each_mechanism_are_accepted(kind: str, mechanism: Mechanism) -> None:
    one, asked = issue(kind), digests(mechanism)
    signatures = [one.sign(mechanism, digest) for digest in asked]
    assert check_signatures(one.encoded[0], mechanism, asked, signatures) == signatures
    if kind.startswith("p"):
        halves = [in_halves(kind, signature) for signature in signatures]
        assert check_signatures(one.encoded[0], mechanism, asked, halves) == signatures


@pytest.mark.parametrize("kind", ["rsa-2048", "p256"])
def test_in_another_order_none_is_accepted(kind: str) -> None:
    mechanism = mechanisms_of(kind)[0]
    one, asked = issue(kind), digests(mechanism)
    signatures = [one.sign(mechanism, digest) for digest in asked]
    with pytest.raises(Refused, match="signature 2 is of another hash: they are not in order"):
        check_signatures(one.encoded[0], mechanism, asked, [signatures[0], signatures[2], signatures[1]])


@pytest.mark.parametrize("kind", ["rsa-2048", "p256"])
def test_each_hash_has_one_signature(kind: str) -> None:
    mechanism = mechanisms_of(kind)[0]
    one, asked = issue(kind), digests(mechanism)
    signatures = [one.sign(mechanism, digest) for digest in asked]
    for given in (signatures[:2], [*signatures, signatures[0]], []):
        with pytest.raises(Refused, match=f"gave {len(given)} signatures of 3 hashes"):
            check_signatures(one.encoded[0], mechanism, asked, given)


def broken(signature: bytes) -> list[bytes]:
    return [b"", b"\x00", signature[:-1], signature + b"\x00", bytes([signature[0] ^ 1]) + signature[1:],
            signature[:-1] + bytes([signature[-1] ^ 1]), bytes(len(signature)), b"\xff" * 64, bytes(64)]  # fmt: skip


@pytest.mark.parametrize("kind", ["rsa-2048", "p256"])
def test_what_is_no_signature_of_the_key_is_not_accepted(kind: str) -> None:
    mechanism = mechanisms_of(kind)[0]
    one, asked = issue(kind), digests(mechanism, 1)
    signature = one.sign(mechanism, asked[0])
    other = Issued(new_key(f"{kind}:other") if kind.startswith("rsa") else _fresh(), one.chain)
    for given in [*broken(signature), other.sign(mechanism, asked[0])]:
        with pytest.raises(Refused, match="signature 1 was not made with its certificate's key"):
            check_signatures(one.encoded[0], mechanism, asked, [given])


def _fresh() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def test_a_signature_of_another_mechanism_is_not_accepted() -> None:
    """The file would state what is not so."""
    one = issue("rsa-2048")
    for said, done in ((RSA, PSS), (PSS, RSA)):
        (digest,) = digests(said, 1)
        with pytest.raises(Refused, match="not made with its certificate's key"):
            check_signatures(one.encoded[0], said, [digest], [one.sign(done, digest)])


def test_a_salt_of_another_length_is_not_accepted() -> None:
    """The file states a salt as long as the hash."""
    one = issue("rsa-2048")
    (digest,) = digests(PSS, 1)
    salt = padding.PSS(padding.MGF1(hashes.SHA256()), salt_length=20)
    signature = one.key.sign(digest, salt, Prehashed(hashes.SHA256()))
    with pytest.raises(Refused, match="not made with its certificate's key"):
        check_signatures(one.encoded[0], PSS, [digest], [signature])
