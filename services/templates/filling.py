"""A template with variables in its DOCX documents, filled for one submission.

The documents are laid out anew, so that fields which are written into them are where the new text puts them: they may be
more (a loop), fewer (a condition) or on other pages. What was placed by hand stays where it is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contracts.blobs import DOCX, INCOMING
from contracts.errors import ServiceError, invalid
from contracts.rpc import rendering
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.blobstore import BlobStore
from contracts.types import DocxSource, FieldDefinition, StoredDocument
from services.templates import domain
from services.templates.domain import Definition, DocumentFields, Limits
from services.templates.preparing import Bus

Render = Callable[[StoredDocument], rendering.PreparedDocument]


def renderer(bus: Bus, blobs: BlobStore, variables: Mapping[str, Any]) -> Render:
    """Lays one document out with these variables; what it makes is among the incoming files."""

    def render(document: StoredDocument) -> rendering.PreparedDocument:
        source = document.docx
        assert source is not None, "only these are asked for"
        incoming = blobs.put(blobs.get(document.original), DOCX, INCOMING)  # what is made lies beside it
        try:
            request = rendering.PrepareDocx(
                name=document.name, file=incoming, variables=dict(variables), remove_tags=source.remove_tags
            )
            made: rendering.PreparedDocument = bus.call(rendering.PREPARE_DOCX, request)
            return made
        except ServiceError as error:
            if error.status >= 500:
                raise
            raise invalid(f"{document.name}: {error.message}", "variables", error.message) from error
        finally:
            blobs.delete(incoming.key)

    return render


def filled(snapshot: TemplateSnapshot, render: Render, limits: Limits) -> TemplateSnapshot:
    """The snapshot with its DOCX documents filled; roles, fields and documents keep their uuids."""
    sources = {one.uuid: one.docx for one in snapshot.documents if one.docx is not None}
    if not sources:
        return snapshot
    made = {one.uuid: render(one) for one in snapshot.documents if one.uuid in sources}
    documents = [_document(one, made[one.uuid]) if one.uuid in made else one for one in snapshot.documents]
    first = snapshot.parties[0].name if snapshot.parties else ""
    by_hand = [_by_hand(one, sources, first) for one in snapshot.fields]
    _check_pages(by_hand, documents)
    found = [
        DocumentFields(
            uuid=one.uuid,
            name=one.name,
            path="variables",
            part="",
            pages=one.pages,
            explicit=(),
            found=made[one.uuid].fields,
        )
        for one in documents
        if one.uuid in made
    ]
    order = [one.uuid for one in documents]
    definition = domain.extended(Definition(snapshot.parties, by_hand), found, order, limits)
    before = {one.uuid for one in snapshot.fields if one.areas}
    gone = {one.uuid for one in definition.fields if not one.areas and one.uuid in before}
    fields = [_without(one, gone) for one in definition.fields if one.uuid not in gone]
    return snapshot.model_copy(update={"documents": documents, "parties": definition.parties, "fields": fields})


def _document(document: StoredDocument, made: rendering.PreparedDocument) -> StoredDocument:
    return document.model_copy(update={"file": made.file, "pages": made.pages, "docx": None})


def _by_hand(field: FieldDefinition, sources: Mapping[str, DocxSource], first_role: str) -> FieldDefinition:
    """The field without its places in the documents that it is written into."""
    written = {
        document
        for document, source in sources.items()
        for name, role in source.tags
        if name == field.name and (role or first_role).casefold() == field.role.casefold()
    }
    areas = [area for area in field.areas if area.attachment_uuid not in written]
    return field if len(areas) == len(field.areas) else field.model_copy(update={"areas": areas})


def _check_pages(fields: Sequence[FieldDefinition], documents: Sequence[StoredDocument]) -> None:
    pages = {one.uuid: (len(one.pages), one.name) for one in documents}
    for field in fields:
        for area in field.areas:
            count, name = pages[area.attachment_uuid]
            if area.page > count:
                reason = f"leave {name!r} with {count} pages, but the field {field.name!r} is on page {area.page}"
                raise invalid(f"variables {reason}", "variables", reason)


def _without(field: FieldDefinition, gone: set[str]) -> FieldDefinition:
    """Without conditions on fields that are not there."""
    kept = [condition for condition in field.conditions if condition.field_uuid not in gone]
    return field if len(kept) == len(field.conditions) else field.model_copy(update={"conditions": kept})
