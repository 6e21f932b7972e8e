"""PAdES B-LTA: archive time-stamps at the end of sealed files, and their renewal years later. pyHanko's own validation of this
level and poppler are the judges."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pikepdf
import pytest
from pyhanko.sign.ades.report import AdESPassed

from contracts.runtime.http.outbound import Outbound
from services.rendering.children.pool import ChildPool, JobRefused
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing.certificates import KeyType, SealIdentity
from services.rendering.jobs.sealing.verifying import verify
from services.rendering.signatures.archiving import Archiver, NotArchived
from services.rendering.signatures.sealer import Sealer
from services.rendering.signatures.time_stamping import CertificateRevoked, TimeStampFailed, TimeStamping
from tests.support.files.pdf_files import document, line
from tests.support.rendering.archives import judged
from tests.support.rendering.sealing import assert_clean, pdfsig
from tests.support.rendering.seals import identity, sealed
from tests.support.servers.providers.tsa import Authority, authority

LOOPBACK = "127.0.0.0/8"


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    pool = ChildPool(size=1).start()
    yield Renderer(pool, most_bytes=2**20, most_pages=10)
    pool.close()


def stamping(renderer: Renderer, who: SealIdentity, tsa: Authority) -> TimeStamping:
    return TimeStamping([tsa.url], 5.0, who, renderer, Outbound(LOOPBACK), Outbound(LOOPBACK))


def archiver(renderer: Renderer, who: SealIdentity, tsa: Authority) -> Archiver:
    return Archiver(renderer, stamping(renderer, who, tsa), who)


def seal(renderer: Renderer, who: SealIdentity, tsa: Authority, file: bytes | None = None) -> bytes:
    """As the service does it."""
    sealer = Sealer(who, renderer, stamping(renderer, who, tsa), "Tested")
    assurance = sealer.assurance(datetime.now(UTC))
    place = sealer.place(assurance, datetime.now(UTC))
    unsigned = renderer.combine_and_reserve([file or document(line("stamped"))], "x", place)
    return sealer.sign(unsigned.reserved, assurance)


def levels(data: bytes, anchors: list[bytes], now: datetime | None = None) -> list[tuple[str, str | None, str]]:
    """What ``verify`` says of each signature: indication, level, trust."""
    verification = verify.verify(data, anchors, now or datetime.now(UTC))
    return [(one.indication, one.level, one.trust) for one in verification.signatures]


def words(data: bytes, anchors: list[bytes], now: datetime) -> list[str]:
    """What ``verify`` says in words of the seal."""
    return [note["content"] for note in verify.verify(data, anchors, now).signatures[0].verification_result]


def assert_kept(data: bytes, folder: Path, *, stamps: int = 1, others: int = 0) -> None:
    """poppler calls the signatures valid, qpdf finds nothing wrong. Of time-stamps poppler 22 tells only that they are there, and
    what they cover."""
    said = pdfsig(data, folder)
    assert said.count("Signature Validation: Signature is Valid.") == 1 + others, said
    assert said.count("Signature Field Name: Archive ") == stamps, said
    assert said.split("Signature #")[-1].count("- Total document signed") == 1, said
    assert_clean(data, folder)


@pytest.mark.parametrize("kind", ["rsa-3072", "ec-p256"])
@pytest.mark.parametrize("proofs", ["crl", "ocsp"])
def test_an_archive_time_stamp_lifts_a_seal_to_b_lta(
    renderer: Renderer, kind: KeyType, proofs: str, tmp_path: Path
) -> None:
    who = identity(kind)
    with authority(proofs) as tsa:
        before = seal(renderer, who, tsa)
        archived = archiver(renderer, who, tsa).archive(before)
    anchors = [who.encoded[-1], tsa.root]
    assert archived.data.startswith(before)
    assert archived.until - datetime.now(UTC) > timedelta(days=798)
    assert levels(before, anchors) == [("TOTAL-PASSED", "B-LT", "trusted")]
    assert levels(archived.data, anchors) == [
        ("TOTAL-PASSED", "B-LTA", "trusted"),
        ("TOTAL-PASSED", None, "trusted"),
    ]
    result = judged(archived.data, anchors, datetime.now(UTC))
    assert isinstance(result.ades_subindic, AdESPassed), result.ades_subindic
    assert result.oldest_evidence_record_timestamp is not None
    assert_kept(archived.data, tmp_path)


def test_a_renewed_file_outlives_its_first_authorities(renderer: Renderer, tmp_path: Path) -> None:
    """The authority of the first time-stamps has a certificate for 30 days; a second one comes before it ends."""
    who = identity("ec-p256")
    with authority("crl", days=30) as first, authority("crl", days=4000) as second:
        once = archiver(renderer, who, first).archive(seal(renderer, who, first))
        first.asked.clear()
        twice = archiver(renderer, who, second).archive(once.data)
        asked = list(first.asked)
    anchors = [who.encoded[-1], first.root, second.root]
    assert twice.data.startswith(once.data)
    assert twice.until - once.until > timedelta(days=3900)
    assert asked == ["/crl"]  # the first authority was asked about once more: that its certificate was good until then
    later = datetime.now(UTC) + timedelta(days=1000)
    assert [(indication, level) for indication, level, _ in levels(twice.data, anchors, later)] == [
        ("TOTAL-PASSED", "B-LTA"),
        ("TOTAL-PASSED", None),
        ("TOTAL-PASSED", None),
    ]
    assert not any("proves no time" in word for word in words(twice.data, anchors, later))
    assert levels(once.data, anchors, later)[1] == ("INDETERMINATE", None, "expired")
    assert any("proves no time" in word for word in words(once.data, anchors, later))
    lists = [second.crl(later), first.crl(later)]
    kept, lost = (judged(one.data, anchors, later, fetched=lists) for one in (twice, once))
    assert isinstance(kept.ades_subindic, AdESPassed), kept.ades_subindic
    assert not isinstance(lost.ades_subindic, AdESPassed)
    assert_kept(twice.data, tmp_path, stamps=2)


def test_a_document_that_came_signed_keeps_its_signatures(renderer: Renderer, tmp_path: Path) -> None:
    """The other's signature has no time-stamp, and nobody can be asked about its certificate."""
    other, who = identity("ec-p256"), identity("rsa-3072")
    with authority("crl") as tsa:
        before = seal_signed(renderer, who, tsa, sealed(document(line("signed by another")), other))
        archived = archiver(renderer, who, tsa).archive(before)
    anchors = [who.encoded[-1], other.encoded[-1], tsa.root]
    assert archived.data.startswith(before)
    assert [level for _, level, _ in levels(archived.data, anchors)] == ["B-B", "B-LTA", None]
    assert_kept(archived.data, tmp_path, others=1)


