"""Use cases of API users: load, decide, save, tell, in one transaction each. Everything slow was done before."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.evidence import erasure
from contracts.evidence.audit_chain import START
from contracts.evidence.erasure import ErasureReason
from contracts.problems import Problems
from contracts.rpc.rendering import FillRequest
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.rpc.unchanged import require_unchanged
from contracts.runtime.clock import uuid7
from contracts.types import Actor, Removed, Role, SchemaItem, Submission, SubmissionStatus, SubmitterStatus, iso
from services.submissions.commands import branding_pictures, erasing, party_values, providers
from services.submissions.evidence import sealing, shown
from services.submissions.models import SnapshotRow, SubmissionRow, SubmitterRow
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Announcement
from services.submissions.planning import changes, creation, invites
from services.submissions.planning.plan import Basis, Plan, PlannedSubmitter
from services.submissions.planning.preparing import Prepared
from services.submissions.reading import present, queries
from services.submissions.rules import domain, test_mode
from services.submissions.rules.domain import Fact, Happened, Refused
from services.submissions.site import Site
from services.submissions.storage import known_templates, store, trail
from services.submissions.storage.repeats import once


def create(
    session: Session,
    command: rpc.CreateSubmission | rpc.CreateOneOff,
    template: Basis,
    plan: Plan,
    prepared: Sequence[Prepared],
    site: Site,
    now: datetime,
    origin: Mapping[str, Any] | None = None,
) -> Submission:
    """A submission as planned, with the first group invited; sealed at once when everybody was completed in advance.
    ``origin``: what the trail says of who made it, when that is not the actor."""

    def decide() -> Submission:
        with session.no_autoflush:  # rows that are changed several times are written once
            return begin()

    def begin() -> Submission:
        row = _submission_row(command, plan, now)
        known_template = known_templates.remember(session, template) if isinstance(template, TemplateSnapshot) else None
        row.template_id = known_template.id if known_template else None
        session.add(row)
        session.flush()
        if known_template is None:
            row.name = row.name or present.unnamed(row.id, command.account.locale)  # no template has a name for it
        present_submitters = [
            (position, submitter) for position, submitter in enumerate(plan.submitters) if submitter.invited_by is None
        ]
        submitters = [_submitter_row(row, position, draft, now) for position, draft in present_submitters]
        row.invitees = invites.waiting(plan.submitters, prepared)
        session.add_all(submitters)
        session.flush()
        snapshot = _snapshot_row(row.id, command, template, plan)
        session.add(snapshot)
        erasing.record_documents(session, row.id, snapshot.documents)
        submission = store.LoadedSubmission(
            session,
            row,
            submitters,
            store.state_of(row, submitters),
            known_template,
            _snapshot=snapshot,
            _fields=plan.fields,
            _attachments=[],
        )
        store.index(submission)
        party_values.attach(submission, prepared, now)
        branding_pictures.record(submission, prepared, now)
        actor_data = trail.actor_data(command.actor) if origin is None else dict(origin)
        announcement = Announcement(
            submission, site, now, {**actor_data, **trail.creation_data(submission)}, by_api=actor_data
        )
        announce.keep(announcement, [Happened(Fact.CREATED)])
        completed = [
            submitter for submitter, (_, draft) in zip(submitters, present_submitters, strict=True) if draft.completed
        ]
        for submitter in completed:
            complete_by_api(announcement, submitter, command.actor)
        state, happened = domain.create(submission.state, [submitter.id for submitter in completed], seal_id=uuid7())
        store.save(submission, state, now)
        announce.announce(announcement, happened)
        if plan.given_preferences:
            announce.preferences_given(announcement, command.actor, plan.given_preferences)
        answer = _with_warnings(queries.presented(session, submission, site, now, unmasked=True), plan)
        return answer if isinstance(template, TemplateSnapshot) else _with_documents(answer, template, plan)

    call = rpc.CREATE if isinstance(command, rpc.CreateSubmission) else rpc.CREATE_ONE_OFF
    return once(session, call, command, decide)


def drafted(command: rpc.CreateSubmission, template: Basis, plan: Plan, now: datetime) -> FillRequest:
    """Return what the documents of the submission would be drawn from, without storing anything. Files that fields would be
    given are not there yet: what they would show is left out."""
    row = _submission_row(command, plan, now)
    row.id = 0
    present_submitters = [submitter for submitter in plan.submitters if submitter.invited_by is None]
    submitters = [_submitter_row(row, position, draft, now) for position, draft in enumerate(present_submitters)]
    for number, submitter in enumerate(submitters, start=1):
        submitter.id = number
    return sealing.fill_request(row, _snapshot_row(0, command, template, plan), submitters, [], None)


def update(session: Session, command: rpc.UpdateSubmission, site: Site, now: datetime) -> Submission:
    """Name, expiry, archive, legal hold: only what is set changes."""

    def decide() -> Submission:
        submission = store.lock_for(session, command.actor, command.id)
        _require_unchanged(session, command, site, now)
        at, keys = store.moment(submission, now), command.model_fields_set
        problems = Problems()
        name = creation.checked_name(command.name, "name", problems) if "name" in keys else submission.row.name
        expire_at = creation.checked_expiry(command.expire_at, now, problems) if "expire_at" in keys else None
        problems.refuse()
        announcement = Announcement(submission, site, at, trail.actor_data(command.actor))
        if name != submission.row.name:
            changed = [changes.change("name", submission.row.name, name)]
            submission.row.name, submission.row.updated_at = name, at
            store.index(submission)
            trail.append(
                submission, [trail.Line(trail.UPDATE_SUBMISSION, None, {**announcement.data, "changes": changed})], at
            )
        if "expire_at" in keys and expire_at != submission.row.expire_at:
            _reschedule(announcement, expire_at)
        if command.legal_hold is not None and command.legal_hold != submission.row.legal_hold:
            _hold(announcement, command.actor, command.legal_hold)
        if command.archived is not None:
            _decided(
                announcement, domain.archive(submission.state) if command.archived else domain.restore(submission.state)
            )
        return queries.presented(session, submission, site, now, unmasked=True)

    return once(session, rpc.UPDATE, command, decide)


def _require_unchanged(
    session: Session, command: rpc.UpdateSubmission | rpc.RemoveSubmission, site: Site, now: datetime
) -> None:
    question = rpc.GetSubmission(actor=command.actor, id=command.id)
    require_unchanged(command.expected_state, rpc.GET, lambda: queries.submission(session, question, site, now))


def remove(session: Session, command: rpc.RemoveSubmission, site: Site, now: datetime) -> Removed:
    """Archive, or erase for good: then nothing of the documents, values and people is left."""

    def decide() -> Removed:
        submission = store.lock_for(session, command.actor, command.id)
        _require_unchanged(session, command, site, now)
        announcement = Announcement(submission, site, store.moment(submission, now), trail.actor_data(command.actor))
        if command.permanently:
            _refuse_held(submission.row)
            return Removed(id=command.id, erasure=erasing.erase(announcement, _erasure_on_request(command.actor)))
        _decided(announcement, domain.archive(submission.state))
        return Removed(id=command.id, archived_at=submission.row.archived_at)

    return once(session, rpc.REMOVE, command, decide)


def _erasure_on_request(actor: Actor) -> ErasureReason:
    return ErasureReason(reason=erasure.REQUEST, user=actor.user_id, key=actor.key_id)


def retry_seal(session: Session, command: rpc.RetrySeal, site: Site, now: datetime) -> Submission:
    """Begin a failed sealing anew, under a new ``seal_id``. What differs from the statements is sealed as it is only when an
    admin accepts it, who is named on the trail. Where the provider's signature is waived a sealing that waits for it goes on
    instead."""

    def decide() -> Submission:
        submission = store.lock_for(session, command.actor, command.id)
        announcement = Announcement(submission, site, store.moment(submission, now))
        if command.waive_certsign and providers.waive_certsign(announcement, command.actor):
            return queries.presented(session, submission, site, now, unmasked=True)
        actor = trail.actor_data(command.actor)
        lines = [trail.Line(trail.RETRY_SEALING, None, actor)]
        if command.accept_differences:
            differences = _acceptable(submission, command.actor)
            lines.insert(0, trail.Line(trail.ACCEPT_DIFFERENCES, None, {**actor, "differences": differences}))
        try:
            state, happened = domain.retry_seal(submission.state, seal_id=uuid7())
        except Refused as refused:
            raise invalid(refused.message, "sealing_status", f"is {refused.state}") from None
        store.save(submission, state, announcement.now)
        trail.append(submission, lines, announcement.now)
        announce.announce(announcement, happened)
        return queries.presented(session, submission, site, now, unmasked=True)

    return once(session, rpc.RETRY_SEAL, command, decide)


def _acceptable(submission: store.LoadedSubmission, actor: Actor) -> list[str]:
    """Return what the last sealing found to differ. Raises ServiceError unless there is something and the actor may accept
    it."""
    if actor.role is not Role.ADMIN:
        raise ServiceError("forbidden", "Only an admin may accept differences from what was signed.")
    if not submission.row.sealing_differences:
        raise invalid(
            "accept_differences needs a document that differs from what was signed",
            "accept_differences",
            "needs a document that differs from what was signed",
        )
    return list(submission.row.sealing_differences)


def complete_by_api(announcement: Announcement, submitter: SubmitterRow, actor: Actor) -> None:
    """The values of a party that the API user completes: defaults and conditions apply, required ones are not asked for."""
    submission = announcement.submission
    invites.require_none(submission, submitter)
    party_values.finish_values(submission, submitter, submitter.values, announcement.now)
    submitter.completed_by_api = actor.email
    digests = shown.digests_of(submitter, submission.snapshot, submission.attachments)
    announcement.signed[submitter.id] = {"let_in_by": [{"way": "api"}], **digests}


def _hold(announcement: Announcement, actor: Actor, hold: bool) -> None:
    """Begin or end a legal hold. Raises ServiceError when who is no admin would end it."""
    if not hold and actor.role is not Role.ADMIN:
        raise ServiceError("forbidden", "Only an admin may remove a legal hold.")
    submission, at = announcement.submission, announcement.now
    changed = [changes.change("legal_hold", submission.row.legal_hold, hold)]
    submission.row.legal_hold, submission.row.updated_at = hold, at
    trail.append(submission, [trail.Line(trail.UPDATE_SUBMISSION, None, {**announcement.data, "changes": changed})], at)


def _refuse_held(row: SubmissionRow) -> None:
    if row.legal_hold:
        raise ServiceError(
            "conflict", "The submission is on legal hold. It cannot be deleted until an admin removes the hold."
        )


def _reschedule(announcement: Announcement, expire_at: datetime | None) -> None:
    submission, before = announcement.submission, announcement.submission.row.expire_at
    try:
        state, happened = domain.reschedule(submission.state, expire_at, announcement.now)
    except Refused as refused:
        raise invalid(refused.message, "expire_at") from None
    store.save(submission, state, announcement.now)
    changed = [changes.change("expire_at", before and iso(before), expire_at and iso(expire_at))]
    line = trail.Line(trail.RESCHEDULE_SUBMISSION, None, {**announcement.data, "changes": changed})
    trail.append(submission, [line], announcement.now)
    announce.announce(announcement, happened)


def _decided(announcement: Announcement, decision: domain.Decision) -> None:
    state, happened = decision
    store.save(announcement.submission, state, announcement.now)
    announce.announce(announcement, happened)


def _with_warnings(answer: Submission, plan: Plan) -> Submission:
    """The answer to a creation says what of each submitter's values was ignored."""
    ignored = {
        planned_submitter.party.uuid: [dict(warning) for warning in planned_submitter.warnings]
        for planned_submitter in plan.submitters
    }
    submitters = [
        submitter.model_copy(update={"warnings": ignored.get(submitter.uuid, [])}) for submitter in answer.submitters
    ]
    return answer.model_copy(update={"submitters": submitters})


