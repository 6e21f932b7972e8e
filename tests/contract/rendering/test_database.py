"""Seal jobs and what they leave behind, on SQLite and PostgreSQL, with real children and real files."""

import errno
import tempfile
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import DOCUMENTS_FAILED, DocumentsFailed, Erased
from contracts.runtime import migrations
from contracts.runtime.clock import uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.operations.checking import outcome
from deploy.rabbitmq import PrivateBroker
from services.rendering import background, checking, commands, queries, results, starting
from services.rendering.children.pool import JobCrashed, JobFailed, JobTimedOut
from services.rendering.jobs.sealing import certificates
from services.rendering.models import Result, ResultSource, SealedFile, SealJob
from services.rendering.results import FreshResult, Results
from services.rendering.rules import domain
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.signatures.workshop import Workshop
from tests.contract.conftest import on
from tests.support.files.pdf_files import LETTER, document, line, signed
from tests.support.rendering import drawing
from tests.support.rendering.seal_jobs import (
    NOW,
    attempt,
    blobs,
    count,
    database,
    files_of,
    keys,
    order,
    sealed_event,
    settings,
    told,
    work_on,
    workshop,
)
from tests.support.rendering.sealing import assert_sealed, attachment, contract_pdf, pdf_text, pdfsig, seal_request
from tests.support.rendering.seals import chain_of_earlier_version, keys_in, public_half
from tests.support.services import processes
from tests.support.services.circumstances.kernels import without_landlock
from tests.support.services.suite import wait_until

__all__ = ["blobs", "database", "keys", "workshop"]


@pytest.mark.parametrize("command", ["serve", "background", "check"])
def test_a_lost_key_is_not_replaced_silently(broker: PrivateBroker, tmp_path: Path, command: str) -> None:
    url = f"sqlite:///{tmp_path}/rendering.sqlite"
    environment = processes.environment("rendering", broker.amqp_url, url, tmp_path, SIGNING_KEY_TYPE="ec-p256")
    processes.migrate("rendering", environment)
    database = Database(url)
    own = settings(tmp_path / "certificates", database_url=url)
    starting.check(own, database)  # nothing was sealed yet: the key will be made
    database.write(commands.remember_sealed, ["a" * 64], 7, NOW)

    refused = processes.run("rendering", command, environment)
    assert refused.returncode == (1 if command == "check" else 2)
    said = refused.stdout + refused.stderr
    assert f"CERTIFICATE_DIR ({tmp_path}/certificates) has no signing.pem" in said
    assert "CERTIFICATE_NEW_CHAIN=true" in said
    assert "Traceback" not in said
    assert not (tmp_path / "certificates").exists()

    starting.check(own.model_copy(update={"certificate_new_chain": True}), database)
    Workshop(own).identity  # noqa: B018 - makes the key
    starting.check(own, database)
    database.dispose()


def test_a_start_forgets_the_root_s_key_of_an_earlier_version_and_a_check_does_not(tmp_path: Path) -> None:
    """After a check the earlier version must still be able to start."""
    identity = chain_of_earlier_version(tmp_path)
    before = (tmp_path / certificates.FILE).read_bytes()
    own = settings(tmp_path)
    for trial in checking.trials(own):
        if trial.name == "seal: key":
            assert "expires in" in trial.attempt()
    assert (tmp_path / certificates.FILE).read_bytes() == before
    started = Workshop(own).open()
    try:
        assert keys_in(tmp_path) == {public_half(identity.key.public_key())}
        assert started.identity.encoded == identity.encoded
    finally:
        started.close()


