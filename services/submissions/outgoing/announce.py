"""What happened, told: as lines of the audit trail, as public events, as work for the other services.

All of it is written in the transaction that changed the state. Public events of a submission are numbered without gaps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from contracts import events
from contracts.events import (
    DelegatedMail,
    Erased,
    Event,
    HandedOver,
    LinkMail,
    MailContext,
    PreferencesGiven,
    ProviderProblem,
    PublicData,
    QuestionMail,
    ReturnedMail,
    WrongRecipientMail,
)
from contracts.evidence import erasure
from contracts.providers import CERTSIGN, CertsignMode, CertsignOrder
from contracts.runtime.bus.outbox import emit
from contracts.types import Actor, ActsAs, CertsignState, CertsignStatus, DutystampState, DutystampStatus, iso
from services.submissions.evidence import sealing, statements
from services.submissions.models import AttachmentRow, SubmitterRow
from services.submissions.outgoing import mails, reminders, sms
from services.submissions.reading import present
from services.submissions.rules.domain import Fact, Happened, completion_to_tell_later
from services.submissions.rules.providers import KeptCertsign, KeptDutystamp
from services.submissions.site import Site
from services.submissions.storage import trail
from services.submissions.storage.store import LoadedSubmission

_LINES = {
    Fact.CREATED: trail.CREATE_SUBMISSION,
    Fact.INVITED: trail.INVITE_PARTY,
    Fact.INVITED_AGAIN: trail.INVITE_PARTY_AGAIN,
    Fact.VIEWED: trail.VIEW_FORM,
    Fact.STARTED: trail.START_FORM,
    Fact.COMPLETED: trail.COMPLETE_FORM,
    Fact.DECLINED: trail.DECLINE_FORM,
    Fact.RETURNED: trail.RETURN_FORM,
    Fact.SENT_AGAIN: trail.SEND_AGAIN,
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
    Fact.COMPLETED: (events.FORM_SIGNED, events.FORM_COMPLETED),
    Fact.DECLINED: (events.FORM_DECLINED, events.SUBMISSION_DECLINED),
    Fact.RETURNED: (events.SUBMISSION_RETURNED,),
    Fact.EXPIRED: (events.SUBMISSION_EXPIRED,),
    Fact.ARCHIVED: (events.SUBMISSION_ARCHIVED,),
    Fact.SEALED: (events.SUBMISSION_COMPLETED,),
}


@dataclass
class Announcement:
    """One transaction's worth of news. ``data`` goes into the trail's lines; ``by_api`` says which API user acts in the
    signer's place (``trail.by``). ``again_by`` says how an invitation is sent again: by ``email``, by ``sms``. ``kept`` is what
    events of an earlier moment of the transaction say, by type and submitter. ``signed`` is what the line of a submitter's
    completion says of what was signed, and how (``shown.digests_of``, ``let_in``). ``readdressed``: a signer has got another
    address and link, and is invited anew; ``handed_over`` by whom, when the sender did not do that. ``corrected``: who is
    invited had it before, as it was before a correction. ``receipts`` are those of
    who has completed, by submitter."""

    submission: LoadedSubmission
    site: Site
    now: datetime
    data: dict[str, Any] = field(default_factory=dict)
    by_api: Mapping[str, Any] | None = None
    again_by: Mapping[str, bool] = field(default_factory=lambda: {"email": True})
    kept: dict[tuple[str, int | None], dict[str, Any]] = field(default_factory=dict)
    signed: dict[int, dict[str, Any]] = field(default_factory=dict)
    readdressed: bool = False
    handed_over: HandedOver | None = None
    corrected: bool = False
    receipts: dict[int, str] = field(default_factory=dict)

    @property
    def attachments(self) -> list[AttachmentRow]:
        return self.submission.attachments

    @cached_property
    def context(self) -> MailContext:
        return mails.context(self.submission, self.site, self.attachments)

    @property
    def subject(self) -> str:
        return f"submission:{self.submission.row.id}"


def announce(announcement: Announcement, happened: Sequence[Happened]) -> None:
    """Tell what happened, in order. The rows must already say so; what they said of an earlier moment, ``keep`` has kept.

    Who completes last has ``form.signed`` told at once, and ``form.completed`` when the sealed documents exist, with them.
    """
    submission = announcement.submission
    later = completion_to_tell_later(happened)
    if later is not None:
        submission.row.untold_completion = later
    with submission.session.no_autoflush:  # the rows change with every event; they are written once
        lines = trail.append(
            submission, [line for happening in happened if (line := _line(announcement, happening))], announcement.now
        )
        sealing = any(happening.fact is Fact.SEALING for happening in happened)
        announcement.receipts |= statements.confirm(submission, lines, announcement.now, sealing=sealing)
        for happening in happened:
            if happening.fact is Fact.SEALED:
                _tell_last_completion(announcement)
            for event in _PUBLIC.get(happening.fact, ()):
                if event is events.FORM_COMPLETED and happening.submitter_id == later:
                    continue
                data = announcement.kept.get((event.type, happening.submitter_id))
                publish(announcement, event, _data(announcement, event, happening) if data is None else data)
            _hand_over(announcement, happening)


def keep(announcement: Announcement, happened: Sequence[Happened]) -> None:
    """Keep what is to be told of this, as it is now: before the rest of the transaction changes the rows further."""
    with announcement.submission.session.no_autoflush:
        for happening in happened:
            for event in _PUBLIC.get(happening.fact, ()):
                announcement.kept[event.type, happening.submitter_id] = _data(announcement, event, happening)


def _tell_last_completion(announcement: Announcement) -> None:
    """Tell of the completion that was not told as such when the sealing began. An older version has told it then."""
    row = announcement.submission.row
    if row.untold_completion is not None:
        publish(announcement, events.FORM_COMPLETED, _form_data(announcement, row.untold_completion))
        row.untold_completion = None


def publish(announcement: Announcement, event: Event, data: dict[str, Any]) -> None:
    """One public event, with the next number."""
    _emit_public(announcement, event, public_data(announcement, data))


def public_data(announcement: Announcement, data: dict[str, Any]) -> PublicData:
    """Say who may hear of the submission what ``data`` says."""
    row, template = announcement.submission.row, announcement.submission.template
    return PublicData(
        data=data,
        author_id=template.author_id if template else row.created_by_id,
        template_id=row.template_id,
        shared=bool(template and template.shared),
        created_by_id=row.created_by_id,
        test=row.test,
    )


def _emit_public(announcement: Announcement, event: Event, carried: BaseModel) -> None:
    row = announcement.submission.row
    row.event_sequence += 1
    emit(announcement.submission.session, event, carried, subject=announcement.subject, sequence=row.event_sequence)


def form_sent(announcement: Announcement, submitter_id: int) -> None:
    """The invitation has left."""
    publish(announcement, events.FORM_SENT, _form_data(announcement, submitter_id))


def wrong_recipient(announcement: Announcement, submitter_id: int, reason: str) -> None:
    """The sender is told that a link has reached somebody else."""
    submission = announcement.submission
    if mails.sender_wants_mail(submission):
        mail = WrongRecipientMail(context=announcement.context, submitter_id=submitter_id, reason=reason)
        emit(submission.session, events.WRONG_RECIPIENT_MAIL_DUE, mail, subject=announcement.subject)


def delegated(announcement: Announcement, submitter_id: int, name: str | None, email: str | None, reason: str) -> None:
    """The sender is told that the signer of this ``name`` and ``email`` has handed their form over to the submitter."""
    submission = announcement.submission
    if mails.sender_wants_mail(submission):
        mail = DelegatedMail(
            context=announcement.context,
            submitter_id=submitter_id,
            before_name=name,
            before_email=email,
            reason=reason,
        )
        emit(submission.session, events.DELEGATED_MAIL_DUE, mail, subject=announcement.subject)


def link(announcement: Announcement, submitter: SubmitterRow) -> None:
    """Have the link sent to a signer who goes on later: by mail, to whoever has no mailbox by SMS."""
    submission, session = announcement.submission, announcement.submission.session
    if submitter.email:
        mail = LinkMail(context=announcement.context, submitter_id=submitter.id)
        emit(session, events.LINK_MAIL_DUE, mail, subject=announcement.subject)
    else:
        sms_due = sms.invitation(submission, submitter, announcement.context)
        emit(session, events.SMS_DUE, sms_due, subject=announcement.subject)


def question(announcement: Announcement, submitter_id: int, text: str, *, is_known: bool) -> None:
    """Have a signer's question mailed to the sender."""
    mail = QuestionMail(context=announcement.context, submitter_id=submitter_id, reason=text, address_is_known=is_known)
    emit(announcement.submission.session, events.QUESTION_MAIL_DUE, mail, subject=announcement.subject)


