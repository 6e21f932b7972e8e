"""The audit trail: lines appended under the submission's row lock, chained by hash, never changed
(contracts.evidence.audit_chain).

Event types are the peer's where it has one (peer facts 1.2); what it has none for, has types of ours.

A line says what was so at its moment: whom it is about (``party``), which API user acted (``by``), whom a message went to. The
paper is drawn from the lines alone (``told_parties``), so that no later change of a row changes what it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.evidence.audit_chain import next_hash
from contracts.rpc.rendering import TrailEvent
from contracts.runtime.data.database import insert
from contracts.runtime.data.stored import as_stored
from contracts.types import Actor, SubmissionEvent
from services.submissions.models import SubmitterRow, TrailRow
from services.submissions.storage.store import LoadedSubmission

CREATE_SUBMISSION = "create_submission"
INVITE_PARTY = "invite_party"
INVITE_PARTY_AGAIN = "invite_party_again"
SEND_EMAIL = "send_email"
SEND_REMINDER_EMAIL = "send_reminder_email"
BOUNCE_EMAIL = "bounce_email"
SEND_COMPLETION_EMAIL = "send_completion_email"
SEND_COPY_EMAIL = "send_copy_email"
SEND_CC_EMAIL = "send_cc_email"
SEND_DECLINE_EMAIL = "send_decline_email"
SEND_WRONG_RECIPIENT_EMAIL = "send_wrong_recipient_email"
SEND_DELEGATION_EMAIL = "send_delegation_email"
SEND_LINK_EMAIL = "send_link_email"
SEND_QUESTION_EMAIL = "send_question_email"
SEND_RETURN_EMAIL = "send_return_email"
SEND_CODE_BY_EMAIL = "send_2fa_email"
SEND_CODE_BY_PHONE = "send_2fa_phone"
EMAIL_VERIFIED = "email_verified"
PHONE_VERIFIED = "phone_verified"
SEND_SMS = "send_sms"
BOUNCE_SMS = "bounce_sms"
VIEW_FORM = "view_form"
START_FORM = "start_form"
NAME_PARTY = "name_party"
GIVE_CONSENT = "give_consent"
COMPLETE_FORM = "complete_form"
API_COMPLETE_FORM = "api_complete_form"
START_VERIFICATION = "start_verification"
COMPLETE_VERIFICATION = "complete_verification"
FAIL_VERIFICATION = "fail_verification"
DRAW_ON_PHONE = "draw_on_phone"
HAND_DEVICE = "hand_device"
DECLINE_FORM = "decline_form"
COMPLETIONS = (COMPLETE_FORM, API_COMPLETE_FORM)
SAVE_FOR_LATER = "save_for_later"
ASK_SENDER = "ask_sender"
RETURN_FORM = "return_form"
REOPEN_FORM = "reopen_form"
SEND_AGAIN = "send_again"
EXPIRE_SUBMISSION = "expire_submission"
RESCHEDULE_SUBMISSION = "reschedule_submission"
UPDATE_SUBMITTER = "update_submitter"
UPDATE_SUBMISSION = "update_submission"
REPLACE_LINK = "replace_link"
DROP_ANSWERS = "drop_answers"
WRONG_RECIPIENT = "wrong_recipient"
DELEGATE_FORM = "delegate_form"
ARCHIVE_SUBMISSION = "archive_submission"
RESTORE_SUBMISSION = "restore_submission"
FAIL_SEALING = "fail_sealing"
RETRY_SEALING = "retry_sealing"
ACCEPT_DIFFERENCES = "accept_differences"
START_CONFIRMATION = "start_confirmation"
COMPLETE_CONFIRMATION = "complete_confirmation"
FAIL_CONFIRMATION = "fail_confirmation"
LEAVE_CONFIRMATION = "leave_confirmation"
REQUEST_CERTSIGN = "request_certsign"
COMPLETE_CERTSIGN = "complete_certsign"
FAIL_CERTSIGN = "fail_certsign"
RETRY_CERTSIGN = "retry_certsign"
WAIVE_CERTSIGN = "waive_certsign"
REQUEST_DUTYSTAMP = "request_dutystamp"
COMPLETE_DUTYSTAMP = "complete_dutystamp"
FAIL_DUTYSTAMP = "fail_dutystamp"
RETRY_DUTYSTAMP = "retry_dutystamp"
COMPLETE_SUBMISSION = "complete_submission"
ERASE_SUBMISSION = "erase_submission"
ADVANCE_TEST_CLOCK = "advance_test_clock"


PARTY = ("role", "name", "email", "phone")
"""What lines say of a party."""

LONGEST_SAID = 500
"""Characters of a text that is not checked elsewhere."""


@dataclass(frozen=True)
class Line:
    """What to record: ``submitter_id`` None for the whole submission, ``data`` plain JSON without values of fields.

    A line about a submitter gets who that is (``party``), unless ``data`` says it.
    """

    event_type: str
    submitter_id: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


def party(submitter: SubmitterRow) -> dict[str, Any]:
    """Say who a submitter is at this moment: ``role`` and, where they are known, ``name``, ``email``, ``phone``."""
    details = {key: getattr(submitter, key) for key in PARTY}
    return {key: value for key, value in details.items() if value}


def actor_data(actor: Actor) -> dict[str, Any]:
    """Say which API user acts: ``by`` is their e-mail address, ``ip`` where the call came from, ``key_id`` names the key.
    Where an agent acts for them, or has prepared what they do, ``agent`` is what it calls itself, and ``agent_key_id`` names
    its key."""
    agent = actor.agent
    details = {
        "by": actor.email,
        "by_name": actor.name,
        "user_id": actor.user_id,
        "ip": actor.ip,
        "key_id": actor.key_id,
        "agent": f"{agent.name} {agent.version}".strip() if agent else None,
        "agent_key_id": agent.key_id if agent else None,
    }
    return {key: value for key, value in details.items() if value}


def creation_data(submission: LoadedSubmission) -> dict[str, Any]:
    """Say what a submission was made as: its name, the parties that there are from the start, and that it is a test."""
    parties = [{"submitter_id": submitter.id, **party(submitter)} for submitter in submission.submitters]
    return {"name": submission.row.name, "parties": parties, **({"test": True} if submission.row.test else {})}


@dataclass(frozen=True)
class Appended:
    """A line that is on the trail: its ``number`` from 1, what it says, its ``hash``."""

    number: int
    submitter_id: int | None
    event_type: str
    data: dict[str, Any]
    hash: str


def append(submission: LoadedSubmission, lines: Sequence[Line], at: datetime) -> list[Appended]:
    """Add lines, all at the moment ``at``, which must not lie before the last one."""
    row = submission.row
    rows: list[dict[str, Any]] = []
    for line in lines:
        data = {key: value for key, value in line.data.items() if value is not None}
        if line.submitter_id is not None and "party" not in data:
            data["party"] = party(submission.submitter(line.submitter_id))
        row.trail_hash = next_hash(
            row.trail_hash, submitter_id=line.submitter_id, event_type=line.event_type, occurred_at=at, data=data
        )
        row.trail_length += 1
        row.trail_at = at
        rows.append(
            {
                "submission_id": row.id,
                "position": row.trail_length,
                "submitter_id": line.submitter_id,
                "event_type": line.event_type,
                "occurred_at": at,
                "data": data,
                "hash": row.trail_hash,
            }
        )
    if rows:
        insert(submission.session, _APPEND, rows)
    return [Appended(row["position"], row["submitter_id"], row["event_type"], row["data"], row["hash"]) for row in rows]


def erase(session: Session, submission_id: int) -> None:
    """Drop what the lines say of people. Types, times and hashes stay: they prove what was printed."""
    session.execute(sa.update(TrailRow).where(TrailRow.submission_id == submission_id).values(data={}))


_APPEND = sa.insert(TrailRow.metadata.tables[TrailRow.__tablename__])


def lines_of(session: Session, submission_ids: Sequence[int]) -> list[TrailRow]:
    return list(session.scalars(_LINES, {"keys": submission_ids}))


_LINES = (  # compiled once: building the statement costs more than running it
    sa.select(TrailRow)
    .where(TrailRow.submission_id.in_(sa.bindparam("keys", expanding=True)))
    .order_by(TrailRow.submission_id, TrailRow.position)
)


def for_seal(rows: Sequence[TrailRow]) -> list[TrailEvent]:
    return [
        TrailEvent(
            submitter_id=row.submitter_id,
            event_type=row.event_type,
            occurred_at=row.occurred_at,
            data=row.data,
            hash=row.hash,
        )
        for row in rows
    ]


def for_api(rows: Sequence[TrailRow]) -> list[SubmissionEvent]:
    return [
        as_stored(
            SubmissionEvent,
            id=row.id,
            submitter_id=row.submitter_id,
            event_type=row.event_type,
            event_timestamp=row.occurred_at,
            data=row.data,
            hash=row.hash,
        )
        for row in rows
    ]