def _with_documents(answer: Submission, composition: Composition, plan: Plan) -> Submission:
    """The answer to a one-off submission says what became of the documents: there is no template to ask."""
    items = [
        SchemaItem(attachment_uuid=document.uuid, name=document.name, conditions=document.conditions)
        for document in composition.documents
    ]
    return answer.model_copy(update={"document_schema": items, "fields": plan.fields, "report": composition.report})


def _submission_row(command: rpc.NewSubmission, plan: Plan, now: datetime) -> SubmissionRow:
    return SubmissionRow(
        slug=store.new_slug(),
        name=plan.name,
        source=command.source,
        test=command.actor.test,
        created_by_id=command.actor.user_id or None,
        created_by_email=command.actor.email or None,
        created_by_name=command.actor.name or None,
        created_by_first_name=command.actor.first_name or None,
        created_by_last_name=command.actor.last_name or None,
        order=plan.order.value,
        status=SubmissionStatus.PENDING.value,
        unfinished=True,
        expire_at=plan.expire_at,
        created_at=now,
        updated_at=now,
        preferences=plan.preferences,
        details=plan.details,
        variables=plan.variables,
        values_version=1,
        event_sequence=0,
        trail_length=0,
        trail_hash=START,
        trail_at=now,
        search="",
    )


