"""Use cases of API users: load, decide, save, tell, in one transaction each. Everything slow was done before."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.evidence.audit_chain import START
from contracts.fields import values as rules
from contracts.problems import Problems
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.runtime.clock import uuid7
from contracts.types import Actor, Removed, Role, SchemaItem, Submission, SubmissionStatus, SubmitterStatus, iso
from services.submissions.commands import branding_pictures, erasing
from services.submissions.evidence import reasons, shown
from services.submissions.evidence.sealing import signing
from services.submissions.models import AttachmentRow, SnapshotRow, SubmissionRow, SubmitterRow
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Telling
from services.submissions.planning import changes, creation, invites
from services.submissions.planning.creation import Basis, Plan, PlannedSubmitter
from services.submissions.planning.preparing import Prepared
from services.submissions.reading import queries
from services.submissions.rules import domain, filling
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
    told: Mapping[str, Any] | None = None,
) -> Submission:
    """A submission as planned, with the first group invited; sealed at once when everybody was completed in advance.
    ``told``: what the trail says of who made it, when that is not the actor."""

    def decide() -> Submission:
        with session.no_autoflush:  # rows that are changed several times are written once
            return begin()

    def begin() -> Submission:
        row = _submission_row(command, plan, now)
        kept = known_templates.remember(session, template) if isinstance(template, TemplateSnapshot) else None
        row.template_id = kept.id if kept else None
        session.add(row)
        session.flush()
        if kept is None:
            row.name = row.name or f"Submission {row.id}"  # no template has a name for it
        there = [(position, one) for position, one in enumerate(plan.submitters) if one.invited_by is None]
        submitters = [_submitter_row(row.id, position, one, now) for position, one in there]
        row.invitees = invites.waiting(plan.submitters, prepared)
        session.add_all(submitters)
        session.flush()
        snapshot = _snapshot_row(row.id, command, template, plan)
        session.add(snapshot)
        found = store.Loaded(
            session,
            row,
            submitters,
            store.state_of(row, submitters),
            kept,
            _snapshot=snapshot,
            _fields=plan.fields,
            _attachments=[],
        )
        store.index(found)
        attach(found, prepared, now)
        branding_pictures.record(found, prepared, now)
        who = trail.by(command.actor) if told is None else dict(told)
        telling = Telling(found, site, now, {**who, **trail.made(found)}, by_api=who)
        announce.keep(telling, [Happened(Fact.CREATED)])
        completed = [one for one, (_, planned) in zip(submitters, there, strict=True) if planned.completed]
        for one in completed:
            complete_by_api(telling, one, command.actor)
        state, happened = domain.create(found.state, [one.id for one in completed], seal_id=uuid7())
        store.save(found, state, now)
        announce.announce(telling, happened)
        if plan.given_preferences:
            announce.preferences_given(telling, command.actor, plan.given_preferences)
        made = queries.presented(session, found, site, now, unmasked=True)
        return made if isinstance(template, TemplateSnapshot) else _with_documents(made, template, plan)

    call = rpc.CREATE if isinstance(command, rpc.CreateSubmission) else rpc.CREATE_ONE_OFF
    return once(session, call, command, decide)


def update(session: Session, command: rpc.UpdateSubmission, site: Site, now: datetime) -> Submission:
    """Name, expiry, archive: only what is set changes."""

    def decide() -> Submission:
        found = store.lock_for(session, command.actor, command.id)
        at, given = store.moment(found, now), command.model_fields_set
        problems = Problems()
        name = creation.checked_name(command.name, "name", problems) if "name" in given else found.row.name
        expire_at = creation.checked_expiry(command.expire_at, now, problems) if "expire_at" in given else None
        problems.refuse()
        telling = Telling(found, site, at, trail.by(command.actor))
        if name != found.row.name:
            changed = [changes.change("name", found.row.name, name)]
            found.row.name, found.row.updated_at = name, at
            store.index(found)
            trail.append(found, [trail.Line(trail.UPDATE_SUBMISSION, None, {**telling.data, "changes": changed})], at)
        if "expire_at" in given and expire_at != found.row.expire_at:
            _reschedule(telling, expire_at)
        if command.archived is not None:
            _decided(telling, domain.archive(found.state) if command.archived else domain.restore(found.state))
        return queries.presented(session, found, site, now, unmasked=True)

    return once(session, rpc.UPDATE, command, decide)


def remove(session: Session, command: rpc.RemoveSubmission, site: Site, now: datetime) -> Removed:
    """Archive, or erase for good: then nothing of the documents, values and people is left."""

    def decide() -> Removed:
        found = store.lock_for(session, command.actor, command.id)
        telling = Telling(found, site, store.moment(found, now), trail.by(command.actor))
        if command.permanently:
            return Removed(id=command.id, erasure=erasing.erase(telling))
        _decided(telling, domain.archive(found.state))
        return Removed(id=command.id, archived_at=found.row.archived_at)

    return once(session, rpc.REMOVE, command, decide)


def retry_seal(session: Session, command: rpc.RetrySeal, site: Site, now: datetime) -> Submission:
    """Begin a failed sealing anew, under a new ``seal_id``. What differs from the statements is sealed as it is only when an
    admin accepts it, who is named on the trail."""

    def decide() -> Submission:
        found = store.lock_for(session, command.actor, command.id)
        telling = Telling(found, site, store.moment(found, now))
        who = trail.by(command.actor)
        lines = [trail.Line(trail.RETRY_SEALING, None, who)]
        if command.accept_differences:
            differences = _acceptable(found, command.actor)
            lines.insert(0, trail.Line(trail.ACCEPT_DIFFERENCES, None, {**who, "differences": differences}))
        try:
            state, happened = domain.retry_seal(found.state, seal_id=uuid7())
        except Refused as refused:
            raise invalid(refused.message, "sealing_status", f"is {refused.state}") from None
        store.save(found, state, telling.now)
        trail.append(found, lines, telling.now)
        announce.announce(telling, happened)
        return queries.presented(session, found, site, now, unmasked=True)

    return once(session, rpc.RETRY_SEAL, command, decide)


def _acceptable(found: store.Loaded, actor: Actor) -> list[str]:
    """What the last sealing found to differ. Raises ServiceError unless there is something and the actor may accept it."""
    if actor.role is not Role.ADMIN:
        raise ServiceError("forbidden", "Only an admin may accept what differs from what was signed")
    if not found.row.sealing_differences:
        raise invalid("There is nothing that differs from what was signed", "accept_differences", "is not asked for")
    return list(found.row.sealing_differences)


def attach(found: store.Loaded, prepared: Sequence[Prepared], now: datetime) -> None:
    """Record the files that values name."""
    owners = {one.party_uuid: one.id for one in found.submitters}
    found.attach(
        [
            AttachmentRow(
                uuid=one.source.uuid,
                submission_id=found.row.id,
                submitter_id=owners[one.source.party_uuid],
                type=one.source.type.value,
                filename=one.filename,
                file=one.file.model_dump(mode="json"),
                created_at=now,
            )
            for one in prepared
            if not one.source.branding
        ]
    )


def complete_by_api(telling: Telling, submitter: SubmitterRow, actor: Actor) -> None:
    """The values of a party that the API user completes: defaults and conditions apply, required ones are not asked for."""
    found = telling.found
    invites.require_none(found, submitter)
    finish_values(found, submitter, submitter.values, telling.now)
    submitter.completed_by_api = actor.email
    given = shown.given(submitter, found.snapshot, found.attachments)
    telling.signed[submitter.id] = {"let_in_by": [{"way": "api"}], **given}


def finish_values(
    found: store.Loaded, submitter: SubmitterRow, values: dict[str, Any], now: datetime, covers: int | None = None
) -> filling.Faults:
    """Store the values as they are on completion; returns what a signer would have to mend. Conditions go by what the parties
    gave that the signer's page ``covers``, or all that have completed: a field that was not on their page has no value."""
    own = found.fields_of(submitter)
    account = queries.account_of(found.snapshot)
    filled = filling.with_defaults(own, values, signing(found.row, submitter, now, account))
    others = shown.of_others(submitter, found.submitters, covers)
    kept, faults = filling.finished(own, found.fields, found.document_conditions, filled, others)
    _drop_unused(found, submitter, kept, now)
    submitter.values = kept
    submitter.reasons, without_reason = reasons.of_signed(own, kept, submitter.reasons)
    found.row.values_version += 1
    if not submitter.phone:
        phones = (kept.get(field.uuid) for field in own if field.type == "phone")
        submitter.phone = next((phone for phone in phones if phone), None)
        store.index(found)
    return faults + without_reason


