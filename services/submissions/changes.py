"""What an API user changes while others sign: it is a line of the trail, and what somebody has signed stays as it is. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from contracts import canonical_json
from contracts.problems import Problems
from contracts.types import FieldDefinition
from services.submissions import formats, naming
from services.submissions.models import SubmitterRow

Before = dict[str, Any]
"""What a party was like before a change: see ``of``."""

_DETAILS = ("name", "email", "phone", "external_id", "message")


def of(submitter: SubmitterRow, fields: Sequence[FieldDefinition]) -> Before:
    """Describe a party so that a change can be told: by key of the API, ``fields.<name>`` and ``values.<name>`` for their
    fields. A value that a mask hides is a digest."""
    own = [field for field in fields if field.submitter_uuid == submitter.party_uuid]
    names = naming.labels(own)
    found: Before = {key: getattr(submitter, key) for key in _DETAILS}
    found["metadata"] = submitter.metadata_
    found |= {f"preferences.{key}": value for key, value in submitter.preferences.items()}
    for field in own:
        found[f"fields.{names[field.uuid]}"] = field.model_dump(mode="json")
        value = submitter.values.get(field.uuid)
        hidden = value is not None and formats.is_masked(field)
        found[f"values.{names[field.uuid]}"] = f"sha256:{canonical_json.digest(value)}" if hidden else value
    return found


def between(before: Before, after: Before) -> list[dict[str, Any]]:
    """List what differs, for a line of the trail: ``what``, ``before``, ``after``. Of a field only the keys that differ."""
    changes = []
    for what in dict.fromkeys([*before, *after]):
        old, new = before.get(what), after.get(what)
        if old == new:
            continue
        if what.startswith("fields.") and old and new:
            keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            old, new = {key: old.get(key) for key in keys}, {key: new.get(key) for key in keys}
        changes.append({"what": what, "before": old, "after": new})
    return changes


def refuse_what_is_signed(
    submitter: SubmitterRow,
    others: Sequence[SubmitterRow],
    before: Sequence[FieldDefinition],
    after: Sequence[FieldDefinition],
    values: Mapping[str, Any],
    problems: Problems,
) -> None:
    """Refuse changes of what somebody else has had before their eyes when they signed: where fields are on paper, and what
    stands in those that this party cannot change. ``values`` are this party's before the change."""
    signers = [one for one in others if one.completed_at is not None and one.id != submitter.id]
    if not signers:
        return
    who = ", ".join(one.name or one.email or one.role for one in signers)
    known = {field.uuid: field for field in before}
    names = naming.labels(after)
    for field in after:
        if not field.areas or field.submitter_uuid != submitter.party_uuid:
            continue
        was, stood = known[field.uuid], values.get(field.uuid)
        moved = (field.areas, field.type) != (was.areas, was.type)
        fixed = field.readonly or was.readonly  # anything else this party may still fill in as they like
        if moved or (fixed and (field != was or submitter.values.get(field.uuid) != stood)):
            reason = f"cannot be changed any more: {who} has signed the document with it"
            problems.add(f"fields.{names[field.uuid]}", reason)
