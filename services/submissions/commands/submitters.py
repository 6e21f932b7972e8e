"""PUT /submitters/:id (specification 4.4, peer facts 2.8): details, values, the invitation again, completion by the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.problems import Problems
from contracts.rpc.submissions import api as rpc
from contracts.runtime.clock import uuid7
from contracts.types import FieldDefinition, Submitter
from services.submissions.commands import branding_pictures, signing_links, submissions
from services.submissions.models import SubmitterRow
from services.submissions.outgoing import sms
from services.submissions.outgoing.announce import Telling, announce
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
from services.submissions.rules import addresses, domain, filling, overrides
from services.submissions.rules.domain import Refused
from services.submissions.rules.identity_requirements import check_identity_change_available
from services.submissions.rules.naming import labels
from services.submissions.site import Site
from services.submissions.storage import branding, identity_checks, store, trail
from services.submissions.storage.repeats import once


@dataclass(frozen=True)
class Change:
    """What a request changes, checked. ``details`` are columns, ``preferences`` merge (None removes a key)."""

    details: dict[str, Any]
    preferences: dict[str, Any]
    overrides: overrides.Overrides
    branding: branding.Branding
    texts: list[tuple[str, str]]


def planned(
    command: rpc.UpdateSubmitter,
    own: Sequence[FieldDefinition],
    everything: Sequence[FieldDefinition],
    attached: set[str],
    party_uuid: str,
) -> Change:
    """What ``command`` means for a submitter with the fields ``own``. Raises ServiceError naming what is wrong."""
    problems = Problems()
    given = command.model_fields_set
    email, name, phone = creation.checked_contact(command.email, command.name, command.phone, "", problems)
    cleaned = {"email": email, "name": name, "phone": phone}
    details: dict[str, Any] = {key: value for key, value in cleaned.items() if key in given}
    if "external_id" in given:
        details["external_id"] = creation.checked_key(command.external_id, "external_id", problems)
    if command.metadata is not None:
        details["metadata_"] = command.metadata
    preferences = creation.checked_wishes(command.reply_to, command.completed_redirect_url, "", problems)
    for key in ("reply_to", "completed_redirect_url"):
        if key in given and key not in preferences:
            preferences[key] = None
    if command.go_to_last is not None:
        preferences["go_to_last"] = command.go_to_last
    if "send_email" in given:
        preferences["send_email"] = command.send_email
    if "send_sms" in given:
        preferences["send_sms"] = command.send_sms
    sms.check_change(command, problems)
    preferences |= changed_requirements(command)
    check_change_available(command, problems)
    check_identity_change_available(command, problems)
    asked = overrides.Given(command.values, command.fields, command.readonly_fields, "")
    found = overrides.planned(asked, own, labels(everything), attached, problems)
    message = creation.checked_message(command.message, "message", problems)
    if message or ("message" in given and command.message is None):  # an empty object is as none
        details["message"] = message
    brand = branding.changed(command, party_uuid, problems)
    preferences |= brand.preferences
    problems.refuse()
    texts = [*found.texts, ("name", name)] if name else found.texts
    return Change(details, preferences, found, brand, texts)


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
        found, submitter = store.lock_submitter_for(session, command.actor, command.id)
        at = store.moment(found, now)
        telling = Telling(found, site, at, trail.by(command.actor), by_api=trail.by(command.actor))
        try:
            domain.change(found.state, submitter.id)
            lines = _readdressed(telling, submitter, change.details)
            before, who = changes.of(submitter, found.fields), trail.party(submitter)
            _apply(found, submitter, command, change, limits, at)
            submissions.attach(found, prepared, at)
            branding_pictures.record(found, prepared, at)
            if telling.readdressed:
                signing_links.drop_files(found, submitter, at)
            changed = changes.between(before, changes.of(submitter, found.fields))
            session.flush()
            if command.completed:
                submissions.complete_by_api(telling, submitter, command.actor)
                state, happened = domain.complete_for(found.state, submitter.id, at, seal_id=uuid7())
            elif telling.readdressed and (invited := domain.invite_awaited(found.state, at))[1]:
                state, happened = invited
            elif command.send_email or command.send_sms:
                telling.again_by = {"email": command.send_email, "sms": command.send_sms}
                state, happened = domain.invite_again(found.state, submitter.id, at)
            else:
                state, happened = found.state, ()
        except Refused as refused:
            raise submissions.refused_for_api(refused) from None
        store.save(found, state, at)
        if changed:
            said = {**telling.data, "party": who, "changes": changed}  # whom they were before
            lines.append(trail.Line(trail.UPDATE_SUBMITTER, submitter.id, said))
        trail.append(found, lines, at)
        announce(telling, happened)
        return queries.presented_submitter(session, found, submitter, site, now)

    return once(session, rpc.UPDATE_SUBMITTER, command, decide)


def _readdressed(telling: Telling, submitter: SubmitterRow, details: Mapping[str, Any]) -> list[trail.Line]:
    """Replace the link when ``details`` change whose it is; the lines that tell of it. The row still has the old address."""
    if not signing_links.is_for_somebody_else(submitter, details):
        return []
    found, before = telling.found, trail.party(submitter)
    after = {key: value for key in trail.PARTY if (value := details.get(key, getattr(submitter, key)))}
    dropped = signing_links.replace(found, submitter, signing_links.Why.ADDRESS_CHANGED, telling.now)
    found.state = domain.readdress(found.state, submitter.id)
    submitter.invited_at, telling.readdressed = None, True
    return [trail.Line(trail.REPLACE_LINK, submitter.id, {**telling.data, "party": before, "named": after}), *dropped]


def _apply(
    found: store.Loaded,
    submitter: SubmitterRow,
    command: rpc.UpdateSubmitter,
    change: Change,
    limits: Limits,
    now: datetime,
) -> None:
    before, was_called = addresses.mailbox(submitter.email), filling.person(found.row, submitter)
    for key, value in change.details.items():
        setattr(submitter, key, value)
    if addresses.mailbox(submitter.email) != before:
        identity_checks.void(found, submitter)
    problems = Problems()
    if not submitter.email and not submitter.phone:
        problems.add("email", "is required unless phone is given", "email or phone is required")
    merged = {**submitter.preferences, **change.preferences}
    merged |= required_of_all(found.row.preferences)
    submitter.preferences = {key: value for key, value in merged.items() if value is not None}
    check_code_addresses(submitter.preferences, submitter.email, submitter.phone, "", problems)
    sms.check_number(command, submitter, problems)
    fields, values = found.fields, submitter.values
    if change.overrides.changes:
        found.change_fields([change.overrides.apply(field) for field in found.fields])
        found.row.values_version += 1
    store.set_values(found, submitter, change.overrides.over(submitter.values))
    if submitter.given is not None:
        submitter.given = change.overrides.over(submitter.given)
    called = was_called, filling.person(found.row, submitter)
    changes.refuse_what_is_signed(submitter, found.submitters, fields, found.fields, values, *called, problems)
    everybody = [{**one.values, "metadata": one.metadata_} for one in found.submitters]
    creation.check_size(everybody, limits, problems)
    if len(found.attachments) + len(change.overrides.sources) > limits.max_attachments:
        problems.add("values", f"must not have more than {limits.max_attachments} files and pictures in a submission")
    problems.refuse()
    submitter.updated_at = found.row.updated_at = now
    store.index(found)
