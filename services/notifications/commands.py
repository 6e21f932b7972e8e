"""One function per use case: write the mails that a fact asks for, forget a submission's mails, tell how sending went."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import (
    MAIL_FAILED,
    MAIL_SENT,
    MAILS_ERASED,
    Admins,
    ErasureConfirmed,
    Event,
    LinkReplaced,
    TestModeWiped,
)
from contracts.runtime.bus.outbox import emit, first_time, forget
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import for_update, insert_into
from contracts.runtime.monitoring import observe
from services.notifications import domain, replaced_links
from services.notifications.domain import Kind
from services.notifications.messages.composing import Mail
from services.notifications.models import KnownAdmins, MailRow, OutgoingRow, PhoneMessageRow, SubmissionRow

log = observe.logger(__name__)


def accept(
    session: Session,
    handler: str,
    event_id: str,
    mails: Sequence[Mail],
    now: datetime,
    *,
    sender: str,
    kept_in_folder: bool,
    submission_id: int | None = None,
    invitation_id: str | None = None,
    resend_after: timedelta = timedelta(0),
    test: bool = False,
) -> None:
    """Write one row for each mail, once, however often the fact is told. Nothing for a submission that was erased. ``test``: it
    is about what was made in test mode."""
    if not first_time(session, handler, event_id):
        return
    if submission_id is not None and locked_submission(session, submission_id).erased_at is not None:
        return
    for mail in mails:
        existing = session.scalar(sa.select(MailRow.id).where(MailRow.key == mail.letter.key))
        if existing is not None or replaced_links.is_replaced(session, replaced_links.digest(mail.letter.slug)):
            continue
        repeats = mail.letter.kind == Kind.INVITATION and not mail.letter.is_other
        if repeats and _too_soon(session, mail, submission_id, now, resend_after):
            log.warning("mail.not_sent_again", submission_id=submission_id, reason="sent to this address a moment ago")
            continue
        row = _row(mail, submission_id, invitation_id, sender, now)
        row.file_kept, row.test = kept_in_folder, test
        session.add(row)
        session.flush()


def erase(
    session: Session,
    event_id: str,
    submission_id: int,
    now: datetime,
    forget_others: Callable[[Session, int, datetime], None] = lambda _session, _id, _now: None,
) -> None:
    """Addresses and contents of this submission's mails go, and no mail about it is ever written again. ``forget_others``
    forgets what else there is of it."""
    if not first_time(session, "submission_erased", event_id):
        return
    submission = locked_submission(session, submission_id)
    submission.erased_at = submission.erased_at or now
    rows = session.scalars(for_update(sa.select(MailRow).where(MailRow.submission_id == submission_id))).all()
    for row in rows:
        if row.erased_at is None:
            _forget(row, now)
    replaced_links.forget(session, submission_id)
    forget_others(session, submission_id, now)
    forget(session, f"submission:{submission_id}")
    scrubbing.ask(session)
    submission.erasure_untold = True
    session.flush()
    _tell_erased(session, submission, now)


def replace_link(session: Session, event_id: str, replaced: LinkReplaced, now: datetime) -> None:
    """A signing link is no longer valid: nothing more is sent with it."""
    if not first_time(session, "link_replaced", event_id):
        return
    if locked_submission(session, replaced.submission_id).erased_at is None:
        replaced_links.replace(session, replaced.submission_id, replaced.slug, now)


def keep_admins(session: Session, event_id: str, admins: Admins) -> None:
    """Remember who the admins are; news that come twice or late change nothing."""
    if not first_time(session, "keep_admins", event_id):
        return
    statement = insert_into(session, KnownAdmins).values(id=1, emails=admins.emails, revision=admins.revision)
    changed = {"emails": statement.excluded.emails, "revision": statement.excluded.revision}
    newer = KnownAdmins.revision < statement.excluded.revision
    session.execute(statement.on_conflict_do_update(index_elements=["id"], set_=changed, where=newer))


def file_is_gone(session: Session, mail_ids: Sequence[int], now: datetime) -> None:
    """The files of these erased mails have been removed from the mail folder."""
    erased = sa.update(MailRow).where(MailRow.id.in_(mail_ids), MailRow.erased_at.is_not(None))
    session.execute(erased.values(file_kept=False))
    _drop_tests(session, MailRow.submission_id.is_(None))
    of_them = sa.select(MailRow.submission_id).where(MailRow.id.in_(mail_ids))
    untold = sa.select(SubmissionRow).where(SubmissionRow.id.in_(of_them), SubmissionRow.erasure_untold)
    for submission in session.scalars(for_update(untold.order_by(SubmissionRow.id))):
        _tell_erased(session, submission, now)


def _tell_erased(session: Session, submission: SubmissionRow, now: datetime) -> None:
    """Say that nothing of the submission is left here, once no file of its mails is."""
    if session.scalar(sa.select(sa.exists().where(MailRow.submission_id == submission.id, MailRow.file_kept))):
        return
    deleted = {
        name: session.scalar(sa.select(sa.func.count()).where(row.submission_id == submission.id)) or 0
        for name, row in (("mails", MailRow), ("phone_messages", PhoneMessageRow))
    }
    submission.erasure_untold = False
    confirmed = ErasureConfirmed(submission_id=submission.id, at=now, deleted=deleted)
    # Not the submission's own subject: what was told of that is forgotten.
    emit(session, MAILS_ERASED, confirmed, subject=f"erasure:{submission.id}")
    _drop_tests(session, MailRow.submission_id == submission.id)
    session.execute(
        sa.delete(PhoneMessageRow).where(PhoneMessageRow.submission_id == submission.id, PhoneMessageRow.test)
    )


def wipe_test_mode(session: Session, event_id: str, wiped: TestModeWiped, now: datetime) -> None:
    """Forget the mails of test mode that are about no submission; those about one go with it."""
    if not first_time(session, "test_mode", event_id):
        return
    alone = (MailRow.test, MailRow.submission_id.is_(None), MailRow.created_at <= wiped.at)
    for row in session.scalars(for_update(sa.select(MailRow).where(*alone, MailRow.erased_at.is_(None)))):
        _forget(row, now)
    session.flush()
    _drop_tests(session, MailRow.submission_id.is_(None))
    scrubbing.ask(session)


def _drop_tests(session: Session, which: sa.ColumnElement[bool]) -> None:
    """Of erased mails of test mode nothing stays, once no file of theirs does."""
    gone = (which, MailRow.test, MailRow.erased_at.is_not(None), MailRow.file_kept.is_(False))
    session.execute(sa.delete(MailRow).where(*gone))


def mark_sent(session: Session, row: MailRow, answer: str, at: datetime, *, keep_content: bool) -> None:
    """The mail left. Its content is kept only where it is shown (the local mail page, test mode): it holds signing links."""
    row.answer = answer
    if not keep_content and not row.test:
        row.text = row.html = ""
        row.links, row.files, row.unattached = [], [], None
        row.logo = row.first_page = None
    tell(session, MAIL_SENT, row, to=row.to_address, sent_at=at)


def mark_failed(session: Session, row: MailRow) -> None:
    """The mail will never leave; ``last_error`` says why. One that has expired is not kept for an operator."""
    row.answer = row.last_error
    if row.expires_at is not None:
        row.text = row.html = ""
    tell(session, MAIL_FAILED, row, to=row.to_address, error=row.last_error)


def send_without_files(row: MailRow) -> None:
    """The server calls the mail too large: next time it goes with links."""
    if row.unattached is not None:
        row.text, row.html = row.unattached["text"], row.unattached["html"]
    row.files, row.unattached = [], None


def locked_submission(session: Session, submission_id: int) -> SubmissionRow:
    """The submission's row, locked: mails that are being added and an erasure wait for each other."""
    statement = for_update(sa.select(SubmissionRow).where(SubmissionRow.id == submission_id))
    row: SubmissionRow | None = session.scalar(statement)
    if row is not None:
        return row
    session.execute(
        insert_into(session, SubmissionRow).values(id=submission_id).on_conflict_do_nothing(index_elements=["id"])
    )
    inserted: SubmissionRow = session.scalars(statement).one()
    return inserted


