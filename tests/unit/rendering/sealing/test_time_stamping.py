"""PAdES B-T and B-LT with a real authority over HTTP, and what happens when it is anything but good."""

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pikepdf
import pytest

from contracts.runtime.http.outbound import Outbound
from services.rendering.children.pool import ChildPool
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import revocation
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.jobs.sealing.verifying import read_back, verify
from services.rendering.protocol.messages import ValidationMaterial
from services.rendering.signatures.sealer import Sealer
from services.rendering.signatures.time_stamping import CertificateRevoked, TimeStampFailed, TimeStamping
from tests.support.files.pdf_files import document, line
from tests.support.rendering.sealing import assert_sealed
from tests.support.rendering.seals import identity
from tests.support.servers.providers.tsa import Authority, authority

LOOPBACK = "127.0.0.0/8"


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    pool = ChildPool(size=1).start()
    yield Renderer(pool, most_bytes=2**20, most_pages=10)
    pool.close()


@pytest.fixture
def who() -> SealIdentity:
    return identity("rsa-3072")


def stamping(
    renderer: Renderer, who: SealIdentity, *authorities: Authority, timeout: float = 5.0, networks: str = LOOPBACK
) -> TimeStamping:
    urls = [one.url for one in authorities]
    return TimeStamping(urls, timeout, who, renderer, Outbound(networks), Outbound(LOOPBACK))


def seal_with(service: TimeStamping, renderer: Renderer, who: SealIdentity) -> bytes:
    """A small document, sealed as the service does it."""
    sealer = Sealer(who, renderer, service, "Tested")
    assurance = sealer.assurance(datetime.now(UTC))
    place = sealer.place(assurance, datetime.now(UTC))
    unsigned = renderer.combine_and_reserve([document(line("stamped"))], "x", place)
    return sealer.sign(unsigned.reserved, assurance)


def levels(
    data: bytes, who: SealIdentity, tsa: Authority | None, now: datetime | None = None
) -> tuple[str, str | None]:
    """What the read-back and what ``verify`` say."""
    anchors = [who.encoded[-1], *([tsa.root] if tsa else [])]
    verdict = verify.verify(data, anchors, now or datetime.now(UTC))
    assert verdict.checksum_status == "valid"
    return read_back.check(data, [], [], pages=1, certificate=who.encoded[0]), verdict.signatures[0].level


def test_a_time_stamp_makes_it_b_t(renderer: Renderer, who: SealIdentity, tmp_path: Path) -> None:
    with authority() as tsa:
        service = stamping(renderer, who, tsa)
        data = seal_with(service, renderer, who)
        assert_sealed(data, tmp_path)
        assert levels(data, who, tsa) == ("B-T", "B-T")
        (notice,) = service.assurance(datetime.now(UTC)).notices
        assert notice.code == "no_revocation_data"
        assert "names nobody to ask" in notice.message
        signature = verify.verify(data, [who.encoded[-1], tsa.root], datetime.now(UTC)).signatures[0]
        assert signature.indication == "TOTAL-PASSED"
        assert signature.timestamp is not None
        with pikepdf.open(io.BytesIO(data)) as pdf:
            assert "/DSS" not in pdf.Root, "half of the proofs would prove nothing"


@pytest.mark.parametrize("proofs", ["crl", "ocsp"])
def test_with_proofs_of_non_revocation_it_is_b_lt(
    renderer: Renderer, who: SealIdentity, tmp_path: Path, proofs: str
) -> None:
    """The proofs are in the revision of the signature, which covers the whole file."""
    with authority(proofs) as tsa:
        service = stamping(renderer, who, tsa)
        data = seal_with(service, renderer, who)
        assert_sealed(data, tmp_path)
        assert levels(data, who, tsa) == ("B-LT", "B-LT")
        assert service.assurance(datetime.now(UTC)).notices == ()
        with pikepdf.open(io.BytesIO(data)) as pdf:
            assert len(pdf.Root.DSS.Certs) == 4
            assert len(pdf.Root.DSS.CRLs) == (2 if proofs == "crl" else 1)
            assert ("/OCSPs" in pdf.Root.DSS) == (proofs == "ocsp")


