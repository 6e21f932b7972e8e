"""Use cases of a signer who neither completes nor declines: what the page's menu offers beside (``SigningForm.ways``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.events import HandedOver
from contracts.problems import Problems
from contracts.rpc import submissions as rpc
from contracts.types import FieldDefinition
from services.submissions.commands import signing_links
from services.submissions.commands.signing.codes import lock_passed
from services.submissions.commands.signing.form import refusal_reason, refused_for_page, visit_details
from services.submissions.commands.signing_links import Why
from services.submissions.models import ReplacedLinkRow, SubmitterRow
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Announcement
from services.submissions.planning import changes
from services.submissions.planning.creation import LINK
from services.submissions.rules import domain
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.parties import addresses, offers
from services.submissions.rules.values import filling
from services.submissions.site import Site
from services.submissions.storage import rates, store, trail
from services.submissions.storage.rates import Rate
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import identity_checks, one_time_codes

DELEGATIONS = Rate(most=10, within=timedelta(days=1))
"""Of one submission: each is a mail to an address that the sender has not given."""
MOST_DELEGATIONS = 5
"""From one to the next, of one party."""

LINKS = Rate(most=5, within=timedelta(days=1))
QUESTIONS = Rate(most=5, within=timedelta(days=1))
"""Of one party."""
ALL_QUESTIONS = Rate(most=20, within=timedelta(days=1))
"""About one submission: the sender's mailbox is filled by nobody."""
LONGEST_QUESTION = 2_000

TOO_OFTEN = "This was sent too often. Please try again tomorrow."
NOT_ALLOWED = "The sender does not allow that."
IS_A_PARTY = "This person takes part already."
TOO_MANY = "This has been handed over too often. Please ask the sender."
NAMED_IN_IT = "This cannot be handed over any more: the document that others have signed names you."


def send_link(session: Session, command: rpc.ways.SendLink, site: Site, now: datetime) -> rpc.ways.LinkSent:
    """The signer goes on later: the link is sent to their own address, and to no other."""

    def decide() -> rpc.ways.LinkSent:
        submission, submitter = lock_passed(session, command, site, now)
        _must_be_open(submission, submitter, now)
        offering = _offering(submission)
        address = offers.address_for_link(submitter, offering)
        if address is None:
            raise invalid("There is no address that a link could be sent to.", "way", "is not possible")
        rates.count(session, f"links to submitter:{submitter.id}", LINKS, now, refusal=TOO_OFTEN)
        at = store.moment(submission, now)
        announce.link(Announcement(submission, site, at), submitter)
        data = visit_details(command, submitter)
        trail.append(submission, [trail.Line(trail.SAVE_FOR_LATER, submitter.id, data)], at)
        method = one_time_codes.EMAIL if submitter.email else one_time_codes.PHONE
        return rpc.ways.LinkSent(to=one_time_codes.masked(method, address))

    return once(session, rpc.ways.SEND_LINK, command, decide)


def ask(session: Session, command: rpc.ways.AskSender, site: Site, now: datetime) -> rpc.form.Done:
    """The signer asks the sender, who reads it in a mail. The trail says that they asked, and not what: others read it."""

    def decide() -> rpc.form.Done:
        submission, submitter = lock_passed(session, command, site, now)
        _must_be_open(submission, submitter, now)
        question = addresses.text(command.question)
        if not question:
            raise invalid("question is required", "question", "is required")
        if len(question) > LONGEST_QUESTION:
            reason = f"must not be longer than {LONGEST_QUESTION} characters"
            raise invalid(f"question {reason}", "question", reason)
        if not submission.row.created_by_email:
            raise invalid("There is no address that a question could be sent to.", "way", "is not possible")
        rates.count(session, f"questions of submitter:{submitter.id}", QUESTIONS, now, refusal=TOO_OFTEN)
        rates.count(session, f"questions about submission:{submission.row.id}", ALL_QUESTIONS, now, refusal=TOO_OFTEN)
        at = store.moment(submission, now)
        trail.append(submission, [trail.Line(trail.ASK_SENDER, submitter.id, visit_details(command, submitter))], at)
        is_known = offers.is_known(submitter, by_link=submission.row.source == LINK)
        announce.question(Announcement(submission, site, at), submitter.id, question, is_known=is_known)
        return rpc.form.Done(state=FormState.OPEN)

    return once(session, rpc.ways.ASK_SENDER, command, decide)


def _must_be_open(submission: store.LoadedSubmission, submitter: SubmitterRow, now: datetime) -> None:
    state = submission.state.form_state(submitter.id, store.moment(submission, now))
    if state is not FormState.OPEN:
        raise refused_for_page(Refused(state, domain.REFUSALS[state]))


def _offering(submission: store.LoadedSubmission) -> offers.Offering:
    row = submission.row
    return offers.Offering(
        preferences=row.preferences,
        account=submission.snapshot.account,
        confirmations=[party.confirmation for party in submission.submitters],
        by_link=row.source == LINK,
        sender=row.created_by_email,
    )


