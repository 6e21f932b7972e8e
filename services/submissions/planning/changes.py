"""What an API user changes while others sign: it is a line of the trail, and what somebody has signed stays as it is. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from contracts.evidence import canonical_json
from contracts.fields.kinds import UNTOUCHABLE
from contracts.fields.labels import labels
from contracts.problems import Problems
from contracts.types import STATIC_TYPES, FieldDefinition
from services.submissions.models import SubmitterRow
from services.submissions.rules.values import formats, placeholders

_ODD_NUMBER = re.compile(r"[0-9]e[+-]?[0-9]|-0\.0")
"""PostgreSQL gives such numbers back in another form, and the hash of a line is that of its text. Within a text it does no harm
to find one."""

Before = dict[str, Any]
"""What a party was like before a change: see ``of``."""

_DETAILS = ("name", "email", "phone", "external_id", "message")
_LONGEST = 2_000
"""Characters of a value, as JSON, in a line: of a longer one it has the digest."""


def of(submitter: SubmitterRow, fields: Sequence[FieldDefinition]) -> Before:
    """Describe a party so that a change can be told: by key of the API, ``fields.<name>`` and ``values.<name>`` for their
    fields. A value that a mask hides is a digest, and so is the default value of such a field."""
    own_fields = [field for field in fields if field.submitter_uuid == submitter.party_uuid]
    names = labels(own_fields)
    details: Before = {key: getattr(submitter, key) for key in _DETAILS}
    details["metadata"] = submitter.metadata_
    details |= {f"branding.{kind}": f"sha256:{file['sha256']}" for kind, file in submitter.branding.items()}
    details |= {f"preferences.{key}": value for key, value in submitter.preferences.items()}
    for field in own_fields:
        hide = _digest if formats.is_masked(field) else _as_it_is
        definition = field.model_dump(mode="json")
        details[f"fields.{names[field.uuid]}"] = {**definition, "default_value": hide(definition["default_value"])}
        details[f"values.{names[field.uuid]}"] = hide(submitter.values.get(field.uuid))
    return details


def between(before: Before, after: Before) -> list[dict[str, Any]]:
    """List what differs, for a line of the trail: ``key``, ``before``, ``after``. Of a field only the keys that differ."""
    changes = []
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if key.startswith("fields.") and old and new:
            keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            old, new = {key: old.get(key) for key in keys}, {key: new.get(key) for key in keys}
        changes.append(change(key, old, new))
    return changes


def change(key: str, before: Any, after: Any) -> dict[str, Any]:
    """Describe one change for a line of the trail. Of what is long it has the digest."""
    return {"what": key, "before": _short(before), "after": _short(after)}


def _short(value: Any) -> Any:
    text = json.dumps(value)
    return _digest(value) if len(text) > _LONGEST or _ODD_NUMBER.search(text) else value


def _digest(value: Any) -> str | None:
    return None if value is None else f"sha256:{canonical_json.digest(value)}"


def _as_it_is(value: Any) -> Any:
    return value


def refuse_what_is_signed(
    submitter: SubmitterRow,
    all_submitters: Sequence[SubmitterRow],
    before: Sequence[FieldDefinition],
    after: Sequence[FieldDefinition],
    values: Mapping[str, Any],
    was_called: Mapping[str, Any],
    is_called: Mapping[str, Any],
    problems: Problems,
) -> None:
    """Refuse changes of what somebody else has had before their eyes when they signed: where fields are on paper, and what
    stands in those that this party cannot change, a heading with their name in it among them. ``values`` are this party's
    before the change, ``was_called`` and ``is_called`` what placeholders say of them (``filling.person``) before and after."""
    signers = [other for other in all_submitters if other.completed_at is not None and other.id != submitter.id]
    if not signers:
        return
    signer_names = ", ".join(signer.name or signer.email or signer.role for signer in signers)
    fields_before = {field.uuid: field for field in before}
    names = labels(after)
    for field in after:
        if not field.areas or field.submitter_uuid != submitter.party_uuid:
            continue
        was, stood = fields_before[field.uuid], values.get(field.uuid)
        moved = (field.areas, field.type) != (was.areas, was.type)
        # Anything else this party may still fill in as they like.
        fixed = field.readonly or was.readonly or field.type in STATIC_TYPES
        text = str(field.default_value or "") if field.type in UNTOUCHABLE else ""
        renamed = placeholders.with_person(text, was_called) != placeholders.with_person(text, is_called)
        if moved or renamed or (fixed and (field != was or submitter.values.get(field.uuid) != stood)):
            reason = f"cannot be changed: {signer_names} has signed the document with it"
            problems.add(f"fields.{names[field.uuid]}", reason)
