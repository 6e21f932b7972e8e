"""Seal jobs whose files get duty stamps, on SQLite and PostgreSQL: the real adapter against an issuer that sells them."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pikepdf
import pytest
import sqlalchemy as sa

from contracts.envelope import Envelope
from contracts.events import (
    DOCUMENT_ARCHIVED,
    DOCUMENTS_SEALED,
    DOCUMENTS_STAMPED,
    DUTYSTAMP_CHANGED,
    DUTYSTAMP_RETRIED,
    DocumentArchived,
    DocumentsSealed,
    DocumentsStamped,
    Erased,
)
from contracts.providers import DutystampOrder, DutystampRetried, StampPosition
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork
from contracts.runtime.data.files.blobstore import BlobStore
from deploy.providers.stamp_issuer import StampIssuer
from services.rendering import background, commands, queries
from services.rendering.jobs.sealing.verifying.verify import verify
from services.rendering.models import ArchivedFile, DutyStamp, StampedSeal
from services.rendering.rules import domain
from services.rendering.sealing.archive_work import ArchiveWork
from services.rendering.signatures.workshop import Workshop
from services.rendering.stamping import accounts, seals, stages
from tests.contract.conftest import on
from tests.support.files.pdf_files import document, line
from tests.support.rendering import drawing
from tests.support.rendering.providers import stamp_orders
from tests.support.rendering.providers.certificates_at_providers import RemoteKey
from tests.support.rendering.providers.certificates_at_providers import order as by_provider
from tests.support.rendering.providers.provider_suite import KILLED, Suite, killed_when, what_was_signed
from tests.support.rendering.providers.stamp_orders import issuer, stamp_keys
from tests.support.rendering.seal_jobs import blobs, count, database, keys, order, put_clock_back, told, workshop
from tests.support.rendering.sealing import assert_clean, contract_pdf, pdf_text, pdfsig, seal_request
from tests.support.servers.providers.tsa import authority
from tests.support.services.secret_settings import LINK_SECRET

__all__ = ["blobs", "database", "issuer", "keys", "stamp_keys", "workshop"]


@pytest.fixture
def suite(database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path) -> Suite:
    own = stamp_orders.settings(tmp_path, certificate_dir=keys)
    return Suite(database, blobs, workshop, own, RemoteKey())


def ordered(issuer: StampIssuer, **more: Any) -> DutystampOrder:
    return stamp_orders.order(issuer.settings()).model_copy(update=more)


def asked(suite: Suite, *files: bytes, **more: Any) -> None:
    order(suite.database, seal_request(suite.blobs, *files, **more))


def retried(suite: Suite, new: DutystampOrder) -> None:
    envelope = Envelope(
        id=uuid7(),
        type=DUTYSTAMP_RETRIED.type,
        source="submissions",
        subject="submission:7",
        occurred_at=now(),
        data={},
    )
    data = DutystampRetried(submission_id=7, seal_id="seal-1", order=new)
    suite.database.write(commands.retry_dutystamp, envelope, data, accounts.opened(new.settings, LINK_SECRET), now())


def later(suite: Suite) -> DocumentsStamped:
    (event,) = [event for event in told(suite.database) if event["type"] == DOCUMENTS_STAMPED.type]
    return DocumentsStamped.model_validate(event["data"])


def wait_is_over(suite: Suite) -> None:
    def change(session: Any) -> None:
        session.execute(sa.update(StampedSeal).values(wait_until=datetime.now(UTC) - timedelta(seconds=1)))

    suite.database.write(change)
    suite.pass_time()
    suite.run()


def purchases_are_old(suite: Suite) -> None:
    """A purchase that the provider does not list by now was not made."""

    def change(session: Any) -> None:
        for row in session.scalars(sa.select(DutyStamp).where(DutyStamp.asked_at.is_not(None))):
            row.asked_at -= stages.SURELY_NOT

    suite.database.write(change)


def files(tmp_path: Path, prefix: str) -> list[str]:
    folder = tmp_path / "blobs" / "submissions" / "7"
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(prefix))


def swept(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LIMIT", timedelta(seconds=-1))
    for _ in range(2):
        background.sweep(suite.database, suite.blobs)


def test_documents_are_stamped_after_they_are_sealed_and_the_trail_states_both(
    suite: Suite, issuer: StampIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(suite, contract_pdf(2), document(line("annex")), dutystamp=ordered(issuer))
    suite.run()
    sealed = suite.sealed()
    assert suite.kinds().count(DOCUMENTS_STAMPED.type) == 0
    said = pdf_text(suite.blobs.get(sealed.audit_trail), tmp_path)
    assert len(issuer.books.sold) == 2
    sources = {each.source for each in issuer.books.sold.values()}
    for one in sealed.documents:
        data = suite.blobs.get(one.file)
        assert_clean(data, tmp_path)
        assert pdfsig(data, tmp_path).count("Signature is Valid") == 2
        assert one.stamped_at is not None
        assert one.file.sha256 in said
        assert suite.database.read(queries.sealed_here, one.file.sha256)
    for source in sources:
        assert source is not None
        assert source in said, "what it was before it was stamped"
        assert suite.database.read(queries.sealed_here, source)
    for serial in issuer.books.sold:
        assert serial in said
    assert suite.stamps()[-1].status == "stamped"
    swept(suite, monkeypatch)
    assert files(tmp_path, "kept-") == []
    assert count(suite.database, StampedSeal) == 0
    for file in (*(each.file for each in sealed.documents), sealed.audit_trail):
        assert suite.blobs.get(file)


def test_provider_seal_then_stamp(suite: Suite, issuer: StampIssuer, tmp_path: Path) -> None:
    asked(suite, certsign=by_provider(suite.key.own), dutystamp=ordered(issuer))
    suite.run()
    (one,) = suite.sealed().documents
    data = suite.blobs.get(one.file)
    said = pdfsig(data, tmp_path)
    assert said.count("Signature is Valid") == 2
    assert said.index("Meier GmbH Seal") < said.index("Signature #2")
    assert suite.key.signed == what_was_signed(data)[:1]


def test_seal_then_stamp_then_archive_time_stamp(
    database: Database, blobs: BlobStore, issuer: StampIssuer, keys: Path, tmp_path: Path
) -> None:
    """The order in which signatures survive; the archive time-stamp covers the duty stamp, the trail states the whole."""
    with authority("crl") as tsa:
        own = stamp_orders.settings(tmp_path, certificate_dir=keys, tsa_url=tsa.url, pades_level="B-LTA")
        made = Workshop(own).open()
        try:
            suite = Suite(database, blobs, made, own, RemoteKey())
            asked(suite, dutystamp=ordered(issuer))
            suite.run()
        finally:
            made.close()
    sealed = suite.sealed()
    (one,) = sealed.documents
    data = blobs.get(one.file)
    said = pdfsig(data, tmp_path)
    assert "Signature Field Name: Seal 1" in said.split("Signature #")[1]
    assert said.count("Signature is Valid") == 2
    assert "Signature Field Name: Archive 1" in said.split("Signature #3")[1]
    assert "- Total document signed" in said.split("Signature #3")[1]
    assert one.file.sha256 in pdf_text(blobs.get(sealed.audit_trail), tmp_path)
    assert (sealed.pades_level, sealed.report) == ("B-LTA", [])
    archived = database.read(lambda session: list(session.scalars(sa.select(ArchivedFile))))
    assert {row.document for row in archived} == {one.uuid, ""}
    verification = verify(data, [*made.anchors, tsa.root], datetime.now(UTC))
    assert verification.checksum_status == "valid"
    assert [one.level for one in verification.signatures] == ["B-LTA", verification.signatures[1].level, None]


def test_the_one_pdf_of_all_documents_is_sealed_here_also_where_a_provider_signs(
    suite: Suite, issuer: StampIssuer, tmp_path: Path
) -> None:
    order_ = ordered(issuer, targets=["documents", "combined"])
    asked(suite, contract_pdf(1), contract_pdf(2), certsign=by_provider(suite.key.own), dutystamp=order_)
    suite.run()
    sealed = suite.sealed()
    assert sealed.combined is not None
    assert "Signer Certificate Common Name: Countersign Seal" in pdfsig(suite.blobs.get(sealed.combined), tmp_path)
    for one in sealed.documents:
        assert "Signer Certificate Common Name: Meier GmbH Seal" in pdfsig(suite.blobs.get(one.file), tmp_path)
    assert len(suite.key.signed) == 2
    assert len(issuer.books.sold) == 3


def archives_of(suite: Suite) -> dict[str, ArchivedFile]:
    rows = suite.database.read(lambda session: list(session.scalars(sa.select(ArchivedFile))))
    return {row.document: row for row in rows}


def archives_are_renewed(suite: Suite, own: Any, made: Workshop) -> list[DocumentArchived]:
    """Every archive time-stamp is due, and renewed by the real loop; what was told of that."""
    before = len(told(suite.database))
    past = now() - timedelta(seconds=1)
    suite.database.write(lambda session: session.execute(sa.update(ArchivedFile).values(next_attempt_at=past)))
    work = ArchiveWork(own, suite.blobs, suite.database, made.archiver)
    lease = timedelta(minutes=5)
    loop = DueWork("renew", suite.database, ArchivedFile, work.attempt, schedule=domain.ARCHIVE_SCHEDULE, lease=lease)
    while loop.turn() == 0.0:
        loop.finish()
    loop.finish()
    events = [one for one in told(suite.database)[before:] if one["type"] == DOCUMENT_ARCHIVED.type]
    return [DocumentArchived.model_validate(one["data"]) for one in events]


@on("sqlite")
@pytest.mark.parametrize("authority_is", ["there", "away", "not wanted any more"])
def test_what_is_stamped_late_takes_the_place_of_what_was_archived(
    database: Database, blobs: BlobStore, issuer: StampIssuer, keys: Path, tmp_path: Path, authority_is: str
) -> None:
    """The version without the stamp is renewed no more, else it would come back as the newer one."""
    issuer.books.quota = 0
    with authority("crl") as tsa:
        with_tsa = {"certificate_dir": keys, "tsa_url": tsa.url, "tsa_timeout": 2, "tsa_attempts": 1}
        own = stamp_orders.settings(tmp_path, **with_tsa, pades_level="B-LTA")
        made = Workshop(own).open()
        try:
            suite = Suite(database, blobs, made, own, RemoteKey())
            asked(suite, dutystamp=ordered(issuer, targets=["documents", "combined"]))
            suite.run()
            early = suite.sealed()
            assert early.combined is not None
            renewed = {one.document: one for one in archives_are_renewed(suite, own, made)}
            assert renewed.keys() == {"d0", "", "combined"}
            issuer.books.quota = 100
            if authority_is == "not wanted any more":
                suite = Suite(database, blobs, made, stamp_orders.settings(tmp_path, **with_tsa), RemoteKey())
            tsa.mode = "error" if authority_is == "away" else "good"
            retried(suite, ordered(issuer))
            for _ in range(4):
                suite.pass_time()
                suite.run()
            late = later(suite)
            assert late.combined is not None
            files = {"d0": late.documents[0].file, "": late.audit_trail, "combined": late.combined}
            assert {name: row.file and row.file["sha256"] for name, row in archives_of(suite).items()} == {
                name: file.sha256 for name, file in files.items()
            }
            assert all(late.archive_versions[name] > one.version for name, one in renewed.items())
            tsa.mode = "good"
            for one in archives_are_renewed(suite, own, made):
                assert one.version > late.archive_versions[one.document]
                assert blobs.get(one.file).startswith(blobs.get(files.pop(one.document)))
            # The authority was away when the trail was sealed, and there is no archive time-stamp upon a seal without one.
            assert files.keys() == ({""} if authority_is == "away" else set())
            assert {row.state for row in archives_of(suite).values() if row.document not in files} == {"due"}
            assert {row.state for row in archives_of(suite).values() if row.document in files} <= {"done"}
        finally:
            made.close()


def test_the_combined_file_is_stamped(suite: Suite, issuer: StampIssuer, tmp_path: Path) -> None:
    asked(suite, contract_pdf(2), contract_pdf(1), dutystamp=ordered(issuer, targets=["combined"]))
    suite.run()
    sealed = suite.sealed()
    assert len(issuer.books.sold) == 1
    assert sealed.combined is not None
    data = suite.blobs.get(sealed.combined)
    assert pdfsig(data, tmp_path).count("Signature is Valid") == 2
    assert "Agreement, page 2" in pdf_text(data, tmp_path)
    assert sealed.combined.sha256 in pdf_text(suite.blobs.get(sealed.audit_trail), tmp_path)
    assert suite.database.read(queries.sealed_here, sealed.combined.sha256)
    assert all(one.stamped_at is None for one in sealed.documents)


@pytest.mark.parametrize("how", ["late", "failed"])
def test_what_is_not_stamped_in_time_is_told_without_and_later_again(
    suite: Suite, issuer: StampIssuer, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "late":
        issuer.fail("error_500", rate=1.0)
        asked(suite, dutystamp=ordered(issuer))
        suite.run()
        assert DOCUMENTS_SEALED.type not in suite.kinds()
        wait_is_over(suite)
    else:
        issuer.books.quota = 0
        asked(suite, dutystamp=ordered(issuer))
        suite.run()
        assert suite.stamps()[-1].status == "failed"
    early = suite.sealed()
    assert early.documents[0].stamped_at is None
    assert issuer.books.sold == {}
    issuer.books.quota = 100
    issuer.fail("error_500")
    suite.restart()
    latest, before = put_clock_back(suite.database), len(suite.stamps())
    retried(suite, ordered(issuer))
    suite.pass_time()
    suite.run()
    late = later(suite)
    moments = [latest, *(state.at for state in suite.stamps()[before:])]
    assert moments == sorted(set(moments)), "later news are told as later"
    assert suite.stamps()[-1].status == "stamped"
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == 1
    (document_,) = late.documents
    data = suite.blobs.get(document_.file)
    assert data.startswith(suite.blobs.get(early.documents[0].file))
    assert pdfsig(data, tmp_path).count("Signature is Valid") == 2
    (serial,) = issuer.books.sold
    assert serial in pdf_text(suite.blobs.get(late.audit_trail), tmp_path)
    swept(suite, monkeypatch)
    for file in (early.documents[0].file, early.audit_trail, document_.file, late.audit_trail):
        assert suite.blobs.get(file), "both versions stay"
    job = suite.database.read(queries.job, "seal-1")
    assert job is not None
    assert (job.state, job.request) == ("done", None)


@pytest.mark.parametrize("how", ["not ordered", "not bought", "one of two"])
def test_stamps_that_nobody_has_tried_again_are_given_up_and_the_request_is_forgotten(
    suite: Suite, issuer: StampIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    issuer.books.quota = {"not ordered": 9, "not bought": 0, "one of two": 1}[how]
    pages = [document(line("x"), media=(0, 0, 60, 60))] if how == "not ordered" else [contract_pdf(1), contract_pdf(2)]
    asked(suite, *pages, dutystamp=ordered(issuer), values=[])
    suite.run()
    early = suite.sealed()
    swept(suite, monkeypatch)
    job = suite.database.read(queries.job, "seal-1")
    assert job is not None
    assert job.request is not None, "somebody may have it tried again"
    assert files(tmp_path, "kept-") != []
    past = now() - seals.GIVEN_UP_AFTER - timedelta(minutes=20)
    suite.database.write(lambda session: session.execute(sa.update(StampedSeal).values(told_at=past)))
    swept(suite, monkeypatch)
    job = suite.database.read(queries.job, "seal-1")
    assert job is not None
    assert (job.state, job.request) == ("done", None)
    assert files(tmp_path, "kept-") == files(tmp_path, "stamp-") == []
    assert [count(suite.database, table) for table in (StampedSeal, DutyStamp)] == [0, 0]
    for file in (*(one.file for one in early.documents), early.audit_trail):
        assert suite.blobs.get(file)
    issuer.books.quota = 100
    retried(suite, ordered(issuer))
    suite.pass_time()
    suite.run()
    assert suite.stamps()[-1].status == "failed"
    assert "too late for stamps" in (suite.stamps()[-1].message or "")
    assert DOCUMENTS_STAMPED.type not in suite.kinds()


@KILLED
def test_of_a_killed_attempt_at_the_later_version_nothing_stays(
    suite: Suite, issuer: StampIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.books.quota = 0
    asked(suite, dutystamp=ordered(issuer))
    suite.run()
    early = suite.sealed()
    issuer.books.quota = 100
    retried(suite, ordered(issuer))
    suite.pass_time()
    suite.run_only("order stamps", "stamp")
    killed_when(suite, "after put")
    suite.restart()
    suite.pass_time()
    suite.run()
    late = later(suite)
    both = [early.documents[0].file, early.audit_trail, late.documents[0].file, late.audit_trail]
    named = sorted(file.key.rpartition("/")[2] for file in both)
    assert len(files(tmp_path, "seal-")) > len(named)
    swept(suite, monkeypatch)
    assert files(tmp_path, "seal-") == named


def test_who_holds_waits_for_ever(suite: Suite, issuer: StampIssuer) -> None:
    issuer.books.quota = 0
    asked(suite, dutystamp=ordered(issuer, on_failure="hold"))
    suite.run()
    suite.pass_time()
    suite.run()
    assert suite.stamps()[-1].status == "failed"
    assert DOCUMENTS_SEALED.type not in suite.kinds()
    issuer.books.quota = 10
    retried(suite, ordered(issuer))
    suite.run()
    assert suite.sealed().documents[0].stamped_at is not None
    assert DOCUMENTS_STAMPED.type not in suite.kinds()


def test_a_stamp_without_room_is_told_and_the_documents_go_without(suite: Suite, issuer: StampIssuer) -> None:
    tiny = document(line("x"), media=(0, 0, 60, 60))
    asked(suite, tiny, dutystamp=ordered(issuer), values=[])
    suite.run()
    assert suite.stamps()[-1].status == "failed"
    assert suite.stamps()[-1].message is not None
    assert suite.sealed().documents[0].stamped_at is None
    assert issuer.books.sold == {}


def stamp_in(data: bytes) -> tuple[int, list[float]]:
    """The page (from 1) on which the last signature of a file is seen, and its corners in the page's own points."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        look = pdf.Root.AcroForm.Fields[-1]
        pages = [page for page in pdf.pages if look.objgen in [one.objgen for one in page.get("/Annots", [])]]
        assert len(pages) == 1
        page: Any = pages[0]
        return page.index + 1, [float(corner) for corner in look.Rect]


