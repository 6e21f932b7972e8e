"""A template with variables in its DOCX documents, filled for one submission.

The documents are laid out anew, so that fields which are written into them are where the new text puts them: they may be
more (a loop), fewer (a condition) or on other pages. What was placed by hand stays where it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from contracts.blobs import DOCX, INCOMING
from contracts.errors import ServiceError, invalid
from contracts.fields.formulas import references
from contracts.rpc import rendering
from contracts.rpc.rendering import TagField
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.stored_documents import DocxSource, StoredDocument, WrittenField
from contracts.types import Area, FieldDefinition
from services.templates.intake.preparing import Bus
from services.templates.rules import domain
from services.templates.rules.domain import Definition, DocumentFields, Limits

_SAME_PLACE = 0.002
"""Of the page: what rounding may change."""

Conditional = TypeVar("Conditional", FieldDefinition, StoredDocument)

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
            prepared: rendering.PreparedDocument = bus.call(rendering.PREPARE_DOCX, request)
            return prepared
        except ServiceError as error:
            if error.status >= 500:
                raise
            raise invalid(f"{document.name}: {error.message}", "variables", error.message) from error
        finally:
            blobs.delete(incoming.key)

    return render


def filled(snapshot: TemplateSnapshot, render: Render, limits: Limits) -> TemplateSnapshot:
    """The snapshot with its DOCX documents filled; roles, fields and documents keep their uuids."""
    sources = {document.uuid: document.docx for document in snapshot.documents if document.docx is not None}
    if not sources:
        return snapshot
    rendered = {document.uuid: render(document) for document in snapshot.documents if document.uuid in sources}
    documents = [
        _document(document, rendered[document.uuid]) if document.uuid in rendered else document
        for document in snapshot.documents
    ]
    writings = {uuid: _Writing(uuid, source, snapshot) for uuid, source in sources.items()}
    by_hand = [_by_hand(field, writings.values()) for field in snapshot.fields]
    _check_pages(by_hand, documents)
    new_fields = [
        DocumentFields(
            uuid=document.uuid,
            name=document.name,
            path="variables",
            part=document.name,
            pages=document.pages,
            explicit=(),
            tag_fields=writings[document.uuid].of_template(rendered[document.uuid].fields),
        )
        for document in documents
        if document.uuid in rendered
    ]
    order = [document.uuid for document in documents]
    definition = domain.extended(Definition(snapshot.parties, by_hand), new_fields, order, limits)
    before = {field.uuid for field in snapshot.fields if field.areas}
    vanished = {field.uuid for field in definition.fields if not field.areas and field.uuid in before}
    left = [field for field in definition.fields if field.uuid not in vanished]
    remaining_uuids = {field.uuid for field in left}
    fields = [_without(references.without(field, remaining_uuids), vanished) for field in left]
    documents = [_without(document, vanished) for document in documents]
    return snapshot.model_copy(update={"documents": documents, "parties": definition.parties, "fields": fields})


def _document(document: StoredDocument, rendered: rendering.PreparedDocument) -> StoredDocument:
    return document.model_copy(update={"file": rendered.file, "pages": rendered.pages, "docx": None})


class _Writing:
    """Which field of the template each field written into a DOCX is. The template may have renamed it, or its role, or have
    removed it: then it stays so."""

    def __init__(self, document: str, source: DocxSource, snapshot: TemplateSnapshot) -> None:
        self.document = document
        self._first = snapshot.parties[0].name if snapshot.parties else ""
        self._known = {_key(field.name, field.role): self._field(field, snapshot.fields) for field in source.written}
        self._roles = {
            other.role.casefold(): field.role
            for other in source.written
            if other.role and (field := self._known[_key(other.name, other.role)]) is not None
        }
        self.uuids = {field.uuid for field in self._known.values() if field is not None}

    def of_template(self, tags: Sequence[TagField]) -> list[TagField]:
        """Return what was found in the filled document, called as the template calls it."""
        fields = []
        for tag in tags:
            key = _key(tag.name, tag.role)
            field = self._known.get(key)
            if field is not None:
                fields.append(tag.model_copy(update={"name": field.name, "role": field.role}))
            elif key not in self._known:
                role = self._roles.get(tag.role.casefold(), tag.role) if tag.role else None
                fields.append(tag.model_copy(update={"role": role}))
        return fields

    def _field(self, written: WrittenField, fields: Sequence[FieldDefinition]) -> FieldDefinition | None:
        """The one at the same place, or else the one of the same name and role."""
        fields_on_document = [
            field for field in fields if any(area.attachment_uuid == self.document for area in field.areas)
        ]
        for field in fields_on_document:
            if any(_is_at(area, place) for area in self._here(field) for place in written.areas):
                return field
        role = (written.role or self._first).casefold()
        return next(
            (
                document
                for document in fields_on_document
                if document.name == written.name and document.role.casefold() == role
            ),
            None,
        )

    def _here(self, field: FieldDefinition) -> list[Area]:
        return [area for area in field.areas if area.attachment_uuid == self.document]


def _key(name: str, role: str | None) -> tuple[str, str]:
    return name, (role or "").casefold()


def _is_at(area: Area, place: Area) -> bool:
    return area.page == place.page and abs(area.x - place.x) < _SAME_PLACE and abs(area.y - place.y) < _SAME_PLACE


def _by_hand(field: FieldDefinition, writings: Iterable[_Writing]) -> FieldDefinition:
    """The field without its places in the documents that it is written into."""
    written_into = {writing.document for writing in writings if field.uuid in writing.uuids}
    areas = [area for area in field.areas if area.attachment_uuid not in written_into]
    return field if len(areas) == len(field.areas) else field.model_copy(update={"areas": areas})


def _check_pages(fields: Sequence[FieldDefinition], documents: Sequence[StoredDocument]) -> None:
    pages = {document.uuid: (len(document.pages), document.name) for document in documents}
    for field in fields:
        for area in field.areas:
            count, name = pages[area.attachment_uuid]
            if area.page > count:
                reason = f"leave {name!r} with {count} pages, but the field {field.name!r} is on page {area.page}"
                raise invalid(f"variables {reason}", "variables", reason)


def _without(conditional: Conditional, vanished: set[str]) -> Conditional:
    """Without conditions on fields that are not there."""
    remaining = [condition for condition in conditional.conditions if condition.field_uuid not in vanished]
    return (
        conditional
        if len(remaining) == len(conditional.conditions)
        else conditional.model_copy(update={"conditions": remaining})
    )