def test_a_folder_that_cannot_be_written_to_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = chain_of_earlier_version(tmp_path)

    def read_only(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkstemp", read_only)
    made = Workshop(settings(tmp_path))
    with monkeypatch.context() as without_children:
        without_children.setattr(Workshop, "_start_children", lambda _: None)
        made.open()
    assert made.identity.encoded == identity.encoded
    assert made.identity.revocation_list


@pytest.mark.parametrize("command", ["serve", "background", "check"])
def test_without_the_walls_it_starts_only_where_it_may(broker: PrivateBroker, tmp_path: Path, command: str) -> None:
    url = f"sqlite:///{tmp_path}/rendering.sqlite"
    more = {"RENDERING_WITHOUT_WALLS": "refuse", "SIGNING_KEY_TYPE": "ec-p256"}
    environment = processes.environment("rendering", broker.amqp_url, url, tmp_path, **more)
    processes.migrate("rendering", environment)
    refused = without_landlock(lambda: processes.run("rendering", command, environment))
    assert refused.returncode == (1 if command == "check" else 2)
    said = refused.stdout + refused.stderr
    assert "RENDERING_WITHOUT_WALLS is refuse, and there is no Landlock" in said
    assert "Traceback" not in said
    database = Database(url)
    starting.check(settings(tmp_path / "certificates", rendering_without_walls="refuse"), database)
    database.dispose()
    if command == "check":
        warned = without_landlock(
            lambda: processes.run("rendering", command, {**environment, "RENDERING_WITHOUT_WALLS": "allow"})
        )
        assert warned.returncode == 0, warned.stdout
        assert "walls of the children: ok, but there is no Landlock" in warned.stdout
        (walls,) = [one for one in checking.trials(settings(tmp_path)) if one.name.startswith("walls")]
        assert outcome(walls) == (True, "walls of the children: ok (Landlock and seccomp)")


def test_the_migration_makes_what_the_models_say(database_url: str) -> None:
    migrations.upgrade("rendering", database_url)
    assert migrations.differences("rendering", database_url) == []
    migrations.downgrade("rendering", database_url)
    migrations.upgrade("rendering", database_url)


# --- the way of a job -------------------------------------------------------------------------------------------------------


def test_a_job_ends_with_sealed_documents_and_an_audit_trail(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path
) -> None:
    request = seal_request(blobs, contract_pdf(3), document(line("annex")))
    order(database, request)
    work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    sealed = sealed_event(database)
    assert (sealed.submission_id, sealed.seal_id, sealed.pades_level, sealed.report) == (7, "seal-1", "B-B", [])
    assert [one.conformance for one in sealed.documents] == [[] for _ in sealed.documents]
    assert [one.uuid for one in sealed.documents] == ["d0", "d1"]
    assert [one.original_sha256 for one in sealed.documents] == [one.original.sha256 for one in request.documents]
    contract = blobs.get(sealed.documents[0].file)
    text = pdf_text(contract, tmp_path)
    for value in ("Ana Kowalska", "Łódź 漢字", "12/01/2026", "Agreement, page 3"):
        assert value in text
    trail = blobs.get(sealed.audit_trail)
    said = pdf_text(trail, tmp_path)
    for one in sealed.documents:
        assert one.file.sha256 in said
        assert one.original_sha256 in said
    for data in (contract, blobs.get(sealed.documents[1].file), trail):
        assert_sealed(data, tmp_path)
    job = database.read(queries.job, "seal-1")
    assert job is not None
    assert (job.state, job.attempts, job.sealed_attempt, job.pades_level) == ("done", 1, 1, "B-B")
    assert job.request is None, "values and addresses are not kept"
    assert job.swept
    for file in (sealed.audit_trail, *(one.file for one in sealed.documents)):
        assert database.read(queries.sealed_here, file.sha256)


@on("sqlite")
def test_files_of_signers_are_named_and_never_read(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hundreds of 25 MB each would not fit into any memory, and the submission would never be sealed."""
    request = seal_request(blobs)
    files = [
        attachment(blobs, b"%d" % number, f"f{number}", f"scan {number}.pdf", "application/pdf") for number in (1, 2)
    ]
    scans = drawing.field_value(
        "file", ["f1", "f2"], drawing.area(0.1, 0.7, 0.4, 0.05, attachment_uuid="d0"), name="Scans"
    )
    more = {"values": [*request.values, scans], "attachments": [*request.attachments, *files]}
    order(database, request.model_copy(update=more))
    read: list[str] = []
    get = blobs.get

    def read_and_note(ref: BlobRef) -> bytes:
        read.append(ref.key)
        return get(ref)

    monkeypatch.setattr(blobs, "get", read_and_note)
    work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    sealed = sealed_event(database)
    assert "scan 2.pdf" in pdf_text(get(sealed.documents[0].file), tmp_path)
    said = pdf_text(get(sealed.audit_trail), tmp_path)
    assert all(one.file.sha256[:32] in said for one in files)
    assert set(read) == {request.documents[0].file.key, request.attachments[0].file.key}


@pytest.mark.parametrize("how", ["the same event", "another event"])
def test_asked_twice_it_is_done_once(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, how: str, tmp_path: Path
) -> None:
    request = seal_request(blobs)
    ids = ["e1", "e1"] if how == "the same event" else ["e1", "e2"]
    for event_id in ids:
        order(database, request, event_id)
    work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    order(database, request, ids[-1])
    work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    sealed_event(database)
    assert count(database, SealJob) == 1
    assert len(files_of(tmp_path)) == 2


@on("postgresql")
def test_a_document_that_came_signed_keeps_its_signature(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path
) -> None:
    theirs = signed(document(line("Theirs"), line("two"), media=LETTER))
    request = seal_request(blobs, theirs)
    request = request.model_copy(update={"documents": [request.documents[0].model_copy(update={"signed": True})]})
    order(database, request)
    work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    data = blobs.get(sealed_event(database).documents[0].file)
    assert data.startswith(theirs)
    assert "Ana Kowalska" in pdf_text(data, tmp_path)
    assert pdfsig(data, tmp_path).count("Signature is Valid") == 1 + 2  # ours is shown on both pages


@pytest.mark.parametrize("kind", ["rsa-3072", "pkcs12"])
@on("sqlite")
def test_other_keys(database: Database, blobs: BlobStore, keys: Path, kind: str, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    own = settings(tmp_path / "own", signing_key_type="rsa-3072", signing_common_name="Meier")
    if kind == "pkcs12":
        identity = certificates.parse(certificates.make(certificates.Names("Meier"), "rsa-3072", NOW))
        packed = pkcs12.serialize_key_and_certificates(
            b"x",
            identity.key,
            identity.chain[0],
            identity.chain[1:],
            serialization.BestAvailableEncryption(b"pw"),
        )
        (tmp_path / "seal.p12").write_bytes(packed)
        own = settings(tmp_path / "none", signing_pkcs12_file=tmp_path / "seal.p12", signing_pkcs12_password="pw")
    made = Workshop(own).open()
    try:
        order(database, seal_request(blobs))
        work_on(database, SealWork(own, blobs, made.renderer, made.sealer, database))
        data = blobs.get(sealed_event(database).documents[0].file)
        assert_sealed(data, tmp_path)
        assert "Signer Certificate Common Name: Meier" in pdfsig(data, tmp_path)
    finally:
        made.close()


# --- what goes wrong --------------------------------------------------------------------------------------------------------


@on("postgresql")
def test_a_value_that_does_not_fit_ends_the_job_and_names_the_field(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path
) -> None:
    value = drawing.field_value(
        "text", "word " * 4000, drawing.area(0.1, 0.1, 0.1, 0.01, attachment_uuid="d0"), name="City"
    )
    order(database, seal_request(blobs, values=[value]))
    work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    (event,) = told(database)
    failed = DocumentsFailed.model_validate(event["data"])
    assert event["type"] == DOCUMENTS_FAILED.type
    assert (failed.submission_id, failed.seal_id) == (7, "seal-1")
    assert "City" in failed.reason
    job = database.read(queries.job, "seal-1")
    assert job is not None
    assert (job.state, job.attempts, job.request) == ("parked", 1, None)
    assert files_of(tmp_path) == []


def test_a_given_up_job_can_be_asked_for_again_under_a_new_id(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path
) -> None:
    work = SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database)
    missing = drawing.field_value("signature", "gone", drawing.area(0.1, 0.1, 0.3, 0.1, attachment_uuid="d0"))
    order(database, seal_request(blobs, values=[missing]))
    work_on(database, work)
    order(database, seal_request(blobs, seal_id="seal-2"))
    work_on(database, work)
    assert [(event["type"], event["data"]["seal_id"]) for event in told(database)] == [
        ("documents.failed", "seal-1"),
        ("documents.sealed", "seal-2"),
    ]


@on("sqlite")
def test_what_is_read_back_wrong_is_never_given_out(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if the drawing had lost a value: the check finds another text than was drawn."""
    really = workshop.renderer.fill_and_reserve

    def lossy(*arguments: Any) -> Any:
        filled = really(*arguments)
        filled.drawn[0] = replace(filled.drawn[0], text="Somebody Else")
        return filled

    monkeypatch.setattr(workshop.renderer, "fill_and_reserve", lossy)
    order(database, seal_request(blobs))
    outcome = attempt(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    assert isinstance(outcome, Park)
    assert outcome.error == "Seal check failed: Field 'Full name': its value was not found on page 1 of the sealed file"
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("error", [JobCrashed, JobTimedOut, JobFailed])
@on("postgresql")
def test_a_fault_of_the_work_is_tried_three_times(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    error: type[JobFailed],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trip(*_: object, **__: object) -> None:
        raise error("audit_trail", "oops")

    monkeypatch.setattr(workshop.renderer, "audit_trail", trip)
    order(database, seal_request(blobs))
    work = SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database)
    for number in (1, 2):
        assert isinstance(attempt(database, work, number), Retry)
    given_up = attempt(database, work, 3)
    assert isinstance(given_up, Park)
    assert given_up.error == "audit_trail failed: oops"


@on("sqlite")
def test_a_failed_attempt_takes_its_files_away(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[list[str]] = []

    def trip(*_: object, **__: object) -> None:
        wait_until(lambda: files_of(tmp_path) != [], what="the sealed document, which is written meanwhile")
        written.append(files_of(tmp_path))
        raise ServiceError("unavailable", "The file store is not available. Try again later.")

    monkeypatch.setattr(workshop.renderer, "audit_trail", trip)
    order(database, seal_request(blobs))
    outcome = attempt(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database), 7)
    assert isinstance(outcome, Retry), "what is missing outside is waited for"
    assert len(written[0]) == 1
    assert files_of(tmp_path) == []


@on("postgresql")
def test_a_level_that_was_not_foreseen_is_a_fault(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The audit trail is drawn while the document is read back: what it says of it must be what is found."""
    monkeypatch.setattr(workshop.renderer, "check_seal", lambda *_arguments, **_expected: "B-T")
    order(database, seal_request(blobs))
    outcome = attempt(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    assert isinstance(outcome, Retry)
    assert "a seal without time-stamp was read back as ['B-T']" in outcome.error
    assert files_of(tmp_path) == []


@on("sqlite")
def test_without_a_valid_certificate_nothing_is_sealed_and_nothing_is_lost(
    database: Database, blobs: BlobStore, keys: Path, tmp_path: Path
) -> None:
    long_ago = NOW - timedelta(days=31 * 365.25)
    certificates.load_or_make(tmp_path / "old", certificates.Names(), "ec-p256", long_ago)
    old = Workshop(settings(tmp_path / "old")).open()
    try:
        order(database, seal_request(blobs))
        outcome = attempt(database, SealWork(settings(tmp_path / "old"), blobs, old.renderer, old.sealer, database), 5)
        assert isinstance(outcome, Retry)
        assert "expired on" in outcome.error
        assert files_of(tmp_path) == []
    finally:
        old.close()


# --- what is left behind ----------------------------------------------------------------------------------------------------


def test_what_a_killed_attempt_left_is_swept(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path
) -> None:
    """The first attempt was killed before its outcome was written, the second one made the result."""
    work = SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database)
    order(database, seal_request(blobs))
    assert isinstance(attempt(database, work, 1), Done)  # and here it is killed
    done = attempt(database, work, 2)
    assert isinstance(done, Done)
    assert len(files_of(tmp_path)) == 4

    def finish(session: Any) -> None:
        job = queries.job(session, "seal-1")
        assert job is not None
        assert done.record is not None
        job.state, job.finished_at = "done", datetime.now(UTC) - timedelta(minutes=1)
        done.record(session, job)

    database.write(finish)
    background.sweep(database, blobs)
    assert len(files_of(tmp_path)) == 4, "another attempt might still be under way"
    database.write(lambda session: session.execute(sa.update(SealJob).values(finished_at=NOW - timedelta(hours=1))))
    background.sweep(database, blobs)
    sealed = sealed_event(database)
    assert {f"submissions/7/{name}" for name in files_of(tmp_path)} == {
        sealed.documents[0].file.key,
        sealed.audit_trail.key,
    }
    job = database.read(queries.job, "seal-1")
    assert job is not None
    assert job.swept


def test_old_jobs_are_forgotten_unswept_ones_are_not(database: Database, blobs: BlobStore) -> None:
    for number in (1, 2, 3):
        order(database, seal_request(blobs, seal_id=f"seal-{number}"))
    long_ago = NOW - timedelta(days=91)

    def age(session: Any) -> None:
        for number, (state, swept) in enumerate([("done", True), ("done", False), ("due", False)], start=1):
            values = {"state": state, "swept": swept, "finished_at": long_ago}
            session.execute(sa.update(SealJob).where(SealJob.seal_id == f"seal-{number}").values(**values))

    database.write(age)
    database.write(commands.forget_old_jobs, NOW)
    assert database.read(queries.job, "seal-1") is None
    assert database.read(queries.job, "seal-2") is not None
    assert database.read(queries.job, "seal-3") is not None


def erase(database: Database, blobs: BlobStore) -> None:
    envelope = Envelope(
        id=uuid7(), type="submission.erased", source="submissions", subject="submission:7", occurred_at=NOW, data={}
    )
    database.write(commands.erase, envelope, Erased(submission_id=7), NOW)
    results.clear(database, blobs)


def test_an_erased_submission_leaves_nothing(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path
) -> None:
    order(database, seal_request(blobs))
    work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    sealed = sealed_event(database)
    kept = Results(database, blobs, timedelta(hours=1))
    files = [blobs.put(b"made", "image/png", "rendering/") for _ in range(2)]
    kept.get("page", "p", lambda: FreshResult({"n": 1}, [files[0].key]), sources=[sealed.documents[0].file.sha256])
    kept.get("page", "other", lambda: FreshResult({"n": 3}, [files[1].key]), sources=["0" * 64])
    erase(database, blobs)
    assert [blobs.exists(file.key) for file in files] == [False, True]
    assert count(database, SealedFile) == 0
    assert count(database, Result) == 1
    assert count(database, ResultSource) == 1
    database.write(lambda session: session.execute(sa.update(SealJob).values(finished_at=NOW - timedelta(hours=1))))
    background.sweep(database, blobs)
    assert files_of(tmp_path) == []


def test_erasing_in_the_middle_of_a_seal(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path
) -> None:
    """The attempt ends later: its outcome counts for nothing, and what it wrote is swept."""
    order(database, seal_request(blobs))
    work = SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database)
    started, erased = threading.Event(), threading.Event()

    def slow(job: SealJob) -> Any:
        started.set()
        assert erased.wait(120)
        return work.attempt(job)

    loop = DueWork(
        "seal", database, SealJob, slow, schedule=domain.SCHEDULE, lease=timedelta(minutes=5), on_park=commands.fail_job
    )
    loop.turn()
    assert started.wait(120)
    erase(database, blobs)
    erased.set()
    loop.finish()
    assert told(database) == []
    assert len(files_of(tmp_path)) == 2
    database.write(lambda session: session.execute(sa.update(SealJob).values(finished_at=NOW - timedelta(hours=1))))
    background.sweep(database, blobs)
    assert files_of(tmp_path) == []


def test_pikepdf_is_not_needed_where_the_key_is() -> None:
    """The process that signs opens no file of anybody: it does not even load what could."""
    import subprocess
    import sys

    program = (
        "import sys, services.rendering.background; print([m for m in ('pikepdf', 'pypdfium2', 'pyhanko', 'PIL') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