def _submitter_row(submission: SubmissionRow, position: int, draft: PlannedSubmitter, now: datetime) -> SubmitterRow:
    return SubmitterRow(
        submission_id=submission.id,
        test=submission.test,
        position=position,
        party_uuid=draft.party.uuid,
        role=draft.party.name,
        email=draft.email,
        name=draft.name,
        phone=draft.phone,
        external_id=draft.external_id,
        slug=store.new_slug(),
        group=draft.group,
        viewer=draft.viewer,
        status=SubmitterStatus.PENDING.value,
        values=draft.values,
        given=draft.values,
        reasons={},
        metadata_=draft.metadata,
        preferences=draft.preferences,
        message=draft.message,
        visit={},
        branding={},
        created_at=now,
        updated_at=now,
        search="",
    )


def _snapshot_row(submission_id: int, command: rpc.NewSubmission, template: Basis, plan: Plan) -> SnapshotRow:
    return SnapshotRow(
        submission_id=submission_id,
        template_name=template.name if isinstance(template, TemplateSnapshot) else None,
        documents=[document.model_dump(mode="json") for document in template.documents],
        fields=[field.model_dump(mode="json") for field in plan.fields],
        parties=[submitter.party.model_dump(mode="json") for submitter in plan.submitters],
        account=test_mode.account_of(command).model_dump(mode="json"),
        certsign=plan.certsign.model_dump(mode="json") if plan.certsign else None,
        dutystamp=command.dutystamp.model_dump(mode="json") if command.dutystamp else None,
    )


def refused_for_api(refused: Refused) -> ServiceError:
    """A refusal of the state machine as an API user reads it."""
    return ServiceError("invalid", refused.message, [{"field": "state", "reason": str(refused.state)}])
