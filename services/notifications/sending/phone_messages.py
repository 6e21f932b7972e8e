"""Messages to phones: which are written for a fact, what they say, one attempt to send one, and what is told of it.

Invitations go by SMS through the installation's provider. One-time codes go to the account's phone OTP webhook (peer facts
6.5), which comes sealed with the event; the code is made at the moment it is sent and is in no row.
"""

import json
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import PHONE_OTP_WEBHOOK, SMS_FAILED, SMS_SENT, CodeDue, SmsDue
from contracts.evidence.sealed_text import NotOurs, unseal
from contracts.formats.one_time_code import code_of
from contracts.languages.saying import language_for
from contracts.runtime.bus.outbox import first_time
from contracts.runtime.clock import now
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.http.outbound import Outbound
from contracts.runtime.monitoring import observe
from contracts.types import iso
from services.notifications import replaced_links
from services.notifications.addresses import one_line
from services.notifications.channels.outcome import NotSent, Refused
from services.notifications.channels.sms import SmsChannel, post
from services.notifications.commands import locked_submission, tell
from services.notifications.domain import Kind, find_party
from services.notifications.models import PhoneMessageRow
from services.notifications.sending.journal import Journal, Sent
from services.notifications.settings import Settings

log = observe.logger(__name__)

CODE_ATTEMPTS = 5
CODE_PAUSE = timedelta(seconds=3)
"""Somebody is waiting for the code: it is tried again soon, and given up soon, so that they can be told."""

LONGEST_NAME = 60


def accept_invitation(session: Session, event_id: str, due: SmsDue, pause: timedelta, at: datetime) -> None:
    """One row for the invitation, however often it is told. Not again and again to the same number."""
    if not first_time(session, "sms_due", event_id):
        return
    context, party = due.context, find_party(due.context.parties, due.submitter_id)
    if party is None or locked_submission(session, context.submission_id).erased_at is not None:
        return
    brand = party.company_name or context.account.name
    row = PhoneMessageRow(
        key=f"{Kind.INVITATION} {due.invitation_id} {due.phone}",
        kind=Kind.INVITATION.value,
        submission_id=context.submission_id,
        submitter_id=due.submitter_id,
        invitation_id=due.invitation_id,
        to_phone=due.phone,
        link_digest=replaced_links.digest(party.slug),
        text=invitation_text(due, brand, party.link),
        facts={},
        test=context.test,
    )
    if _is_known(session, row) or replaced_links.is_replaced(session, row.link_digest):
        return
    if _too_soon(session, row, at, pause):
        log.warning(
            "sms.not_sent_again", submission_id=context.submission_id, reason="sent to this number a moment ago"
        )
        return
    _write(session, row, at)


def accept_code(session: Session, event_id: str, due: CodeDue, at: datetime) -> None:
    """One row for the code."""
    if not first_time(session, "code_due", event_id):
        return
    if due.submission_id is not None and locked_submission(session, due.submission_id).erased_at is not None:
        return
    row = PhoneMessageRow(
        key=f"{Kind.ONE_TIME_CODE} {due.code_id} {due.to}",
        kind=Kind.ONE_TIME_CODE.value,
        submission_id=due.submission_id,
        submitter_id=due.submitter_id,
        to_phone=due.to,
        link_digest=replaced_links.digest(due.slug),
        text="",
        facts={
            "seed": due.seed,
            "submitter_email": due.submitter_email,
            "submitter_name": due.submitter_name,
            "template_name": due.template_name,
        },
        webhook=None if due.test else due.phone_otp_webhook,
        expires_at=due.expires_at,
        test=due.test,
    )
    if not _is_known(session, row) and not replaced_links.is_replaced(session, row.link_digest):
        _write(session, row, at)


def erase(session: Session, submission_id: int, at: datetime) -> None:
    """Numbers and texts of this submission's messages go."""
    rows = session.scalars(
        sa.select(PhoneMessageRow).where(PhoneMessageRow.submission_id == submission_id).with_for_update()
    )
    for row in rows:
        if row.erased_at is None:
            row.key, row.erased_at = f"erased {row.id}", at
            row.to_phone = row.text = ""
            row.facts, row.webhook, row.answer, row.last_error = {}, None, None, None
            if row.state == "due":
                row.state, row.finished_at = "parked", at


def invitation_text(due: SmsDue, brand: str, link: str) -> str:
    """Write who asks, for what, and the link: short, because messages are paid for by their length, and in
    the reader's language."""
    context = due.context
    sender = one_line(brand, LONGEST_NAME) or "Countersign"
    name = one_line(context.submission_name, LONGEST_NAME)
    party = find_party(context.parties, due.submitter_id)
    language = language_for(party.lang if party else None, context.account.locale)
    key = "invitation.sign" if due.needs_signature else "invitation.fill_in"
    return language.say("sms", key, sender=sender, document=name, link=link)


