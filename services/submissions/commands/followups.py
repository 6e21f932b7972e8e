"""What follows from other services' events and from time passing. Each may come late, twice or out of order."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.events import (
    ARCHIVING_DUE,
    COMBINED_FILE,
    ArchivingDue,
    DocumentArchived,
    DocumentsFailed,
    DocumentsSealed,
    DocumentsStamped,
    MailOutcome,
    PhoneOutcome,
    SendingOutcome,
    StatementSigned,
)
from contracts.evidence import statements as stated
from contracts.runtime.bus.outbox import emit, first_time
from contracts.runtime.data.database import inserting_together
from contracts.types import SealingStatus, SubmissionStatus, iso
from services.submissions.commands import erasing, providers
from services.submissions.evidence import statements
from services.submissions.models import BlobRemovalRow, SubmissionRow, SubmitterRow
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Announcement
from services.submissions.rules import domain
from services.submissions.rules.parties import addresses
from services.submissions.rules.providers import certsign_of, signed_without_news
from services.submissions.site import Site
from services.submissions.storage import store, trail
from services.submissions.storage.due import Due, list_due
from services.submissions.storage.signers import one_time_codes

_ARCHIVED_VERSION_KEPT = timedelta(days=90)
"""For so long a sealed file stays after one with a new archive time-stamp took its place."""

_NOT_DOCUMENTS = {"": "audit_trail", COMBINED_FILE: "merged"}
"""Where files of ``SubmissionRow.results`` are that are no documents, by what DocumentArchived calls them."""

INVITATION, REMINDER, ONE_TIME_CODE = "invitation", "reminder", "one_time_code"
PROVIDER_PROBLEM = "provider_problem"
"""It goes to admins, and is no business of the parties."""
_OTHER_MAILS = {
    "completed": trail.SEND_COMPLETION_EMAIL,
    "documents_copy": trail.SEND_COPY_EMAIL,
    "sent_copy": trail.SEND_CC_EMAIL,
    "declined": trail.SEND_DECLINE_EMAIL,
    "wrong_recipient": trail.SEND_WRONG_RECIPIENT_EMAIL,
    "delegated": trail.SEND_DELEGATION_EMAIL,
    "returned": trail.SEND_RETURN_EMAIL,
    "later": trail.SEND_LINK_EMAIL,
    "question": trail.SEND_QUESTION_EMAIL,
}
_TO_THE_SENDER = ("declined", "wrong_recipient", "delegated", "returned", "question")


def accept_sealed(session: Session, event_id: str, sealed: DocumentsSealed, site: Site, now: datetime) -> None:
    """The final documents exist. Only those of the present ``seal_id`` complete the submission; others are thrown away."""
    if not first_time(session, "accept_sealed", event_id):
        return
    submission = store.lock(session, sealed.submission_id)
    if submission is None:
        # One that was never here is of a life that this database has lost: its documents may be all that is left of it.
        if erasing.was_erased(session, sealed.submission_id):
            erasing.unwanted(session, sealed, None, now)
        return
    _complete(submission, sealed, site, now)


def accept_stamped(session: Session, event_id: str, stamped: DocumentsStamped, site: Site, now: datetime) -> None:
    """Stamps came after the completion: the documents have a later version, the earlier one is kept beside it. When this is
    heard first it completes the submission."""
    if not first_time(session, "accept_stamped", event_id):
        return
    submission = store.lock(session, stamped.submission_id)
    if submission is None:
        if erasing.was_erased(session, stamped.submission_id):
            erasing.unwanted(session, stamped, None, now)
        return
    row = submission.row
    if row.seal_id != stamped.seal_id or row.results is None:
        _complete(submission, stamped, site, now)
        return
    earlier = {key: value for key, value in row.results.items() if key not in ("earlier", "stamped_told")}
    row.results = {
        **providers.results_of(stamped),
        **_archives(stamped),
        "earlier": [*row.results.get("earlier", ()), earlier],
    }
    row.updated_at = store.moment(submission, now)
    row.pades_level = stamped.pades_level
    providers.tell_once_stamped(Announcement(submission, site, row.updated_at))


def _complete(submission: store.LoadedSubmission, sealed: DocumentsSealed, site: Site, now: datetime) -> None:
    session = submission.session
    state, happened = domain.sealed(submission.state, sealed.seal_id)
    if not happened:
        erasing.unwanted(session, sealed, submission.row.results, now)
        return
    row, at = submission.row, store.moment(submission, now)
    row.results = {**providers.results_of(sealed), **_archives(sealed)}
    if certsign := signed_without_news(certsign_of(row.certsign)):
        row.certsign = certsign.model_dump(mode="json")
    row.pades_level, row.sealing_error = sealed.pades_level, None
    if row.drafts:
        erasing.remove_blobs(
            session, row.id, erasing.blobs_in(row.drafts), now, at=now + timedelta(seconds=site.link_ttl)
        )
        row.drafts = None
    store.save(submission, state, at)
    # What could not be had (a time-stamp, proofs of non-revocation) is told, not hidden.
    missing = [notice.message for notice in sealed.report] or None
    facts = {"seal_id": sealed.seal_id, "pades_level": sealed.pades_level, "report": missing}
    announcement = Announcement(submission, site, at, facts)
    announce.announce(announcement, happened)
    providers.tell_once_stamped(announcement)


def _archives(sealed: DocumentsSealed) -> dict[str, Any]:
    """Until when the archive time-stamp of each file lasts, by its name in DocumentArchived; and of which versions news comes
    too late."""
    archive_results: dict[str, Any] = {"archive_versions": sealed.archive_versions} if sealed.archive_versions else {}
    if sealed.archive_until is not None:
        first = {"version": 0, "until": sealed.archive_until.isoformat()}
        names = [*(document.uuid for document in sealed.documents), "", *([COMBINED_FILE] if sealed.combined else [])]
        archive_results["archives"] = dict.fromkeys(names, first)
    return archive_results


def accept_archived(session: Session, event_id: str, archived: DocumentArchived, site: Site, now: datetime) -> None:
    """A sealed file has a new archive time-stamp: the longer version takes its place. The one before goes after a while: a link
    to it, or a database that is restored, may still name it."""
    if not first_time(session, "accept_archived", event_id):
        return
    submission = store.lock(session, archived.submission_id)
    if submission is None:
        if erasing.was_erased(session, archived.submission_id):
            erasing.remove_blobs(session, archived.submission_id, [archived.file.key], now)
        return
    row = submission.row
    results = row.results or {}
    replaced = _sealed_file(results, archived.document)
    if replaced is None or submission.state.seal_id != archived.seal_id:
        return
    later = now + max(_ARCHIVED_VERSION_KEPT, timedelta(seconds=site.link_ttl))
    archives = results.get("archives", {})
    known_version = archives.get(archived.document, {}).get("version", 0)
    if archived.version <= max(known_version, results.get("archive_versions", {}).get(archived.document, 0)):
        if archived.file.key not in erasing.blobs_in(results):
            erasing.remove_blobs(session, row.id, [archived.file.key], now, at=later)
        return
    newest = {"version": archived.version, "until": archived.archive_until.isoformat()}
    row.results = {
        **_with_file(results, archived.document, archived.file.model_dump(mode="json")),
        "archives": {**archives, archived.document: newest},
    }
    erasing.remove_blobs(session, row.id, [replaced["key"]], now, at=later)


def archive_earlier(session: Session, after: int, limit: int) -> tuple[int | None, int]:
    """Ask for archive time-stamps of files that were sealed without, of the next submissions after that id; of each once. A
    seal without a time-stamp cannot have one. Returns the last id, None when there are no more, and how many were asked for."""
    sealed = sa.select(SubmissionRow).where(SubmissionRow.id > after, SubmissionRow.results.is_not(None))
    rows = session.scalars(sealed.order_by(SubmissionRow.id).limit(limit).with_for_update()).all()
    count = 0
    for row in rows:
        results = row.results or {}
        keys_of_archives = {"archives", "archive_versions", "archives_asked_for"} & results.keys()
        if keys_of_archives or row.pades_level in (None, "B-B") or row.seal_id is None or "audit_trail" not in results:
            continue
        files = {document["uuid"]: BlobRef.model_validate(document["file"]) for document in results["documents"]}
        files[""] = BlobRef.model_validate(results["audit_trail"])
        due = ArchivingDue(submission_id=row.id, seal_id=row.seal_id, files=files)
        emit(session, ARCHIVING_DUE, due, subject=f"submission:{row.id}")
        row.results = {**results, "archives_asked_for": True}
        count += 1
    return (rows[-1].id if rows else None), count


def _sealed_file(results: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The file of ``SubmissionRow.results`` that DocumentArchived calls so."""
    if name in _NOT_DOCUMENTS:
        return results.get(_NOT_DOCUMENTS[name])
    return next((document["file"] for document in results.get("documents", ()) if document["uuid"] == name), None)


