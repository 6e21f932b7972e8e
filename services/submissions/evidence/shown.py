"""What a signer sees, as a digest that travels with what they sign (docs/evidence.md gives the exact content).

Opening the form gives the digest, each saved value and the completion carry it. When what the digest covers is no longer the
same, nothing is changed and the signer is told what is another now: nobody can change what somebody has before their eyes.

Whoever signs beside them may complete meanwhile without disturbing them: the digest names the parties whose values it covers,
and is compared as of those.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.errors import ServiceError
from contracts.evidence import canonical_json, statements
from contracts.fields import values as rules
from contracts.fields.formulas.references import FORMULA
from contracts.fields.kinds import UNTOUCHABLE
from contracts.types import FieldDefinition, SubmitterStatus
from services.submissions.evidence import consent
from services.submissions.models import AttachmentRow, SnapshotRow, SubmissionRow, SubmitterRow
from services.submissions.rules.values import placeholders
from services.submissions.rules.values.filling import person

VERSION = 1
_TOKEN = re.compile(r"([0-9a-f]{1,16})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class Shown:
    """What one signer sees. ``parts`` are digests: of each document, of each field with what stands in it, of what they are
    asked to agree to. ``covers`` has a bit for the position of each party whose values are in it."""

    digest: str
    covers: int
    parts: Mapping[str, str]

    @property
    def token(self) -> str:
        """Return what the page gets and sends back."""
        return f"{self.covers:x}.{self.digest}"


def to(
    submitter: SubmitterRow,
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
    covers: int | None = None,
) -> Shown:
    """Describe what ``submitter`` sees. ``covers`` None: with the values of all who have completed."""
    completed = [
        other for other in submitters if other.status == SubmitterStatus.COMPLETED and other.id != submitter.id
    ]
    if covers is None:
        covers = sum(1 << submitter.position for submitter in completed)
    theirs = of_others(submitter, submitters, covers)
    owners = {submitter.party_uuid: submitter for submitter in submitters}
    parts = {
        f"documents.{document_['uuid']}": canonical_json.digest(document(document_)) for document_ in snapshot.documents
    }
    for field in snapshot.fields:
        owner = owners.get(field["submitter_uuid"])
        if owner is not None and field["type"] in UNTOUCHABLE:
            value = _standing(field, owner, row)
        elif owner is submitter:
            # What the signer fills in themselves changes with each of their steps, and comes along when they complete.
            # What a formula computes follows from that.
            is_fixed = field["readonly"] and not field["preferences"].get(FORMULA)
            value = _standing(field, owner, row) if is_fixed else None
        else:
            value = theirs.get(field["uuid"])
        parts[f"fields.{field['uuid']}"] = canonical_json.digest({"field": field, "value": value})
    if (question := consent.required_consent(submitter)) is not None:
        parts["consent"] = canonical_json.digest(question.model_dump(mode="json"))
    digested = {"version": VERSION, "submission": row.id, "submitter": submitter.id, "covers": covers, "parts": parts}
    return Shown(canonical_json.digest(digested), covers, parts)


def of_others(submitter: SubmitterRow, submitters: Iterable[SubmitterRow], covers: int | None = None) -> dict[str, Any]:
    """The values, by field uuid, of the other parties that have completed, and that ``covers`` names if it is given."""
    return {
        uuid: value
        for other in submitters
        if other.id != submitter.id and other.status == SubmitterStatus.COMPLETED
        if covers is None or covers >> other.position & 1
        for uuid, value in other.values.items()
    }


def require_same(
    token: str | None,
    submitter: SubmitterRow,
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
) -> Shown:
    """Return what this signer sees, as ``token`` names it. A caller without one (a page of an older version) is held to the
    last look. Raises ServiceError("changed_meanwhile") when it is no longer so; its details name what has changed."""
    token = token or submitter.seen.get("token")
    if token is None:
        return to(submitter, row, snapshot, submitters)
    if (same := _same(token, submitter, row, snapshot, submitters)) is not None:
        return same
    raise ServiceError(
        "changed_meanwhile",
        "What you are signing has changed since you opened it. Look at it again before you go on.",
        _changes(submitter.seen, token, to(submitter, row, snapshot, submitters)),
    )


def covered(token: str | None) -> int | None:
    """Return the bits of the parties whose values are in what ``token`` names, None where it names nothing."""
    match = _TOKEN.fullmatch(token or "")
    return int(match[1], 16) if match else None


def compared(
    token: str | None,
    submitter: SubmitterRow,
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
) -> tuple[str, list[dict[str, str]]]:
    """Return ``token`` and nothing else while it names what this signer sees, or else the token of what they would see now,
    and what is another, as the details of ``require_same`` say it."""
    if token is not None and _same(token, submitter, row, snapshot, submitters) is not None:
        return token, []
    now = to(submitter, row, snapshot, submitters)
    return now.token, [] if token is None else _changes(submitter.seen, token, now)


def _same(
    token: str,
    submitter: SubmitterRow,
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
) -> Shown | None:
    """Return what this signer sees, if that is what ``token`` names."""
    match = _TOKEN.fullmatch(token)
    now = to(submitter, row, snapshot, submitters, int(match[1], 16)) if match else None
    return now if now is not None and now.token == token else None


def remembered(shown: Shown) -> dict[str, Any]:
    """Return what is kept of a look, so that changes since then can be named."""
    return {"token": shown.token, "parts": dict(shown.parts)}


def digests_of(submitter: SubmitterRow, snapshot: SnapshotRow, attachments: Sequence[AttachmentRow]) -> dict[str, Any]:
    """Describe what was given, for the line of a completion: each document's SHA-256, and a digest of the party's values (of
    files, their SHA-256). The values themselves are not in the line."""
    return {
        "documents": [document["file"]["sha256"] for document in snapshot.documents],
        "values": statements.given_digest(values(submitter, attachments), submitter.reasons),
    }


def values(submitter: SubmitterRow, attachments: Iterable[AttachmentRow]) -> dict[str, Any]:
    """Return what a party has given, by field uuid: files by their SHA-256, empty ones left out."""
    files = {attachment.uuid: attachment.file["sha256"] for attachment in attachments}

    def of(value: Any) -> Any:
        if isinstance(value, list):
            return [of(item) for item in value]
        return files.get(value, value) if isinstance(value, str) else value

    return {uuid: of(value) for uuid, value in submitter.values.items() if value is not None}


def _standing(field: Mapping[str, Any], owner: SubmitterRow, row: SubmissionRow) -> Any:
    """Return what stands in a field that nobody fills in, before and after its party has completed: what the sender gave, else
    the default. Where that says who the party is, it is filled in; of date and time the placeholder counts."""
    default, uuid = field["default_value"], field["uuid"]
    if placeholders.has_placeholder(default):
        # A completed party's values have the default as it was resolved.
        is_given = uuid in (owner.values if owner.completed_at is None else owner.given or {})
        return owner.values.get(uuid) if is_given else placeholders.with_person(default, person(row, owner))
    if uuid in owner.values or default is None:
        return owner.values.get(uuid)
    if field["type"] in UNTOUCHABLE:
        return default
    try:
        return rules.coerce(FieldDefinition.model_validate(field), default)
    except rules.BadValue:
        return None


def document(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a digest covers of a document."""
    return {"name": stored["name"], "sha256": stored["file"]["sha256"], "conditions": stored.get("conditions") or []}


def _changes(seen: Mapping[str, Any], token: str, now: Shown) -> list[dict[str, str]]:
    """Return what is another now: ``field`` is a field's uuid, ``documents.<uuid>`` or ``consent``."""
    details = [{"field": "shown", "reason": "has changed"}]
    if seen.get("token") != token:
        return details  # the last look was another one: the page compares by itself
    before: Mapping[str, str] = seen["parts"]
    for key in sorted({**before, **now.parts}):
        if before.get(key) != now.parts.get(key):
            reason = (
                "has changed" if key in before and key in now.parts else "is new" if key in now.parts else "is gone"
            )
            details.append({"field": key.removeprefix("fields."), "reason": reason})
    return details
