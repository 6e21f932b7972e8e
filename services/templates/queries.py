"""Reads, straight to contract models."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid, not_found
from contracts.fields import boxes
from contracts.fields.boxes import FieldBoxes
from contracts.fields.rules import LONGEST_NAME
from contracts.formats.folders import normalised
from contracts.links import FieldsOf
from contracts.rpc import templates as rpc
from contracts.runtime.data.database import for_update
from contracts.runtime.data.lists.listing import Listing
from contracts.runtime.data.lists.page import LARGEST_ID, page
from contracts.runtime.data.stored import as_stored, readable, reading
from contracts.stored_documents import StoredDocument
from contracts.types import Actor, FieldDefinition, Page, Pagination, Template
from services.templates.access import of_mode, visible_to
from services.templates.links import FileLinks, LinkMaker
from services.templates.models import DocumentRow, Folder, TemplateRow
from services.templates.rules import names


def template(session: Session, request: rpc.GetTemplate, links: LinkMaker, now: datetime) -> Template:
    """One template, archived or not."""
    row, documents = _row_and_documents(session, request)
    with reading(Template, row.id):
        return as_template(row, documents, links.expiring(now))


def templates(session: Session, request: rpc.ListTemplates, links: LinkMaker, now: datetime) -> Page[Template]:
    """A page, ids ascending. ``before`` gives the page nearest below the cursor."""
    if request.limit < 1:
        raise invalid("limit must be at least 1", "limit", "must be at least 1")
    listed = _listing(session, request)
    if listed is None:
        return Page(data=[], pagination=Pagination(count=0))
    rows = page(session, request, [listed], _ROWS)
    documents = _documents_of(session, [row.id for row in rows])
    ready = links.expiring(now)
    return Page(
        data=readable(Template, rows, lambda row: as_template(row, documents[row.id], ready)),
        pagination=Pagination.of([row.id for row in rows]),
    )


def snapshot(session: Session, request: rpc.GetTemplate) -> rpc.TemplateSnapshot:
    """All that a submission copies of a template."""
    return _snapshot(*_row_and_documents(session, request))


def shared(session: Session, request: rpc.GetSharedLink) -> rpc.TemplateSnapshot:
    """The same for somebody who has the shared link; an archived template is said to be."""
    row = session.execute(_ROWS.where(_columns.slug == request.slug, _columns.shared_link.is_(True))).one_or_none()
    if row is None:
        raise not_found("Template")
    return _snapshot(row, _documents_of(session, [row.id])[row.id])


def snapshot_for_link(session: Session, request: rpc.GetFieldBoxes) -> rpc.TemplateSnapshot:
    """Return the template that a document is of; for whoever has a link to its pictures."""
    return _snapshot(*_of_link(session, request))


def _of_link(session: Session, request: rpc.GetFieldBoxes) -> tuple[Any, Sequence[Any]]:
    row = session.execute(_ROWS.where(_columns.id == request.id)).one_or_none()
    documents = _documents_of(session, [request.id])[request.id] if row is not None else []
    if row is None or request.document_uuid not in {document.uuid for document in documents}:
        raise not_found("Document")
    return row, documents


def field_boxes(session: Session, request: rpc.GetFieldBoxes) -> FieldBoxes:
    """Return where the fields are on a document, as it is now; for whoever has a link to its pictures."""
    row, documents = _of_link(session, request)
    fields = [FieldDefinition.model_validate(field) for field in row.fields]
    roles = [party["uuid"] for party in row.parties]
    return FieldBoxes(boxes=boxes.field_boxes(fields, roles, request.document_uuid, documents[0].uuid))


def _snapshot(row: Any, documents: Sequence[Any]) -> rpc.TemplateSnapshot:
    return rpc.TemplateSnapshot.model_validate(
        {
            "id": row.id,
            "name": row.name,
            "external_id": row.external_id,
            "folder_name": row.folder_name,
            "slug": row.slug,
            "archived": row.archived_at is not None,
            "shared_link": row.shared_link,
            "author_id": row.author_id,
            "parties": row.parties,
            "fields": row.fields,
            "documents": [stored(document) for document in documents],
            "preferences": row.preferences,
            "test": row.test,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
    )


def snapshots(session: Session, request: rpc.ComposeDocuments) -> list[rpc.TemplateSnapshot]:
    """All of several templates, in order; raises ServiceError when one is not there for the actor, or archived."""
    results = [snapshot(session, rpc.GetTemplate(actor=request.actor, id=number)) for number in request.template_ids]
    for i, result in enumerate(results):
        if result.archived:
            raise invalid("Template has been archived", f"template_ids[{i}]", "is archived")
    return results


# What is only shown is read as plain rows: as objects that could be changed it costs three times as much.
_TEMPLATES = cast("sa.Table", TemplateRow.__table__)
_columns = _TEMPLATES.c
_ROWS = sa.select(TemplateRow.__table__, Folder.__table__.c.name.label("folder_name")).join(Folder.__table__)
_DOCUMENTS = sa.select(DocumentRow.__table__).order_by(DocumentRow.__table__.c.position)


def _row_and_documents(session: Session, request: rpc.GetTemplate) -> tuple[Any, Sequence[Any]]:
    """The row and its documents, or ServiceError("not_found") when it is not there for this actor."""
    if not 0 < request.id <= LARGEST_ID:
        raise not_found("Template")
    row = session.execute(_ROWS.where(_columns.id == request.id, visible_to(request.actor))).one_or_none()
    if row is None:
        raise not_found("Template")
    return row, _documents_of(session, [row.id])[row.id]


def _documents_of(session: Session, template_ids: list[int]) -> dict[int, list[Any]]:
    """The documents of each of these templates, in order."""
    by_template: dict[int, list[Any]] = {template_id: [] for template_id in template_ids}
    for document in session.execute(_DOCUMENTS.where(DocumentRow.__table__.c.template_id.in_(template_ids))):
        by_template[document.template_id].append(document)
    return by_template


def holder_of(session: Session, external_id: str, actor: Actor) -> int | None:
    """The author of the template that has this key, whoever may see it; a test template does not keep it from a live key."""
    which = (TemplateRow.external_id == external_id, of_mode(actor))
    return session.scalar(sa.select(TemplateRow.author_id).where(*which))


def holder(session: Session, external_id: str | None, *, lock: bool = False) -> TemplateRow | None:
    """The template that has this key, whoever may see it. ``lock`` it before changing it: one that appears between locking and
    reading would not be locked, and is not there."""
    if external_id is None or (lock and not _lock(session, _columns.external_id == external_id)):
        return None
    statement = sa.select(TemplateRow).where(TemplateRow.external_id == external_id)
    return session.scalar(statement, execution_options={"populate_existing": lock})


def visible_template(session: Session, actor: Actor, template_id: int, *, lock: bool = False) -> TemplateRow:
    """The template, or ServiceError("not_found") when it is not there for this actor. ``lock`` it before changing it."""
    if not 0 < template_id <= LARGEST_ID:
        raise not_found("Template")
    conditions = (TemplateRow.id == template_id, visible_to(actor))
    if lock:
        if session.scalar(sa.select(_columns.id).where(*conditions)) is None:  # nobody waits for what they may not see
            raise not_found("Template")
        if not _lock(session, _columns.id == template_id):
            raise not_found("Template")
    row = session.scalar(sa.select(TemplateRow).where(*conditions), execution_options={"populate_existing": lock})
    if row is None:
        raise not_found("Template")
    return row


def _lock(session: Session, which: sa.ColumnElement[bool]) -> bool:
    """Lock a template until the transaction ends; returns whether it is there. It is read afterwards: PostgreSQL would look for
    the folder that it was in before, and read and locked in one statement, a template that is moved in the meantime is not
    there."""
    return session.scalar(for_update(sa.select(_columns.id).where(which))) is not None


def as_template(row: Any, of_row: Sequence[Any], links: FileLinks) -> Template:
    """The public form of a row, or object, and its documents."""
    documents = [_document(document, links) for document in of_row]
    return as_stored(
        Template,
        id=row.id,
        slug=row.slug,
        name=row.name,
        external_id=row.external_id,
        application_key=row.external_id,
        folder_id=row.folder_id,
        folder_name=row.folder_name,
        roles=[party["name"] for party in row.parties],
        submitters=row.parties,
        fields=row.fields,
        documents=documents,
        schema=[
            {"attachment_uuid": document.uuid, "name": document.name, "conditions": document.conditions or []}
            for document in of_row
        ],
        variables_schema={
            name: schema for document in of_row if document.docx for name, schema in document.docx["variables"].items()
        },
        preferences=row.preferences,
        shared_link=row.shared_link,
        archived=row.archived_at is not None,
        archived_at=row.archived_at,
        author_id=row.author_id,
        author=row.author,
        report=row.report,
        test=row.test,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _listing(session: Session, request: rpc.ListTemplates) -> Listing | None:
    """None when nothing can match."""
    if request.q and len(request.q) > LONGEST_NAME:
        return None
    exact: list[sa.ColumnElement[bool]] = [
        _columns.archived_at.is_not(None) if request.archived else _columns.archived_at.is_(None)
    ]
    if request.folder is not None:
        # Asked for apart: the database must know which folder it is to see how many templates are in it.
        folders = Folder.__table__.c
        folder = session.scalar(sa.select(folders.id).where(folders.name == normalised(request.folder)))
        if folder is None:
            return None
        exact.append(_columns.folder_id == folder)
    if request.external_id is not None:
        exact.append(_columns.external_id == request.external_id)
    if request.slug is not None:
        exact.append(_columns.slug == request.slug)
    if request.shared:
        exact.append(_columns.shared_link.is_(True))
    return Listing(
        table=_TEMPLATES,
        exact=exact,
        filters=[] if request.actor.sees_all else [visible_to(request.actor)],
        common=[of_mode(request.actor)],
        text=_columns.name_lower,
        term=names.searchable(request.q or ""),
    )


def is_of_test(session: Session, actor: Actor, external_id: str) -> bool:
    """Tell whether a test template has the key and would lose it to what is made with this one (``take_from_test``)."""
    test_template = sa.exists().where(TemplateRow.external_id == external_id, TemplateRow.test)
    return not actor.test and bool(session.scalar(sa.select(test_template)))


def take_from_test(session: Session, actor: Actor, external_id: str) -> None:
    """Take the key from a test template when a live one is to have it: what is done with a live key goes before."""
    if not actor.test:
        statement = sa.update(TemplateRow).where(TemplateRow.external_id == external_id, TemplateRow.test)
        session.execute(statement.values(external_id=None))


def _document(row: Any, links: FileLinks) -> dict[str, Any]:
    file = BlobRef.model_validate(row.file)
    return {
        "id": row.id,
        "uuid": row.uuid,
        "name": row.name,
        "filename": names.file_name(row.name),
        "url": links.to_file(file, row.name),
        "preview_image_url": links.to_preview(file, row.name, FieldsOf("templates", row.template_id, row.uuid)),
        "sha256": file.sha256,
        "original_sha256": row.original["sha256"],
        "pages": row.pages,
    }


def stored(row: Any) -> StoredDocument:
    """A row of a document as it goes to other services."""
    return StoredDocument.model_validate(
        {
            "uuid": row.uuid,
            "name": row.name,
            "file": row.file,
            "original": row.original,
            "pages": row.pages,
            "signed": row.signed,
            "docx": row.docx,
            "conditions": row.conditions or [],
        }
    )


def require_free(session: Session, external_id: str, but: int | None = None) -> None:
    """Raises ServiceError("invalid") when another template has this key."""
    statement = sa.select(_columns.id).where(_columns.external_id == external_id, _columns.id != (but or 0))
    if session.scalar(statement) is not None:
        raise external_id_taken()


def external_id_taken() -> ServiceError:
    return invalid("external_id belongs to another template", "external_id", "belongs to another template")
