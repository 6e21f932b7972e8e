"""Reject values early that cannot be drawn: no font has a character for them, or they do not fit into their field's area at any
size that can be read. Whoever gives such a value is told the reason at once, not when everybody has signed.

Rendering decides, with the very drawing of the sealed file. It is asked before the transaction, and only when we are unsure:
most values are short.
"""

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.fields import conditions, paper
from contracts.fields import values as rules
from contracts.fields.formulas.references import CONDITION
from contracts.fields.kinds import WITHOUT_CONTENT
from contracts.fields.rules import is_empty
from contracts.rpc import rendering
from contracts.rpc import submissions as rpc
from contracts.stored_documents import StoredDocument
from contracts.types import IMAGE_TYPES, Account, Area, FieldDefinition, FieldType
from services.submissions.commands.submitters import Change
from services.submissions.models import SnapshotRow, SubmitterRow
from services.submissions.planning.plan import Basis, Plan
from services.submissions.planning.preparing import Bus, check_texts
from services.submissions.rules.values import filling, placeholders
from services.submissions.storage import branding
from services.submissions.storage.signers.identity_checks import VERIFIED

MOST_NAMED = 50
_UNDRAWN = IMAGE_TYPES - {FieldType.STAMP} | {FieldType.FILE} | WITHOUT_CONTENT
"""Pictures, lines and names of files fit into any area."""
_SOME_ID = 10**7
_PERSON = ("name", "email", "phone")

# Of the size of the text. No letter of those that ``needs_font_check`` lets pass is wider, no line needs more.
_WIDEST, _TALLEST = 1.5, 1.45
_SLIM_WIDTH, _LATIN_WIDTH = 0.7, 1.05
_SLIM = frozenset("abcdefghijklnopqrstuvxyz0123456789 .,:;-/()'\"!?àáäéèëíóöüñçß")
_LAST_LATIN = "\u017f"
_INSIDE = 0.92
"""Of an area's width, at least, is left between its margins."""
_STAMP_LINES, _STAMP_SIZE, _STAMP_INSIDE = 6, 3.0, 0.85
_LONGEST_STAMP_LINE = 40
"""Characters of a stamp's lines that are not the party's: a date with its zone."""


@dataclass(frozen=True)
class Entry:
    """A field with what would be drawn; ``path`` names it in a refusal, ``label`` begins the sentence."""

    field: FieldDefinition
    value: Any
    path: str
    label: str
    party: int


@dataclass(frozen=True)
class Question:
    """What rendering may have to be asked. ``parties`` as if they had completed."""

    account: Account
    documents: Sequence[StoredDocument]
    entries: Sequence[Entry]
    parties: Sequence[rendering.PartySummary]

    def without(self, paths: Collection[str]) -> "Question":
        """Leave out the entries of these paths."""
        return replace(self, entries=[entry for entry in self.entries if entry.path not in paths])