def order_seal(announcement: Announcement) -> None:
    """Ask rendering for the sealing that the row's ``seal_id`` names; asked twice it is done once."""
    submission = announcement.submission
    lines = trail.lines_of(submission.session, [submission.row.id])
    order = sealing.seal_request(
        submission.row, submission.snapshot, submission.submitters, announcement.attachments, lines, announcement.site
    )
    order = order.model_copy(update={"to_check": statements.to_check(submission)})
    emit(submission.session, events.SEALING_DUE, order, subject=announcement.subject)


def _ask_providers(announcement: Announcement) -> None:
    """The sealing that begins asks the submission's providers, unless somebody has waived that."""
    submission = announcement.submission
    row, snapshot, at = submission.row, submission.snapshot, announcement.now
    lines = []
    by_signers = snapshot.certsign and CertsignOrder.model_validate(snapshot.certsign).mode is CertsignMode.SIGNER
    if snapshot.certsign and not by_signers and not (row.certsign or {}).get("waived_by"):
        provider = snapshot.certsign["provider"]
        asked = KeptCertsign(status=CertsignStatus.PENDING, provider=provider, at=at)
        row.certsign = asked.model_dump(mode="json")
        lines.append(trail.Line(trail.REQUEST_CERTSIGN, None, {"provider": provider}))
    if snapshot.dutystamp:
        provider = snapshot.dutystamp["provider"]
        wanted = KeptDutystamp(status=DutystampStatus.PENDING, provider=provider, at=at)
        row.dutystamp = wanted.model_dump(mode="json")
        lines.append(trail.Line(trail.REQUEST_DUTYSTAMP, None, {"provider": provider}))
    trail.append(submission, lines, at)


