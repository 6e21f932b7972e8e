"""Conditions of documents (peer facts 4.3): a document is there only when fields have certain values. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.problems import Problems
from contracts.stored_documents import StoredDocument
from contracts.types import Condition, FieldDefinition
from services.templates.rules.field_list import check_actions


@dataclass(frozen=True)
class DocumentConditions:
    """The conditions of a document, and where they are in the request; None for those that it has already."""

    document_uuid: str
    conditions: Sequence[Condition]
    path: str | None = None


def checked(
    entries: Sequence[DocumentConditions], fields: Sequence[FieldDefinition], problems: Problems
) -> dict[str, list[Condition]]:
    """The conditions of the documents that have any, by the document's uuid. They must name fields that there are, and one of
    them that can be filled in before the document is seen."""
    by_uuid = {entry.uuid: entry for entry in fields}
    for entry in entries:
        if entry.path is not None:
            check_actions(entry.conditions, entry.path, problems)
        for i, condition in enumerate(entry.conditions):
            path = "fields" if entry.path is None else f"{entry.path}.conditions[{i}].field_uuid"
            field = by_uuid.get(condition.field_uuid)
            if field is None:
                reason = f"must keep the field {condition.field_uuid}, which a document's condition names"
                problems.add(path, reason if entry.path is None else "must be the uuid of a field of the template")
            elif field.areas and all(area.attachment_uuid == entry.document_uuid for area in field.areas):
                problems.add(path, f"must not leave {field.name!r} on no other document than the one it decides about")
    return {entry.document_uuid: list(entry.conditions) for entry in entries if entry.conditions}


def conditioned(
    documents: Sequence[StoredDocument], conditions: Mapping[str, Sequence[Condition]]
) -> list[StoredDocument]:
    """The documents with their ``conditions``, those by uuid."""
    return [
        document.model_copy(update={"conditions": list(conditions.get(document.uuid, ()))}) for document in documents
    ]


def of(documents: Sequence[StoredDocument]) -> dict[str, list[Condition]]:
    """The conditions of the documents that have any, by uuid."""
    return {document.uuid: document.conditions for document in documents if document.conditions}
