"""Sealed files that get longer by archive time-stamps (PAdES B-LTA): the newest version is the submission's."""

from datetime import UTC, datetime, timedelta

from contracts.events import DocumentArchived, DocumentsSealed
from contracts.runtime.clock import uuid7
from services.submissions.commands import followups
from tests.support.material.submissions import SITE, Desk, blob, sealed

FIRST, SECOND = datetime(2029, 1, 31, tzinfo=UTC), datetime(2032, 1, 31, tzinfo=UTC)


def archived(of: DocumentsSealed, document: str, version: int, until: datetime = SECOND) -> DocumentArchived:
    return DocumentArchived(
        submission_id=of.submission_id,
        seal_id=of.seal_id,
        document=document,
        file=blob("rendering/"),
        version=version,
        archive_until=until,
    )


def complete(desk: Desk) -> DocumentsSealed:
    made = desk.signed()
    accepted = sealed(made.id, desk.column(made.id, "seal_id"), archive_until=FIRST)
    desk.database.write(followups.accept_sealed, uuid7(), accepted, SITE, desk.now)
    return accepted


def accept(desk: Desk, event: DocumentArchived, event_id: str | None = None) -> None:
    desk.database.write(followups.accept_archived, event_id or uuid7(), event, SITE, desk.now)


def test_the_longer_file_takes_the_place_of_the_one_before(desk: Desk) -> None:
    accepted = complete(desk)
    shown = desk.get(accepted.submission_id)
    assert shown.archive_until == FIRST
    document, trail = archived(accepted, accepted.documents[0].uuid, 1), archived(accepted, "", 1)
    accept(desk, document)
    shown = desk.get(accepted.submission_id)
    assert shown.documents[0].sha256 == document.file.sha256
    assert shown.archive_until == FIRST  # the audit trail's is still the old one
    accept(desk, trail)
    shown = desk.get(accepted.submission_id)
    assert shown.archive_until == SECOND
    removals = {row.key: row.next_attempt_at for row in desk.rows("SELECT key, next_attempt_at FROM blob_removals")}
    assert removals.keys() == {accepted.documents[0].file.key, accepted.audit_trail.key}
    assert all(str(moment) > str(desk.now + timedelta(days=89)) for moment in removals.values())
    assert desk.count("submission.completed") == 1


def test_it_may_come_twice_and_in_any_order(desk: Desk) -> None:
    accepted = complete(desk)
    name = accepted.documents[0].uuid
    first, second = archived(accepted, name, 1, FIRST), archived(accepted, name, 2)
    accept(desk, second, "018f0000-0000-7000-8000-000000000001")
    accept(desk, second, "018f0000-0000-7000-8000-000000000001")
    accept(desk, second)
    accept(desk, first)
    assert desk.get(accepted.submission_id).documents[0].sha256 == second.file.sha256
    assert [row.key for row in desk.rows("SELECT key FROM blob_removals")] == [accepted.documents[0].file.key]


def test_files_of_another_sealing_or_document_change_nothing(desk: Desk) -> None:
    accepted = complete(desk)
    for stray in (
        archived(accepted, "another", 1),
        archived(accepted.model_copy(update={"seal_id": "another"}), "", 1),
        archived(accepted.model_copy(update={"submission_id": 4711}), "", 1),
    ):
        accept(desk, stray)
    shown = desk.get(accepted.submission_id)
    assert (shown.documents[0].sha256, shown.archive_until) == (accepted.documents[0].file.sha256, FIRST)
    assert desk.rows("SELECT key FROM blob_removals") == []


def test_of_an_erased_submission_it_is_removed(desk: Desk) -> None:
    accepted = complete(desk)
    once = archived(accepted, "", 1)
    accept(desk, once)
    desk.remove(accepted.submission_id, permanently=True)
    late = archived(accepted, accepted.documents[0].uuid, 1)
    accept(desk, late)
    removed = {row.key for row in desk.rows("SELECT key FROM blob_removals WHERE key LIKE 'rendering/%'")}
    assert removed == {
        late.file.key,
        once.file.key,
        accepted.audit_trail.key,
        accepted.documents[0].file.key,
    }


def test_without_archive_time_stamps_there_is_no_date(desk: Desk) -> None:
    made = desk.signed()
    assert desk.get(made.id).archive_until is None
    desk.seal(made.id)
    assert desk.get(made.id).archive_until is None