def _with_file(results: dict[str, Any], name: str, file: dict[str, Any]) -> dict[str, Any]:
    if name in _NOT_DOCUMENTS:
        return {**results, _NOT_DOCUMENTS[name]: file}
    documents = [
        {**document, "file": file} if document["uuid"] == name else document for document in results["documents"]
    ]
    return {**results, "documents": documents}


def accept_failure(session: Session, event_id: str, failed: DocumentsFailed, site: Site, now: datetime) -> None:
    """Rendering gave up: the reason is shown, and an API user may ask for a retry."""
    if not first_time(session, "accept_failure", event_id):
        return
    submission = store.lock(session, failed.submission_id)
    if submission is None:
        return
    state, happened = domain.sealing_failed(submission.state, failed.seal_id)
    if not happened:
        return
    at = store.moment(submission, now)
    submission.row.sealing_error = failed.reason[:2_000]
    submission.row.sealing_differences = failed.differences or None
    store.save(submission, state, at)
    announce.announce(Announcement(submission, site, at, {"seal_id": failed.seal_id}), happened)


def accept_statement(session: Session, event_id: str, signed: StatementSigned, now: datetime) -> None:
    """A statement is signed and kept. Of a submission that was erased meanwhile it is removed again."""
    if not first_time(session, "accept_statement", event_id):
        return
    if store.lock_unread(session, signed.submission_id):
        statements.note_signed(session, signed)
    elif erasing.was_erased(session, signed.submission_id):
        keys = stated.keys(signed.submission_id, signed.submitter_id, signed.sha256)
        erasing.remove_blobs(session, signed.submission_id, keys, now)


