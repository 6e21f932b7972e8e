"""What happened, told: as lines of the audit trail, as public events, as work for the other services.

All of it is written in the transaction that changed the state. Public events of a submission are numbered without gaps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from contracts import events
from contracts.events import Erased, Event, MailContext, PreferencesGiven, PublicData, WrongRecipientMail
from contracts.runtime.bus.outbox import emit
from contracts.types import Actor
from services.submissions.evidence import sealing, statements
from services.submissions.models import AttachmentRow
from services.submissions.outgoing import mails, reminders, sms
from services.submissions.reading import present
from services.submissions.rules.domain import Fact, Happened
from services.submissions.site import Site
from services.submissions.storage import trail
from services.submissions.storage.store import Loaded

_LINES = {
    Fact.CREATED: trail.CREATE_SUBMISSION,
    Fact.INVITED: trail.INVITE_PARTY,
    Fact.INVITED_AGAIN: trail.INVITE_PARTY_AGAIN,
    Fact.VIEWED: trail.VIEW_FORM,
    Fact.STARTED: trail.START_FORM,
    Fact.COMPLETED: trail.COMPLETE_FORM,
    Fact.DECLINED: trail.DECLINE_FORM,
    Fact.EXPIRED: trail.EXPIRE_SUBMISSION,
    Fact.ARCHIVED: trail.ARCHIVE_SUBMISSION,
    Fact.RESTORED: trail.RESTORE_SUBMISSION,
    Fact.SEALING_FAILED: trail.FAIL_SEALING,
    Fact.SEALED: trail.COMPLETE_SUBMISSION,
}

_PUBLIC: dict[Fact, tuple[Event, ...]] = {
    Fact.CREATED: (events.SUBMISSION_CREATED,),
    Fact.VIEWED: (events.FORM_VIEWED,),
    Fact.STARTED: (events.FORM_STARTED,),
    Fact.COMPLETED: (events.FORM_COMPLETED,),
    Fact.DECLINED: (events.FORM_DECLINED, events.SUBMISSION_DECLINED),
    Fact.EXPIRED: (events.SUBMISSION_EXPIRED,),
    Fact.ARCHIVED: (events.SUBMISSION_ARCHIVED,),
    Fact.SEALED: (events.SUBMISSION_COMPLETED,),
}


@dataclass
class Telling:
    """One transaction's worth of news. ``data`` goes into the trail's lines; ``by_api`` says which API user acts in the
    signer's place (``trail.by``). ``again_by`` says how an invitation is sent again: by ``email``, by ``sms``. ``kept`` is what
    events of an earlier moment of the transaction say, by type and submitter. ``signed`` is what the line of a submitter's
    completion says of what was signed, and how (``shown.given``, ``let_in``). ``readdressed``: a signer has got another address
    and link, and is invited anew. ``receipts`` are those of who has completed, by submitter."""

    found: Loaded
    site: Site
    now: datetime
    data: dict[str, Any] = field(default_factory=dict)
    by_api: Mapping[str, Any] | None = None
    again_by: Mapping[str, bool] = field(default_factory=lambda: {"email": True})
    kept: dict[tuple[str, int | None], dict[str, Any]] = field(default_factory=dict)
    signed: dict[int, dict[str, Any]] = field(default_factory=dict)
    readdressed: bool = False
    receipts: dict[int, str] = field(default_factory=dict)

    @property
    def attachments(self) -> list[AttachmentRow]:
        return self.found.attachments

    @cached_property
    def context(self) -> MailContext:
        return mails.context(self.found, self.site, self.attachments)

    @property
    def subject(self) -> str:
        return f"submission:{self.found.row.id}"


def announce(telling: Telling, happened: Sequence[Happened]) -> None:
    """Tell what happened, in order. The rows must already say so; what they said of an earlier moment, ``keep`` has kept."""
    found = telling.found
    with found.session.no_autoflush:  # the rows change with every event; they are written once
        lines = trail.append(found, [line for one in happened if (line := _line(telling, one))], telling.now)
        telling.receipts |= statements.confirm(found, lines, telling.now)
        for one in happened:
            for event in _PUBLIC.get(one.fact, ()):
                data = telling.kept.get((event.type, one.submitter_id))
                publish(telling, event, _data(telling, event, one) if data is None else data)
            _hand_over(telling, one)


def keep(telling: Telling, happened: Sequence[Happened]) -> None:
    """Keep what is to be told of this, as it is now: before the rest of the transaction changes the rows further."""
    with telling.found.session.no_autoflush:
        for one in happened:
            for event in _PUBLIC.get(one.fact, ()):
                telling.kept[event.type, one.submitter_id] = _data(telling, event, one)


def publish(telling: Telling, event: Event, data: dict[str, Any]) -> None:
    """One public event, with the next number."""
    row, template = telling.found.row, telling.found.template
    row.event_sequence += 1
    public = PublicData(
        data=data,
        author_id=template.author_id if template else row.created_by_id,
        template_id=row.template_id,
        shared=bool(template and template.shared),
        created_by_id=row.created_by_id,
    )
    emit(telling.found.session, event, public, subject=telling.subject, sequence=row.event_sequence)


def form_sent(telling: Telling, submitter_id: int) -> None:
    """The invitation has left."""
    publish(telling, events.FORM_SENT, _form_data(telling, submitter_id))


def wrong_recipient(telling: Telling, submitter_id: int, reason: str) -> None:
    """The sender is told that a link has reached somebody else."""
    found = telling.found
    if mails.sender_wants_mail(found):
        told = WrongRecipientMail(context=telling.context, submitter_id=submitter_id, reason=reason)
        emit(found.session, events.WRONG_RECIPIENT_MAIL_DUE, told, subject=telling.subject)


def order_seal(telling: Telling) -> None:
    """Ask rendering for the sealing that the row's ``seal_id`` names; asked twice it is done once."""
    found = telling.found
    lines = trail.lines_of(found.session, [found.row.id])
    order = sealing.seal_request(found.row, found.snapshot, found.submitters, telling.attachments, lines, telling.site)
    order = order.model_copy(update={"to_check": statements.to_check(found)})
    emit(found.session, events.SEALING_DUE, order, subject=telling.subject)