def test_a_stamp_lies_where_it_was_ordered(suite: Suite, issuer: StampIssuer) -> None:
    """In what comes back from the provider, too; on a turned and cropped page from the corner that people see."""
    turned = document(line("Theirs"), media=(-50, -20, 545, 822), rotate=90, crop=(30, 40, 500, 700))
    places = [StampPosition(document_index=0, page=2, x=300, y=50), StampPosition(document_index=1, x=100, y=30)]
    asked(suite, contract_pdf(2), turned, dutystamp=ordered(issuer, positions=places), values=[])
    suite.run()
    shown = [(one.document_index, one.page, one.x, one.y) for one in suite.stamps()[-1].stamps]
    assert shown == [(0, 2, 300, 50), (1, 1, 100, 30)]
    first, second = (stamp_in(suite.blobs.get(one.file)) for one in suite.sealed().documents)
    assert (first[0], second[0]) == (2, 1)
    assert first[1] == pytest.approx([300, 50, 372, 122], abs=0.5)
    assert second[1] == pytest.approx([398, 140, 470, 212], abs=0.5)


def test_a_stamp_without_a_place_finds_one(suite: Suite, issuer: StampIssuer) -> None:
    """At a field for stamps, else on the signature, else at the foot of the last page; on each document its own."""
    signatures = [drawing.area(0.2, 0.3, 0.2, 0.1, attachment_uuid=uuid) for uuid in ("d0", "d1")]
    values = [
        drawing.field_value("dutystamp", None, drawing.area(0.5, 0.5, 0.2, 0.1, attachment_uuid="d0"), name="Meterai"),
        drawing.field_value("signature", "a1", *signatures, name="Signature"),
    ]
    files = [document(line("x"), media=(0, 0, 500, 700)) for _ in range(2)]
    asked(
        suite, *files, document(line("y"), line("z"), media=(0, 0, 500, 700)), dutystamp=ordered(issuer), values=values
    )
    suite.run()
    found = [stamp_in(suite.blobs.get(one.file)) for one in suite.sealed().documents]
    middles = [((left + right) / 2, (bottom + top) / 2) for _, (left, bottom, right, top) in found]
    assert middles[0] == pytest.approx((300, 315), abs=0.5), "the middle of the field for stamps"
    assert middles[1] == pytest.approx((150, 455), abs=0.5), "the middle of the signature"
    assert found[2][0] == 2
    assert middles[2][0] > 250
    assert middles[2][1] < 100