def accept_mail_sent(session: Session, event_id: str, outcome: MailOutcome, site: Site, now: datetime) -> None:
    """A mail has left: the audit trail says so with whom it went to, and of the invitation ``sent_at`` the first time. A
    one-time code says in the trail when it was asked for.

    The news may be late, and the link may have been opened meanwhile, or the party be somebody else: the line is written when
    it is known, as every line, and says when the mail server took the mail. Another machine's clock does not put that before
    the invitation.
    """
    if not first_time(session, "accept_mail_sent", event_id) or outcome.kind == ONE_TIME_CODE:
        return
    submission, submitter = _party(session, outcome)
    if submission is None:
        return
    at = store.moment(submission, now)
    if outcome.kind in _OTHER_MAILS:
        data = _recipient(outcome, submitter, "email") | {"sent_at": iso(min(outcome.sent_at or at, at))}
        trail.append(
            submission, [trail.Line(_OTHER_MAILS[outcome.kind], submitter.id if submitter else None, data)], at
        )
        return
    if submitter is None or outcome.kind not in (INVITATION, REMINDER):
        return
    theirs = _is_theirs(submitter, outcome, "email")
    sent_at = _not_before_invitation(submission, submitter, outcome, at, theirs=theirs)
    data = _recipient(outcome, submitter, "email") | {"sent_at": iso(sent_at)}
    if outcome.kind == REMINDER:
        trail.append(submission, [trail.Line(trail.SEND_REMINDER_EMAIL, submitter.id, data)], at)
        return
    trail.append(submission, [trail.Line(trail.SEND_EMAIL, submitter.id, data)], at)
    if not theirs:
        return
    submitter.sent_at = submitter.sent_at or sent_at
    submitter.updated_at = submission.row.updated_at = at
    announce.form_sent(Announcement(submission, site, at), submitter.id)


