"""Seals that the local provider signed, with its proofs of non-revocation, in the eyes of others: B-B to B-LT."""

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import pikepdf
import pytest
from asn1crypto import x509 as asn1_x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import validate_pdf_signature
from pyhanko.sign.validation.dss import DocumentSecurityStore
from pyhanko_certvalidator import ValidationContext

from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from services.rendering.children.pool import ChildPool, JobRefused
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing import cms, reserving
from services.rendering.jobs.sealing.cms import CmsEncoder, Signed
from services.rendering.jobs.sealing.verifying import verify
from services.rendering.protocol.messages import Signatory
from services.rendering.providers.certificates.certsign import Credential, Grant
from services.rendering.signatures.time_stamping import CertificateRevoked, TimeStamping
from tests.support.files.pdf_files import document, line
from tests.support.rendering.sealing import assert_sealed
from tests.support.rendering.seals import text
from tests.support.servers.providers.csc_provider import LOOPBACK, adapter, running


@dataclass(frozen=True)
class Identity:
    """What TimeStamping wants to know of who signs."""

    signatory: Signatory
    revocation_list: None = None

    @property
    def encoded(self) -> list[bytes]:
        return list(self.signatory.chain)

    @cached_property
    def signer(self) -> CmsEncoder:
        return CmsEncoder.of(self.signatory)


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    pool = ChildPool(size=1).start()
    yield Renderer(pool, most_bytes=10**7, most_pages=1000)
    pool.close()


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with running(tmp_path / "provider") as one:
        yield one


def sealed(provider: Provider, renderer: Renderer, name: str, *, stamped: bool) -> tuple[bytes, Identity]:
    """A file with the provider's signature, as the seal job makes it: children read what the provider hands out."""
    csc = adapter(provider, name)
    credential = csc.credential()
    assert isinstance(credential, Credential)
    signatory = renderer.check_chain(
        credential.chain, credential.mechanisms, [provider.authorities.root.encoded], datetime.now(UTC)
    )
    identity = Identity(signatory)
    to_provider = Outbound(LOOPBACK)
    urls = [f"{provider.url}/tsa"] if stamped else []
    stamping = TimeStamping(urls, 10.0, identity, renderer, to_provider, to_provider)  # type: ignore[arg-type]
    assurance = stamping.assurance(datetime.now(UTC))
    with pikepdf.open(io.BytesIO(document(line("one"), line("two")))) as pdf:
        reserved = reserving.reserve(pdf, text(datetime.now(UTC)), assurance.size, assurance.material)
    encoder = identity.signer
    attributes = encoder.attributes(encoder.digest(reserved.data, reserved.start, reserved.size))
    hashes = (encoder.to_be_signed(attributes),)
    grant = csc.authorize(credential, hashes, signatory.mechanism, "Agreement", idempotency_key="k")
    assert isinstance(grant, Grant)
    answer = csc.sign(credential, grant, hashes, signatory.mechanism, idempotency_key="k")
    assert isinstance(answer, tuple)
    (signature,) = renderer.check_signatures(signatory.chain[0], signatory.mechanism, hashes, answer)
    token = stamping.stamp(signature) if stamped else None
    envelope = encoder.envelope(Signed(attributes, signature), token)
    return cms.insert(reserved.data, reserved.start, reserved.size, envelope), identity


@pytest.mark.parametrize("name", ["seal", "seal-ec", "seal-ec384"])
@pytest.mark.parametrize(("stamped", "level"), [(False, "B-B"), (True, "B-LT")])
def test_it_is_valid_for_others(
    provider: Provider, renderer: Renderer, tmp_path: Path, name: str, stamped: bool, level: str
) -> None:
    data, identity = sealed(provider, renderer, name, stamped=stamped)
    assert_sealed(data, tmp_path)
    root = asn1_x509.Certificate.load(provider.authorities.root.encoded)
    reader = PdfFileReader(io.BytesIO(data))
    (embedded,) = reader.embedded_signatures
    context = ValidationContext(trust_roots=[root])
    if stamped:  # with nothing but what the file holds, and proofs of all certificates required
        kept = {"trust_roots": [root], "allow_fetching": False, "revocation_mode": "hard-fail"}
        context = DocumentSecurityStore.read_dss(reader).as_validation_context(kept)
    status = validate_pdf_signature(embedded, context)
    assert status.bottom_line, status.pretty_print_details()
    assert status.coverage.name == "ENTIRE_FILE"
    verdict = verify.verify(data, [provider.authorities.root.encoded], datetime.now(UTC))
    (signature,) = verdict.signatures
    assert (verdict.checksum_status, signature.indication, signature.level) == ("valid", "TOTAL-PASSED", level)
    assert renderer.check_seal(data, identity.encoded[0], pages=2) == level
    assert set(provider.signing.record.counts().values()) == {1}


def test_nothing_is_sealed_with_a_certificate_that_was_revoked(provider: Provider, renderer: Renderer) -> None:
    """Its own state says so first; and when that comes too late, OCSP and list."""
    provider.faults.set([Fault("revoked")])
    provider.control({})
    csc = adapter(provider, "seal")
    provider.faults.set([])
    credential = csc.credential()
    assert isinstance(credential, Credential)
    provider.authorities.revoked = set(provider.authorities.signers)
    root = provider.authorities.root.encoded
    signatory = renderer.check_chain(credential.chain, credential.mechanisms, [root], datetime.now(UTC))
    (question, *_) = renderer.revocation_questions([signatory.chain[0]], list(signatory.chain))
    for kind, answer in (
        ("crl", provider.authorities.answer("issuer.crl")),
        ("ocsp", provider.authorities.answer("ocsp/" + question.ocsp[0].rpartition("/ocsp/")[2])),
    ):
        assert answer is not None
        verdict = renderer.check_revocation(kind, answer, question.serial, list(signatory.chain), datetime.now(UTC))
        assert verdict.until is None
        assert verdict.revoked is not None
    provider.faults.set([Fault("revoked")])
    outbound = Outbound(LOOPBACK)
    stamping = TimeStamping(
        [f"{provider.url}/tsa"], 10.0, Identity(signatory), renderer, outbound, outbound  # type: ignore[arg-type]
    )  # fmt: skip
    with pytest.raises(CertificateRevoked, match="Example Ltd"):
        stamping.assurance(datetime.now(UTC))


def test_a_child_refuses_what_is_not_in_order(provider: Provider, renderer: Renderer) -> None:
    """The parent gets a reason, and goes on."""
    provider.faults.set([Fault("order")])
    csc = adapter(provider, "seal-ec")
    credential = csc.credential()
    assert isinstance(credential, Credential)
    mechanism = credential.mechanisms[0]
    hashes = tuple(hashlib.new(mechanism.hash, b"%d" % number).digest() for number in range(3))
    grant = csc.authorize(credential, hashes, mechanism, "x", idempotency_key="k")
    assert isinstance(grant, Grant)
    answer = csc.sign(credential, grant, hashes, mechanism, idempotency_key="k")
    assert isinstance(answer, tuple)
    with pytest.raises(JobRefused, match="not in order"):
        renderer.check_signatures(credential.chain[0], mechanism, hashes, answer)
    assert renderer.check_signatures(credential.chain[0], mechanism, hashes[::-1], answer) == list(answer)
    with pytest.raises(JobRefused, match="does not lead to a trusted root"):
        renderer.check_chain(credential.chain, credential.mechanisms, [], datetime.now(UTC))
