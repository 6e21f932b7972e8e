"""The rules of a template: which roles and fields follow from its documents, and how later changes apply.

Pure: takes what was sent and what there is, gives back roles and fields, or refuses with every problem named. What is new gets
its uuid here, by chance: the same call twice differs in these and in nothing else.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from contracts.errors import invalid
from contracts.fields.formulas import references
from contracts.fields.rules import LONGEST_NAME
from contracts.problems import Problems
from contracts.rpc.rendering import TagField
from contracts.rpc.templates import AreaInput, FieldInput
from contracts.types import Condition, FieldDefinition, Notice, PageSize, Party
from services.templates.rules import document_conditions, names
from services.templates.rules.document_conditions import DocumentConditions
from services.templates.rules.field_list import FieldList, Origin, Place, PlaceOf
from services.templates.rules.roles import Roles, own_uuid


@dataclass(frozen=True)
class Limits:
    """How much a template may hold (decisions)."""

    documents: int = 30
    fields: int = 2_000
    areas: int = 20_000
    roles: int = 50


@dataclass(frozen=True)
class DocumentFields:
    """A prepared document with the fields that the API user gave (``explicit``) and those found in it.

    ``path`` is the document's place in the request body; ``part`` the key there that holds the file's content. It is shown and
    sealed only when its ``conditions`` hold.
    """

    uuid: str
    name: str
    path: str
    part: str
    pages: list[PageSize]
    explicit: Sequence[FieldInput] = ()
    tag_fields: Sequence[TagField] = ()
    conditions: Sequence[Condition] = ()


@dataclass(frozen=True)
class Definition:
    """Roles in order, fields in the order in which a signer goes through them, and what there is to report.

    ``problems``: what it would be refused for, when it was only tried out. ``conditions``: those of documents, by uuid.
    """

    parties: list[Party]
    fields: list[FieldDefinition]
    notices: list[Notice] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)
    conditions: dict[str, list[Condition]] = field(default_factory=dict)


def define(
    documents: Sequence[DocumentFields], limits: Limits, previous: Definition | None = None, *, trial: bool = False
) -> Definition:
    """Roles and fields of new documents.

    Roles come in order of first appearance, those of explicit fields first; a field without one belongs to the first.
    Fields of the same name and role are one field with several areas, defined by the first explicit one. Roles and
    fields that ``previous`` had too keep their uuids. With ``trial``, problems with fields are told, not raised.
    """
    check_documents(len(documents), limits)
    roles = Roles(previous.parties if previous else ())
    return _defined(documents, roles, previous.fields if previous else (), (), limits, trial=trial)


def extended(
    present: Definition,
    documents: Sequence[DocumentFields],
    order: Sequence[str],
    limits: Limits,
    *,
    trial: bool = False,
) -> Definition:
    """``present`` with the roles and fields of further ``documents``; ``order`` are the uuids of all documents.

    What is there keeps its order; new fields come where their document does. A new field with the name and role of one that
    is there is that one at another place.
    """
    check_documents(len(order), limits)
    defined = _defined(documents, Roles((), present.parties), (), present.fields, limits, trial=trial)
    uuids_before = {entry.uuid for entry in present.fields}
    place = {document: number for number, document in enumerate(order)}
    of_field = {
        entry.uuid: place.get(entry.areas[0].attachment_uuid if entry.areas else "", -1) for entry in defined.fields
    }
    fields = [entry for entry in defined.fields if entry.uuid in uuids_before]
    for new in (entry for entry in defined.fields if entry.uuid not in uuids_before):
        later = (i for i, entry in enumerate(fields) if of_field[entry.uuid] > of_field[new.uuid])
        fields.insert(next(later, len(fields)), new)
    return replace(defined, fields=fields, conditions={**present.conditions, **defined.conditions})


def _defined(
    documents: Sequence[DocumentFields],
    roles: Roles,
    previous: Sequence[FieldDefinition],
    present: Sequence[FieldDefinition],
    limits: Limits,
    *,
    trial: bool,
) -> Definition:
    explicit = [field_input for document in documents for field_input in document.explicit]
    tags = [tag for document in documents for tag in document.tag_fields]
    check_size("documents", [*present, *explicit, *tags], limits)
    problems = Problems()
    for document in documents:
        for i, field_input in enumerate(document.explicit):
            roles.learn(names.key(field_input.role or "", f"{document.path}.fields[{i}].role", problems))
    for tag in tags:
        roles.learn(names.cleaned(tag.role or ""))
    fields = FieldList(roles, problems, previous)
    for field_there in present:
        fields.add_present(field_there)
    for document in documents:
        place_of = _on_document(document)
        for i, field_input in enumerate(document.explicit):
            fields.add_explicit(field_input, f"{document.path}.fields[{i}]", place_of, document.uuid)
    for document in documents:
        for tag in document.tag_fields:
            fields.add_found(
                tag, Origin(document.uuid, document.name, f"{document.path}.{document.part}", document.pages)
            )
    order = ["", *(document.uuid for document in documents)]
    entries = [DocumentConditions(document.uuid, document.conditions, document.path) for document in documents]
    definition = _finished(roles, fields, order, "documents", problems, limits, entries)
    if not trial:
        problems.refuse()
    return definition


def redefine(
    inputs: Sequence[FieldInput],
    parties: list[Party],
    documents: Mapping[str, list[PageSize]],
    entries: Sequence[DocumentConditions],
    limits: Limits,
    stored: Sequence[FieldDefinition] = (),
) -> Definition:
    """The whole list of fields, as PUT gives it: fields keep the uuid they come with, roles not there yet are appended.

    ``documents`` maps the uuid of each document to its pages. An area of a template with one document need not name it.
    ``entries`` are the conditions of documents, ``stored`` the fields before: what stays as it was is not judged again.
    """
    check_size("fields", inputs, limits)
    problems = Problems()
    roles = Roles((), parties)
    for i, field_input in enumerate(inputs):
        if not roles.has(field_input.submitter_uuid):
            roles.learn(names.key(field_input.role or "", f"fields[{i}].role", problems))
    fields = FieldList(roles, problems, (), stored)
    place_of = _on_documents(documents, problems)
    for i, field_input in enumerate(inputs):
        fields.add_explicit(field_input, f"fields[{i}]", place_of, "")
    definition = _finished(roles, fields, [""], "fields", problems, limits, entries)
    problems.refuse()
    return definition


def with_conditions(present: Definition, entries: Sequence[DocumentConditions]) -> Definition:
    """The same with these conditions of its documents."""
    problems = Problems()
    conditions = document_conditions.checked(entries, present.fields, problems)
    for fault in references.checked(present.fields, conditions)[1]:
        problems.add("schema", f"must not decide about a field whose {fault.key} {fault.reason}")
    problems.refuse()
    return replace(present, conditions=conditions)


def with_role_names(parties: Sequence[Party], new_names: Sequence[str], limits: Limits) -> list[Party]:
    """Roles renamed by position, further ones appended; none is ever taken away."""
    problems = Problems()
    chosen = [names.key(name, f"roles[{i}]", problems) for i, name in enumerate(new_names)]
    uuids = [party.uuid for party in parties] + [str(uuid.uuid4()) for _ in chosen[len(parties) :]]
    remaining = [party.name for party in parties[len(chosen) :]]
    return _parties(uuids, chosen + remaining, "roles", problems, limits)


def with_parties(parties: Sequence[Party], changed: Sequence[Party], limits: Limits) -> list[Party]:
    """Roles renamed by uuid (the peer's ``submitters`` array), unknown ones appended; none is ever taken away."""
    problems = Problems()
    renamed = {party.uuid: party.name for party in parties}
    for i, party in enumerate(changed):
        party_uuid = party.uuid if party.uuid in renamed else own_uuid(party.uuid, f"submitters[{i}].uuid", problems)
        renamed[party_uuid] = names.key(party.name, f"submitters[{i}].name", problems)
    return _parties(list(renamed), list(renamed.values()), "submitters", problems, limits)


def with_roles_written(fields: Iterable[FieldDefinition], parties: Sequence[Party]) -> list[FieldDefinition]:
    """The fields with the present name of their role in ``role``."""
    role_names = {party.uuid: party.name for party in parties}
    return [field.model_copy(update={"role": role_names[field.submitter_uuid]}) for field in fields]


def cloned(definition: Definition, documents: Mapping[str, str]) -> Definition:
    """The same with fresh uuids everywhere; ``documents`` maps old uuids of documents to new ones."""
    old = [party.uuid for party in definition.parties] + [field.uuid for field in definition.fields]
    fresh = {old_uuid: str(uuid.uuid4()) for old_uuid in old}

    def moved(conditions: Iterable[Condition]) -> list[Condition]:
        return [condition.model_copy(update={"field_uuid": fresh[condition.field_uuid]}) for condition in conditions]

    return Definition(
        parties=[Party(uuid=fresh[party.uuid], name=party.name) for party in definition.parties],
        fields=[
            references.renamed(field, fresh).model_copy(
                update={
                    "uuid": fresh[field.uuid],
                    "submitter_uuid": fresh[field.submitter_uuid],
                    "areas": [
                        area.model_copy(update={"attachment_uuid": documents[area.attachment_uuid]})
                        for area in field.areas
                    ],
                    "conditions": moved(field.conditions),
                }
            )
            for field in definition.fields
        ],
        conditions={documents[document]: moved(conditions) for document, conditions in definition.conditions.items()},
    )


def clone_name(name: str, suffix: str = " (Clone)") -> str:
    """The name of a copy, cut so that it is still a name."""
    return name[: LONGEST_NAME - len(suffix)] + suffix


def check_documents(count: int, limits: Limits) -> None:
    """Refuses a template without documents or with too many."""
    if count == 0:
        raise invalid("documents is required", "documents", "is required")
    if count > limits.documents:
        reason = f"must not have more than {limits.documents} entries"
        raise invalid(f"documents {reason}", "documents", reason)


def check_size(path: str, fields: Sequence[FieldInput | TagField | FieldDefinition], limits: Limits) -> None:
    """Refuses more fields, or more areas of fields, than a template may have."""
    counts = (
        ("fields", len(fields), limits.fields),
        ("areas", sum(len(field.areas) for field in fields), limits.areas),
    )
    for noun, count, limit in counts:
        if count > limit:
            reason = f"must not have more than {limit} {noun} in all (there are {count})"
            raise invalid(f"{path} {reason}", path, reason)


def check_roles(path: str, parties: Sequence[Party], limits: Limits) -> None:
    """Refuses more roles than a template may have."""
    if len(parties) > limits.roles:
        reason = f"must not have more than {limits.roles} roles"
        raise invalid(f"{path} {reason}", path, reason)


def _finished(
    roles: Roles,
    fields: FieldList,
    order: Sequence[str],
    path: str,
    problems: Problems,
    limits: Limits,
    entries: Sequence[DocumentConditions],
) -> Definition:
    ordered = fields.in_order(order)
    conditions = document_conditions.checked(entries, ordered, problems)
    fields.look_up(ordered, conditions)
    parties = roles.all()
    if not problems.entries:
        check_roles(path, parties, limits)
    return Definition(parties, ordered, fields.notices, problems.entries, conditions)


def _on_document(document: DocumentFields) -> PlaceOf:
    return lambda _area, _path: Place(document.uuid, document.pages)


def _on_documents(documents: Mapping[str, list[PageSize]], problems: Problems) -> PlaceOf:
    only = next(iter(documents)) if len(documents) == 1 else None

    def place(area: AreaInput, path: str) -> Place | None:
        document = area.attachment_uuid or only
        if document is None or document not in documents:
            problems.add(f"{path}.attachment_uuid", "must be the uuid of one of the template's documents")
            return None
        return Place(document, documents[document])

    return place


def _parties(uuids: list[str], chosen: list[str], path: str, problems: Problems, limits: Limits) -> list[Party]:
    suffix = ".name" if path == "submitters" else ""
    seen: set[str] = set()
    for i, name in enumerate(chosen):
        if not name:
            problems.add(f"{path}[{i}]{suffix}", "must not be blank")
        elif name.casefold() in seen:
            problems.add(f"{path}[{i}]{suffix}", f"repeats the role {name!r}")
        seen.add(name.casefold())
    if len(chosen) > limits.roles:
        problems.add(path, f"must not have more than {limits.roles} entries")
    problems.refuse()
    return [Party(uuid=party_uuid, name=name) for party_uuid, name in zip(uuids, chosen, strict=True)]