def test_after_the_certificate_has_expired_the_time_stamp_still_speaks(renderer: Renderer) -> None:
    """Sealed in time, looked at later: with the stamp it passes, without it nobody knows."""
    young = identity("ec-p256", datetime.now(UTC) - timedelta(days=365.25 * 30 - 20))
    with authority("crl") as tsa:
        data = seal_with(stamping(renderer, young, tsa), renderer, young)
        plain = seal_with(TimeStamping([], 1, young, renderer, Outbound(), Outbound()), renderer, young)
        later = datetime.now(UTC) + timedelta(days=60)
        stamped = verify.verify(data, [young.encoded[-1], tsa.root], later).signatures[0]
        assert (stamped.indication, stamped.trust) == ("TOTAL-PASSED", "trusted")
        unproven = verify.verify(data, [young.encoded[-1]], later).signatures[0]
        assert (unproven.indication, unproven.trust) == ("INDETERMINATE", "expired")
        assert verify.verify(plain, [young.encoded[-1]], later).signatures[0].trust == "expired"


def test_proofs_are_fetched_once_and_each_seal_gets_its_own_stamp(renderer: Renderer, who: SealIdentity) -> None:
    with authority("crl") as tsa:
        service = stamping(renderer, who, tsa)
        for _ in range(3):
            seal_with(service, renderer, who)
        assert tsa.asked == ["/crl"]
        assert len(tsa.requests) == 4, "a sample, and one for each seal"


def test_proofs_that_grow_old_are_fetched_again(renderer: Renderer, who: SealIdentity) -> None:
    with authority("crl") as tsa:
        service = stamping(renderer, who, tsa)
        now = datetime.now(UTC)
        service.assurance(now)
        service.assurance(now + timedelta(hours=5))
        assert len(tsa.asked) == 1
        service.assurance(now + timedelta(hours=7))
        assert len(tsa.asked) == 2


def test_without_an_authority_nothing_is_called(renderer: Renderer, who: SealIdentity) -> None:
    data = seal_with(TimeStamping([], 1, who, renderer, Outbound(), Outbound()), renderer, who)
    assert levels(data, who, None) == ("B-B", "B-B")


def test_a_login_in_the_url(renderer: Renderer, who: SealIdentity) -> None:
    with authority() as tsa:
        tsa.login = "meier:pass%20word".replace("%20", "_")
        assert levels(seal_with(stamping(renderer, who, tsa), renderer, who), who, tsa)[0] == "B-T"
        service = TimeStamping([f"{tsa.address}/tsr"], 5, who, renderer, Outbound(LOOPBACK), Outbound(LOOPBACK))
        with pytest.raises(TimeStampFailed, match="answered 401"):
            service.stamp(b"x")


FAILURES = {
    "refuse": "the authority refused: rejection not today",
    "garbage": "not a time-stamp",
    "wrong_digest": "for other data",
    "other_nonce": "another request",
    "wrong_purpose": "not for time-stamps",
    "error": "answered 500",
    "redirect": "answered 302",
    "endless": "answered too much",
}


@pytest.mark.parametrize("mode", FAILURES)
def test_an_answer_that_is_no_time_stamp(renderer: Renderer, who: SealIdentity, mode: str) -> None:
    with authority() as tsa:
        tsa.mode = mode
        with pytest.raises(TimeStampFailed, match=FAILURES[mode]) as caught:
            stamping(renderer, who, tsa).stamp(b"signature")
        assert "127.0.0.1" in str(caught.value)


def test_an_authority_that_hangs_is_given_up(renderer: Renderer, who: SealIdentity) -> None:
    with authority() as tsa:
        tsa.mode = "hang"
        with pytest.raises(TimeStampFailed, match="took too long"):
            stamping(renderer, who, tsa, timeout=0.3).stamp(b"signature")


def test_failures_never_name_the_login(renderer: Renderer, who: SealIdentity) -> None:
    with authority() as tsa:
        tsa.login, tsa.mode = "meier:secret", "error"
        with pytest.raises(TimeStampFailed) as caught:
            stamping(renderer, who, tsa).stamp(b"signature")
        assert "secret" not in str(caught.value)