def _too_soon(session: Session, mail: Mail, submission_id: int | None, now: datetime, pause: timedelta) -> bool:
    """An invitation may be sent again at once, but not again and again: whoever may ask for it must not flood anybody."""
    party = mail.letter.party
    earlier = session.scalars(
        sa.select(MailRow.created_at)
        .where(
            MailRow.kind == Kind.INVITATION,
            MailRow.submission_id == submission_id,
            MailRow.submitter_id == (party.submitter_id if party else None),
            sa.func.lower(MailRow.to_address) == mail.letter.to_address.lower(),
        )
        .order_by(MailRow.id.desc())
        .limit(2)
    ).all()
    return len(earlier) == 2 and earlier[0] > now - pause


def _row(mail: Mail, submission_id: int | None, invitation_id: str | None, sender: str, now: datetime) -> MailRow:
    letter = mail.letter
    return MailRow(
        key=letter.key,
        kind=letter.kind.value,
        submission_id=submission_id,
        submitter_id=letter.party.submitter_id if letter.party else letter.submitter_id,
        invitation_id=invitation_id,
        request_id=observe.request_id(),
        message_id=domain.message_id(letter.key, sender),
        sender_name=mail.sender_name,
        to_name=letter.to_name,
        to_address=letter.to_address,
        reply_to=letter.reply_to,
        subject=mail.subject,
        text=mail.text,
        html=mail.html,
        links=mail.links,
        files=[file.model_dump(mode="json") for file in mail.files],
        unattached=mail.unattached,
        logo=mail.logo.model_dump(mode="json") if mail.logo else None,
        first_page=mail.first_page.model_dump(mode="json") if mail.first_page else None,
        expires_at=mail.expires_at,
        link_digest=replaced_links.digest(letter.slug),
        created_at=now,
        next_attempt_at=now,
    )


def _forget(row: MailRow, now: datetime) -> None:
    row.key = f"erased {row.id}"
    row.to_name = row.to_address = row.subject = row.text = row.html = ""
    row.reply_to, row.links, row.files, row.unattached = [], [], [], None
    row.logo = row.first_page = None
    row.answer = row.last_error = None
    row.erased_at = now
    if row.state == "due":
        row.state, row.finished_at = "parked", now


def tell(
    session: Session,
    event: Event,
    row: OutgoingRow,
    *,
    to: str,
    error: str | None = None,
    sent_at: datetime | None = None,
) -> None:
    """Tell the submissions service that a mail or a message to a phone was taken, or never will be; nothing of what is about no
    submission. ``event`` carries a SendingOutcome."""
    if row.submission_id is None:
        return
    outcome = event.model(
        submission_id=row.submission_id,
        submitter_id=row.submitter_id,
        kind=row.kind,
        to=to,
        invitation_id=row.invitation_id,
        error=error,
        sent_at=sent_at,
    )
    emit(session, event, outcome, subject=f"submission:{row.submission_id}")
