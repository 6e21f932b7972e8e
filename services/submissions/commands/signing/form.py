"""Use cases of the signing page. The slug is the signer's key: it opens this one form and nothing else."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.fields import conditions
from contracts.languages.choosing import best_of
from contracts.rpc import submissions as rpc
from contracts.runtime.clock import uuid7
from contracts.types import ActsAs, Attachment, FieldType
from services.submissions.commands import party_values, signing_links
from services.submissions.commands.signing import let_in
from services.submissions.commands.signing.codes import lock_passed, unconfirmed
from services.submissions.commands.signing_links import Why
from services.submissions.evidence import consent, reasons, shown
from services.submissions.evidence.sealing import signing
from services.submissions.models import AttachmentRow, SubmitterRow
from services.submissions.outgoing.announce import Announcement, announce, keep, wrong_recipient
from services.submissions.planning import invites
from services.submissions.planning.creation import Limits
from services.submissions.planning.preparing import Prepared
from services.submissions.reading import present, queries
from services.submissions.rules import confirming, domain
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.parties import addresses
from services.submissions.rules.values import filling
from services.submissions.site import Site
from services.submissions.storage import confirmations, handovers, store, trail
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import identity_checks

SAME_VIEW = timedelta(seconds=5)
"""A message that is delivered again after a lost connection must not count as a second look at the form."""

LONGEST_REASON = 5_000
MOST_LINES = 2_000
"""Of the trail: beyond, looks are no longer recorded, so that nobody can make it grow for ever."""


def view(session: Session, visit: rpc.visit.Visit, site: Site, now: datetime) -> rpc.form.Done:
    """The page was shown. Who looks again at once is not counted twice."""
    submission, submitter = lock_passed(session, visit, site, now)
    at = store.moment(submission, now)
    details = visit_details(visit, submitter)
    repeated = submitter.opened_at is not None and at - submitter.opened_at < SAME_VIEW and details == submitter.visit
    state, happened = domain.view(submission.state, submitter.id, at)
    if happened:
        looked_at = shown.to(submitter, submission.row, submission.snapshot, submission.submitters)
        if visit.shown in (None, looked_at.token) and submitter.seen.get("token") != looked_at.token:
            submitter.seen = shown.remembered(looked_at)
    if happened and not repeated and submission.row.trail_length < MOST_LINES:
        submitter.opened_at, submitter.visit = at, details
        announce(Announcement(submission, site, at, {**details, "shown": submitter.seen.get("token")}), happened)
    return rpc.form.Done(state=state.form_state(submitter.id, at))


Check = Callable[[store.LoadedSubmission, SubmitterRow], None]
"""A look at what is locked, before anything is changed: an exception ends the transaction."""


def save(
    session: Session,
    command: rpc.form.SaveValues,
    limits: Limits,
    site: Site,
    now: datetime,
    check: Check = lambda _submission, _submitter: None,
) -> rpc.form.Done:
    """Store values step by step; the first ones start the form. Required ones are asked for on completion."""

    def decide() -> rpc.form.Done:
        submission, submitter = lock_passed(session, command, site, now)
        check(submission, submitter)
        at = store.moment(submission, now)
        try:
            state, happened = domain.save(submission.state, submitter.id, at)
        except Refused as refused:
            raise refused_for_page(refused) from None
        same = shown.require_same(command.shown, submitter, submission.row, submission.snapshot, submission.submitters)
        if command.shown and submitter.seen.get("token") != same.token:
            # The page has not said yet that it was shown, or never will.
            submitter.seen = shown.remembered(same)
        values = received(submission, submitter, command.values, limits, at)
        own_fields = submission.fields_of(submitter)
        documents = submission.document_conditions
        all_values = {**submission.values, **values}
        everything = filling.computed(own_fields, submission.fields, documents, all_values, {})
        hidden = conditions.hidden(submission.fields, documents, everything)
        changed = [field for field in own_fields if field.uuid in command.values]
        filling.refuse(filling.broken(changed, values, hidden))
        store.set_reasons(submission, submitter, reasons.chosen(own_fields, submitter.reasons, command.reasons))
        store.set_values(submission, submitter, values)
        seen(submitter, command, at)
        store.save(submission, state, at)
        announce(Announcement(submission, site, at, submitter.visit), happened)
        return rpc.form.Done(state=FormState.OPEN)

    return once(session, rpc.form.SAVE_VALUES, command, decide)


def complete(
    session: Session,
    command: rpc.form.CompleteForm,
    limits: Limits,
    site: Site,
    now: datetime,
    check: Check = lambda _submission, _submitter: None,
) -> rpc.form.Done:
    """The last step: save, check everything, complete; then the next group is invited or the sealing begins."""

    def decide() -> rpc.form.Done:
        submission, submitter = lock_passed(session, command, site, now)
        check(submission, submitter)
        at = store.moment(submission, now)
        require_no_confirmation(submission, submitter, at)
        announcement = completed(submission, submitter, command, limits, site, at)
        return rpc.form.Done(state=FormState.COMPLETED, receipt=announcement.receipts.get(submitter.id))

    call = rpc.form.INVITE_AND_COMPLETE if isinstance(command, rpc.form.InviteAndComplete) else rpc.form.COMPLETE_FORM
    return once(session, call, command, decide)


def require_no_confirmation(submission: store.LoadedSubmission, submitter: SubmitterRow, now: datetime) -> None:
    """Raises ServiceError where this signer completes by confirming at a provider."""
    is_open = submission.state.form_state(submitter.id, now) is FormState.OPEN
    if (
        is_open
        and present.acts_as(submitter) is ActsAs.SIGNER
        and confirming.order_of(submission.snapshot.certsign, submission.row.certsign) is not None
    ):
        message = "Your signature has to be confirmed with the provider."
        raise ServiceError("invalid", message, [{"field": "state", "reason": "confirm"}])


def completed(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    command: rpc.form.CompleteForm,
    limits: Limits,
    site: Site,
    at: datetime,
    lines_before: Sequence[trail.Line] = (),
    locked: dict[str, Any] | None = None,
    handed_by: str | None = None,
) -> Announcement:
    """Complete the form of this signer with ``command``, whoever has brought it; ``lines_before`` go before the line of the
    completion. ``locked`` are the values that were fixed before, defaults and all, ``handed_by`` who had handed them the device
    then. Raises ServiceError when that cannot be, and then something may have been changed."""
    try:
        domain.save(submission.state, submitter.id, at)  # may they do anything at all?
        signed = shown.require_same(
            command.shown, submitter, submission.row, submission.snapshot, submission.submitters
        )
        _must_be_their_words(submitter, command.statement)
        lines = invites.name_parties(submission, submitter, command, at)
        started, first = domain.save(submission.state, submitter.id, at)
        state, happened = domain.complete(started, submitter.id, at, seal_id=uuid7())
    except Refused as refused:
        raise refused_for_page(refused) from None
    handed_by = handed_by or let_in.handed_by(submission, submitter, command.slug)
    values = received(submission, submitter, command.values, limits, at) if locked is None else locked
    own_fields = submission.fields_of(submitter)
    store.set_reasons(submission, submitter, reasons.chosen(own_fields, submitter.reasons, command.reasons))
    seen(submitter, command, at)
    announcement = Announcement(submission, site, at, submitter.visit)
    if first:  # told of as it began, with what came in
        store.set_values(submission, submitter, values)
        keep(announcement, first)
    faults = party_values.finish_values(submission, submitter, values, at, signed.covers)
    filling.refuse(faults + unconfirmed(submission, submitter, site) + identity_checks.unproved(submission, submitter))
    lines += consent.record_agreement(submitter, command, at)
    store.save(submission, state, at)
    announcement.signed[submitter.id] = {
        "shown": signed.token,
        "let_in_by": let_in.ways(submission, submitter, handed_by),
        "statement": command.statement.model_dump(exclude={"approves"}) if command.statement else None,
        **shown.digests_of(submitter, submission.snapshot, submission.attachments),
    }
    lines += lines_before
    if lines:  # between what they began with and what they ended with
        announce(announcement, first)
        trail.append(submission, lines, at)
        first = ()
    announce(announcement, (*first, *happened))
    return announcement


def _must_be_their_words(submitter: SubmitterRow, statement: rpc.form.WordsAbove | None) -> None:
    """Nobody signs by the words for approving, or approves by those for signing."""
    if statement is None or statement.approves is None:
        return
    if statement.approves != (present.acts_as(submitter) is ActsAs.APPROVER):
        message = "What you are signing has changed since you opened it. Look at it again before you go on."
        raise ServiceError("changed_meanwhile", message, [{"field": "statement", "reason": "has changed"}])


def decline(session: Session, command: rpc.form.DeclineForm, site: Site, now: datetime) -> rpc.form.Done:
    """The signer refuses: the submission ends, and its sender is told why."""

    def decide() -> rpc.form.Done:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        reason = refusal_reason(command.reason)
        try:
            state, happened = domain.decline(submission.state, submitter.id, at)
        except Refused as refused:
            raise refused_for_page(refused) from None
        confirmations.discard(submission, submitter, "declined", at)
        seen(submitter, command, at)
        submitter.decline_reason = reason
        store.save(submission, state, at)
        announce(Announcement(submission, site, at, {**submitter.visit, "reason": reason}), happened)
        return rpc.form.Done(state=FormState.DECLINED)

    return once(session, rpc.form.DECLINE_FORM, command, decide)


def report_wrong_recipient(
    session: Session, command: rpc.form.ReportWrongRecipient, site: Site, now: datetime
) -> rpc.form.Done:
    """Whoever got the link says that they are not this person: it is replaced, and the sender is told, who alone can send the
    new one. Whoever is not this person cannot pass the codes that are asked of them. On a device that was handed to them
    its own link ends, and nothing else."""

    def decide() -> rpc.form.Done:
        submission, submitter = store.lock_by_slug(session, command.slug, command.proofs, now)
        at = store.moment(submission, now)
        if command.slug != submitter.slug:  # a device: the link of the invitation has reached nobody else
            handovers.end_visits(session, submitter, at)
            return rpc.form.Done(state=handovers.HANDED_ON)
        reason = refusal_reason(command.reason)
        try:
            state = domain.report_wrong_recipient(submission.state, submitter.id, at)
        except Refused as refused:
            raise refused_for_page(refused) from None
        data = {**visit_details(command, submitter), "reason": reason}
        line = trail.Line(trail.WRONG_RECIPIENT, submitter.id, data)
        confirmations.discard(submission, submitter, "wrong recipient", at)
        dropped = signing_links.replace(submission, submitter, Why.WRONG_RECIPIENT, at)
        signing_links.drop_files(submission, submitter, at)
        submission.state = state
        store.save(submission, state, at)
        submitter.updated_at = submission.row.updated_at = at
        trail.append(submission, [line, *dropped], at)
        wrong_recipient(Announcement(submission, site, at), submitter.id, reason or "")
        return rpc.form.Done(state=Why.WRONG_RECIPIENT)

    return once(session, rpc.form.REPORT_WRONG_RECIPIENT, command, decide)


def attach(
    session: Session, command: rpc.form.AttachFile, prepared: Prepared, limits: Limits, site: Site, now: datetime
) -> Attachment:
    """Record an uploaded file; its uuid is then a value of a field."""

    def decide() -> Attachment:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        must_take_files(submission, submitter, command.type, at)
        if len(submission.attachments) >= limits.max_attachments:
            raise invalid(f"A submission can have at most {limits.max_attachments} files.", "file")
        row = AttachmentRow(
            uuid=prepared.source.uuid,
            submission_id=submission.row.id,
            submitter_id=submitter.id,
            type=command.type,
            filename=prepared.filename,
            file=prepared.file.model_dump(mode="json"),
            created_at=at,
        )
        submission.attach([row])
        return queries.attachment(row, site.expiring(now))

    return once(session, rpc.form.ATTACH_FILE, command, decide)


def choose_language(session: Session, command: rpc.form.ChooseLanguage, site: Site, now: datetime) -> rpc.form.Done:
    """Speak to this party in the language that they chose. Whoever has the link may: it says nothing and shows nothing."""
    submission, submitter = store.lock_by_slug(session, command.slug, None, now)
    tag = best_of([command.lang])
    if tag is None:
        raise invalid("lang must be a supported language", "lang", "must be a supported language")
    submitter.preferences = {**submitter.preferences, "lang": tag}
    return rpc.form.Done(state=submission.state.form_state(submitter.id, store.moment(submission, now)))


def must_take_files(submission: store.LoadedSubmission, submitter: SubmitterRow, kind: str, now: datetime) -> FieldType:
    """Return the type if the form is open for this signer and they have a field of it. Raises ServiceError otherwise."""
    state = submission.state.form_state(submitter.id, now)
    if state is not FormState.OPEN:
        raise refused_for_page(Refused(state, domain.REFUSALS[state]))
    if not any(field.type == kind for field in submission.fields_of(submitter)):
        raise invalid(f"type must be that of a field of this signer, not {kind[:40]}", "type")
    return FieldType(kind)


def refused_for_page(refused: Refused) -> ServiceError:
    """403 while it is another one's turn, else 422; the details say what the page should show now (``state``)."""
    code = "forbidden" if refused.state == FormState.WAITING else "invalid"
    return ServiceError(code, refused.message, [{"field": "state", "reason": str(refused.state)}])