def test_the_second_authority_helps_out(renderer: Renderer, who: SealIdentity) -> None:
    with authority() as first, authority() as second:
        first.mode = "error"
        data = seal_with(stamping(renderer, who, first, second), renderer, who)
        assert levels(data, who, second)[0] == "B-T"
        assert first.requests


@pytest.mark.parametrize("proofs", ["broken", "crl"])
def test_proofs_that_cannot_be_had_are_named_and_asked_for_again(
    renderer: Renderer, who: SealIdentity, proofs: str
) -> None:
    """Out of order, or at an address that may not be called."""
    with authority(proofs) as tsa:
        service = stamping(renderer, who, tsa, networks=LOOPBACK if proofs == "broken" else "")
        now = datetime.now(UTC)
        (notice,) = service.assurance(now).notices
        assert "TSA" in notice.message
        assert "stays B-T" in notice.message
        service.assurance(now + timedelta(minutes=5))
        assert len(tsa.requests) == 1
        service.assurance(now + timedelta(minutes=11))
        assert len(tsa.requests) == 2


def test_a_revoked_certificate_stops_the_sealing(renderer: Renderer, who: SealIdentity) -> None:
    with authority("revoked") as tsa, pytest.raises(CertificateRevoked, match="was revoked"):
        stamping(renderer, who, tsa).assurance(datetime.now(UTC))


def test_a_token_larger_than_the_sample_is_no_catastrophe(
    renderer: Renderer, who: SealIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    with authority() as tsa:
        service = stamping(renderer, who, tsa)
        sealer = Sealer(who, renderer, service, "Tested")
        assurance = sealer.assurance(datetime.now(UTC))
        place = sealer.place(assurance, datetime.now(UTC))
        unsigned = renderer.combine_and_reserve([document(line("x"))], "x", place)
        small = replace(unsigned.reserved, size=2000)
        with pytest.raises(TimeStampFailed, match="larger than the sample"):
            sealer.sign(small, assurance)
        sealer.assurance(datetime.now(UTC))
        assert len(tsa.requests) == 3, "a new sample was asked for"


# --- what counts as a proof -------------------------------------------------------------------------------------------------


def proofs_of(tsa: Authority) -> tuple[int, list[bytes]]:
    return tsa._leaf.serial_number, [tsa.root]


def test_a_list_of_another_issuer_proves_nothing() -> None:
    with authority("crl") as one, authority("crl") as other:
        serial, _ = proofs_of(one)
        with pytest.raises(Refused, match="not signed by the certificate's issuer"):
            revocation.check_list(one.crl(), serial, [other.root], datetime.now(UTC))


def test_old_and_future_answers_prove_nothing() -> None:
    with authority("crl") as tsa:
        serial, known = proofs_of(tsa)
        now = datetime.now(UTC)
        assert revocation.check_list(tsa.crl(), serial, known, now) > now
        with pytest.raises(Refused, match="out of date"):
            revocation.check_list(tsa.crl(), serial, known, now + timedelta(days=9))
        with pytest.raises(Refused, match="from the future"):
            revocation.check_list(tsa.crl(), serial, known, now - timedelta(days=9))


def test_an_ocsp_answer_of_a_stranger_proves_nothing() -> None:
    from base64 import b64encode

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509 import ocsp

    with authority("ocsp") as tsa, authority("ocsp") as stranger:
        builder = ocsp.OCSPRequestBuilder().add_certificate(tsa._leaf, tsa._root, hashes.SHA1())
        asked = b64encode(builder.build().public_bytes(serialization.Encoding.DER)).decode()
        answer = tsa.ocsp(asked)
        serial, known = proofs_of(tsa)
        assert revocation.check_ocsp(answer, serial, known, datetime.now(UTC)) > datetime.now(UTC)
        with pytest.raises(Refused, match="not signed by an authorised responder"):
            revocation.check_ocsp(answer, serial, [stranger.root], datetime.now(UTC))
        with pytest.raises(Refused, match="another certificate"):
            revocation.check_ocsp(answer, serial + 1, known, datetime.now(UTC))
        with pytest.raises(Refused, match="not an OCSP response"):
            revocation.check_ocsp(b"garbage", serial, known, datetime.now(UTC))


def test_material_is_nothing_without_proofs() -> None:
    assert not ValidationMaterial([b"certificate"])
    assert ValidationMaterial([], [], [b"list"])
