"""Compare what is about to be sealed with what the parties' statements confirm (docs/evidence.md). Pure.

The order comes from the database of submissions, the statements are ours. Each difference is a sentence that names what differs
and ends in the digest of what is there now: what an admin accepts is that, and nothing that comes later.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from contracts.evidence import canonical_json, statements
from contracts.evidence.audit_chain import START, next_hash
from contracts.evidence.statements import LineReference, Parts, Statement
from contracts.fields import conditions
from contracts.fields.rules import PLACEHOLDER, is_empty
from contracts.rpc.rendering import FieldValue, GivenByParty, PartySummary, SealRequest, ToCheck, TrailEvent
from contracts.types import STATIC_TYPES, FieldDefinition, SubmitterStatus, iso

API_COMPLETION = "api_complete_form"
COMPLETIONS = ("complete_form", API_COMPLETION)
REOPENED = "reopen_form"
ACCEPT = "accept_differences"
ROLLOUT = timedelta(days=1)
"""So long after the first statement could be made, a process of an older version may still have recorded a completion."""

_NAMED = {"role", "name", "email", "phone", "completed_at", "completed_by_api"}
_SHORT = 16


@dataclass(frozen=True)
class Known:
    """A statement that was taken on here, with its parts where they are still kept."""

    statement: Statement
    parts: Parts | None = None


@dataclass(frozen=True)
class SignedElsewhere:
    """What a signer has signed at a provider with a certificate of their own: the digests of their ``values`` and of the
    ``documents`` (by uuid), as they were drawn for that."""

    submitter: int
    stated: Mapping[str, Any]


def unaccepted(
    request: SealRequest, confirmed: Sequence[Known], since: datetime, signed: Sequence[SignedElsewhere] = ()
) -> list[str]:
    """List what differs and was not accepted. ``since``: the moment from which on completions are confirmed. ``signed``: what
    was signed at providers."""
    accepted = set(accepted_in(request.trail))
    differences = [*_all(request, confirmed, since), *_signed_otherwise(request, confirmed, signed)]
    return [difference for difference in dict.fromkeys(differences) if difference not in accepted]


def _signed_otherwise(
    request: SealRequest, confirmed: Sequence[Known], signed: Sequence[SignedElsewhere]
) -> Iterator[str]:
    """Compare what was signed at a provider with what the completion confirms."""
    names = {party.id: _name(party) for party in request.parties}
    for signing in signed:
        for confirmation in confirmed:
            statement = confirmation.statement
            if statement.submitter != signing.submitter:
                continue
            same = (statement.values, statement.documents) == (
                signing.stated.get("values"),
                signing.stated.get("documents"),
            )
            if not same:
                name = names.get(signing.submitter, f"submitter {signing.submitter}")
                difference = f"what {name} has signed at the provider is not what their completion confirms"
                yield _now(difference, canonical_json.digest(dict(signing.stated)))


def accepted_in(trail: Iterable[TrailEvent]) -> list[str]:
    """The differences that an admin has accepted: those that the trail names, which is printed."""
    return [
        difference for line in trail if line.event_type == ACCEPT for difference in line.data.get("differences") or ()
    ]


def broken_lines(trail: Sequence[TrailEvent]) -> Iterator[str]:
    """The lines whose hash is not the one that their content and the line before them give."""
    previous = START
    for number, event in enumerate(trail, start=1):
        expected = next_hash(
            previous,
            submitter_id=event.submitter_id,
            event_type=event.event_type,
            occurred_at=event.occurred_at,
            data=event.data,
        )
        if event.hash != expected:
            place = f"line {number} ({event.event_type})"
            yield _now(f"the hash chain of the audit trail does not hold at {place}", expected)
        previous = event.hash


def _all(request: SealRequest, confirmed: Sequence[Known], since: datetime) -> Iterator[str]:
    yield from broken_lines(request.trail)
    names = {party.id: _name(party) for party in request.parties}
    counting = standing(request.trail)
    completed = {line.submitter_id: line for line in counting if line.submitter_id is not None}
    last_reopened = reopened(request.trail)
    void = [confirmation for confirmation in confirmed if _is_void(confirmation.statement, last_reopened)]
    standing_ones = [confirmation for confirmation in confirmed if confirmation not in void]
    for submitter_id, line in completed.items():
        of_party = [statement for statement in standing_ones if statement.statement.submitter == submitter_id]
        party_name = names.get(submitter_id, f"submitter {submitter_id}")
        if len(of_party) > 1:
            difference = (
                f"there are {len(of_party)} statements of the completion of {party_name}, and there can only be one"
            )
            yield _now(
                difference,
                canonical_json.digest(sorted(statements.digest(statement.statement) for statement in of_party)),
            )
        if not of_party and line.occurred_at >= since + ROLLOUT:
            digest = canonical_json.digest({"line": line.hash, "given": _digest_of_given(request, submitter_id)})
            yield _now(f"the completion of {party_name} is not confirmed by any statement", digest)
    for submitter_id, party_name in names.items():
        if submitter_id not in completed and _counts_as_completed(request, submitter_id):
            difference = f"{party_name} counts as completed, and no line of the audit trail says so"
            yield _now(difference, canonical_json.digest(_digest_of_given(request, submitter_id)))
    for statement in standing_ones:
        yield from _Compared(request, statement, names.get(statement.statement.submitter)).differences()
    yield from _void_differences(request, void, names)
    if request.to_check is not None:
        yield from _drawn(request, request.to_check)


def reopened(trail: Sequence[TrailEvent]) -> dict[int, int]:
    """The number of the line from which on each of these parties had to complete once more, because what they had signed was
    changed."""
    return {
        line.submitter_id: number
        for number, line in enumerate(trail, start=1)
        if line.event_type == REOPENED and line.submitter_id is not None
    }


def standing(trail: Sequence[TrailEvent]) -> list[TrailEvent]:
    """The completions that count: those after which their party did not have to complete once more."""
    last_reopened = reopened(trail)
    return [
        line
        for number, line in enumerate(trail, start=1)
        if line.event_type in COMPLETIONS and number > last_reopened.get(line.submitter_id or 0, 0)
    ]


def _is_void(statement: Statement, last_reopened: Mapping[int, int]) -> bool:
    return statement.line.number < last_reopened.get(statement.submitter, 0)


def _void_differences(request: SealRequest, void: Sequence[Known], names: Mapping[int, str]) -> Iterator[str]:
    """A completion that counts no more was still made as its statement says, and has one only: of what it was, nothing is
    compared with what is there today."""
    of_line: dict[tuple[int, int], list[Known]] = {}
    for confirmation in void:
        of_line.setdefault((confirmation.statement.submitter, confirmation.statement.line.number), []).append(
            confirmation
        )
    for (submitter_id, number), of_same_line in of_line.items():
        name = names.get(submitter_id, f"submitter {submitter_id}")
        for confirmation in of_same_line:
            yield from _Compared(request, confirmation, name).lines()
        if len(of_same_line) > 1:
            digests = sorted(statements.digest(confirmation.statement) for confirmation in of_same_line)
            difference = f"there are {len(of_same_line)} statements of the completion of {name} in line {number}"
            yield _now(difference, canonical_json.digest(digests))


def _counts_as_completed(request: SealRequest, submitter_id: int) -> bool:
    """Return whether the order says so: a party without fields never completes."""
    if request.to_check is None:
        return False
    party = next(party for party in request.parties if party.id == submitter_id)
    has_given = any(party.submitter_id == submitter_id for party in request.to_check.parties)
    return has_given or party.status == SubmitterStatus.COMPLETED or party.completed_at is not None


def _digest_of_given(request: SealRequest, submitter_id: int) -> str | None:
    """The digest of what a party has given, by the order."""
    parties = request.to_check.parties if request.to_check else []
    party = next((candidate for candidate in parties if candidate.submitter_id == submitter_id), None)
    return None if party is None else statements.given_digest(party.values, party.reasons)


class _Compared:
    """One statement beside what is there today."""

    def __init__(self, request: SealRequest, confirmed: Known, name: str | None) -> None:
        self._request, self._statement = request, confirmed.statement
        self._check = request.to_check or ToCheck()
        self._parts = confirmed.parts or Parts()
        self._who = name or f"submitter {confirmed.statement.submitter}"
        self._field_names = {
            field["uuid"]: field.get("name") or f"{field['type']} {field['uuid']}" for field in self._check.fields
        }

    def differences(self) -> Iterator[str]:
        party = next(
            (candidate for candidate in self._check.parties if candidate.submitter_id == self._statement.submitter),
            None,
        )
        if party is None or self._statement.submission != self._request.submission_id:
            difference = f"the completion of {self._who} was confirmed, and they no longer count as completed"
            yield _now(difference, _digest_of_given(self._request, self._statement.submitter))
            return
        yield from self.lines()
        yield from self._documents()
        yield from self._paper(party)
        yield from self._values(party)

    def lines(self) -> Iterator[str]:
        """Yield what the lines say otherwise than the statement."""
        stated = self._statement
        line = self._line(stated.line)
        if line is None or line.submitter_id != stated.submitter or line.event_type not in COMPLETIONS:
            change = "a line up to it was changed, added or removed"
            place = (
                f"line {stated.line.number} of the audit trail is not the completion of {self._who} that was confirmed"
            )
            yield _now(f"{place}: {change}", self._hash(stated.line))
        elif self._line(stated.head) is None:
            place = f"line {stated.head.number} of the audit trail is not the one that was confirmed"
            yield _now(f"{place} when {self._who} had completed", self._hash(stated.head))

    def _line(self, stated: LineReference) -> TrailEvent | None:
        line = self._request.trail[stated.number - 1] if stated.number <= len(self._request.trail) else None
        return line if line is not None and line.hash == stated.hash else None

    def _hash(self, stated: LineReference) -> str:
        trail = self._request.trail
        return trail[stated.number - 1].hash if stated.number <= len(trail) else ""

    def _documents(self) -> Iterator[str]:
        today = {uuid: document["sha256"] for uuid, document in self._check.documents.items()}
        for uuid in _differing(self._statement.documents, today):
            name = self._check.documents.get(uuid, {}).get("name") or uuid
            yield _now(f"the document {name} is not the one that {self._who} signed", today.get(uuid))

    def _paper(self, party: GivenByParty) -> Iterator[str]:
        today = statements.paper_parts(self._check.documents, self._check.fields, party.party_uuid)
        if statements.paper_digest(today) == self._statement.paper:
            return
        if statements.paper_digest(self._parts.paper) != self._statement.paper:
            difference = f"documents or definitions of fields are not those that {self._who} signed with"
            yield _now(difference, statements.paper_digest(today))
            return
        for key in _differing(self._parts.paper, today):
            kind, _, uuid = key.partition(".")
            if kind == "fields":
                difference = (
                    f"the field {self._field_names.get(uuid, uuid)} is not defined as it was when {self._who} signed"
                )
            elif self._statement.documents.get(uuid) == self._check.documents.get(uuid, {}).get("sha256"):
                difference = f"name or conditions of the document {uuid} are not those that {self._who} signed with"
            else:
                continue  # told already
            yield _now(difference, today.get(key))

    def _values(self, party: GivenByParty) -> Iterator[str]:
        today = statements.value_parts(party.values, party.reasons)
        digest = statements.given_digest(party.values, party.reasons)
        if digest == self._statement.values:
            return
        differing = [*_differing(self._parts.values, today)] if self._parts.values else []
        if not differing:
            yield _now(f"the values are not those that {self._who} signed", digest)
        for uuid in differing:
            field = self._field_names.get(uuid, uuid)
            yield _now(f"the value of the field {field} is not the one that {self._who} signed", today.get(uuid))


def _drawn(request: SealRequest, check: ToCheck) -> Iterator[str]:
    """Compare what goes onto the paper with what was compared: submissions makes no order that says two things."""
    definitions = {field["uuid"]: FieldDefinition.model_validate(field) for field in check.fields}
    hidden = _hidden(request, check, definitions)
    yield from _documents_drawn(request, check, hidden)
    yield from _values_drawn(request, check, definitions, hidden)
    yield from _reasons_drawn(request, check)
    parties = {party.id: party for party in request.parties}
    for line in standing(request.trail):
        party_named = line.data.get("party")
        if line.submitter_id is None or not party_named:
            continue
        party = parties.get(line.submitter_id)
        if party is None:
            yield _now(f"submitter {line.submitter_id} has completed, and is not to be named", None)
        elif not _is_told(party, line, party_named):
            now = party.model_dump(mode="json", include=_NAMED)
            difference = f"{_name(party)} is to be named otherwise than on the line of their completion"
            yield _now(difference, canonical_json.digest(now))


def _is_told(party: PartySummary, line: TrailEvent, party_named: Mapping[str, Any]) -> bool:
    """Return whether a party is who has completed by this line, when it says, and by the API user whom it names, if it names
    one."""
    by_api = line.data.get("by") if line.event_type == API_COMPLETION else None
    return (
        all(
            (getattr(party, key) or None) == (party_named.get(key) or None)
            for key in ("role", "name", "email", "phone")
        )
        and party.completed_at is not None
        and iso(party.completed_at) == iso(line.occurred_at)
        and party.completed_by_api == by_api
    )


def _hidden(request: SealRequest, check: ToCheck, definitions: Mapping[str, FieldDefinition]) -> set[str]:
    """The fields and documents that conditions hide, as the definitions and values say that were compared."""
    values = {uuid: value for party in check.parties for uuid, value in party.values.items()}
    # Conditions are about files as the service that ordered it names them; that these are those given is compared, too.
    values |= {value.field.uuid: value.value for value in request.values if value.field.type not in STATIC_TYPES}
    documents = conditions.of_documents({"uuid": uuid, **document} for uuid, document in check.documents.items())
    return conditions.hidden(definitions.values(), documents, values)


def _documents_drawn(request: SealRequest, check: ToCheck, hidden: Collection[str]) -> Iterator[str]:
    for document in request.documents:
        ordered = check.documents.get(document.uuid, {})
        if (ordered.get("name"), ordered.get("sha256")) != (document.name, document.file.sha256):
            yield _now(
                f"the document {document.name} that is to be sealed is not that of the order", document.file.sha256
            )
    uuids_drawn = {document.uuid for document in request.documents}
    for uuid, document_ in check.documents.items():
        if uuid not in uuids_drawn and uuid not in hidden:
            yield _now(
                f"the document {document_['name']} is in the order and is not to be sealed",
                canonical_json.digest(document_),
            )
        if uuid in uuids_drawn and uuid in hidden:
            yield _now(
                f"the document {document_['name']} is to be sealed, and its conditions hide it",
                canonical_json.digest(document_),
            )


def _values_drawn(
    request: SealRequest, check: ToCheck, definitions: Mapping[str, FieldDefinition], hidden: Collection[str]
) -> Iterator[str]:
    """Every value that is drawn was given by the party whose field it is; and what was given is drawn, unless conditions hide
    it."""
    files = {attachment.uuid: attachment.file.sha256 for attachment in request.attachments}
    owners = {party.party_uuid: party for party in check.parties}
    party_by_submitter = {party.id: party for party in request.parties}
    for value_ in request.values:
        name, defined = _name_of_field(value_.field), definitions.get(value_.field.uuid)
        value = _as_given(value_, files)
        owner = owners.get(defined.submitter_uuid) if defined else None
        if not _is_defined(
            value_.field, defined, party_by_submitter.get(value_.submitter_id), request.submission_id, hidden
        ):
            now = canonical_json.digest(value_.field.model_dump(mode="json"))
            yield _now(f"the field {name} is to be drawn otherwise than it is defined", now)
        if owner is None or owner.submitter_id != value_.submitter_id:
            digest = canonical_json.digest({"submitter": value_.submitter_id, "value": value})
            yield _now(f"the field {name} is to be drawn for somebody else than the party whose it is", digest)
        elif value_.field.type not in STATIC_TYPES and value != owner.values.get(value_.field.uuid):
            yield _now(f"the value of the field {name} to be drawn is not the one given", canonical_json.digest(value))
    uuids_drawn = {value.field.uuid for value in request.values}
    for uuid, field in definitions.items():
        owner = owners.get(field.submitter_uuid)
        value_given = None if owner is None else owner.values.get(uuid)
        if (
            uuid not in uuids_drawn
            and uuid not in hidden
            and not (is_empty(value_given) and field.type not in STATIC_TYPES)
        ):
            yield _now(
                f"the field {_name_of_field(field)} is not to be drawn, and has a value",
                canonical_json.digest(value_given),
            )
        if uuid in uuids_drawn and uuid in hidden:
            yield _now(
                f"the field {_name_of_field(field)} is to be drawn, and its conditions hide it",
                canonical_json.digest(value_given),
            )


def _reasons_drawn(request: SealRequest, check: ToCheck) -> Iterator[str]:
    """Beside each signature that is drawn stands the reason that was given for it, and no other."""
    signatures = {value.field.uuid: value.field for value in request.values if value.value}
    given_reasons = {
        uuid: reason for party in check.parties for uuid, reason in party.reasons.items() if uuid in signatures
    }
    drawn_reasons = {note.field_uuid: note.reason for note in request.notes if note.reason}
    for uuid in _differing(given_reasons, drawn_reasons):
        name = _name_of_field(signatures[uuid]) if uuid in signatures else uuid
        digest = canonical_json.digest(drawn_reasons.get(uuid))
        yield _now(f"the reason for signing to be drawn beside the field {name} is not the one given", digest)


def _name_of_field(field: FieldDefinition) -> str:
    return field.name or f"{field.type} {field.uuid}"


def _is_defined(
    drawn: FieldDefinition,
    defined: FieldDefinition | None,
    party: PartySummary | None,
    submission_id: int,
    hidden: Collection[str] = (),
) -> bool:
    """Return whether a field is drawn as it is defined: wherever it is on the documents that are shown, its placeholders filled
    in."""
    if defined is None or drawn.areas != conditions.on_shown_documents(defined, hidden).areas:
        return False
    changes: dict[str, Any] = {"areas": defined.areas}
    default = str(defined.default_value or "")
    if isinstance(drawn.default_value, str) and _filled_in(drawn.default_value, default, party, submission_id):
        changes["default_value"] = defined.default_value
    return drawn.model_copy(update=changes) == defined


def _filled_in(text: str, default: str, party: PartySummary | None, submission_id: int) -> bool:
    """Return whether ``text`` is ``default`` with what is known of the party in place of its placeholders, something in those
    of date and time, which submissions formats, and nothing else is another."""
    words = {key: getattr(party, key, None) for key in ("role", "name", "email", "phone")} | {"id": submission_id}
    pieces, place = [""], 0
    for match in PLACEHOLDER.finditer(default):
        pieces[-1] += default[place : match.start()]
        if match[1] not in words:
            pieces.append("")
        elif (word := words[match[1]]) is not None:
            pieces[-1] += str(word)
        place = match.end()
    first, *later_pieces = [*pieces[:-1], pieces[-1] + default[place:]]
    if not later_pieces:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in later_pieces[:-1]:
        if (start := text.find(piece, at)) < 0:
            return False
        at = start + len(piece)
    return text.endswith(later_pieces[-1]) and at + len(later_pieces[-1]) <= len(text)


def _as_given(drawn: FieldValue, files: Mapping[str, str]) -> Any:
    value = drawn.value
    if isinstance(value, list):
        return [files.get(item, item) if isinstance(item, str) else item for item in value]
    return files.get(value, value) if isinstance(value, str) else value


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    return (key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key))


def _name(party: PartySummary) -> str:
    return f"{party.name or party.email or party.role} ({party.role})"


def _now(difference: str, digest: str | None) -> str:
    return f"{difference} (now {digest[:_SHORT] if digest else 'gone'})"
