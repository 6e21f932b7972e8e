"""PUT /submitters/:id (specification 4.4, peer facts 2.8): details, values, the invitation again, completion by the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from contracts.fields.labels import labels
from contracts.problems import Problems
from contracts.rpc.submissions import api as rpc
from contracts.rpc.unchanged import require_unchanged
from contracts.runtime.clock import uuid7
from contracts.types import FieldDefinition, Submitter
from services.submissions.commands import branding_pictures, party_values, signing_links, submissions
from services.submissions.commands.signing import returning
from services.submissions.models import SubmitterRow
from services.submissions.outgoing import sms
from services.submissions.outgoing.announce import Announcement, announce
from services.submissions.planning import changes, creation
from services.submissions.planning.code_requirements import (
    changed_requirements,
    check_change_available,
    check_code_addresses,
    required_of_all,
)
from services.submissions.planning.creation import Limits
from services.submissions.planning.preparing import Prepared
from services.submissions.reading import queries
from services.submissions.rules import domain, overrides
from services.submissions.rules.domain import Refused
from services.submissions.rules.identity_requirements import check_identity_change_available
from services.submissions.rules.parties import addresses
from services.submissions.rules.values import filling
from services.submissions.site import Site
from services.submissions.storage import branding, confirmations, store, trail
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import identity_checks


@dataclass(frozen=True)
class Change:
    """What a request changes, checked. ``details`` are columns, ``preferences`` merge (None removes a key)."""

    details: dict[str, Any]
    preferences: dict[str, Any]
    overrides: overrides.Overrides
    branding: branding.Branding
    texts: list[tuple[str, str]]


def plan_change(
    command: rpc.UpdateSubmitter,
    own_fields: Sequence[FieldDefinition],
    everything: Sequence[FieldDefinition],
    attached: set[str],
    party_uuid: str,
) -> Change:
    """Return what ``command`` means for a submitter with the fields ``own_fields``. Raises ServiceError naming what is
    wrong."""
    problems = Problems()
    keys = command.model_fields_set
    email, name, phone = creation.checked_contact(command.email, command.name, command.phone, "", problems)
    cleaned = {"email": email, "name": name, "phone": phone}
    details: dict[str, Any] = {key: value for key, value in cleaned.items() if key in keys}
    if "external_id" in keys:
        details["external_id"] = creation.checked_key(command.external_id, "external_id", problems)
    if command.metadata is not None:
        details["metadata_"] = command.metadata
    preferences = creation.checked_wishes(command.reply_to, command.completed_redirect_url, "", problems)
    for key in ("reply_to", "completed_redirect_url"):
        if key in keys and key not in preferences:
            preferences[key] = None
    if "lang" in keys:
        preferences["lang"] = creation.checked_language(command.lang, "lang", problems)
    if command.go_to_last is not None:
        preferences["go_to_last"] = command.go_to_last
    if "send_email" in keys:
        preferences["send_email"] = command.send_email
    if "send_sms" in keys:
        preferences["send_sms"] = command.send_sms
    sms.check_change(command, problems)
    preferences |= changed_requirements(command)
    check_change_available(command, problems)
    check_identity_change_available(command, problems)
    request = overrides.OverrideRequest(command.values, command.fields, command.readonly_fields, "")
    planned_overrides = overrides.plan_overrides(request, own_fields, labels(everything), attached, problems)
    if planned_overrides.changes:
        changed = [planned_overrides.apply(field) for field in everything]
        # A circle by way of a document is not looked for: what is met again counts as visible.
        overrides.with_expressions(changed, {}, [planned_overrides], "fields", problems)
    message = creation.checked_message(command.message, "message", problems)
    if message or ("message" in keys and command.message is None):  # an empty object is as none
        details["message"] = message
    brand = branding.plan_branding_change(command, party_uuid, problems)
    preferences |= brand.preferences
    problems.refuse()
    texts = [*planned_overrides.texts, ("name", name)] if name else planned_overrides.texts
    return Change(details, preferences, planned_overrides, brand, texts)


def update(
    session: Session,
    command: rpc.UpdateSubmitter,
    change: Change,
    prepared: Sequence[Prepared],
    limits: Limits,
    site: Site,
    now: datetime,
) -> Submitter:
    """Change the submitter, then complete or invite them again, when that is asked for."""

    def decide() -> Submitter:
        submission, submitter = store.lock_submitter_for(session, command.actor, command.id)
        question = rpc.GetSubmitter(actor=command.actor, id=command.id)
        seen = partial(queries.submitter, session, question, site, now)
        require_unchanged(command.expected_state, rpc.GET_SUBMITTER, seen)
        at = store.moment(submission, now)
        announcement = Announcement(
            submission, site, at, trail.actor_data(command.actor), by_api=trail.actor_data(command.actor)
        )
        try:
            domain.change(submission.state, submitter.id)
            if command.completed or _changes_what_is_signed(change):
                confirmations.discard(submission, submitter, "changed by the sender", at)
            lines = returning.reopen(submission, [submitter], announcement.data, at)
            lines += _readdressed(announcement, submitter, change.details)
            before, party = changes.of(submitter, submission.fields), trail.party(submitter)
            lines += _apply(submission, submitter, command, change, limits, announcement.data, at)
            party_values.attach(submission, prepared, at)
            branding_pictures.record(submission, prepared, at)
            if announcement.readdressed:
                signing_links.drop_files(submission, submitter, at)
            changed = changes.between(before, changes.of(submitter, submission.fields))
            session.flush()
            if command.completed:
                submissions.complete_by_api(announcement, submitter, command.actor)
                state, happened = domain.complete_for(submission.state, submitter.id, at, seal_id=uuid7())
            elif announcement.readdressed and (invited := domain.invite_awaited(submission.state, at))[1]:
                state, happened = invited
            elif (command.send_email or command.send_sms) and not submission.state.returned:
                announcement.again_by = {"email": command.send_email, "sms": command.send_sms}
                state, happened = domain.invite_again(submission.state, submitter.id, at)
            else:
                state, happened = submission.state, ()
        except Refused as refused:
            raise submissions.refused_for_api(refused) from None
        store.save(submission, state, at)
        if changed:
            data = {**announcement.data, "party": party, "changes": changed}  # whom they were before
            lines.append(trail.Line(trail.UPDATE_SUBMITTER, submitter.id, data))
        trail.append(submission, lines, at)
        announce(announcement, happened)
        answer = queries.presented_submitter(session, submission, submitter, site, now)
        return answer.model_copy(update={"warnings": change.overrides.ignored})

    return once(session, rpc.UPDATE_SUBMITTER, command, decide)


def _changes_what_is_signed(change: Change) -> bool:
    """Return whether the change may concern what the signer confirms at a provider just now."""
    return bool(change.overrides.changes or change.details or change.preferences or change.overrides.sources)


def _readdressed(announcement: Announcement, submitter: SubmitterRow, details: Mapping[str, Any]) -> list[trail.Line]:
    """Replace the link when ``details`` change whose it is; the lines that tell of it. The row still has the old address."""
    if not signing_links.is_for_somebody_else(submitter, details):
        return []
    submission, before = announcement.submission, trail.party(submitter)
    after = {key: value for key in trail.PARTY if (value := details.get(key, getattr(submitter, key)))}
    dropped = signing_links.replace(submission, submitter, signing_links.Why.ADDRESS_CHANGED, announcement.now)
    submission.state = domain.readdress(submission.state, submitter.id)
    submitter.invited_at, announcement.readdressed = None, True
    return [
        trail.Line(trail.REPLACE_LINK, submitter.id, {**announcement.data, "party": before, "named": after}),
        *dropped,
    ]


def _apply(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    command: rpc.UpdateSubmitter,
    change: Change,
    limits: Limits,
    actor: Mapping[str, Any],
    now: datetime,
) -> list[trail.Line]:
    before, was_called = addresses.mailbox(submitter.email), filling.person(submission.row, submitter)
    for key, value in change.details.items():
        setattr(submitter, key, value)
    if addresses.mailbox(submitter.email) != before:
        identity_checks.void(submission, submitter)
    problems = Problems()
    if not submitter.email and not submitter.phone:
        problems.add("email", "is required unless phone is given", "email or phone is required")
    merged = {**submitter.preferences, **change.preferences}
    merged |= required_of_all(submission.row.preferences)
    submitter.preferences = {key: value for key, value in merged.items() if value is not None}
    check_code_addresses(submitter.preferences, submitter.email, submitter.phone, "", problems)
    sms.check_number(command, submitter, problems)
    fields, values = submission.fields, submitter.values
    if change.overrides.changes:
        submission.change_fields([change.overrides.apply(field) for field in submission.fields])
        submission.row.values_version += 1
    store.set_values(submission, submitter, change.overrides.values_over(submitter.values))
    if submitter.given is not None:
        submitter.given = change.overrides.values_over(submitter.given)
    persons = was_called, filling.person(submission.row, submitter)
    signed = Problems() if submission.state.returned else problems
    changes.refuse_what_is_signed(submitter, submission.submitters, fields, submission.fields, values, *persons, signed)
    everybody = [{**submitter.values, "metadata": submitter.metadata_} for submitter in submission.submitters]
    creation.check_size(everybody, limits, problems)
    if len(submission.attachments) + len(change.overrides.sources) > limits.max_attachments:
        problems.add("values", f"must not have more than {limits.max_attachments} files and pictures in a submission")
    problems.refuse()
    submitter.updated_at = submission.row.updated_at = now
    store.index(submission)
    return (
        returning.reopen(submission, submission.submitters, actor, now) if submission.state.returned and signed else []
    )