def accept_mail_failed(session: Session, event_id: str, outcome: MailOutcome, now: datetime) -> None:
    """A mail will never arrive. The sender sees it in the submission's events, with the mail server's words."""
    if not first_time(session, "accept_mail_failed", event_id) or outcome.kind == PROVIDER_PROBLEM:
        return
    if outcome.kind == ONE_TIME_CODE and outcome.submitter_id is None:  # for a reader of the submission's page
        return
    submission, submitter = _party(session, outcome)
    if submission is None:
        return
    if submitter is not None and outcome.kind == ONE_TIME_CODE and _is_theirs(submitter, outcome, "email"):
        one_time_codes.not_delivered(session, submitter, one_time_codes.EMAIL, now)
    line = trail.Line(trail.BOUNCE_EMAIL, submitter.id if submitter else None, _failure(outcome, submitter, "email"))
    trail.append(submission, [line], store.moment(submission, now))


def accept_sms_sent(session: Session, event_id: str, outcome: PhoneOutcome, site: Site, now: datetime) -> None:
    """An invitation has left by SMS. Codes say in the trail when they were asked for."""
    if not first_time(session, "accept_sms_sent", event_id) or outcome.kind != INVITATION:
        return
    submission, submitter = _party(session, outcome)
    if submission is None or submitter is None:
        return
    at = store.moment(submission, now)
    theirs = _is_theirs(submitter, outcome, "phone")
    sent_at = _not_before_invitation(submission, submitter, outcome, at, theirs=theirs)
    data = _recipient(outcome, submitter, "phone") | {"sent_at": iso(sent_at)}
    trail.append(submission, [trail.Line(trail.SEND_SMS, submitter.id, data)], at)
    if not theirs:
        return
    submitter.sent_at = submitter.sent_at or sent_at
    submitter.updated_at = submission.row.updated_at = at
    announce.form_sent(Announcement(submission, site, at), submitter.id)


def accept_sms_failed(session: Session, event_id: str, outcome: PhoneOutcome, now: datetime) -> None:
    """A message to a phone will never arrive. The sender sees it in the submission's events, with the provider's words."""
    if not first_time(session, "accept_sms_failed", event_id):
        return
    submission, submitter = _party(session, outcome)
    if submission is None:
        return
    if submitter is not None and outcome.kind == ONE_TIME_CODE:
        one_time_codes.not_delivered(session, submitter, one_time_codes.PHONE, now)
    line = trail.Line(trail.BOUNCE_SMS, submitter.id if submitter else None, _failure(outcome, submitter, "phone"))
    trail.append(submission, [line], store.moment(submission, now))


def _is_theirs(submitter: SubmitterRow, outcome: SendingOutcome, kind: str) -> bool:
    """Return whether it went to the address of this ``kind`` that the party has now, and not to one that was changed since."""
    return addresses.mailbox(outcome.to) == addresses.mailbox(getattr(submitter, kind))


def _not_before_invitation(
    submission: store.LoadedSubmission, submitter: SubmitterRow, outcome: SendingOutcome, at: datetime, *, theirs: bool
) -> datetime:
    invited_at = submitter.invited_at if theirs else None
    return max(min(outcome.sent_at or at, at), invited_at or submission.row.created_at)


def _recipient(outcome: SendingOutcome, submitter: SubmitterRow | None, kind: str) -> dict[str, Any]:
    """Say whom something went to, under ``kind`` (``email``, ``phone``). The party may be somebody else by now: the line then
    names whom it went to and not them."""
    data: dict[str, Any] = {kind: outcome.to}
    if submitter is None or outcome.kind in _TO_THE_SENDER:
        return data
    if outcome.to and not _is_theirs(submitter, outcome, kind):
        data["party"] = {"role": submitter.role, kind: outcome.to}
    return data