class Doubtful(Exception):
    """Rendering has to be asked before this is written."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


def refuse(bus: Bus, question: Question, texts: Sequence[tuple[str, str]] = ()) -> None:
    """Raises ServiceError naming each value that cannot be drawn, and why; before that each of ``texts`` (with its field) that
    has a character without a font."""
    check_texts(bus, texts)
    doubtful = doubtful_of(question)
    if not doubtful:
        return
    first = _first_document(question)
    uuids_of_documents = {area.attachment_uuid for entry in doubtful for area in entry.field.areas}
    request = rendering.CheckValues(
        account=question.account,
        documents=[
            document for document in question.documents if document.uuid in uuids_of_documents or document.uuid == first
        ],
        values=[
            rendering.FieldValue(field=entry.field, value=entry.value, submitter_id=entry.party) for entry in doubtful
        ],
        parties=list(question.parties),
    )
    faults = bus.call(rendering.CHECK_VALUES, request).faults
    wrong = [(entry, faults[entry.field.uuid]) for entry in doubtful if entry.field.uuid in faults]
    if wrong:
        details = [{"field": entry.path, "reason": reason} for entry, reason in wrong[:MOST_NAMED]]
        raise ServiceError("invalid", f"{wrong[0][0].label} {wrong[0][1]}", details)


def doubtful_of(question: Question) -> list[Entry]:
    """Return those of which we are not sure that they can be drawn: rendering has to be asked about them."""
    pages = {
        (document.uuid, number): size
        for document in question.documents
        for number, size in enumerate(document.pages, start=1)
    }
    first = _first_document(question)
    parties = {party.id: party for party in question.parties}

    def is_certain(entry: Entry) -> bool:
        for area in entry.field.areas:
            size = pages.get((area.attachment_uuid or first, area.page))
            if size is None or not _surely_fits(
                entry, area, area.w * size.width, area.h * size.height, question.account, parties
            ):
                return False
        return True

    return [entry for entry in question.entries if not is_certain(entry)]


def _first_document(question: Question) -> str:
    return question.documents[0].uuid if question.documents else ""


def entries(
    own_fields: Iterable[FieldDefinition],
    values: Mapping[str, Any],
    signing: filling.Signing,
    party: int,
    paths: Mapping[str, str],
    *,
    stamped: bool,
) -> list[Entry]:
    """Return what of a party's fields would be drawn. ``values`` hold its defaults; ``paths`` say where which value was given,
    by field uuid; ``stamped``: a picture takes the place of its stamp."""
    entries = []
    for field in own_fields:
        value = values.get(field.uuid)
        if not field.areas or field.type in _UNDRAWN:
            continue
        if field.type is FieldType.HEADING:
            text = placeholders.resolve(field, signing.details, signing.at, signing.time_zone)
            field = field.model_copy(update={"default_value": text})
        elif field.type is FieldType.STAMP:
            if value or stamped:
                continue
        elif is_empty(value) and field.type is not FieldType.PAYMENT:
            continue
        path = paths.get(field.uuid, f"fields.{field.name or field.uuid}")
        entries.append(Entry(field, value, path, path, party))
    return entries


def of_plan(plan: Plan, basis: Basis, account: Account, now: datetime) -> Question:
    """For a new submission: what it comes with, the defaults as they would be today, and proofs of identity, which nobody can
    write in fewer letters."""
    questions: list[Entry] = []
    parties = []
    for number, submitter in enumerate(plan.submitters):
        parties.append(_party(number, submitter.party.name, submitter, now))
        own_fields = [field for field in plan.fields if field.submitter_uuid == submitter.party.uuid]
        signing = signing_of(submitter, submitter.party.name, account, now)
        stamped = bool(submitter.branding.sources or account.stamp or account.logo)
        proofs = {field.uuid: VERIFIED for field in own_fields if field.type is FieldType.VERIFICATION}
        values = {**filling.with_defaults(own_fields, submitter.values, signing), **proofs}
        questions += entries(own_fields, values, signing, number, plan.paths, stamped=stamped)
    return Question(account, basis.documents, questions, parties)


def signing_of(person: Any, role: str, account: Account, now: datetime, id_: int = _SOME_ID) -> filling.Signing:
    """Return what placeholders are resolved with; ``person`` has a name, an e-mail address and a phone number."""
    details = {"id": id_, "role": role, "name": person.name, "email": person.email, "phone": person.phone}
    return filling.Signing(details, now, account.time_zone)


def of_change(session: Session, command: rpc.api.UpdateSubmitter, change: Change, now: datetime) -> Question:
    """Ask about a change of a submitter by the API: what they would have then."""
    submitter = session.get_one(SubmitterRow, command.id)
    snapshot = session.get_one(SnapshotRow, submitter.submission_id)
    person = SimpleNamespace(**{key: change.details.get(key, getattr(submitter, key)) for key in _PERSON})
    fields = [change.overrides.apply(FieldDefinition.model_validate(field)) for field in snapshot.fields]
    values = change.overrides.values_over(submitter.values)
    drawn = _Drawn(submitter, person, values, bool(change.branding.sources), change.overrides.paths)
    return _of_submitter(snapshot, fields, drawn, now)


def of_form(
    command: rpc.form.SaveValues,
    submitter: SubmitterRow,
    snapshot: SnapshotRow,
    of_others: Mapping[str, Any],
    open_parties: Collection[str],
    now: datetime,
) -> Question:
    """Ask about a signer: what they send, or on completion all that they would leave and that was not checked when stored.
    ``open_parties``: uuids of the others that have not completed. Signers know nothing of paths: fields are named by uuid and
    called as on the page. What is no value at all is not looked at, it is refused for another reason."""
    fields = [FieldDefinition.model_validate(field) for field in snapshot.fields]
    own_fields = {field.uuid: field for field in fields if field.submitter_uuid == submitter.party_uuid}
    values = dict(submitter.values)
    for uuid, raw in command.values.items():
        with contextlib.suppress(rules.BadValue):
            if uuid in own_fields and not own_fields[uuid].readonly:
                values[uuid] = rules.coerce(own_fields[uuid], raw)
    documents = conditions.of_documents(snapshot.documents)
    if conditions.computing(own_fields.values()):
        signing = signing_of(
            submitter, submitter.role, Account.model_validate(snapshot.account), now, submitter.submission_id
        )
        values = filling.with_defaults([*own_fields.values()], values, signing)
        of_done = {
            field.uuid: of_others[field.uuid]
            for field in fields
            if field.uuid in of_others and field.submitter_uuid not in open_parties
        }
        values = filling.computed([*own_fields.values()], fields, documents, values, of_done)
    question = _of_submitter(snapshot, fields, _Drawn(submitter, submitter, values, False, {}), now)
    hidden = conditions.hidden(fields, documents, {**of_others, **values})
    if isinstance(command, rpc.form.CompleteForm):
        uuids: Collection[str] = own_fields
        # What others may yet bring to light must fit as well: then nobody could mend it any more.
        of_open = [field.uuid for field in fields if field.submitter_uuid in open_parties]
        hidden -= conditions.undecided(fields, documents, of_open)
    else:
        uuids = command.values
    visible = [
        replace(
            entry,
            field=conditions.on_shown_documents(entry.field, hidden),
            path=entry.field.uuid,
            label=filling.label(entry.field),
        )
        for entry in question.entries
        if entry.field.uuid in uuids
        and entry.field.uuid not in hidden
        and not _was_looked_at(entry, submitter, documents)
    ]
    return replace(question, entries=visible)


def _was_looked_at(entry: Entry, submitter: SubmitterRow, documents: conditions.OfDocuments) -> bool:
    """The value is stored, and so fitted everywhere when it was given. Not so for what is drawn without having been given, as
    a date of today or a stamp, nor for what may have been hidden then, or one of its places."""
    if entry.value is None or submitter.values.get(entry.field.uuid) != entry.value:
        return False
    is_conditional = entry.field.conditions or entry.field.preferences.get(CONDITION)
    return not is_conditional and all(area.attachment_uuid not in documents for area in entry.field.areas)


@dataclass(frozen=True)
class _Drawn:
    """A submitter as they would be: ``person`` has name, e-mail address and phone number."""

    row: SubmitterRow
    person: Any
    values: Mapping[str, Any]
    stamped: bool
    paths: Mapping[str, str]


def _of_submitter(snapshot: SnapshotRow, fields: Sequence[FieldDefinition], drawn: _Drawn, now: datetime) -> Question:
    account = Account.model_validate(snapshot.account)
    row = drawn.row
    own_fields = [field for field in fields if field.submitter_uuid == row.party_uuid]
    signing = signing_of(drawn.person, row.role, account, now, row.submission_id)
    stamped = drawn.stamped or branding.shown(row, account).stamp is not None
    values = filling.with_defaults(own_fields, drawn.values, signing)
    return Question(
        account,
        [StoredDocument.model_validate(document) for document in snapshot.documents],
        entries(own_fields, values, signing, row.id, drawn.paths, stamped=stamped),
        [_party(row.id, row.role, drawn.person, now), *_summaries_of_others(snapshot, row)],
    )


def _party(id_: int, role: str, person: Any, now: datetime) -> rendering.PartySummary:
    return rendering.PartySummary(
        id=id_,
        role=role,
        name=person.name,
        email=person.email,
        phone=person.phone,
        status="completed",
        completed_at=now,
    )


def _summaries_of_others(snapshot: SnapshotRow, row: SubmitterRow) -> list[rendering.PartySummary]:
    """That there are others matters to a stamp, not who they are."""
    return [
        rendering.PartySummary(id=-number, role=party["name"], status="pending")
        for number, party in enumerate(snapshot.parties, start=1)
        if party["uuid"] != row.party_uuid
    ]


def _surely_fits(
    entry: Entry,
    area: Area,
    width: float,
    height: float,
    account: Account,
    parties: Mapping[int, rendering.PartySummary],
) -> bool:
    """Without laying anything out: there is room even if every letter were as wide as the widest. Points."""
    field = entry.field
    if field.type is FieldType.STAMP:
        return _stamp_surely_fits(parties[entry.party], width, height)
    if field.type is FieldType.CHECKBOX or area.option is not None:
        return True
    text = paper.display(field, entry.value, account)
    if rules.needs_font_check(text):
        return False
    size = paper.SMALLEST_SIZE
    if field.type is FieldType.CELLS:
        if "\n" in text:  # a cell of two lines
            return False
        cell = (area.cell_w or 0) * width / area.w if area.w else 0
        count = max(len(text), 1)
        narrow = min(cell, width / count) if cell > 0 else width / max(count, round(width / height) if height else 1)
        return narrow >= _WIDEST * size and height >= _TALLEST * size
    room = width * _INSIDE
    if room < _WIDEST * size:
        return False
    widths = [_width(line) * size / room for line in text.split("\n")]
    # Of two lines that follow each other the second begins with what did not go onto the first.
    lines = sum(1 if width <= 1 else 1 + int(2 * width) for width in widths)
    return lines * _TALLEST * size <= height


def _width(line: str) -> float:
    """More than a line needs in any of our fonts, of the size of its text."""
    return sum(
        _SLIM_WIDTH if character in _SLIM else _LATIN_WIDTH if character <= _LAST_LATIN else _WIDEST
        for character in line
    )


def _stamp_surely_fits(party: rendering.PartySummary, width: float, height: float) -> bool:
    lines = (party.name or "", party.email or party.phone or "", f"Role: {party.role}", "M" * _LONGEST_STAMP_LINE)
    if any(rules.needs_font_check(line) for line in lines):
        return False
    return (
        max(map(_width, lines)) * _STAMP_SIZE <= width * _STAMP_INSIDE
        and height * _STAMP_INSIDE >= _STAMP_LINES * _TALLEST * _STAMP_SIZE
    )
