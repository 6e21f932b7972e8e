"""``invite_by``: a party whose signer is named by another signer on completing (peer facts 2.6, 6.2).

Until then it is a role and no submitter. The signer's last step adds it and completes in one transaction: nobody is added
without that signer's completion, however often the step is sent or whatever dies on the way, and nobody completes without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.errors import ServiceError, invalid
from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.rpc.submissions.signing.form import CompleteForm, InviteAndComplete, Invited, PartyToInvite
from contracts.types import Party, SubmitterStatus
from services.submissions.models import SubmissionRow, SubmitterRow
from services.submissions.planning.plan import PlannedSubmitter
from services.submissions.planning.preparing import Prepared
from services.submissions.rules.parties.addresses import BadAddress, email, name, phone
from services.submissions.storage import store, trail
from services.submissions.storage.signers.one_time_codes import PHONE, REQUIRED_BY
from services.submissions.storage.store import LoadedSubmission

_NEEDS_PHONE = REQUIRED_BY[PHONE]


def inviters(submitters: Sequence[NewSubmitter], parties: Sequence[Party], problems: Problems) -> list[str | None]:
    """For each submitter of a request the uuid of the role that invites it, None for those that are there from the start."""
    uuids: list[str | None] = []
    for index, submitter in enumerate(submitters):
        path, role = f"submitters[{index}].invite_by", (submitter.invite_by or "").strip().lower()
        if not role:
            uuids.append(None)
            continue
        before = {party.name.strip().lower(): place for place, party in enumerate(parties[:index])}
        place = before.get(role)
        if place is None:
            roles = ", ".join(f'"{party.name}"' for party in parties[:index])
            problems.add(
                path, f"must be the role of a submitter before it: {roles}" if roles else "must not be the first"
            )
            uuids.append(None)
            continue
        if submitters[place].completed:
            problems.add(path, f"must not be {parties[place].name}, who is completed in advance")
        for key in ("email", "completed"):
            if getattr(submitter, key):
                problems.add(f"submitters[{index}].{key}", "must not be given together with invite_by")
        uuids.append(parties[place].uuid)
    return uuids


def waiting(submitters: Sequence[PlannedSubmitter], prepared: Sequence[Prepared]) -> list[dict[str, Any]]:
    """Return what is kept of the parties that are invited later: ``SubmissionRow.invitees``."""
    return [
        {
            "party_uuid": submitter.party.uuid,
            "role": submitter.party.name,
            "by": submitter.invited_by,
            "position": position,
            "group": submitter.group,
            "viewer": submitter.viewer,
            "name": submitter.name,
            "phone": submitter.phone,
            "external_id": submitter.external_id,
            "values": submitter.values,
            "metadata": submitter.metadata,
            "preferences": submitter.preferences,
            "message": submitter.message,
            "branding": {
                file.source.branding: file.file.model_dump(mode="json")
                for file in prepared
                if file.source.branding and file.source.party_uuid == submitter.party.uuid
            },
        }
        for position, submitter in enumerate(submitters)
        if submitter.invited_by
    ]


def needs_phone(submitter: PlannedSubmitter, inviter: str | None) -> bool:
    """Return whether the one who names this party has to give a telephone number: for its code, when the request has none."""
    return inviter is not None and not submitter.phone and bool(submitter.preferences.get(_NEEDS_PHONE))


def parties_to_invite(row: SubmissionRow, submitter: SubmitterRow) -> list[PartyToInvite]:
    """The roles that this signer has yet to name somebody for."""
    return [
        PartyToInvite(
            uuid=invitee["party_uuid"],
            role=invitee["role"],
            needs_phone=not invitee["phone"] and bool(invitee["preferences"].get(_NEEDS_PHONE)),
        )
        for invitee in row.invitees
        if invitee["by"] == submitter.party_uuid
    ]


def require_none(submission: LoadedSubmission, submitter: SubmitterRow) -> None:
    """Refuse to complete an inviting signer by the API, which does not know whom they would name."""
    if waiting := parties_to_invite(submission.row, submitter):
        raise invalid(f"{submitter.role} has to invite {waiting[0].role} on the signing page", "completed")


def name_parties(
    submission: LoadedSubmission, inviter: SubmitterRow, command: CompleteForm, now: datetime
) -> list[trail.Line]:
    """Add the parties that this signer names. Raises ServiceError when one is missing or wrong."""
    waiting = parties_to_invite(submission.row, inviter)
    contacts = command.submitters if isinstance(command, InviteAndComplete) else []
    chosen = _chosen(waiting, contacts)
    invitees = {invitee["party_uuid"]: invitee for invitee in submission.row.invitees}
    rows = [_row(submission, invitees[uuid], contact, now) for uuid, contact in chosen.items()]
    if not rows:
        return []
    submission.session.add_all(rows)
    submission.session.flush()
    submission.row.invitees = [invitee for invitee in submission.row.invitees if invitee["party_uuid"] not in chosen]
    submission.submitters[:] = sorted([*submission.submitters, *rows], key=lambda row: row.position)
    submission.state = store.state_of(submission.row, submission.submitters)
    store.index(submission)
    return [
        trail.Line(trail.NAME_PARTY, inviter.id, {"email": row.email, "role": row.role, "named": trail.party(row)})
        for row in rows
    ]


@dataclass(frozen=True)
class _Contact:
    email: str
    name: str | None
    phone: str | None


def _chosen(waiting: Sequence[PartyToInvite], contacts: Sequence[Invited]) -> dict[str, _Contact]:
    """Return who it is for each role that is waited for, and for no other."""
    by_uuid = {party.uuid: party for party in waiting}
    by_role = {party.role.strip().lower(): party for party in waiting}
    chosen: dict[str, _Contact] = {}
    for index, field in enumerate(contacts):
        path = f"submitters[{index}]"
        party = by_uuid.get(field.uuid or "") or (
            None if field.uuid else by_role.get((field.role or "").strip().lower())
        )
        if party is None or party.uuid in chosen:
            raise invalid("This role is not one that the signer invites.", f"{path}.{'uuid' if field.uuid else 'role'}")
        chosen[party.uuid] = _contact(party, field, path)
    for party in waiting:
        if party.uuid not in chosen:
            raise _missing(party, "submitters")
    return chosen


def _contact(party: PartyToInvite, contact: Invited, path: str) -> _Contact:
    """A number is taken only where one is asked for: the sender decides what this signer may say of others."""
    if not (contact.email or "").strip():
        raise _missing(party, f"{path}.email")
    try:
        address, full_name = email(str(contact.email)), name(contact.name)
    except BadAddress as bad:
        raise invalid(f"The e-mail address of {party.role} {bad.reason}.", f"{path}.email", bad.reason) from None
    if not party.needs_phone:
        return _Contact(address, full_name, None)
    if not (contact.phone or "").strip():
        raise invalid(f"The telephone number of {party.role} is required.", f"{path}.phone", "is required")
    try:
        return _Contact(address, full_name, phone(str(contact.phone)))
    except BadAddress as bad:
        raise invalid(f"The telephone number of {party.role} {bad.reason}.", f"{path}.phone", bad.reason) from None


def _missing(party: PartyToInvite, path: str) -> ServiceError:
    return invalid(f"The e-mail address of {party.role} is required.", path, "is required")


def _row(submission: LoadedSubmission, invitee: dict[str, Any], contact: _Contact, now: datetime) -> SubmitterRow:
    return SubmitterRow(
        submission_id=submission.row.id,
        test=submission.row.test,
        position=invitee["position"],
        party_uuid=invitee["party_uuid"],
        role=invitee["role"],
        email=contact.email,
        name=contact.name or invitee["name"],
        phone=invitee["phone"] or contact.phone,
        external_id=invitee["external_id"],
        slug=store.new_slug(),
        group=invitee["group"],
        viewer=invitee["viewer"],
        status=SubmitterStatus.PENDING.value,
        values=invitee["values"],
        given=invitee["values"],
        reasons={},
        metadata_=invitee["metadata"],
        preferences=invitee["preferences"],
        message=invitee["message"],
        visit={},
        branding=invitee["branding"],
        created_at=now,
        updated_at=now,
        search="",
    )
