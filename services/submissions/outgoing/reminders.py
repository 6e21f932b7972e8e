"""Reminders (account setting ``reminders``): up to three mails to a party that was invited and has not signed.

Each is planned as a row when the party is sent its first mail (its turn comes, or somebody has it sent later), and is due that
long after it. Whether it is still wanted is asked then: nobody is reminded who has signed, of what was declined, has expired or
is archived, or before their turn. The mail's id follows from party, number and row, so that told twice it is one mail; of
several that are overdue together only the last is sent. When the party's link is replaced (``signing_links``), the rows go.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts import events
from contracts.events import ReminderDue
from contracts.runtime.bus.outbox import emit
from contracts.types import Account, FieldType
from services.submissions.models import ReminderRow, SubmitterRow
from services.submissions.outgoing import mails
from services.submissions.rules.domain import FormState
from services.submissions.site import Site
from services.submissions.storage import store
from services.submissions.storage.store import LoadedSubmission

DELAYS = {
    "one_hour": timedelta(hours=1),
    "two_hours": timedelta(hours=2),
    "four_hours": timedelta(hours=4),
    "eight_hours": timedelta(hours=8),
    "twelve_hours": timedelta(hours=12),
    "twenty_four_hours": timedelta(hours=24),
    "two_days": timedelta(days=2),
    "three_days": timedelta(days=3),
    "four_days": timedelta(days=4),
    "five_days": timedelta(days=5),
    "six_days": timedelta(days=6),
    "seven_days": timedelta(days=7),
    "eight_days": timedelta(days=8),
    "fifteen_days": timedelta(days=15),
    "twenty_one_days": timedelta(days=21),
    "thirty_days": timedelta(days=30),
}


def plan(submission: LoadedSubmission, submitter: SubmitterRow, now: datetime) -> None:
    """This party is sent its first mail: write down when it is to be reminded."""
    if submitter.viewer:
        return
    delays = Account.model_validate(submission.snapshot.account).reminders
    for number, name in enumerate((delays.first, delays.second, delays.third), start=1):
        if name in DELAYS:
            row = ReminderRow(submission_id=submission.row.id, submitter_id=submitter.id, number=number, created_at=now)
            row.next_attempt_at = now + DELAYS[name]
            submission.session.add(row)


def are_planned(session: Session, submitter: SubmitterRow) -> bool:
    """Tell if reminders are planned: parties whose turn came without a mail are reminded from their first mail on."""
    there = sa.select(ReminderRow.id).where(ReminderRow.submitter_id == submitter.id)
    return session.scalar(there.limit(1)) is not None


def drop(session: Session, submitter: SubmitterRow) -> None:
    """Plan nothing any more for this party."""
    session.execute(sa.delete(ReminderRow).where(ReminderRow.submitter_id == submitter.id))


def remind(session: Session, reminder: ReminderRow, site: Site, now: datetime) -> bool:
    """Ask for the mail, when it is still wanted. True when it was; asked for again it is the same mail."""
    submitter_id, number = reminder.submitter_id, reminder.number
    submission = store.lock(session, reminder.submission_id)
    submitter = (
        next((submitter for submitter in submission.submitters if submitter.id == submitter_id), None)
        if submission
        else None
    )
    if submission is None or submitter is None or _is_late(session, submitter_id, number, now):
        return False
    if session.scalar(sa.select(ReminderRow.id).where(ReminderRow.id == reminder.id)) is None:
        return False  # it was planned for a link that has been replaced since
    state = submission.state.form_state(submitter.id, now)
    if (
        state not in (FormState.OPEN, FormState.CONFIRMING)
        or submitter.invited_at is None
        or not mails.wants_mail(submitter)
    ):
        return False
    kinds = {field.type for field in submission.fields_of(submitter)}
    due = ReminderDue(
        reminder_id=f"{submitter.id}/{number}/{reminder.id}",
        number=number,
        context=mails.context(submission, site, submission.attachments),
        submitter_id=submitter.id,
        reply_to=submitter.preferences.get("reply_to"),
        needs_signature=bool(kinds & {FieldType.SIGNATURE, FieldType.INITIALS}),
        first_page=mails.first_page(submission, submitter),
    )
    emit(session, events.REMINDER_DUE, due, subject=f"submission:{submission.row.id}")
    return True


def _is_late(session: Session, submitter_id: int, number: int, now: datetime) -> bool:
    """The next one is due as well: nobody wants three mails at once because we were away."""
    later = sa.select(ReminderRow.id).where(
        ReminderRow.submitter_id == submitter_id, ReminderRow.number > number, ReminderRow.next_attempt_at <= now
    )
    return session.scalar(later.limit(1)) is not None
