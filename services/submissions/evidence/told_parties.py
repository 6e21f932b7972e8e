"""The parties and the submission as the lines of the trail tell of them: what is sealed names nobody by today's rows.

Whoever changes a row of the database changes no line, whose hashes hold them together. Lines that an older version wrote say
what happened and when, but not who the party was: of a party whose completion is such a line, or who has no other lines, the
rows say it, as they did then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from contracts.types import SubmitterStatus, iso
from services.submissions.models import SubmissionRow, SubmitterRow, TrailRow
from services.submissions.rules.parties import addresses
from services.submissions.storage import trail

_VISITS = (trail.VIEW_FORM, trail.START_FORM, trail.COMPLETE_FORM)
_REPLACED = (trail.REPLACE_LINK, trail.WRONG_RECIPIENT, trail.DELEGATE_FORM)
_SENT = (trail.SEND_EMAIL, trail.SEND_SMS)
_COLUMNS = sa.inspect(SubmitterRow).column_attrs.keys()


@dataclass(frozen=True)
class ToldSubmission:
    """The submission's ``name`` (None: as its template) and when it was made and signed by all."""

    name: str | None
    created_at: datetime
    signed_at: datetime | None


def parties(submitters: Sequence[SubmitterRow], lines: Sequence[TrailRow]) -> list[SubmitterRow]:
    """Copy the rows, belonging to no session, with everything that the lines tell in place of what the rows say today."""
    copies = []
    for row in submitters:
        own_lines = _with_this_link([line for line in lines if line.submitter_id == row.id])
        columns = _columns_by_lines(own_lines)
        copies.append(SubmitterRow(**{key: getattr(row, key) for key in _COLUMNS} | columns) if columns else row)
    return copies


def submission(row: SubmissionRow, lines: Sequence[TrailRow]) -> ToldSubmission:
    """Tell what the submission is called, and from when until when it ran."""
    creation = next((line for line in lines if line.event_type == trail.CREATE_SUBMISSION), None)
    done = [line.occurred_at for line in lines if line.event_type in trail.COMPLETIONS]
    name = row.name if creation is None or "parties" not in creation.data else creation.data.get("name")
    for line in lines if creation is not None and "parties" in creation.data else ():
        for change in line.data.get("changes", ()) if line.event_type == trail.UPDATE_SUBMISSION else ():
            name = change["after"] if change["what"] == "name" else name
    return ToldSubmission(name, creation.occurred_at if creation else row.created_at, max(done, default=row.signed_at))


def _with_this_link(lines: Sequence[TrailRow]) -> Sequence[TrailRow]:
    """Drop the lines before a submitter's link was replaced: they happened to somebody else."""
    replaced = [number for number, line in enumerate(lines, 1) if line.event_type in _REPLACED]
    return lines[replaced[-1] :] if replaced else lines


def _since_reopened(lines: Sequence[TrailRow]) -> Sequence[TrailRow]:
    """Drop the lines before the sender changed what a party had signed: what was completed then counts no more."""
    reopened = [number for number, line in enumerate(lines, 1) if line.event_type == trail.REOPEN_FORM]
    return lines[reopened[-1] :] if reopened else lines


def _columns_by_lines(lines: Sequence[TrailRow]) -> dict[str, Any]:
    """The columns of a submitter as their lines tell them; empty when an older version wrote the lines that count."""
    since = _since_reopened(lines)
    done = next((line for line in since if line.event_type in trail.COMPLETIONS), None)
    naming = done or next((line for line in reversed(lines) if "party" in line.data), None)
    party_named: Mapping[str, Any] | None = naming.data.get("party") if naming else None
    if party_named is None:
        return {}
    by_api = done.data.get("by") if done is not None and done.event_type == trail.API_COMPLETE_FORM else None
    visits = [line for line in lines if line.event_type in _VISITS]
    status = SubmitterStatus.COMPLETED if done else SubmitterStatus.PENDING
    return {
        **{key: party_named.get(key) for key in trail.PARTY},
        "role": party_named.get("role") or "",
        "status": status.value,
        "visit": _visit(visits),
        "invited_at": _first(lines, trail.INVITE_PARTY),
        "sent_at": _sent(lines, party_named),
        "opened_at": visits[0].occurred_at if visits else None,
        "completed_at": done.occurred_at if done else None,
        "completed_by_api": by_api,
        "consent": _consent(since),
        "preferences": {"acts_as": done.data["acts_as"]} if done is not None and "acts_as" in done.data else {},
    }


def _visit(visits: Sequence[TrailRow]) -> dict[str, Any]:
    return {key: value for line in visits for key in ("ip", "user_agent", "time_zone") if (value := line.data.get(key))}


def _first(lines: Sequence[TrailRow], *kinds: str) -> datetime | None:
    return next((line.occurred_at for line in lines if line.event_type in kinds), None)


def _sent(lines: Sequence[TrailRow], party_named: Mapping[str, Any]) -> datetime | None:
    """Return when the first invitation left that went to them: the news of one to an address before may have come late. Lines
    of older versions name no address."""
    theirs = {addresses.mailbox(address) for address in (None, party_named.get("email"), party_named.get("phone"))}
    sent = (line.data for line in lines if line.event_type in _SENT)
    times = (
        data.get("sent_at") for data in sent if addresses.mailbox(data.get("email") or data.get("phone")) in theirs
    )
    return next((datetime.fromisoformat(at) for at in times if at), None)


def _consent(lines: Sequence[TrailRow]) -> dict[str, Any] | None:
    consent = next((line for line in reversed(lines) if line.event_type == trail.GIVE_CONSENT), None)
    if consent is None:
        return None
    words = {key: consent.data[key] for key in ("text", "url") if consent.data.get(key)}
    return {"agreed_at": iso(consent.occurred_at), **words}