def _drop_unused(found: store.Loaded, submitter: SubmitterRow, values: dict[str, Any], now: datetime) -> None:
    """Pictures that the signer made and did not use are nobody's business."""
    used = {
        uuid for field in found.fields_of(submitter) for uuid in rules.attachments_in(field, values.get(field.uuid))
    }
    unused = [one for one in found.attachments if one.submitter_id == submitter.id and one.uuid not in used]
    if unused:
        found.detach(unused)
        erasing.remove_blobs(found.session, found.row.id, [one.file["key"] for one in unused], now)


def _reschedule(telling: Telling, expire_at: datetime | None) -> None:
    found, before = telling.found, telling.found.row.expire_at
    try:
        state, happened = domain.reschedule(found.state, expire_at, telling.now)
    except Refused as refused:
        raise invalid(refused.message, "expire_at") from None
    store.save(found, state, telling.now)
    changed = [changes.change("expire_at", before and iso(before), expire_at and iso(expire_at))]
    line = trail.Line(trail.RESCHEDULE_SUBMISSION, None, {**telling.data, "changes": changed})
    trail.append(found, [line], telling.now)
    announce.announce(telling, happened)


def _decided(telling: Telling, decision: domain.Decision) -> None:
    state, happened = decision
    store.save(telling.found, state, telling.now)
    announce.announce(telling, happened)


