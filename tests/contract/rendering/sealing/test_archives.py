"""Seal jobs that make PAdES B-LTA, and the renewal of what they made: kills, erasure, an authority that is away."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.events import (
    DOCUMENT_ARCHIVED,
    DOCUMENTS_SEALED,
    ArchivingDue,
    DocumentArchived,
    DocumentsSealed,
    Erased,
)
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering import commands, queries
from services.rendering.jobs.sealing.verifying.verify import verify
from services.rendering.models import ArchivedFile, SealedFile
from services.rendering.rules import domain
from services.rendering.sealing import archive_work
from services.rendering.sealing.archive_work import ArchiveWork
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop
from tests.contract.conftest import on
from tests.support.present import present
from tests.support.rendering.seal_jobs import blobs, count, database, keys, order, settings, told, work_on
from tests.support.rendering.sealing import pdf_text, seal_request
from tests.support.servers.providers.tsa import Authority, authority

__all__ = ["blobs", "database", "keys"]

SOON = timedelta(hours=1)


@pytest.fixture(scope="module")
def tsa() -> Iterator[Authority]:
    with authority("crl") as running:
        yield running


@pytest.fixture(scope="module")
def own(keys: Path, tsa: Authority) -> Settings:
    return settings(keys, tsa_url=tsa.url, tsa_timeout=60, tsa_attempts=1, pades_level="B-LTA")


@pytest.fixture(scope="module")
def made(own: Settings) -> Iterator[Workshop]:
    workshop = Workshop(own).open()
    yield workshop
    workshop.close()


@pytest.fixture(autouse=True)
def _good(tsa: Authority) -> Iterator[None]:
    yield
    tsa.mode, tsa.proofs = "good", "crl"


def seal(database: Database, blobs: BlobStore, own: Settings, made: Workshop) -> DocumentsSealed:
    order(database, seal_request(blobs))
    work = SealWork(own, blobs, made.renderer, made.sealer, database, archiver=made.archiver)
    work_on(database, work)
    events = [event for event in told(database) if event["type"] == DOCUMENTS_SEALED.type]
    return DocumentsSealed.model_validate(events[-1]["data"])


def rows(database: Database) -> list[ArchivedFile]:
    return database.read(lambda session: list(session.scalars(sa.select(ArchivedFile).order_by(ArchivedFile.id))))


def make_due(database: Database) -> None:
    def change(session: Any) -> None:
        moment = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(sa.update(ArchivedFile).values(next_attempt_at=moment, state="due", attempts=0))

    database.write(change)


def renew(database: Database, work: ArchiveWork) -> None:
    """The real loop, once through what is due."""
    loop = DueWork(
        "renew",
        database,
        ArchivedFile,
        work.attempt,
        schedule=domain.ARCHIVE_SCHEDULE,
        lease=timedelta(minutes=5),
        scheduled=True,
    )
    while loop.turn() == 0.0:
        loop.finish()
    loop.finish()


def archived_events(database: Database) -> list[DocumentArchived]:
    events = [event for event in told(database) if event["type"] == DOCUMENT_ARCHIVED.type]
    return [DocumentArchived.model_validate(event["data"]) for event in events]


def files_in(tmp_path: Path) -> set[str]:
    folder = tmp_path / "blobs" / "submissions" / "7"
    return {path.name for path in folder.iterdir() if path.name.startswith(("seal-", "archive-"))}


def names(*references: Any) -> set[str]:
    return {reference.key.rpartition("/")[2] for reference in references}


def assert_level(data: bytes, made: Workshop, tsa: Authority, *, stamps: int) -> None:
    signatures = verify(data, [*made.anchors, tsa.root], datetime.now(UTC)).signatures
    assert [(one.indication, one.level) for one in signatures] == [
        ("TOTAL-PASSED", "B-LTA"),
        *[("TOTAL-PASSED", None)] * stamps,
    ]
    assert signatures[-1].covers_whole_document


def test_a_seal_job_makes_b_lta_and_plans_the_renewal(
    database: Database, blobs: BlobStore, own: Settings, made: Workshop, tsa: Authority, tmp_path: Path
) -> None:
    sealed = seal(database, blobs, own, made)
    assert (sealed.pades_level, sealed.report) == ("B-LTA", [])
    assert sealed.archive_until is not None
    assert timedelta(days=799) < sealed.archive_until - datetime.now(UTC) <= timedelta(days=800)
    for file in (sealed.documents[0].file, sealed.audit_trail):
        assert_level(blobs.get(file), made, tsa, stamps=1)
    assert "PAdES B-LTA" in pdf_text(blobs.get(sealed.audit_trail), tmp_path)
    assert sealed.documents[0].file.sha256 in " ".join(pdf_text(blobs.get(sealed.audit_trail), tmp_path).split())
    planned = {row.document: row for row in rows(database)}
    assert {name: row.file and row.file["sha256"] for name, row in planned.items()} == {
        "d0": sealed.documents[0].file.sha256,
        "": sealed.audit_trail.sha256,
    }
    for row in planned.values():
        assert timedelta(days=619) < row.next_attempt_at - datetime.now(UTC) < timedelta(days=711)


def test_without_the_setting_nothing_is_archived(
    database: Database, blobs: BlobStore, keys: Path, tsa: Authority
) -> None:
    plain = settings(keys, tsa_url=tsa.url, tsa_timeout=60)
    workshop = Workshop(plain).open()
    try:
        order(database, seal_request(blobs))
        work_on(database, SealWork(plain, blobs, workshop.renderer, workshop.sealer, database))
    finally:
        workshop.close()
    (event,) = told(database)
    assert (event["data"]["pades_level"], event["data"]["archive_until"]) == ("B-LT", None)
    assert count(database, ArchivedFile) == 0


def test_what_is_due_is_renewed_and_told(
    database: Database, blobs: BlobStore, own: Settings, made: Workshop, tsa: Authority, tmp_path: Path
) -> None:
    sealed = seal(database, blobs, own, made)
    work = ArchiveWork(own, blobs, database, made.archiver)
    renew(database, work)
    assert archived_events(database) == []  # nothing is due yet
    for version in (1, 2):
        make_due(database)
        renew(database, work)
        events = archived_events(database)[-2:]
        assert {event.document for event in events} == {"d0", ""}
        for event in events:
            before = sealed.audit_trail if event.document == "" else sealed.documents[0].file
            data = blobs.get(event.file)
            assert data.startswith(blobs.get(before))
            assert_level(data, made, tsa, stamps=version + 1)
            assert (event.version, event.submission_id, event.seal_id) == (version, 7, sealed.seal_id)
            assert database.read(queries.sealed_here, event.file.sha256)
    for row in rows(database):
        assert row.state == "due"
        assert row.attempts == 0
        assert row.next_attempt_at > datetime.now(UTC) + timedelta(days=600)
        assert (row.candidates, row.sweep_at) == ([], None)
    archive_work.watch(database)
    assert 799 < archive_work.EXPIRES._value.get() / 86_400 <= 800


class _Killed(BaseException):
    """As kill -9: nothing of the attempt runs any more."""


@on("postgresql")
@pytest.mark.parametrize("where", ["before the note", "after the note", "half written", "after the file"])
def test_killed_at_any_step_nothing_is_lost_or_left(
    database: Database,
    blobs: BlobStore,
    own: Settings,
    made: Workshop,
    tmp_path: Path,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sealed = seal(database, blobs, own, made)
    make_due(database)
    work = ArchiveWork(own, blobs, database, made.archiver)
    row = rows(database)[0]
    put, plan = blobs.put, commands.plan_archive

    def killed(*_arguments: Any, **_options: Any) -> Any:
        raise _Killed

    def killed_after(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            step(*arguments, **options)
            raise _Killed

        return run

    with monkeypatch.context() as patch:
        if where == "before the note":
            patch.setattr(commands, "plan_archive", killed)
        elif where == "after the note":
            patch.setattr(blobs, "put", killed)
        else:
            patch.setattr(blobs, "put", killed_after(put))
        with pytest.raises(_Killed):
            work.attempt(row)
    assert commands.plan_archive is plan
    assert archived_events(database) == []
    renew(database, work)
    events = archived_events(database)
    assert len(events) == 2
    archive_work.sweep(database, blobs, -SOON)
    assert files_in(tmp_path) == names(sealed.audit_trail, sealed.documents[0].file, *(event.file for event in events))
    assert [row.candidates for row in rows(database)] == [[], []]


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_of_an_erased_submission_nothing_stays(
    database: Database, blobs: BlobStore, own: Settings, made: Workshop, tmp_path: Path, when: str
) -> None:
    sealed = seal(database, blobs, own, made)
    make_due(database)
    work = ArchiveWork(own, blobs, database, made.archiver)

    def erase() -> None:
        envelope = Envelope(
            id=uuid7(),
            type="submission.erased",
            source="submissions",
            subject="submission:7",
            occurred_at=datetime.now(UTC),
            data={},
        )
        database.write(commands.erase, envelope, Erased(submission_id=7), datetime.now(UTC))

    if when == "before":
        erase()
    elif when == "during":
        attempt = ArchiveWork.attempt

        class Late(ArchiveWork):
            def attempt(self, row: ArchivedFile) -> Any:
                outcome = attempt(self, row)
                if count_of_files(database):
                    erase()
                return outcome

        work = Late(own, blobs, database, made.archiver)
    renew(database, work)
    assert len(archived_events(database)) == (2 if when == "after" else 0)
    if when == "after":
        erase()
    archive_work.sweep(database, blobs, -SOON)
    # What was sealed at first is removed by submissions, which knows of it.
    assert files_in(tmp_path) == names(sealed.audit_trail, sealed.documents[0].file)
    assert count(database, ArchivedFile) == 0
    assert count(database, SealedFile) == 0


def count_of_files(database: Database) -> int:
    return sum(row.file is not None for row in rows(database))


def test_an_authority_that_is_away_is_waited_for_and_left_in_peace(
    database: Database, blobs: BlobStore, own: Settings, made: Workshop, tsa: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(database, blobs, own, made)
    make_due(database)
    work = ArchiveWork(own, blobs, database, made.archiver)
    tsa.mode = "error"
    tsa.requests.clear()
    renew(database, work)
    assert len(tsa.requests) == 1  # the second file does not ask as well
    waiting = rows(database)
    assert [row.state for row in waiting] == ["due", "due"]
    assert sorted(row.attempts for row in waiting) == [0, 1]
    assert all(row.next_attempt_at > datetime.now(UTC) for row in waiting)
    assert all("away" in str(row.last_error) or "no time-stamp" in str(row.last_error) for row in waiting)
    tsa.mode = "good"
    make_due(database)
    renew(database, work)
    assert archived_events(database) == []
    monkeypatch.setattr(work, "_away_until", 0.0)
    make_due(database)
    renew(database, work)
    assert len(archived_events(database)) == 2


def test_the_attempts_outlast_a_month() -> None:
    assert sum(domain.ARCHIVE_SCHEDULE, timedelta()) > timedelta(days=30)


def test_of_two_attempts_at_once_the_first_counts(
    database: Database, blobs: BlobStore, own: Settings, made: Workshop, tmp_path: Path
) -> None:
    sealed = seal(database, blobs, own, made)
    make_due(database)
    work = ArchiveWork(own, blobs, database, made.archiver)
    stale = rows(database)
    outcomes = [work.attempt(row) for row in stale]
    renew(database, work)
    first = {event.document: event.file for event in archived_events(database)}

    def again(session: Session, number: int, outcome: Done) -> None:
        present(outcome.record)(session, session.get(ArchivedFile, number))

    for row, outcome in zip(stale, outcomes, strict=True):
        assert isinstance(outcome, Done)
        database.write(again, row.id, outcome)
    assert {event.document: event.file for event in archived_events(database)} == first
    assert {row.document: row.file and row.file["sha256"] for row in rows(database)} == {
        document: file.sha256 for document, file in first.items()
    }
    assert all(row.state == "due" and row.next_attempt_at > datetime.now(UTC) + SOON for row in rows(database))
    archive_work.sweep(database, blobs, -SOON)
    assert files_in(tmp_path) == names(sealed.audit_trail, sealed.documents[0].file, *first.values())
    assert isinstance(work.attempt(stale[0]), Retry)  # what it was to renew is not the file any more


def test_what_cannot_be_archived_yet_is_later(
    database: Database, blobs: BlobStore, own: Settings, keys: Path, tsa: Authority
) -> None:
    tsa.proofs = "broken"
    workshop = Workshop(own).open()
    try:
        sealed = seal(database, blobs, own, workshop)
        assert (sealed.pades_level, sealed.archive_until) == ("B-T", None)
        assert {notice.code for notice in sealed.report} == {"no_revocation_data", "no_archive_time_stamp"}
        assert all(row.next_attempt_at < datetime.now(UTC) + timedelta(days=2) for row in rows(database))
        tsa.proofs = "crl"
        make_due(database)
        renew(database, ArchiveWork(own, blobs, database, workshop.archiver))
        for event in archived_events(database):
            assert_level(blobs.get(event.file), workshop, tsa, stamps=1)
        assert len(archived_events(database)) == 2
    finally:
        workshop.close()


def test_what_was_sealed_before_gets_archive_time_stamps_when_it_is_asked_for(
    database: Database, blobs: BlobStore, keys: Path, own: Settings, made: Workshop, tsa: Authority
) -> None:
    plain = settings(keys, tsa_url=tsa.url, tsa_timeout=60)
    order(database, seal_request(blobs))
    work_on(database, SealWork(plain, blobs, made.renderer, made.sealer, database))
    (event,) = told(database)
    sealed = DocumentsSealed.model_validate(event["data"])
    files = {sealed.documents[0].uuid: sealed.documents[0].file, "": sealed.audit_trail}
    due = ArchivingDue(submission_id=7, seal_id=sealed.seal_id, files=files)
    envelope = Envelope(
        id=uuid7(), type="archiving.due", source="submissions", subject="submission:7", occurred_at=now(), data={}
    )
    for one in (envelope, envelope, envelope.model_copy(update={"id": uuid7()})):
        database.write(commands.accept_archiving, one, due, now())
    renew(database, ArchiveWork(own, blobs, database, made.archiver))
    events = {event.document: event for event in archived_events(database)}
    assert {name: event.version for name, event in events.items()} == {"d0": 1, "": 1}
    for name, archived in events.items():
        data = blobs.get(archived.file)
        assert data.startswith(blobs.get(files[name]))
        assert_level(data, made, tsa, stamps=1)
    database.write(commands.erase, envelope.model_copy(update={"id": uuid7()}), Erased(submission_id=7), now())
    database.write(commands.accept_archiving, envelope.model_copy(update={"id": uuid7()}), due, now())
    assert count_of_files(database) == 0, "it was erased"


def test_without_an_authority_files_wait(database: Database, blobs: BlobStore, own: Settings, made: Workshop) -> None:
    seal(database, blobs, own, made)
    outcome = ArchiveWork(own, blobs, database, None).attempt(rows(database)[0])
    assert isinstance(outcome, Retry)
    assert not outcome.counts


def test_a_damaged_file_is_for_the_operator(
    database: Database, blobs: BlobStore, own: Settings, made: Workshop, tmp_path: Path
) -> None:
    sealed = seal(database, blobs, own, made)
    path = tmp_path / "blobs" / sealed.documents[0].file.key
    path.write_bytes(path.read_bytes()[:-20])
    row = next(row for row in rows(database) if row.document == "d0")
    assert isinstance(ArchiveWork(own, blobs, database, made.archiver).attempt(row), Park)
    path.unlink()
    missing = ArchiveWork(own, blobs, database, made.archiver).attempt(row)
    assert isinstance(missing, Retry)


def test_b_lta_needs_an_authority(keys: Path) -> None:
    with pytest.raises(ValidationError, match="PADES_LEVEL=B-LTA needs a time-stamping authority"):
        settings(keys, pades_level="B-LTA")
