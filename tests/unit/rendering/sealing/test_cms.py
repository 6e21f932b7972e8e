"""The hand-made CMS, read by others: asn1crypto for its parts, OpenSSL for its validity."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from asn1crypto import cms as asn1_cms
from asn1crypto import tsp

from services.rendering.jobs.sealing import certificates, cms
from tests.support.judges.documents.openssl_cms import assert_cades

CONTENT = b"what is signed" * 1000


@pytest.fixture(params=["rsa-3072", "ec-p256"])
def identity(request: pytest.FixtureRequest) -> certificates.SealIdentity:
    return certificates.parse(certificates.make(certificates.Names(), request.param, datetime.now(UTC)))


def attributes(envelope: bytes) -> dict[str, Any]:
    (signer,) = asn1_cms.ContentInfo.load(envelope, strict=True)["content"]["signer_infos"]
    return {attribute["type"].native: attribute["values"] for attribute in signer["signed_attrs"]}


def test_openssl_calls_it_valid(identity: certificates.SealIdentity, tmp_path: Path) -> None:
    signed = identity.signer.sign(hashlib.sha256(CONTENT).digest())
    assert_cades(identity.signer.envelope(signed), CONTENT, identity.chain[-1], tmp_path)


def test_it_has_what_pades_wants_and_nothing_that_it_forbids(identity: certificates.SealIdentity) -> None:
    """EN 319 142-1, 6.3: signing certificate by its hash, no signing time, one signer, all certificates."""
    envelope = identity.signer.envelope(identity.signer.sign(bytes(32)))
    found = attributes(envelope)
    assert set(found) == {"content_type", "message_digest", "signing_certificate_v2"}
    named = tsp.SigningCertificateV2.load(found["signing_certificate_v2"][0].dump())["certs"][0]
    assert named["cert_hash"].native == hashlib.sha256(identity.encoded[0]).digest()
    signed_data = asn1_cms.ContentInfo.load(envelope)["content"]
    assert {choice.chosen.dump() for choice in signed_data["certificates"]} == set(identity.encoded)
    assert signed_data["encap_content_info"]["content"].native is None


def test_it_is_der(identity: certificates.SealIdentity) -> None:
    """Encoded again from its parts by another encoder it is the same."""
    envelope = identity.signer.envelope(identity.signer.sign(bytes(32)))
    assert asn1_cms.ContentInfo.load(envelope, strict=True).dump(force=True) == envelope


def test_what_is_reserved_is_enough_and_not_much_more(identity: certificates.SealIdentity) -> None:
    lengths = {len(identity.signer.envelope(identity.signer.sign(bytes([n] * 32)))) for n in range(60)}
    assert max(lengths) <= identity.signer.size <= max(lengths) + 24


def test_a_time_stamp_is_an_unsigned_attribute(identity: certificates.SealIdentity) -> None:
    token = asn1_cms.ContentInfo({"content_type": "data", "content": b"token"}).dump()
    signed = identity.signer.sign(bytes(32))
    (signer,) = asn1_cms.ContentInfo.load(identity.signer.envelope(signed, token))["content"]["signer_infos"]
    (attribute,) = signer["unsigned_attrs"]
    assert attribute["type"].native == "signature_time_stamp_token"
    assert attribute["values"][0].dump() == token
    assert signer["signature"].native == signed.signature


def test_a_signature_that_is_too_large_is_not_cut_off() -> None:
    assert cms.insert(b"<0000>", 1, 4, b"\xab") == b"<ab00>"
    with pytest.raises(cms.TooLarge):
        cms.insert(b"<0000>", 1, 4, b"\xab\xcd\xef")


@pytest.mark.parametrize("value", [0, 1, 127, 128, 255, 256, 2**63])
def test_integers_are_never_negative(value: int) -> None:
    encoded = cms.integer(value)
    assert encoded[0] == 2
    assert int.from_bytes(encoded[2:], "big", signed=True) == value


def test_a_time_stamp_request_asks_for_the_certificate() -> None:
    request = tsp.TimeStampReq.load(
        cms.time_stamp_request(hashlib.sha256(b"signature").digest(), 2**62 + 5), strict=True
    )
    assert request["message_imprint"]["hashed_message"].native == hashlib.sha256(b"signature").digest()
    assert request["nonce"].native == 2**62 + 5
    assert request["cert_req"].native is True