def seal_signed(renderer: Renderer, who: SealIdentity, tsa: Authority, data: bytes) -> bytes:
    from services.rendering.jobs.sealing import signed_files

    sealer = Sealer(who, renderer, stamping(renderer, who, tsa), "Tested")
    assurance = sealer.assurance(datetime.now(UTC))
    place = sealer.place(assurance, datetime.now(UTC))
    return sealer.sign(signed_files.reserve(data, [], place.text, place.size, place.material), assurance)


def test_without_proofs_there_is_no_archive_time_stamp(renderer: Renderer) -> None:
    who = identity("ec-p256")
    for proofs in (None, "broken"):
        with authority(proofs) as tsa:
            before = seal(renderer, who, tsa)
            with pytest.raises(NotArchived, match="no proof of non-revocation"):
                archiver(renderer, who, tsa).archive(before)


def test_a_seal_without_time_stamp_does_not_become_b_lta(renderer: Renderer) -> None:
    who = identity("ec-p256")
    with authority("crl") as tsa, pytest.raises(NotArchived, match=r"PAdES B-B only|no proof"):
        archiver(renderer, who, tsa).archive(sealed(document(line("plain")), who))


def test_a_revoked_authority_keeps_nothing(renderer: Renderer) -> None:
    who = identity("ec-p256")
    with authority("crl") as tsa:
        before = seal(renderer, who, tsa)
        once = archiver(renderer, who, tsa).archive(before).data
        tsa.proofs = "revoked"
        with pytest.raises(CertificateRevoked):
            archiver(renderer, who, tsa).archive(once)
        tsa.mode = "error"
        with pytest.raises(TimeStampFailed):
            archiver(renderer, who, tsa).archive(once)


def test_proofs_are_fetched_once_for_many_files(renderer: Renderer) -> None:
    who = identity("ec-p256")
    with authority("crl") as tsa:
        once = archiver(renderer, who, tsa).archive(seal(renderer, who, tsa)).data
        one = archiver(renderer, who, tsa)
        tsa.asked.clear()
        tsa.requests.clear()
        for _ in range(3):
            one.archive(once)
        assert tsa.asked == ["/crl"]
        assert len(tsa.requests) == 4  # one of them to know who answers


def test_what_is_no_sealed_file_is_refused(renderer: Renderer) -> None:
    who = identity("ec-p256")
    with authority("crl") as tsa:
        one = archiver(renderer, who, tsa)
        for data in (document(line("plain")), b"%PDF-1.7 nothing", sealed(document(line("cut")), who)[:-30]):
            with pytest.raises(JobRefused):
                one.archive(data)


@pytest.mark.parametrize("certified", [False, True])
def test_other_readers_find_nothing_changed(renderer: Renderer, certified: bool) -> None:
    """Also where the seal forbids changes (DocMDP 2)."""
    from services.rendering.jobs.sealing import reserving

    who = identity("ec-p256")
    with authority("crl") as tsa:
        sealer = Sealer(who, renderer, stamping(renderer, who, tsa), "Tested")
        assurance = sealer.assurance(datetime.now(UTC))
        place = sealer.place(assurance, datetime.now(UTC))
        with pikepdf.open(io.BytesIO(document(line("certified")))) as pdf:
            unsigned = reserving.reserve(pdf, place.text, place.size, place.material, certify=certified)
        archived = archiver(renderer, who, tsa).archive(sealer.sign(unsigned, assurance))
    verification = verify.verify(archived.data, [who.encoded[-1], tsa.root], datetime.now(UTC))
    assert verification.checksum_status == "valid"
    assert [one.changed_after_signing for one in verification.signatures] == [False, False]
    assert verification.signatures[1].covers_whole_document