def test_an_erased_submission_leaves_no_kept_files(suite: Suite, issuer: StampIssuer, tmp_path: Path) -> None:
    issuer.books.quota = 0
    asked(suite, dutystamp=ordered(issuer, on_failure="hold"))
    suite.run()
    assert files(tmp_path, "kept-") == ["kept-1-1-0"]
    envelope = Envelope(
        id=uuid7(),
        type="submission.erased",
        source="submissions",
        subject="submission:7",
        occurred_at=now(),
        data={},
    )
    removed = suite.database.write(commands.erase, envelope, Erased(submission_id=7), now())
    assert "submissions/7/kept-1-1-0" in removed
    suite.pass_time()
    suite.run()
    assert DOCUMENTS_SEALED.type not in suite.kinds()
    assert issuer.books.sold == {}


@on("sqlite")
@KILLED
def test_killed_at_any_moment_as_many_stamps_are_bought_as_there_are(suite: Suite, issuer: StampIssuer) -> None:
    asked(suite, dutystamp=ordered(issuer), seal_id="whole", submission_id=100)
    moments = killed_when(suite, None)
    assert {"after begin", "after keep"} <= set(moments)
    for number, moment in enumerate(moments):
        if number and moment.startswith("before"):
            continue
        sold = len(issuer.books.sold)
        asked(suite, dutystamp=ordered(issuer), seal_id=f"killed-{number}", submission_id=200 + number)
        killed_when(suite, number)
        suite.restart()
        for _ in range(3):
            purchases_are_old(suite)
            suite.pass_time()
            suite.run()
        events = [one for one in told(suite.database) if one["data"].get("seal_id") == f"killed-{number}"]
        finished = [one for one in events if one["type"] == DOCUMENTS_SEALED.type]
        assert len(finished) == 1, moment
        (event,) = finished
        sealed = DocumentsSealed.model_validate(event["data"])
        assert sealed.documents[0].stamped_at is not None, moment
        assert len(issuer.books.sold) - sold == 1, moment
        assert DUTYSTAMP_CHANGED.type in {one["type"] for one in events}
        source = suite.blobs.get(sealed.documents[0].file)
        assert len(what_was_signed(source)) == 2
