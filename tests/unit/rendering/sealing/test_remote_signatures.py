"""A seal whose raw signature was made elsewhere, by each mechanism: for OpenSSL, pyHanko and poppler it is like any other."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from asn1crypto import algos
from cryptography.hazmat.primitives.asymmetric import padding

from services.rendering.jobs.sealing import certificates, cms, signed_files
from services.rendering.jobs.sealing.cms import CmsEncoder, CmsSigner, Signed
from services.rendering.jobs.sealing.returned import check_chain, check_signatures
from services.rendering.jobs.sealing.verifying import read_back, verify
from services.rendering.jobs.sealing.verifying.read_back import SealBroken
from services.rendering.protocol.messages import Mechanism, Reserved, Signatory
from tests.support.files.pdf_files import document, line, signed
from tests.support.judges.documents.openssl_cms import assert_cades
from tests.support.rendering.providers.remote_keys import NOW, Issued, issue
from tests.support.rendering.sealing import assert_sealed
from tests.support.rendering.seals import reserved as reserved_file
from tests.support.rendering.seals import text

CONTENT = b"what is signed" * 1000
WAYS = [
    *((kind, Mechanism(name, digest)) for kind, digest in (("rsa-2048", "sha256"), ("rsa-3072", "sha512"))
      for name in ("rsa", "rsa-pss")),
    ("rsa-2048", Mechanism("rsa", "sha384")), ("rsa-2048", Mechanism("rsa-pss", "sha384")),
    *((kind, Mechanism("ecdsa", digest)) for kind, digest in (("p256", "sha256"), ("p384", "sha384"), ("p521", "sha512"))),
    ("p384", Mechanism("ecdsa", "sha256")), ("p256", Mechanism("ecdsa", "sha512")),
]  # fmt: skip
WAY = pytest.mark.parametrize(("kind", "mechanism"), WAYS, ids=lambda one: str(one) if isinstance(one, str) else None)


def encoder_of(one: Issued, mechanism: Mechanism) -> tuple[Signatory, CmsEncoder]:
    signatory = check_chain(one.encoded, [mechanism], [one.root], NOW)
    assert signatory.mechanism == mechanism
    return signatory, CmsEncoder.of(signatory)


def from_provider(one: Issued, signatory: Signatory, attributes: bytes, encoder: CmsEncoder) -> Signed:
    """The provider sees the hash only."""
    digest = encoder.to_be_signed(attributes)
    (signature,) = check_signatures(
        signatory.chain[0], signatory.mechanism, [digest], [one.sign(signatory.mechanism, digest)]
    )
    return Signed(attributes, signature)


def sealed(one: Issued, mechanism: Mechanism, reserved: Reserved, token: bytes | None = None) -> bytes:
    signatory, encoder = encoder_of(one, mechanism)
    attributes = encoder.attributes(encoder.digest(reserved.data, reserved.start, reserved.size))
    envelope = encoder.envelope(from_provider(one, signatory, attributes, encoder), token)
    return cms.insert(reserved.data, reserved.start, reserved.size, envelope)


@WAY
def test_openssl_calls_it_valid(kind: str, mechanism: Mechanism, tmp_path: Path) -> None:
    one = issue(kind)
    signatory, encoder = encoder_of(one, mechanism)
    attributes = encoder.attributes(hashlib.new(mechanism.hash, CONTENT).digest())
    envelope = encoder.envelope(from_provider(one, signatory, attributes, encoder))
    assert_cades(envelope, CONTENT, one.chain[-1], tmp_path)


@WAY
def test_a_file_with_it_is_valid_for_others_and_for_us(kind: str, mechanism: Mechanism, tmp_path: Path) -> None:
    one = issue(kind)
    data = sealed(one, mechanism, reserved_file(document(line("plain")), encoder_of(one, mechanism)[1].size))
    assert_sealed(data, tmp_path)
    (signature,) = verify.verify(data, [one.root], NOW).signatures
    assert (signature.indication, signature.level, signature.trust) == ("TOTAL-PASSED", "B-B", "trusted")
    assert signature.covers_whole_document
    assert read_back.check(data, [], [], pages=1, certificate=one.encoded[0]) == "B-B"


def test_a_document_that_came_signed_keeps_its_signature(tmp_path: Path) -> None:
    one, mechanism = issue("p384"), Mechanism("ecdsa", "sha384")
    theirs = signed(document(line("theirs")))
    reserved = signed_files.reserve(theirs, [], text(), encoder_of(one, mechanism)[1].size)
    data = sealed(one, mechanism, reserved)
    assert data.startswith(theirs)
    assert_sealed(data, tmp_path, others=1)


@WAY
def test_what_is_reserved_is_enough_and_not_much_more(kind: str, mechanism: Mechanism) -> None:
    one = issue(kind)
    signatory, encoder = encoder_of(one, mechanism)
    lengths = set()
    for number in range(5 if kind.startswith("rsa") else 60):
        attributes = encoder.attributes(hashlib.new(mechanism.hash, bytes([number])).digest())
        lengths.add(len(encoder.envelope(from_provider(one, signatory, attributes, encoder))))
    assert max(lengths) <= encoder.size <= max(lengths) + 28


@WAY
def test_the_algorithm_is_what_another_encoder_writes(kind: str, mechanism: Mechanism) -> None:
    assert kind
    algorithm = algos.SignedDigestAlgorithm.load(cms.signature_algorithm(mechanism), strict=True)
    assert algorithm.dump(force=True) == cms.signature_algorithm(mechanism)
    assert (
        algorithm.signature_algo
        == {"rsa": "rsassa_pkcs1v15", "rsa-pss": "rsassa_pss", "ecdsa": "ecdsa"}[mechanism.algorithm]
    )
    assert algorithm.hash_algo == mechanism.hash
    assert cms.mechanism_of(cms.signature_algorithm(mechanism)) == mechanism


def test_a_seal_is_read_back_as_what_it_says_it_is() -> None:
    """Another mechanism than the file states, another key, another hash: none is a seal."""
    one, other = issue("rsa-2048"), issue("rsa-3072")
    mechanism, pss = Mechanism("rsa"), Mechanism("rsa-pss")
    signatory, encoder = encoder_of(one, mechanism)
    reserved = reserved_file(document(line("plain")), encoder.size)
    attributes = encoder.attributes(encoder.digest(reserved.data, reserved.start, reserved.size))
    digest = encoder.to_be_signed(attributes)
    for raw in (one.sign(pss, digest), other.sign(mechanism, digest), one.sign(mechanism, bytes(32))):
        data = cms.insert(
            reserved.data,
            reserved.start,
            reserved.size,
            encoder.envelope(Signed(attributes, raw[: signatory.signature_size])),
        )
        with pytest.raises(SealBroken, match="does not hold"):
            read_back.check(data, [], [], pages=1, certificate=one.encoded[0])
    envelope = encoder.envelope(Signed(attributes, one.sign(mechanism, digest)))
    stated = cms.signature_algorithm(mechanism)
    odd = envelope.replace(stated, stated.replace(b"\x01\x0b\x05", b"\x01\x05\x05"))  # SHA-1 with RSA
    assert odd != envelope
    data = cms.insert(reserved.data, reserved.start, reserved.size, odd)
    with pytest.raises(SealBroken, match="signed in another way"):
        read_back.check(data, [], [], pages=1, certificate=one.encoded[0])


@pytest.mark.parametrize("kind", ["rsa-3072", "ec-p256"])
def test_with_the_key_at_hand_the_envelope_is_the_same(kind: certificates.KeyType) -> None:
    """One encoder for both: octet for octet, of RSA, whose signatures do not vary; of a curve but for the signature."""
    identity = certificates.parse(certificates.make(certificates.Names(), kind, datetime.now(UTC)))
    local = identity.signer
    leaf = identity.chain[0]
    elsewhere = CmsEncoder(
        identity.encoded, leaf.issuer.public_bytes(), leaf.serial_number, local.mechanism,
        cms.largest_signature(identity.key.public_key()),
    )  # fmt: skip
    digest, at = hashlib.sha256(CONTENT).digest(), datetime(2026, 11, 23, tzinfo=UTC)
    assert isinstance(local, CmsSigner)
    for moment in (None, at):
        done = local.sign(digest, moment)
        assert done.attributes == elsewhere.attributes(digest, moment)
        assert local.envelope(done) == elsewhere.envelope(done)
        if kind == "rsa-3072":
            raw = identity.key.sign(done.attributes, padding.PKCS1v15(), cms.HASHES["sha256"])  # type: ignore[call-arg, arg-type]
            assert done.signature == raw
    assert local.size == elsewhere.size
