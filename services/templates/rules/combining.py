"""Several templates as one, several documents as one, and documents that come and go (specification 4.2).

Pure, like ``domain``: what becomes of roles, fields and areas.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from contracts.fields.formulas import references
from contracts.types import Area, Condition, FieldDefinition, Notice, PageSize, Party
from services.templates.rules import domain
from services.templates.rules.domain import Definition, Limits
from services.templates.rules.field_list import add_areas

T = TypeVar("T")


@dataclass(frozen=True)
class Paper:
    """A document as far as areas are concerned."""

    uuid: str
    name: str
    pages: Sequence[PageSize]


def combined(parts: Sequence[Definition], limits: Limits) -> Definition:
    """The roles and fields of several templates: roles of the same name are one role, fields of the same name, role and type
    one field with several areas, as the first of them says. Uuids must differ from part to part (``domain.cloned``)."""
    parties: dict[str, Party] = {}
    fields: list[FieldDefinition] = []
    field_by_party_and_name: dict[tuple[str, str], FieldDefinition] = {}
    instead: dict[str, str] = {}
    notices: list[Notice] = []
    for part in parts:
        roles = {party.uuid: parties.setdefault(party.name.casefold(), party) for party in part.parties}
        for field in part.fields:
            party = roles[field.submitter_uuid]
            moved = field.model_copy(update={"submitter_uuid": party.uuid, "role": party.name})
            same = field_by_party_and_name.setdefault((party.uuid, field.name), moved) if field.name else moved
            if same is not moved and same.type == moved.type:
                add_areas(same, moved)
                instead[moved.uuid] = same.uuid
                continue
            if same is not moved:
                message = f"two fields are called {field.name!r}: one of type {same.type}, one of type {field.type}"
                notices.append(Notice(code="name_used_twice", message=message))
            fields.append(moved)

    def following(conditions: Iterable[Condition]) -> list[Condition]:
        return [
            condition.model_copy(update={"field_uuid": instead.get(condition.field_uuid, condition.field_uuid)})
            for condition in conditions
        ]

    for field in fields:
        field.conditions = following(field.conditions)
        field.preferences = references.renamed(field, instead).preferences
    of_documents = {document: following(of) for part in parts for document, of in part.conditions.items()}
    domain.check_size("template_ids", fields, limits)
    domain.check_roles("template_ids", list(parties.values()), limits)
    return Definition(list(parties.values()), fields, notices, conditions=of_documents)


def joined(fields: Iterable[FieldDefinition], papers: Sequence[Paper], joined_uuid: str) -> list[FieldDefinition]:
    """The fields when all documents have become one, called ``joined_uuid``, one after the other."""
    before: dict[str, int] = {}
    count = 0
    for paper in papers:
        before[paper.uuid] = count
        count += len(paper.pages)

    def moved(area: Area) -> Area:
        return area.model_copy(
            update={"attachment_uuid": joined_uuid, "page": area.page + before[area.attachment_uuid]}
        )

    return [field.model_copy(update={"areas": [moved(area) for area in field.areas]}) for field in fields]


def without(definition: Definition, successors: Mapping[str, Paper | None]) -> Definition:
    """Return what is left when documents go. One that has a successor (not None) leaves its areas to it, as far as that has
    such pages. A field that loses its last area goes too, and so do conditions that name it; roles stay."""
    fields: list[FieldDefinition] = []
    notices: list[Notice] = []
    for field in definition.fields:
        areas = [
            area for area in (_moved(field, area, successors, notices) for area in field.areas) if area is not None
        ]
        if areas or not field.areas:
            fields.append(field.model_copy(update={"areas": areas}))
    uuids_left = {field.uuid for field in fields}
    for field in fields:
        remaining = [condition for condition in field.conditions if condition.field_uuid in uuids_left]
        if len(remaining) < len(field.conditions):
            message = (
                f"field {field.name!r} was shown under a condition on a field that is gone; that condition is gone, too"
            )
            notices.append(Notice(code="condition_dropped", message=message))
        field.conditions = remaining
        left = references.without(field, uuids_left).preferences
        if left != field.preferences:
            message = f"field {field.name!r} has a formula or a condition on a field that is gone; it is without it now"
            notices.append(Notice(code="condition_dropped", message=message))
        field.preferences = left
    conditions = {}
    for document, of_document in definition.conditions.items():
        conditions[document] = [condition for condition in of_document if condition.field_uuid in uuids_left]
        if len(conditions[document]) < len(of_document):
            message = "a document was shown under a condition on a field that is gone; that condition is gone, too"
            notices.append(Notice(code="condition_dropped", message=message))
    return Definition(definition.parties, fields, notices, conditions=conditions)


def placed(existing: Sequence[T], coming: Sequence[tuple[T, int | None]]) -> list[T]:
    """Return what is there, then what comes, in order; what names its position (from 0) is there in the end, if it can be."""
    result = [*existing, *(item for item, position in coming if position is None)]
    for position, item in sorted(((at, item) for item, at in coming if at is not None), key=lambda pair: pair[0]):
        result.insert(position, item)
    return result


def _moved(
    field: FieldDefinition, area: Area, successors: Mapping[str, Paper | None], notices: list[Notice]
) -> Area | None:
    if area.attachment_uuid not in successors:
        return area
    successor = successors[area.attachment_uuid]
    if successor is None:
        return None
    if area.page <= len(successor.pages) and successor.pages[area.page - 1].takes(area):
        return area.model_copy(update={"attachment_uuid": successor.uuid})
    if area.page <= len(successor.pages):
        message = (
            f"field {field.name!r} was on page {area.page} where the new document has no form field, and its signatures "
            "allow nothing else to be filled in; it was left out there"
        )
    else:
        message = f"field {field.name!r} was on page {area.page}, which the new document does not have, and was left out there"
    notices.append(Notice(code="area_off_page", message=message, document=successor.name, page=area.page))
    return None