def _failure(outcome: SendingOutcome, submitter: SubmitterRow | None, kind: str) -> dict[str, Any]:
    data = {"kind": outcome.kind, "reason": (outcome.error or "")[: trail.LONGEST_SAID] or None}
    return data | _recipient(outcome, submitter, kind)


def _party(session: Session, outcome: SendingOutcome) -> tuple[store.LoadedSubmission | None, SubmitterRow | None]:
    submission = store.lock_once(session, outcome.submission_id)
    parties = submission.submitters if submission else []
    return submission, next((party for party in parties if party.id == outcome.submitter_id), None)


def due_to_expire(session: Session, now: datetime, after: Due | None = None, limit: int = 200) -> list[Due]:
    """Time and id of submissions whose time is over and that nobody has told of it, the longest overdue first; those that come
    ``after``."""
    over = (
        # A literal: the index of those that will expire says so, too, and is not counted on otherwise.
        SubmissionRow.status == sa.literal_column(f"'{SubmissionStatus.PENDING.value}'"),
        SubmissionRow.expire_at.is_not(None),
        SubmissionRow.expire_at <= now,
        SubmissionRow.unfinished,
        SubmissionRow.archived_at.is_(None),
    )
    return list_due(session, SubmissionRow.expire_at, over, after, limit)


def expire(session: Session, submission_ids: Sequence[int], site: Site, now: datetime) -> int:
    """Expire these submissions, those of which it is still due once their rows are locked. Returns how many."""
    expired = 0
    with inserting_together(session):
        for submission in store.lock_all(session, submission_ids):
            at = store.moment(submission, now)
            state, happened = domain.expire(submission.state, at)
            if happened:
                store.save(submission, state, at)
                announce.announce(Announcement(submission, site, at), happened)
                expired += 1
    return expired


def waiting_for_seal(session: Session, now: datetime, patience: timedelta) -> list[int]:
    """Submissions whose sealing was ordered longer than ``patience`` ago without an answer. The time doubles with each
    reminder: a time-stamp authority that is down for hours must not be answered with a flood of orders."""
    rows = session.execute(
        sa.select(SubmissionRow.id, SubmissionRow.sealing_since, SubmissionRow.sealing_asked_at)
        .where(
            SubmissionRow.sealing_status == SealingStatus.SEALING.value,
            SubmissionRow.sealing_asked_at <= now - patience,
        )
        .order_by(SubmissionRow.sealing_asked_at)
        .limit(200)
    )
    return [row.id for row in rows if now - row.sealing_asked_at >= row.sealing_asked_at - row.sealing_since]


def remind(session: Session, submission_id: int, site: Site, patience: timedelta, now: datetime) -> bool:
    """Order the same sealing again: rendering does it once, whoever lost the first order."""
    submission = store.lock(session, submission_id)
    if submission is None or submission.state.sealing is not SealingStatus.SEALING:
        return False
    asked_at = submission.row.sealing_asked_at
    if asked_at is not None and asked_at > now - patience:
        return False
    submission.row.sealing_asked_at = now
    announcement = Announcement(submission, site, now)
    announce.order_seal(announcement)
    providers.tell_waived_again(announcement)
    return True


def forget_removals(session: Session, before: datetime) -> None:
    """Drop the notes of files that were removed long ago."""
    session.execute(
        sa.delete(BlobRemovalRow).where(BlobRemovalRow.state == "done", BlobRemovalRow.finished_at < before)
    )


def sealing_backlog(session: Session) -> tuple[datetime | None, int]:
    """Since when the longest waiting sealing waits, and how many have failed: for the metrics."""
    oldest = session.scalar(
        sa.select(sa.func.min(SubmissionRow.sealing_since)).where(
            SubmissionRow.sealing_status == SealingStatus.SEALING.value
        )
    )
    failed = session.scalar(
        sa.select(sa.func.count())
        .select_from(SubmissionRow)
        .where(SubmissionRow.sealing_status == SealingStatus.FAILED.value)
    )
    return oldest, failed or 0
