"""The CSC adapter beside a service of version 1 that somebody else wrote."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.providers import CertsignSettings
from contracts.runtime.http.outbound import Outbound
from services.rendering.jobs.sealing.cms import CmsEncoder, Signed, insert
from services.rendering.jobs.sealing.returned import check_chain, check_signatures
from services.rendering.jobs.sealing.time_stamp import read_token
from services.rendering.providers.certificates.certsign import Credential, Grant
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.providers.failures import ProviderFailed
from tests.support.files.pdf_files import document, line
from tests.support.rendering.sealing import assert_sealed
from tests.support.rendering.seals import reserved
from tests.support.servers.providers.csc_dummy import EC, RSA, Dummy, csc_dummy


@pytest.fixture(scope="module")
def dummy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dummy]:
    with csc_dummy(tmp_path_factory.mktemp("dummy")) as running:
        yield running


def opened(dummy: Dummy, credential: str | None) -> tuple[CscProvider, Credential]:
    provider = CscProvider(CertsignSettings(url=dummy.url, credential_id=credential), Outbound("127.0.0.0/8"))
    known = provider.credential()
    assert isinstance(known, Credential)
    return provider, known


@pytest.mark.parametrize("name", [RSA, EC])
def test_it_signs_by_each_mechanism(dummy: Dummy, name: str) -> None:
    provider, credential = opened(dummy, name)
    assert credential.most_at_once == 3
    assert credential.bound
    assert len(credential.mechanisms) == (6 if name == RSA else 3)
    for mechanism in credential.mechanisms:
        assert check_chain(credential.chain, [mechanism], [dummy.root], datetime.now(UTC)).mechanism == mechanism
        hashes = tuple(hashlib.new(mechanism.hash, b"%d" % number).digest() for number in range(3))
        dummy.calls.clear()
        grant = provider.authorize(credential, hashes, mechanism, "Agreement", idempotency_key="k")
        assert isinstance(grant, Grant)
        signatures = provider.sign(credential, grant, hashes, mechanism, idempotency_key="k")
        assert isinstance(signatures, tuple)
        check_signatures(credential.chain[0], mechanism, hashes, signatures)
        assert dummy.operations == ["credentials/authorize", "signatures/signHash"]


@pytest.mark.parametrize("name", [RSA, EC])
def test_what_it_signed_is_a_valid_seal(dummy: Dummy, name: str, tmp_path: Path) -> None:
    provider, credential = opened(dummy, name)
    signatory = check_chain(credential.chain, credential.mechanisms, [dummy.root], datetime.now(UTC))
    encoder = CmsEncoder.of(signatory)
    files = [reserved(document(line(str(number))), encoder.size) for number in range(3)]
    attributes = [encoder.attributes(encoder.digest(one.data, one.start, one.size)) for one in files]
    hashes = tuple(encoder.to_be_signed(one) for one in attributes)
    grant = provider.authorize(credential, hashes, signatory.mechanism, "Agreement", idempotency_key="k")
    assert isinstance(grant, Grant)
    answer = provider.sign(credential, grant, hashes, signatory.mechanism, idempotency_key="k")
    assert isinstance(answer, tuple)
    signatures = check_signatures(signatory.chain[0], signatory.mechanism, hashes, answer)
    for one, attribute, signature in zip(files, attributes, signatures, strict=True):
        assert_sealed(insert(one.data, one.start, one.size, encoder.envelope(Signed(attribute, signature))), tmp_path)


def test_a_hash_that_was_not_authorized_is_refused(dummy: Dummy) -> None:
    provider, credential = opened(dummy, EC)
    mechanism = credential.mechanisms[0]
    hashes = (hashlib.new(mechanism.hash, b"one").digest(),)
    grant = provider.authorize(credential, hashes, mechanism, "Agreement", idempotency_key="k")
    assert isinstance(grant, Grant)
    other = (hashlib.new(mechanism.hash, b"other").digest(),)
    with pytest.raises(ProviderFailed) as caught:
        provider.sign(credential, grant, other, mechanism, idempotency_key="k")
    assert (caught.value.code, caught.value.retryable) == ("invalid_request", False)


def test_its_time_stamps_are_read_as_any_others(dummy: Dummy) -> None:
    provider, _ = opened(dummy, EC)
    assert read_token(provider.time_stamp(b"signature", 99), hashlib.sha256(b"signature").digest(), 99).certificates


def test_one_of_many_credentials_must_be_chosen(dummy: Dummy) -> None:
    with pytest.raises(ProviderFailed, match="provider/root") as caught:
        opened(dummy, None)
    assert caught.value.code == "credential_not_chosen"
