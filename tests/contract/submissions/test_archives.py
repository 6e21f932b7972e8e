"""Sealed files that get longer by archive time-stamps (PAdES B-LTA): the newest version is the submission's."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from contracts.events import COMBINED_FILE, ArchivingDue, DocumentArchived, DocumentsSealed, DocumentsStamped
from contracts.runtime.clock import uuid7
from services.submissions.background import EarlierDocuments
from services.submissions.commands import followups
from tests.contract.conftest import ON_BOTH
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
    removed = [row.key for row in desk.rows("SELECT key FROM blob_removals")]
    assert sorted(removed) == sorted([accepted.documents[0].file.key, first.file.key])


@pytest.mark.parametrize("order", ["archived first", "stamped first", "stamped only"])
@pytest.mark.parametrize("until", [SECOND, None])
def test_news_of_what_was_archived_before_the_stamp_does_not_undo_the_stamp(
    desk: Desk, order: str, until: datetime | None
) -> None:
    """Events of two kinds come in any order."""
    accepted = complete(desk)
    name = accepted.documents[0].uuid
    unstamped = archived(accepted, name, 1)
    late = DocumentsStamped.model_validate(
        sealed(accepted.submission_id, accepted.seal_id, archive_until=until).model_dump()
        | {"archive_versions": {name: 2, "": 1}}
    )
    late = late.model_copy(update={"documents": [late.documents[0].model_copy(update={"uuid": name})]})

    def stamp() -> None:
        desk.database.write(followups.accept_stamped, uuid7(), late, SITE, desk.now)

    steps = {"archived": lambda: accept(desk, unstamped), "stamped": stamp}
    first = order.partition(" ")[0]
    steps.pop(first)()
    if order != "stamped only":
        for step in steps.values():
            step()
    shown = desk.get(accepted.submission_id)
    assert shown.documents[0].sha256 == late.documents[0].file.sha256
    assert shown.archive_until == until
    if order == "stamped first":
        assert [row.key for row in desk.rows("SELECT key FROM blob_removals")] == [unstamped.file.key]
    newer = archived(accepted, name, 3, datetime(2035, 1, 31, tzinfo=UTC))
    accept(desk, newer)
    assert desk.get(accepted.submission_id).documents[0].sha256 == newer.file.sha256
    desk.remove(accepted.submission_id, permanently=True)
    removed = {row.key for row in desk.rows("SELECT key FROM blob_removals")}
    assert {newer.file.key, late.documents[0].file.key, late.audit_trail.key, accepted.audit_trail.key} <= removed


def test_the_one_pdf_of_all_documents_gets_longer_too(desk: Desk) -> None:
    made = desk.signed()
    combined = blob("rendering/")
    accepted = sealed(made.id, desk.column(made.id, "seal_id"), archive_until=FIRST, combined=combined)
    desk.database.write(followups.accept_sealed, uuid7(), accepted, SITE, desk.now)
    longer = archived(accepted, COMBINED_FILE, 1)
    accept(desk, longer)
    (results,) = [
        json.loads(row.results) for row in desk.rows("SELECT CAST(results AS TEXT) AS results FROM submissions")
    ]
    assert results["merged"]["sha256"] == longer.file.sha256
    assert [row.key for row in desk.rows("SELECT key FROM blob_removals")] == [combined.key]


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


@ON_BOTH
def test_earlier_documents_are_asked_for_once(desk: Desk) -> None:
    plain = desk.signed()
    first = sealed(plain.id, desk.column(plain.id, "seal_id")).model_copy(update={"pades_level": "B-T"})
    desk.database.write(followups.accept_sealed, uuid7(), first, SITE, desk.now)
    without_time_stamp = desk.signed()
    desk.seal(without_time_stamp.id)
    complete(desk)
    desk.signed()
    earlier = EarlierDocuments(desk.database)
    for _ in range(3):
        earlier.portion()
    EarlierDocuments(desk.database).portion()  # as after a restart
    assert desk.count("archiving.due") == 1
    bodies = [json.loads(row.body) for row in desk.rows("SELECT CAST(body AS TEXT) AS body FROM outbox")]
    (asked,) = [body for body in bodies if body["type"] == "archiving.due"]
    due = ArchivingDue.model_validate(asked["data"])
    assert due.files == {first.documents[0].uuid: first.documents[0].file, "": first.audit_trail}
    assert desk.get(plain.id).archive_until is None
    for name in due.files:
        accept(desk, archived(first, name, 1))
    assert desk.get(plain.id).archive_until == SECOND


def test_without_archive_time_stamps_there_is_no_date(desk: Desk) -> None:
    made = desk.signed()
    assert desk.get(made.id).archive_until is None
    desk.seal(made.id)
    assert desk.get(made.id).archive_until is None