class PhoneSending:
    """``attempt(row)`` for DueWork. ``channel`` is None where there is no SMS provider; ``keeps``: SMS stay here instead.
    Without ``journal`` only the ``Idempotency-Key`` tells a message that is sent again because the process was killed."""

    def __init__(
        self,
        channel: SmsChannel | None,
        outbound: Outbound,
        secret: str,
        *,
        keeps: bool,
        journal: Journal | None = None,
    ) -> None:
        self._channel = channel
        self._outbound = outbound
        self._secret = secret
        self._keeps = keeps
        self._journal = journal

    def attempt(self, row: PhoneMessageRow) -> Outcome:
        if self._journal is not None and (sent := self._journal.find(row.key)) is not None:
            log.warning("sms.already_sent", message=row.id)
            return self._done(row, sent)
        if row.expires_at is not None and row.expires_at <= now():
            return Park(replaced_links.why_expired(row))
        is_code = row.kind == Kind.ONE_TIME_CODE
        if row.test:
            return self._kept(row)
        try:
            answer = self._send_code(row) if is_code else self._send_sms(row)
        except NotSent as error:
            if is_code and row.attempts >= CODE_ATTEMPTS:
                return Park(_without(row.to_phone, error))
            return Retry(_without(row.to_phone, error), after=CODE_PAUSE if is_code else None)
        except Refused as error:
            return Park(_without(row.to_phone, error))
        return self._done(row, Sent(_without(row.to_phone, answer), now()))

    def _done(self, row: PhoneMessageRow, sent: Sent) -> Done:
        keep_text = self._keeps and row.kind != Kind.ONE_TIME_CODE

        def record(session: Session, row: PhoneMessageRow) -> None:
            mark_taken(session, row, sent.answer, sent.at, keep_text=keep_text)

        return Done(record, self._journal.note(row.key, sent) if self._journal is not None else None)

    def _kept(self, row: PhoneMessageRow) -> Outcome:
        """Keep a message of test mode for testers; of a code its digits."""
        seed = row.facts.get("seed") if row.kind == Kind.ONE_TIME_CODE else None

        def record(session: Session, row: PhoneMessageRow) -> None:
            if seed is not None:
                row.text = code_of(self._secret, seed)
            mark_taken(session, row, "kept: test mode", now(), keep_text=True)

        return Done(record)

    def _send_sms(self, row: PhoneMessageRow) -> str:
        if self._channel is not None:
            return self._channel.send(row.key, row.to_phone, row.text)
        if self._keeps:
            return "kept"
        raise NotSent("No SMS provider is configured (SMS_URL).")

    def _send_code(self, row: PhoneMessageRow) -> str:
        """The body that the peer's webhook gets; ``template_name`` is there for its readers' sake."""
        try:
            webhook = json.loads(unseal(self._secret, PHONE_OTP_WEBHOOK, row.webhook or ""))
        except NotOurs as error:
            raise Refused(f"The phone OTP webhook is not known: {error}") from error
        payload = {
            "event_type": "otp_verification",
            "phone_number": row.to_phone,
            "otp": code_of(self._secret, row.facts["seed"]),
            "timestamp": iso(now()),
            "submitter_id": row.submitter_id,
            "submitter_email": row.facts["submitter_email"],
            "submitter_name": row.facts["submitter_name"],
            "submission_id": row.submission_id,
            "template_name": row.facts["template_name"],
        }
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Countersign",
            "Idempotency-Key": row.key.split()[1],
        }
        if token := webhook.get("bearer_token"):
            headers["Authorization"] = f"Bearer {token}"
        body = json.dumps(payload, ensure_ascii=False).encode()
        answer = post(self._outbound, webhook["url"], body, headers, "The phone OTP webhook")
        return answer.partition(" ")[0]  # it may say the code again


def channel_of(settings: Settings, outbound: Outbound) -> SmsChannel | None:
    """The installation's SMS provider."""
    if settings.sms_url is None:
        return None
    token = settings.sms_token.get_secret_value() if settings.sms_token else None
    return SmsChannel(outbound, settings.sms_url, settings.sms_format, settings.sms_user, token, settings.sms_from)


def mark_taken(session: Session, row: PhoneMessageRow, answer: str, at: datetime, *, keep_text: bool) -> None:
    """The provider has taken it. The text holds a signing link: it is kept only where it is shown."""
    row.answer = answer
    if not keep_text:
        row.text = ""
    row.facts, row.webhook = {}, None
    tell(session, SMS_SENT, row, to=row.to_phone, sent_at=at)


def mark_failed(session: Session, row: PhoneMessageRow) -> None:
    """It will never be sent; ``last_error`` says why. What a code was sent with is of no use any more."""
    row.answer = row.last_error
    if row.expires_at is not None:
        row.facts, row.webhook = {}, None
    tell(session, SMS_FAILED, row, to=row.to_phone, error=row.last_error)


def _write(session: Session, row: PhoneMessageRow, at: datetime) -> None:
    row.request_id = observe.request_id()
    row.created_at = row.next_attempt_at = at
    session.add(row)
    session.flush()


def _is_known(session: Session, row: PhoneMessageRow) -> bool:
    return session.scalar(sa.select(PhoneMessageRow.id).where(PhoneMessageRow.key == row.key)) is not None


def _too_soon(session: Session, row: PhoneMessageRow, at: datetime, pause: timedelta) -> bool:
    earlier = session.scalar(
        sa.select(sa.func.max(PhoneMessageRow.created_at)).where(
            PhoneMessageRow.kind == row.kind,
            PhoneMessageRow.submission_id == row.submission_id,
            PhoneMessageRow.submitter_id == row.submitter_id,
            PhoneMessageRow.to_phone == row.to_phone,
        )
    )
    return earlier is not None and at - pause < earlier < at + pause  # later: the clock was put back


def _without(phone: str, message: object) -> str:
    """Providers like to repeat the number in their answer; ours go into logs."""
    return (
        str(message).replace(phone, "(recipient)").replace(phone.lstrip("+"), "(recipient)") if phone else str(message)
    )
