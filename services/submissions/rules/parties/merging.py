"""``roles: [a, b]``: one submitter takes several roles of the template (peer facts 2.6). Pure.

The template is made into one that has a single role in their place; everything after that knows nothing of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid5

from contracts.fields.formulas import references
from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.stored_documents import StoredDocument
from contracts.types import FieldDefinition, Party

Conditional = TypeVar("Conditional", FieldDefinition, StoredDocument)

Basis = TemplateSnapshot | Composition
"""What submissions are made of: a template, or the documents of a one-off submission."""


def merged(template: Basis, submitters: Sequence[NewSubmitter], problems: Problems) -> tuple[Basis, list[NewSubmitter]]:
    """The template with the merged roles, and the submitters, each with one role at most."""
    merged_into: dict[str, str] = {}
    taken_names: set[str] = set()
    results: list[NewSubmitter] = []
    for index, submitter in enumerate(submitters):
        names = list(dict.fromkeys(name.strip() for name in submitter.roles if name.strip()))
        if len(names) > 1:
            parties = _parties(template, names, taken_names, f"submitters[{index}].roles", problems)
            if len(parties) == len(names):
                party = _merged_party(template, parties, submitter, f"submitters[{index}].role", problems)
                template = _with(template, parties, party)
                merged_into |= {other.name.strip().lower(): party.name for other in parties}
                submitter = submitter.model_copy(update={"role": party.name, "uuid": party.uuid})
        elif names and not submitter.role:
            submitter = submitter.model_copy(update={"role": names[0]})
        results.append(submitter.model_copy(update={"roles": []}))
    return template, [_invited_by(submitter, merged_into) for submitter in results]


def _invited_by(submitter: NewSubmitter, merged_into: Mapping[str, str]) -> NewSubmitter:
    """Whoever names a role of the template means the submitter that has taken it."""
    inviter = merged_into.get((submitter.invite_by or "").strip().lower())
    return submitter if inviter is None else submitter.model_copy(update={"invite_by": inviter})


def _parties(
    template: Basis, names: Sequence[str], assigned_names: set[str], path: str, problems: Problems
) -> list[Party]:
    """The template's parties of these names; shorter only when a problem was added."""
    by_name = {party.name.strip().lower(): party for party in template.parties}
    parties = []
    for name in names:
        party = by_name.get(name.lower())
        if name.lower() in assigned_names:
            problems.add(path, f"has {name}, which another submitter has", "role must be unique in `submitters`.")
        elif party is None:
            problems.add(path, f"has {name}, which is not a role of the template", f"{name} role doesn't exist")
        elif party in parties:
            continue
        else:
            parties.append(party)
            assigned_names.add(name.lower())
    return parties


def _merged_party(
    template: Basis,
    parties: Sequence[Party],
    submitter: NewSubmitter,
    path: str,
    problems: Problems,
) -> Party:
    name = (submitter.role or "").strip() or " / ".join(party.name for party in parties)
    names_of_others = {party.name.strip().lower() for party in template.parties if party not in parties}
    if name.lower() in names_of_others:
        problems.add(path, f"is another role of the template: {name}", "role must be unique in `submitters`.")
    uuid = uuid5(NAMESPACE_OID, " ".join(sorted(party.uuid for party in parties)))
    return Party(uuid=str(uuid), name=name)


def _with(template: Basis, parties: Sequence[Party], party: Party) -> Basis:
    """The template with ``party`` in place of the first of ``parties``, and the fields of all of them."""
    merged_uuids = {party.uuid for party in parties}
    first = next(party for party in template.parties if party.uuid in merged_uuids)
    remaining = [
        party if other is first else other
        for other in template.parties
        if other is first or other.uuid not in merged_uuids
    ]
    fields: list[FieldDefinition] = []
    same: dict[tuple[str, str], int] = {}
    kept_as: dict[str, str] = {}
    for field in template.fields:
        if field.submitter_uuid not in merged_uuids:
            fields.append(field)
            continue
        key = (field.name.strip().lower(), field.type.value)
        if field.name.strip() and key in same:
            before = fields[same[key]]
            kept_as[field.uuid] = before.uuid
            both: dict[str, Any] = {
                "areas": [*before.areas, *field.areas],
                "options": list(dict.fromkeys([*before.options, *field.options])),
                "required": before.required or field.required,
            }
            both["preferences"] = _stricter(before.preferences, field.preferences)
            fields[same[key]] = before.model_copy(update=both)
            continue
        same[key] = len(fields)
        fields.append(field.model_copy(update={"submitter_uuid": party.uuid, "role": party.name}))
    changes: dict[str, Any] = {
        "parties": remaining,
        "fields": [_following(references.renamed(field, kept_as), kept_as) for field in fields],
        "documents": [_following(document, kept_as) for document in template.documents],
    }
    return template.model_copy(update=changes)


def _stricter(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The preferences of the first, and of two proofs, of identity or of a telephone number, the one that asks for more. A
    number is confirmed wherever that is possible, unless its field says no."""
    stricter = {"method": "qes"} if second.get("method") == "qes" else {}
    codes = [preferences_.get("one_time_code") for preferences_ in (first, second)]
    asks = True if True in codes else None if None in codes else False
    preferences = {key: value for key, value in first.items() if key != "one_time_code"}
    return {**preferences, **stricter, **({} if asks is None else {"one_time_code": asks})}


def _following(conditional: Conditional, kept_as: dict[str, str]) -> Conditional:
    """Conditions on a field that was merged into another ask that one."""
    if not any(condition.field_uuid in kept_as for condition in conditional.conditions):
        return conditional
    conditions = [
        condition.model_copy(update={"field_uuid": kept_as.get(condition.field_uuid, condition.field_uuid)})
        for condition in conditional.conditions
    ]
    return conditional.model_copy(update={"conditions": conditions})