def received(
    submission: store.LoadedSubmission, submitter: SubmitterRow, incoming: dict[str, Any], limits: Limits, now: datetime
) -> dict[str, Any]:
    """The signer's values with those that came in."""
    attached: Sequence[AttachmentRow] = submission.attachments
    values = filling.merged(
        submission.fields_of(submitter),
        submitter.values,
        incoming,
        store.attached_types(attached, submitter),
        signing(submission.row, submitter, now, queries.account_of(submission.snapshot)),
    )
    size_of_others = sum(len(json.dumps(other.values)) for other in submission.submitters if other.id != submitter.id)
    if size_of_others + len(json.dumps(values)) > limits.max_values_bytes:
        raise invalid(f"values of a submission must not be larger than {limits.max_values_bytes:,} bytes", "values")
    return values


def refusal_reason(text: str) -> str | None:
    """Return why somebody does not sign, as the sender reads it."""
    reason = addresses.text(text)
    if len(reason) > LONGEST_REASON:
        raise invalid(f"reason must not be longer than {LONGEST_REASON} characters", "reason")
    return reason or None


def seen(submitter: SubmitterRow, visit: rpc.visit.Visit, now: datetime) -> None:
    """Note that the form was opened: who acts has done so, whether or not the page could say it."""
    submitter.opened_at = submitter.opened_at or now
    submitter.visit = visit_details(visit, submitter)


def visit_details(visit: rpc.visit.Visit, submitter: SubmitterRow) -> dict[str, Any]:
    """Return what the audit trail says of a visit; what this one does not say is kept from the last."""
    details = {
        "ip": (visit.ip or "")[:64],
        "user_agent": (addresses.name((visit.user_agent or "")[:250]) or ""),
        "time_zone": (visit.time_zone or "")[:64],
    }
    return {**submitter.visit, **{key: value for key, value in details.items() if value}}
