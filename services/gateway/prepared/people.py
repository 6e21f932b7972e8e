"""What submissions that agents have prepared say about one person (docs/privacy.md): shown, and dropped. Each is opened and
read: they are few, and encrypted."""

from collections.abc import Iterator
from typing import Any

from contracts.formats.mentions import mailbox, places
from contracts.runtime.clock import now
from contracts.types import iso
from services.gateway.models import PreparedRow
from services.gateway.prepared import rows
from services.gateway.prepared.sending import Prepared

_NOT_OF_PEOPLE = {"actor", "account"}
"""Who had it prepared is a user, and told as such; the account is nobody."""


def unsent(prepared: Prepared, email: str, *, test: bool) -> list[dict[str, Any]]:
    """List what names the person, of test mode or live, the latest first."""
    moment = now()
    return [
        {
            "user_id": row.user_id,
            "template_id": content["template_id"],
            "state": rows.state(row, moment).value,
            "created_at": iso(row.created_at),
            "expires_at": iso(row.expires_at),
            "mentioned_in": mentioned,
            "parties": [party for party in content["submitters"] if mailbox(party.get("email")) == mailbox(email)],
        }
        for row, content, mentioned in _naming(prepared, email, test=test)
    ]


def remove(prepared: Prepared, email: str, *, test: bool) -> int:
    """Drop what names the person, and have nobody send it; returns how many there were. What a person has confirmed just now
    becomes a submission, and is deleted as one."""
    return sum(
        prepared.database.write(rows.drop, row.id, prepared.remainder(row), now())
        for row, _, _ in list(_naming(prepared, email, test=test))
    )


def _naming(prepared: Prepared, email: str, *, test: bool) -> Iterator[tuple[PreparedRow, dict[str, Any], list[str]]]:
    """Those that name the address, with what they say and the places in it."""
    for row in prepared.database.read(rows.every):
        command = prepared.command(row)
        if command.actor.test is not test:
            continue
        content = command.model_dump(mode="json", exclude=_NOT_OF_PEOPLE, exclude_unset=True)
        if mentioned := list(places(content, email)):
            yield row, content, mentioned