def preferences_given(telling: Telling, actor: Actor, preferences: dict[str, Any]) -> None:
    """The template keeps what was given with a submission of it (specification 2.8)."""
    template_id = telling.found.row.template_id
    if template_id is not None:
        given = PreferencesGiven(template_id=template_id, actor=actor, preferences=preferences)
        emit(telling.found.session, events.PREFERENCES_GIVEN, given, subject=f"template:{template_id}")


def erased(telling: Telling) -> None:
    emit(
        telling.found.session,
        events.SUBMISSION_ERASED,
        Erased(submission_id=telling.found.row.id),
        subject=telling.subject,
    )


def _line(telling: Telling, one: Happened) -> trail.Line | None:
    event_type = _LINES.get(one.fact)
    if event_type is None:
        return None
    if one.submitter_id is None:
        return trail.Line(event_type, None, telling.data)
    if one.fact is Fact.INVITED:  # their turn has come; who acted is somebody else
        return trail.Line(event_type, one.submitter_id)
    if one.fact is Fact.INVITED_AGAIN:
        return trail.Line(event_type, one.submitter_id, {**telling.data, "sent_by": _ways(telling, one.submitter_id)})
    if one.fact is Fact.COMPLETED:
        signed = telling.signed.get(one.submitter_id, {})
        if telling.by_api is not None:
            return trail.Line(trail.API_COMPLETE_FORM, one.submitter_id, {**telling.by_api, **signed})
        return trail.Line(event_type, one.submitter_id, {**telling.data, **signed})
    return trail.Line(event_type, one.submitter_id, telling.data)


def _ways(telling: Telling, submitter_id: int) -> list[str]:
    """How an invitation is sent again."""
    submitter = telling.found.submitter(submitter_id)
    wanted = {"email": mails.wants_mail(submitter), "sms": sms.wants_sms(submitter)}
    return [way for way, wants in wanted.items() if wants and telling.again_by.get(way)]


def _hand_over(telling: Telling, one: Happened) -> None:
    """What the other services have to do because of it."""
    found, session = telling.found, telling.found.session
    if one.fact in (Fact.INVITED, Fact.INVITED_AGAIN) and one.submitter_id is not None:
        submitter = found.submitter(one.submitter_id)
        first = one.fact is Fact.INVITED
        if first and found.row.source == "link" and not telling.readdressed:
            return  # they are on their way to the form, and their address may be anybody's
        if mails.wants_mail(submitter) and (first or telling.again_by.get("email")):
            due = mails.invitation(found, submitter, telling.context)
            emit(session, events.INVITATION_DUE, due, subject=telling.subject)
            if first or not reminders.are_planned(session, submitter):
                reminders.plan(found, submitter, telling.now)
        if sms.wants_sms(submitter) and (first or telling.again_by.get("sms")):
            emit(session, events.SMS_DUE, sms.invitation(found, submitter, telling.context), subject=telling.subject)
    elif one.fact is Fact.SEALING:
        order_seal(telling)
    elif one.fact is Fact.SEALED:
        if told := mails.completion(found, telling.site, telling.context, telling.now):
            emit(session, events.COMPLETION_MAILS_DUE, told, subject=telling.subject)
    elif one.fact is Fact.DECLINED and one.submitter_id is not None and mails.sender_wants_mail(found):
        told_of = mails.declined(found.submitter(one.submitter_id), telling.context)
        emit(session, events.DECLINE_MAIL_DUE, told_of, subject=telling.subject)


def _data(telling: Telling, event: Event, one: Happened) -> dict[str, Any]:
    if event.type.startswith("form."):
        return _form_data(telling, one.submitter_id)
    return present.submission_data(_shown(telling))


def _form_data(telling: Telling, submitter_id: int | None) -> dict[str, Any]:
    if submitter_id is None:
        raise ValueError("a form event is about a submitter")
    page = telling.site.submission_page(telling.found.row.slug)
    return present.form_data(_shown(telling), telling.found.submitter(submitter_id), page)


def _shown(telling: Telling) -> present.Shown:
    """The submission as events show it: masked values crossed out, links that need an API key."""
    found, links = telling.found, telling.site.lasting()
    return present.Shown(
        row=found.row,
        template=found.template,
        submitters=found.submitters,
        status=found.state.status_at(telling.now),
        links=links,
        values=present.ValuesView(found.fields, {one.uuid: one for one in telling.attachments}, links),
    )