def delegate(session: Session, command: rpc.ways.DelegateForm, site: Site, now: datetime) -> rpc.form.Done:
    """The signer hands the form over: whoever they name has it from now on, with a link of their own. Order, fields, conditions
    and codes stay; what the first person typed, attached or proved does not."""

    def decide() -> rpc.form.Done:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        try:
            state = domain.delegate(submission.state, submitter.id, at)
        except Refused as refused:
            raise refused_for_page(refused) from None
        if not offers.may_delegate(submission.row.preferences, submission.snapshot.account):
            raise ServiceError("forbidden", NOT_ALLOWED, [{"field": "way", "reason": "is not allowed"}])
        contact = _contact(command, submission, submitter)
        reason = refusal_reason(command.reason)
        _refuse_chains(session, submission, submitter, now)
        before, was_called = trail.party(submitter), filling.person(submission.row, submitter)
        name, email = submitter.name, submitter.email
        fields, values = submission.fields, submitter.values
        visit_data = visit_details(command, submitter)
        dropped = signing_links.replace(submission, submitter, Why.DELEGATED, at, to=contact.shown)
        _become(submission, submitter, contact, at)
        signing_links.drop_files(submission, submitter, at)
        _refuse_named(submission, submitter, fields, values, was_called)
        submission.state = state
        submitter.invited_at = None
        store.index(submission)
        session.flush()
        data = {**visit_data, "party": before, "named": trail.party(submitter), "reason": reason}
        trail.append(submission, [trail.Line(trail.DELEGATE_FORM, submitter.id, data), *dropped], at)
        announcement = Announcement(submission, site, at)
        announcement.readdressed = True
        announcement.handed_over = HandedOver(by=name or submitter.role, reason=reason or "")
        invited, happened = domain.invite_awaited(submission.state, at)
        store.save(submission, invited, at)
        announce.announce(announcement, happened)
        announce.delegated(announcement, submitter.id, name, email, reason or "")
        return rpc.form.Done(state=Why.DELEGATED)

    return once(session, rpc.ways.DELEGATE_FORM, command, decide)


@dataclass(frozen=True)
class _Contact:
    email: str
    name: str | None
    phone: str | None

    @property
    def shown(self) -> str:
        """Return what whoever still has the old link is told of the person."""
        return self.name or one_time_codes.masked(one_time_codes.EMAIL, self.email)


def _contact(command: rpc.ways.DelegateForm, submission: store.LoadedSubmission, submitter: SubmitterRow) -> _Contact:
    """Return who is to have the form. A number is taken only where a code is sent to it."""
    try:
        email, name = addresses.email(command.email), addresses.name(command.name)
    except addresses.BadAddress as bad:
        field = "name" if "longer" in bad.reason else "email"
        raise invalid(f"{field} {bad.reason}", field, bad.reason) from None
    phone = None
    if offers.needs_phone(submitter.preferences):
        if not command.phone.strip():
            raise invalid("phone is required", "phone", "is required")
        try:
            phone = addresses.phone(command.phone)
        except addresses.BadAddress as bad:
            raise invalid(f"phone {bad.reason}", "phone", bad.reason) from None
    for party in submission.submitters:
        if addresses.mailbox(party.email) == addresses.mailbox(email) or (phone and party.phone == phone):
            raise invalid(IS_A_PARTY, "email", IS_A_PARTY)
    return _Contact(email, name, phone)


def _refuse_chains(
    session: Session, submission: store.LoadedSubmission, submitter: SubmitterRow, now: datetime
) -> None:
    before = sa.select(sa.func.count()).where(
        ReplacedLinkRow.submission_id == submission.row.id,
        ReplacedLinkRow.submitter_id == submitter.id,
        ReplacedLinkRow.reason == Why.DELEGATED.value,
    )
    if (session.scalar(before) or 0) >= MOST_DELEGATIONS:
        raise invalid(TOO_MANY, "email", TOO_MANY)
    rates.count(session, f"delegations of submission:{submission.row.id}", DELEGATIONS, now, refusal=TOO_MANY)


def _become(submission: store.LoadedSubmission, submitter: SubmitterRow, contact: _Contact, now: datetime) -> None:
    """The row is the new person's. What the sender wrote to the first one is not for them, and they hear of it by mail."""
    submitter.email, submitter.name, submitter.phone = contact.email, contact.name, contact.phone
    submitter.message = None
    by_sms = bool(contact.phone and submitter.preferences.get("send_sms"))
    submitter.preferences = {**submitter.preferences, "send_email": True, "send_sms": by_sms}
    identity_checks.void(submission, submitter)
    submitter.updated_at = submission.row.updated_at = now


def _refuse_named(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    fields: Sequence[FieldDefinition],
    values: Mapping[str, Any],
    was_called: Mapping[str, Any],
) -> None:
    """Refuse where others have signed what says who this party is: then it is nobody else any more."""
    problems = Problems()
    is_called = filling.person(submission.row, submitter)
    changes.refuse_what_is_signed(
        submitter, submission.submitters, fields, submission.fields, values, was_called, is_called, problems
    )
    if problems:
        raise invalid(NAMED_IN_IT, "email", NAMED_IN_IT)
