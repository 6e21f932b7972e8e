"""One function per use case: load, decide, save, emit. What rendering has to say was asked before the transaction."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import TEMPLATE_ARCHIVED, TEMPLATE_CREATED
from contracts.problems import Problems
from contracts.rpc import templates as rpc
from contracts.rpc.unchanged import require_unchanged
from contracts.runtime.bus.outbox import once
from contracts.stored_documents import StoredDocument
from contracts.types import Notice, PageSize, Removed, Template, iso
from services.templates import queries, store
from services.templates.access import require_owner, require_writer
from services.templates.commands import preferences, test_mode
from services.templates.intake.preparing import Ready
from services.templates.links import LinkMaker
from services.templates.models import TemplateRow
from services.templates.rules import domain, names
from services.templates.rules.document_conditions import DocumentConditions, conditioned
from services.templates.rules.domain import Definition, Limits


def create(
    session: Session,
    command: rpc.CreateTemplate,
    ready: Sequence[Ready],
    links: LinkMaker,
    limits: Limits,
    now: datetime,
) -> Template:
    """A new template, or new documents for the one with the same ``external_id`` (then active again, if it was archived)."""

    def decide() -> Template:
        require_writer(command.actor)
        title, external_id = store.checked_names(command.name, command.external_id)
        if external_id is not None:
            queries.take_from_test(session, command.actor, external_id)
        row = queries.holder(session, external_id, lock=True)
        if row is None:
            definition = domain.define([prepared.fields for prepared in ready], limits)
            chosen = title or (str(uuid.uuid4()) if command.html_documents else ready[0].name)
            row = store.inserted(session, command, chosen, external_id, definition, now)
            if row is not None:
                store.put_documents(row, _stored(ready, definition), _report(ready, definition))
                session.flush()
                test_mode.record_files(session, row, _keys(ready))
                return store.announced(session, TEMPLATE_CREATED, row, links, now)
            # Somebody else was faster; their template is there now.
            row = queries.holder(session, external_id, lock=True)
        if row is None:
            raise ServiceError("unavailable", "The template was removed in the meantime. Try again.")
        before = store.definition_of(row)
        _replace(session, row, command, title, ready, limits, before, now)
        return store.announced_change(session, row, before, command.refuse_breaking, links, now)

    return once(session, rpc.CREATE, command.request_id, decide)


def update(session: Session, command: rpc.UpdateTemplate, links: LinkMaker, limits: Limits, now: datetime) -> Template:
    """Change what is set. ``null`` leaves alone, except ``external_id``, which it clears."""

    def decide() -> Template:
        require_writer(command.actor)
        row = queries.visible_template(session, command.actor, command.id, lock=True)
        require_owner(command.actor, row)
        _require_unchanged(session, command, links, now)
        was_archived, before = row.archived_at is not None, store.definition_of(row)
        if not _changed(session, row, command, limits, now):
            return queries.as_template(row, row.documents, links.expiring(now))
        store.touch(row, now)
        _flush(session)
        answer = store.announced_change(session, row, before, command.refuse_breaking, links, now)
        if row.archived_at is not None and not was_archived:
            store.announce(session, TEMPLATE_ARCHIVED, row, _archived_data(row))
        return answer

    return once(session, rpc.UPDATE, command.request_id, decide)


def remove(session: Session, command: rpc.RemoveTemplate, links: LinkMaker, now: datetime) -> Removed:
    """Archive, or remove for good. Submissions have their own copy and live on; so do the files, which they use."""

    def decide() -> Removed:
        require_writer(command.actor)
        row = queries.visible_template(session, command.actor, command.id, lock=True)
        require_owner(command.actor, row)
        _require_unchanged(session, command, links, now)
        if command.permanently:
            store.announce(session, TEMPLATE_ARCHIVED, row, {"id": row.id, "archived_at": None})
            session.delete(row)
        elif row.archived_at is None:
            row.archived_at = now
            store.touch(row, now)
            store.announce(session, TEMPLATE_ARCHIVED, row, _archived_data(row))
        return Removed(id=command.id, archived_at=None if command.permanently else row.archived_at)

    return once(session, rpc.REMOVE, command.request_id, decide)


def _require_unchanged(
    session: Session, command: rpc.UpdateTemplate | rpc.RemoveTemplate, links: LinkMaker, now: datetime
) -> None:
    question = rpc.GetTemplate(actor=command.actor, id=command.id)
    require_unchanged(command.expected_state, rpc.GET, lambda: queries.template(session, question, links, now))


def clone(session: Session, command: rpc.CloneTemplate, links: LinkMaker, now: datetime) -> Template:
    """A copy with the actor as author: same files, fields, folder and sharing, fresh uuids and slug."""

    def decide() -> Template:
        require_writer(command.actor)
        source = queries.visible_template(session, command.actor, command.id)
        title, external_id = store.checked_names(command.name, command.external_id)
        if external_id is not None:
            queries.take_from_test(session, command.actor, external_id)
            queries.require_free(session, external_id)
        fresh = {document.uuid: str(uuid.uuid4()) for document in source.documents}
        definition = domain.cloned(store.definition_of(source), fresh)
        folder = (
            source.folder
            if command.folder_name is None
            else store.folder_named(session, command.actor, command.folder_name)
        )
        copy = store.inserted(
            session,
            rpc.CreateTemplate(request_id="", actor=command.actor, shared_link=source.shared_link),
            title or domain.clone_name(source.name),
            external_id,
            definition,
            now,
            folder=folder,
        )
        if copy is None:
            raise queries.external_id_taken()
        copy.preferences = source.preferences
        documents = [
            document.model_copy(update={"uuid": fresh[document.uuid]}) for document in renamed(command, source)
        ]
        documents = conditioned(documents, definition.conditions)
        new_names = {old.name: new.name for old, new in zip(source.documents, documents, strict=True)}
        report = [Notice.model_validate(notice) for notice in source.report]
        notices = [
            notice.model_copy(update={"document": new_names.get(notice.document or "", notice.document)})
            for notice in report
        ]
        store.put_documents(copy, documents, notices)
        session.flush()
        return store.announced(session, TEMPLATE_CREATED, copy, links, now)

    return once(session, rpc.CLONE, command.request_id, decide)


def renamed(command: rpc.CloneTemplate, source: TemplateRow) -> list[StoredDocument]:
    """The documents of ``source`` as the copy calls them."""
    problems = Problems()
    if len(command.document_names) > len(source.documents):
        problems.add(
            "documents", f"must not have more than {len(source.documents)} entries, as the template has documents"
        )
    documents = []
    for i, document in enumerate(map(queries.stored, source.documents)):
        title = command.document_names[i] if i < len(command.document_names) else None
        name = names.document(names.title(title or "", f"documents[{i}].name", problems))
        documents.append(document.model_copy(update={"name": name or document.name}))
    problems.refuse()
    return documents


def _replace(
    session: Session,
    row: TemplateRow,
    command: rpc.CreateTemplate,
    title: str,
    ready: Sequence[Ready],
    limits: Limits,
    before: Definition,
    now: datetime,
) -> None:
    require_owner(command.actor, row)
    definition = domain.define([prepared.fields for prepared in ready], limits, before)
    store.write(row, definition)
    store.put_documents(row, _stored(ready, definition), _report(ready, definition))
    if title:
        store.rename(row, title)
    if command.folder_name is not None:
        row.folder = store.folder_named(session, command.actor, command.folder_name)
    if "shared_link" in command.model_fields_set:
        row.shared_link = command.shared_link
    row.archived_at = None
    store.touch(row, now)
    session.flush()
    test_mode.record_files(session, row, _keys(ready))


def _changed(session: Session, row: TemplateRow, command: rpc.UpdateTemplate, limits: Limits, now: datetime) -> bool:
    keys = {name for name in command.model_fields_set if getattr(command, name) is not None}
    if keys & {"roles", "submitters", "fields", "document_schema"}:
        definition = _redefined(row, command, limits)
        store.write(row, definition)
        store.set_conditions(row, definition)
    if command.name is not None:
        problems = Problems()
        title = names.title(command.name, "name", problems)
        if not title:
            problems.add("name", "must not be blank")
        problems.refuse()
        store.rename(row, title)
    if "external_id" in command.model_fields_set:
        _title, row.external_id = store.checked_names(None, command.external_id)
        if row.external_id is not None:
            with session.no_autoflush:
                queries.take_from_test(session, command.actor, row.external_id)
                queries.require_free(session, row.external_id, but=row.id)
    if command.folder_name is not None:
        row.folder = store.folder_named(session, command.actor, command.folder_name)
    if command.shared_link is not None:
        row.shared_link = command.shared_link
    if command.preferences is not None:
        row.preferences = preferences.merged(row.preferences, command.preferences)
    if command.archived is not None:
        row.archived_at = (row.archived_at or now) if command.archived else None
    return bool(keys - {"request_id", "actor", "id", "refuse_breaking"}) or "external_id" in command.model_fields_set


def _redefined(row: TemplateRow, command: rpc.UpdateTemplate, limits: Limits) -> Definition:
    present = store.definition_of(row)
    parties = present.parties
    if command.submitters is not None:
        parties = domain.with_parties(parties, command.submitters, limits)
    if command.roles is not None:
        parties = domain.with_role_names(parties, command.roles, limits)
    document_conditions = _conditions_after(present, command, [document.uuid for document in row.documents])
    if command.fields is None:
        fields = domain.with_roles_written(present.fields, parties)
        return domain.with_conditions(Definition(parties, fields), document_conditions)
    documents = {
        document.uuid: [PageSize.model_validate(page) for page in document.pages] for document in row.documents
    }
    return domain.redefine(command.fields, parties, documents, document_conditions, limits, present.fields)


def _conditions_after(
    present: Definition, command: rpc.UpdateTemplate, documents: Sequence[str]
) -> list[DocumentConditions]:
    """The conditions of documents after the change; those of documents that ``schema`` does not name stay."""
    problems = Problems()
    by_document = {uuid: DocumentConditions(uuid, conditions) for uuid, conditions in present.conditions.items()}
    for i, item in enumerate(command.document_schema or ()):
        if item.attachment_uuid not in documents:
            problems.add(f"schema[{i}].attachment_uuid", "must be the uuid of one of the template's documents")
        by_document[item.attachment_uuid] = DocumentConditions(item.attachment_uuid, item.conditions, f"schema[{i}]")
    problems.refuse()
    return list(by_document.values())


def _stored(ready: Sequence[Ready], definition: Definition) -> list[StoredDocument]:
    return conditioned([prepared.stored for prepared in ready], definition.conditions)


def _report(ready: Sequence[Ready], definition: Definition) -> list[Notice]:
    return [*(notice for prepared in ready for notice in prepared.report), *definition.notices]


def _keys(ready: Sequence[Ready]) -> list[str]:
    return [file.key for prepared in ready for file in (prepared.stored.file, prepared.stored.original)]


def _archived_data(row: TemplateRow) -> dict[str, Any]:
    return {"id": row.id, "archived_at": iso(row.archived_at) if row.archived_at else None}


def _flush(session: Session) -> None:
    try:
        session.flush()
    except IntegrityError as error:
        raise queries.external_id_taken() from error