def _with_documents(made: Submission, composition: Composition, plan: Plan) -> Submission:
    """The answer to a one-off submission says what became of the documents: there is no template to ask."""
    items = [
        SchemaItem(attachment_uuid=one.uuid, name=one.name, conditions=one.conditions) for one in composition.documents
    ]
    return made.model_copy(update={"document_schema": items, "fields": plan.fields, "report": composition.report})


def _submission_row(command: rpc.NewSubmission, plan: Plan, now: datetime) -> SubmissionRow:
    return SubmissionRow(
        slug=store.new_slug(),
        name=plan.name,
        source=command.source,
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


def _submitter_row(submission_id: int, position: int, planned: PlannedSubmitter, now: datetime) -> SubmitterRow:
    return SubmitterRow(
        submission_id=submission_id,
        position=position,
        party_uuid=planned.party.uuid,
        role=planned.party.name,
        email=planned.email,
        name=planned.name,
        phone=planned.phone,
        external_id=planned.external_id,
        slug=store.new_slug(),
        group=planned.group,
        viewer=planned.viewer,
        status=SubmitterStatus.PENDING.value,
        values=planned.values,
        given=planned.values,
        reasons={},
        metadata_=planned.metadata,
        preferences=planned.preferences,
        message=planned.message,
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
        documents=[one.model_dump(mode="json") for one in template.documents],
        fields=[one.model_dump(mode="json") for one in plan.fields],
        parties=[one.party.model_dump(mode="json") for one in plan.submitters],
        account=command.account.model_dump(mode="json"),
    )


def refused_for_api(refused: Refused) -> ServiceError:
    """A refusal of the state machine as an API user reads it."""
    return ServiceError("invalid", refused.message, [{"field": "state", "reason": str(refused.state)}])
