"""Conditions of documents (peer facts 4.3): a document is there only when fields have certain values. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.problems import Problems
from contracts.stored_documents import StoredDocument
from contracts.types import Condition, FieldDefinition
from services.templates.rules.field_list import check_actions


@dataclass(frozen=True)
class Asked:
    """The conditions of a document, and where they are in the request; None for those that it has already."""

    document_uuid: str
    conditions: Sequence[Condition]
    path: str | None = None


def checked(
    asked: Sequence[Asked], fields: Sequence[FieldDefinition], problems: Problems
) -> dict[str, list[Condition]]:
    """The conditions of the documents that have any, by the document's uuid. They must name fields that there are, and one of
    them that can be filled in before the document is seen."""
    known = {one.uuid: one for one in fields}
    for one in asked:
        if one.path is not None:
            check_actions(one.conditions, one.path, problems)
        for i, condition in enumerate(one.conditions):
            path = "fields" if one.path is None else f"{one.path}.conditions[{i}].field_uuid"
            field = known.get(condition.field_uuid)
            if field is None:
                kept = f"must keep the field {condition.field_uuid}, which a document's condition names"
                problems.add(path, kept if one.path is None else "must be the uuid of a field of the template")
            elif field.areas and all(area.attachment_uuid == one.document_uuid for area in field.areas):
                problems.add(path, f"must not leave {field.name!r} on no other document than the one it decides about")
    return {one.document_uuid: list(one.conditions) for one in asked if one.conditions}


def conditioned(
    documents: Sequence[StoredDocument], conditions: Mapping[str, Sequence[Condition]]
) -> list[StoredDocument]:
    """The documents with their ``conditions``, those by uuid."""
    return [one.model_copy(update={"conditions": list(conditions.get(one.uuid, ()))}) for one in documents]


def of(documents: Sequence[StoredDocument]) -> dict[str, list[Condition]]:
    """The conditions of the documents that have any, by uuid."""
    return {one.uuid: one.conditions for one in documents if one.conditions}