def certsign_failed(announcement: Announcement, state: CertsignState) -> None:
    """The provider does not sign, and a person has to help: who named that event is told, and the admins are."""
    publish(announcement, events.SUBMISSION_CERTSIGN_FAILED, present.submission_data(_shown(announcement)))
    provider_problem(announcement, CERTSIGN, state)


def stamped(announcement: Announcement) -> None:
    """All duty stamps are on the documents."""
    publish(announcement, events.SUBMISSION_STAMPED, present.submission_data(_shown(announcement)))


def provider_problem(announcement: Announcement, feature: str, state: CertsignState | DutystampState) -> None:
    """Have the admins told of what a provider said."""
    context = announcement.context
    problem = ProviderProblem(
        feature=feature,
        provider=state.provider,
        message=state.message or "The provider did not say why.",
        submission_id=context.submission_id,
        submission_name=context.submission_name,
        submission_link=context.submission_link,
    )
    emit(announcement.submission.session, events.PROVIDER_PROBLEM_DUE, problem, subject=announcement.subject)


def preferences_given(announcement: Announcement, actor: Actor, preferences: dict[str, Any]) -> None:
    """The template keeps what was given with a submission of it (specification 2.8)."""
    template_id = announcement.submission.row.template_id
    if template_id is not None:
        event = PreferencesGiven(template_id=template_id, actor=actor, preferences=preferences)
        emit(announcement.submission.session, events.PREFERENCES_GIVEN, event, subject=f"template:{template_id}")


def erased(announcement: Announcement, documents: list[str], reason: str) -> None:
    """The submission is removed for good, and with it the ``documents`` (SHA-256). Who hears of it outside is told nothing of
    the people; of what goes with all of test mode nobody outside hears."""
    number = announcement.submission.row.id
    if reason == erasure.TEST_MODE:
        gone = Erased(submission_id=number, documents=documents, forget=True)
        _emit_public(announcement, events.SUBMISSION_ERASED, gone)
        return
    data = {
        "id": number,
        "erased": True,
        "erased_at": iso(announcement.now),
        "reason": reason,
        "receipt_url": announcement.site.erasure_receipt(number),
    }
    gone = Erased(submission_id=number, documents=documents, public=public_data(announcement, data))
    _emit_public(announcement, events.SUBMISSION_ERASED, gone)


def _line(announcement: Announcement, event: Happened) -> trail.Line | None:
    event_type = _LINES.get(event.fact)
    if event_type is None:
        return None
    if event.submitter_id is None:
        return trail.Line(event_type, None, announcement.data)
    if event.fact is Fact.INVITED:  # their turn has come; who acted is somebody else
        return trail.Line(event_type, event.submitter_id)
    if event.fact is Fact.INVITED_AGAIN:
        return trail.Line(
            event_type, event.submitter_id, {**announcement.data, "sent_by": _ways(announcement, event.submitter_id)}
        )
    if event.fact is Fact.COMPLETED:
        signed = announcement.signed.get(event.submitter_id, {})
        if announcement.by_api is not None:
            return trail.Line(trail.API_COMPLETE_FORM, event.submitter_id, {**announcement.by_api, **signed})
        acts_as = present.acts_as(announcement.submission.submitter(event.submitter_id))
        approved = {"acts_as": acts_as.value} if acts_as is ActsAs.APPROVER else {}
        return trail.Line(event_type, event.submitter_id, {**announcement.data, **signed, **approved})
    return trail.Line(event_type, event.submitter_id, announcement.data)


