"""``invite_by``: a party whose signer is named by another signer on completing (peer facts 2.6, 6.2).

Until then it is a role and no submitter. The signer's last step adds it and completes in one transaction: nobody is added
without that signer's completion, however often the step is sent or whatever dies on the way, and nobody completes without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from contracts.errors import ServiceError, invalid
from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.rpc.submissions.form import CompleteForm, InviteAndComplete, Invited, PartyToInvite
from contracts.types import Party, SubmitterStatus
from services.submissions.models import SubmissionRow, SubmitterRow
from services.submissions.planning.preparing import Prepared
from services.submissions.rules.addresses import BadAddress, email, name, phone
from services.submissions.storage import store, trail
from services.submissions.storage.one_time_codes import PHONE, REQUIRED_BY
from services.submissions.storage.store import Loaded

if TYPE_CHECKING:
    from services.submissions.planning.creation import PlannedSubmitter


_NEEDS_PHONE = REQUIRED_BY[PHONE]


def inviters(submitters: Sequence[NewSubmitter], parties: Sequence[Party], problems: Problems) -> list[str | None]:
    """For each submitter of a request the uuid of the role that invites it, None for those that are there from the start."""
    found: list[str | None] = []
    for index, submitter in enumerate(submitters):
        path, wanted = f"submitters[{index}].invite_by", (submitter.invite_by or "").strip().lower()
        if not wanted:
            found.append(None)
            continue
        before = {party.name.strip().lower(): place for place, party in enumerate(parties[:index])}
        place = before.get(wanted)
        if place is None:
            known = ", ".join(f'"{party.name}"' for party in parties[:index])
            problems.add(
                path, f"must be the role of a submitter before it: {known}" if known else "must not be the first"
            )
            found.append(None)
            continue
        if submitters[place].completed:
            problems.add(path, f"must not be {parties[place].name}, who is completed in advance")
        for key in ("email", "completed"):
            if getattr(submitter, key):
                problems.add(f"submitters[{index}].{key}", "must not be given together with invite_by")
        found.append(parties[place].uuid)
    return found


def waiting(submitters: Sequence["PlannedSubmitter"], prepared: Sequence[Prepared]) -> list[dict[str, Any]]:
    """What is kept of the parties that are invited later: ``SubmissionRow.invitees``."""
    return [
        {
            "party_uuid": one.party.uuid,
            "role": one.party.name,
            "by": one.invited_by,
            "position": position,
            "group": one.group,
            "viewer": one.viewer,
            "name": one.name,
            "phone": one.phone,
            "external_id": one.external_id,
            "values": one.values,
            "metadata": one.metadata,
            "preferences": one.preferences,
            "message": one.message,
            "branding": {
                file.source.branding: file.file.model_dump(mode="json")
                for file in prepared
                if file.source.branding and file.source.party_uuid == one.party.uuid
            },
        }
        for position, one in enumerate(submitters)
        if one.invited_by
    ]


def needs_phone(planned: "PlannedSubmitter", inviter: str | None) -> bool:
    """Whether the one who names this party has to give a telephone number: for its code, when the request has none."""
    return inviter is not None and not planned.phone and bool(planned.preferences.get(_NEEDS_PHONE))


def asked(row: SubmissionRow, submitter: SubmitterRow) -> list[PartyToInvite]:
    """The roles that this signer has yet to name somebody for."""
    return [
        PartyToInvite(
            uuid=one["party_uuid"],
            role=one["role"],
            needs_phone=not one["phone"] and bool(one["preferences"].get(_NEEDS_PHONE)),
        )
        for one in row.invitees
        if one["by"] == submitter.party_uuid
    ]


def require_none(found: Loaded, submitter: SubmitterRow) -> None:
    """Refuse to complete an inviting signer by the API, which does not know whom they would name."""
    if waiting := asked(found.row, submitter):
        raise invalid(f"{submitter.role} has to invite {waiting[0].role} on the signing page", "completed")


def named(found: Loaded, inviter: SubmitterRow, command: CompleteForm, now: datetime) -> list[trail.Line]:
    """Add the parties that this signer names. Raises ServiceError when one is missing or wrong."""
    waiting = asked(found.row, inviter)
    given = command.submitters if isinstance(command, InviteAndComplete) else []
    chosen = _chosen(waiting, given)
    known = {one["party_uuid"]: one for one in found.row.invitees}
    rows = [_row(found, known[uuid], contact, now) for uuid, contact in chosen.items()]
    if not rows:
        return []
    found.session.add_all(rows)
    found.session.flush()
    found.row.invitees = [one for one in found.row.invitees if one["party_uuid"] not in chosen]
    found.submitters[:] = sorted([*found.submitters, *rows], key=lambda one: one.position)
    found.state = store.state_of(found.row, found.submitters)
    store.index(found)
    return [
        trail.Line(trail.NAME_PARTY, inviter.id, {"email": one.email, "role": one.role, "named": trail.party(one)})
        for one in rows
    ]


@dataclass(frozen=True)
class _Contact:
    email: str
    name: str | None
    phone: str | None


def _chosen(waiting: Sequence[PartyToInvite], given: Sequence[Invited]) -> dict[str, _Contact]:
    """Who it is for each role that is waited for, and for no other."""
    by_uuid = {one.uuid: one for one in waiting}
    by_role = {one.role.strip().lower(): one for one in waiting}
    chosen: dict[str, _Contact] = {}
    for index, one in enumerate(given):
        path = f"submitters[{index}]"
        party = by_uuid.get(one.uuid or "") or (None if one.uuid else by_role.get((one.role or "").strip().lower()))
        if party is None or party.uuid in chosen:
            raise invalid("Nobody is to be invited for this role", f"{path}.{'uuid' if one.uuid else 'role'}")
        chosen[party.uuid] = _contact(party, one, path)
    for party in waiting:
        if party.uuid not in chosen:
            raise _missing(party, "submitters")
    return chosen


def _contact(party: PartyToInvite, given: Invited, path: str) -> _Contact:
    """A number is taken only where one is asked for: the sender decides what this signer may say of others."""
    if not (given.email or "").strip():
        raise _missing(party, f"{path}.email")
    try:
        address, called = email(str(given.email)), name(given.name)
    except BadAddress as bad:
        raise invalid(f"The e-mail address of {party.role} {bad.reason}", f"{path}.email", bad.reason) from None
    if not party.needs_phone:
        return _Contact(address, called, None)
    if not (given.phone or "").strip():
        raise invalid(f"The telephone number of {party.role} is required", f"{path}.phone", "is required")
    try:
        return _Contact(address, called, phone(str(given.phone)))
    except BadAddress as bad:
        raise invalid(f"The telephone number of {party.role} {bad.reason}", f"{path}.phone", bad.reason) from None


def _missing(party: PartyToInvite, path: str) -> ServiceError:
    return invalid(f"The e-mail address of {party.role} is required", path, "is required")


def _row(found: Loaded, invitee: dict[str, Any], contact: _Contact, now: datetime) -> SubmitterRow:
    return SubmitterRow(
        submission_id=found.row.id,
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