def _ways(announcement: Announcement, submitter_id: int) -> list[str]:
    """Return how an invitation is sent again."""
    submitter = announcement.submission.submitter(submitter_id)
    wishes = {"email": mails.wants_mail(submitter), "sms": sms.wants_sms(submitter)}
    return [channel for channel, wants in wishes.items() if wants and announcement.again_by.get(channel)]


def _hand_over(announcement: Announcement, event: Happened) -> None:
    """Hand over to the other services what they have to do because of it."""
    submission, session = announcement.submission, announcement.submission.session
    if event.fact in (Fact.INVITED, Fact.INVITED_AGAIN) and event.submitter_id is not None:
        _invite(announcement, submission.submitter(event.submitter_id), first=event.fact is Fact.INVITED)
    elif event.fact is Fact.CREATED:
        if sent := mails.sent_copy(submission, announcement.site, announcement.context, announcement.now):
            emit(session, events.SENT_COPY_MAILS_DUE, sent, subject=announcement.subject)
    elif event.fact is Fact.SEALING:
        _ask_providers(announcement)
        order_seal(announcement)
    elif event.fact is Fact.SEALED:
        if mails_due := mails.completion(submission, announcement.site, announcement.context, announcement.now):
            emit(session, events.COMPLETION_MAILS_DUE, mails_due, subject=announcement.subject)
    elif event.submitter_id is not None and mails.sender_wants_mail(submission):
        _tell_sender(announcement, event.fact, event.submitter_id)


def _invite(announcement: Announcement, submitter: SubmitterRow, *, first: bool) -> None:
    """Have a party written to, as it is to be. ``first``: its turn has come, with this link or with what was corrected."""
    submission, session = announcement.submission, announcement.submission.session
    if first and submission.row.source == "link" and not announcement.readdressed:
        return  # they are on their way to the form, and their address may be anybody's
    if mails.wants_mail(submitter) and (first or announcement.again_by.get("email")):
        due = mails.invitation(submission, submitter, announcement.context, announcement.handed_over)
        due.corrected = announcement.corrected
        emit(session, events.INVITATION_DUE, due, subject=announcement.subject)
        if first or not reminders.are_planned(session, submitter):
            reminders.plan(submission, submitter, announcement.now)
    if sms.wants_sms(submitter) and (first or announcement.again_by.get("sms")):
        sms_due = sms.invitation(submission, submitter, announcement.context)
        emit(session, events.SMS_DUE, sms_due, subject=announcement.subject)


def _tell_sender(announcement: Announcement, fact: Fact, submitter_id: int) -> None:
    """Mail the sender of what a party did that they must know of."""
    submission = announcement.submission
    if fact is Fact.DECLINED:
        declined = mails.declined(submission.submitter(submitter_id), announcement.context)
        emit(submission.session, events.DECLINE_MAIL_DUE, declined, subject=announcement.subject)
    elif fact is Fact.RETURNED:
        reason = (submission.row.returned or {}).get("reason") or ""
        returned = ReturnedMail(context=announcement.context, submitter_id=submitter_id, reason=reason)
        emit(submission.session, events.RETURNED_MAIL_DUE, returned, subject=announcement.subject)


def _data(announcement: Announcement, event: Event, happening: Happened) -> dict[str, Any]:
    if event.type.startswith("form."):
        return _form_data(announcement, happening.submitter_id)
    return present.submission_data(_shown(announcement))


def _form_data(announcement: Announcement, submitter_id: int | None) -> dict[str, Any]:
    if submitter_id is None:
        raise ValueError("a form event is about a submitter")
    page = announcement.site.submission_page(announcement.submission.row.slug)
    return present.form_data(_shown(announcement), announcement.submission.submitter(submitter_id), page)


def _shown(announcement: Announcement) -> present.SubmissionView:
    """The submission as events show it: masked values crossed out, links that need an API key."""
    submission, links = announcement.submission, announcement.site.lasting(announcement.submission.row.id)
    return present.SubmissionView(
        row=submission.row,
        template=submission.template,
        submitters=submission.submitters,
        status=submission.state.status_at(announcement.now),
        links=links,
        values=present.ValuesView(
            submission.fields, {attachment.uuid: attachment for attachment in announcement.attachments}, links
        ),
    )
