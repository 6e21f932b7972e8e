"""One function per use case: load, decide, save, emit. What rendering has to say was asked before the transaction."""

import secrets
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import TEMPLATE_ARCHIVED, TEMPLATE_CREATED, TEMPLATE_UPDATED, Event, PreferencesGiven, PublicData
from contracts.rpc import templates as rpc
from contracts.runtime.database import for_update, insert_into
from contracts.runtime.outbox import emit, first_time, once
from contracts.types import Actor, FieldDefinition, PageSize, Party, Removed, Template, iso
from services.templates import domain, names, queries
from services.templates.access import may_change, require_owner, require_writer, visible_to
from services.templates.domain import Definition, Limits
from services.templates.links import LinkMaker
from services.templates.models import DocumentRow, Folder, TemplateRow
from services.templates.preparing import Ready
from services.templates.problems import Problems


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
        title, external_id = _names(command.name, command.external_id)
        row = _holder(session, external_id)
        if row is None:
            definition = domain.define([one.fields for one in ready], limits)
            chosen = title or (str(uuid.uuid4()) if command.html_documents else ready[0].name)
            row = _inserted(session, command, chosen, external_id, definition, now)
            if row is not None:
                _put_documents(row, ready, definition)
                session.flush()
                return _announced(session, TEMPLATE_CREATED, row, links, now)
            # Somebody else was faster; his template is there now.
            row = _holder(session, external_id)
        if row is None:
            raise ServiceError("unavailable", "The template was removed in the meantime, try again")
        _replace(session, row, command, title, ready, limits, now)
        return _announced(session, TEMPLATE_UPDATED, row, links, now)

    return once(session, rpc.CREATE, command.request_id, decide)


def update(session: Session, command: rpc.UpdateTemplate, links: LinkMaker, limits: Limits, now: datetime) -> Template:
    """Change what is set. ``null`` leaves alone, except ``external_id``, which it clears."""

    def decide() -> Template:
        require_writer(command.actor)
        row = queries.found(session, command.actor, command.id, lock=True)
        require_owner(command.actor, row)
        was_archived = row.archived_at is not None
        if not _changed(session, row, command, limits, now):
            return queries.as_template(row, row.documents, links.expiring(now))
        row.updated_at = now
        _flush(session)
        answer = _announced(session, TEMPLATE_UPDATED, row, links, now)
        if row.archived_at is not None and not was_archived:
            _announce(session, TEMPLATE_ARCHIVED, row, _archived_data(row))
        return answer

    return once(session, rpc.UPDATE, command.request_id, decide)


def keep_preferences(session: Session, event_id: str, given: PreferencesGiven, links: LinkMaker, now: datetime) -> None:
    """What was given with a submission becomes the template's (specification 2.8), if whoever gave it may change that."""
    if not first_time(session, "preferences_given", event_id):
        return
    wanted = sa.select(TemplateRow).where(TemplateRow.id == given.template_id, visible_to(given.actor))
    row = session.scalar(for_update(wanted))
    if row is None or not may_change(given.actor, row):
        return
    merged = {**row.preferences, **given.preferences}
    if merged != row.preferences:
        row.preferences, row.updated_at = merged, now
        _flush(session)
        _announced(session, TEMPLATE_UPDATED, row, links, now)


def remove(session: Session, command: rpc.RemoveTemplate, now: datetime) -> Removed:
    """Archive, or remove for good. Submissions have their own copy and live on; so do the files, which they use."""

    def decide() -> Removed:
        require_writer(command.actor)
        row = queries.found(session, command.actor, command.id, lock=True)
        require_owner(command.actor, row)
        if command.permanently:
            _announce(session, TEMPLATE_ARCHIVED, row, {"id": row.id, "archived_at": None})
            session.delete(row)
        elif row.archived_at is None:
            row.archived_at = row.updated_at = now
            _announce(session, TEMPLATE_ARCHIVED, row, _archived_data(row))
        return Removed(id=command.id, archived_at=None if command.permanently else row.archived_at)

    return once(session, rpc.REMOVE, command.request_id, decide)


def clone(session: Session, command: rpc.CloneTemplate, links: LinkMaker, now: datetime) -> Template:
    """A copy with the actor as author: same files, fields, folder and sharing, fresh uuids and slug."""

    def decide() -> Template:
        require_writer(command.actor)
        source = queries.found(session, command.actor, command.id)
        title, external_id = _names(command.name, command.external_id)
        if external_id is not None:
            queries.require_free(session, external_id)
        fresh = {document.uuid: str(uuid.uuid4()) for document in source.documents}
        definition = domain.cloned(_definition(source), fresh)
        folder = source.folder if command.folder_name is None else _folder(session, command.folder_name)
        copy = _inserted(
            session,
            rpc.CreateTemplate(request_id="", actor=command.actor, shared_link=source.shared_link),
            title or domain.clone_name(source.name),
            external_id,
            definition,
            now,
            folder=folder,
        )
        if copy is None:
            raise queries.taken()
        copy.preferences, copy.report = source.preferences, source.report
        for document in source.documents:
            copy.documents.append(_copied(document, fresh[document.uuid]))
        session.flush()
        return _announced(session, TEMPLATE_CREATED, copy, links, now)

    return once(session, rpc.CLONE, command.request_id, decide)


def _names(name: str | None, external_id: str | None) -> tuple[str, str | None]:
    problems = Problems()
    title = names.title(name or "", "name", problems)
    key = names.key(external_id or "", "external_id", problems) or None
    problems.refuse()
    return title, key


def _holder(session: Session, external_id: str | None) -> TemplateRow | None:
    if external_id is None:
        return None
    statement = sa.select(TemplateRow).where(TemplateRow.external_id == external_id)
    return session.scalar(statement.with_for_update(of=TemplateRow).execution_options(populate_existing=True))


def _inserted(
    session: Session,
    command: rpc.CreateTemplate,
    name: str,
    external_id: str | None,
    definition: Definition,
    now: datetime,
    folder: Folder | None = None,
) -> TemplateRow | None:
    """The new row, or None when another template got the ``external_id`` first."""
    insert = insert_into(session, TemplateRow).on_conflict_do_nothing(index_elements=["external_id"])
    folder = folder or _folder(session, command.folder_name)
    new_id = session.scalar(
        insert.values(
            slug=secrets.token_urlsafe(16),
            name=name,
            name_lower=names.searchable(name),
            external_id=external_id,
            folder_id=folder.id,
            shared_link=command.shared_link,
            parties=[party.model_dump(mode="json") for party in definition.parties],
            fields=[one.model_dump(mode="json") for one in definition.fields],
            preferences={},
            report=[],
            author_id=command.actor.user_id,
            author=_author(command.actor),
            sequence=0,
            created_at=now,
            updated_at=now,
        ).returning(TemplateRow.id)
    )
    return None if new_id is None else session.get_one(TemplateRow, new_id)


def _replace(
    session: Session,
    row: TemplateRow,
    command: rpc.CreateTemplate,
    title: str,
    ready: Sequence[Ready],
    limits: Limits,
    now: datetime,
) -> None:
    require_owner(command.actor, row)
    definition = domain.define([one.fields for one in ready], limits, _definition(row))
    _write(row, definition)
    row.documents.clear()
    session.flush()
    _put_documents(row, ready, definition)
    if title:
        _rename(row, title)
    if command.folder_name is not None:
        row.folder = _folder(session, command.folder_name)
    if "shared_link" in command.model_fields_set:
        row.shared_link = command.shared_link
    row.archived_at = None
    row.updated_at = now
    session.flush()


def _put_documents(row: TemplateRow, ready: Sequence[Ready], definition: Definition) -> None:
    for position, one in enumerate(ready):
        row.documents.append(
            DocumentRow(
                uuid=one.fields.uuid,
                position=position,
                name=one.name,
                file=one.file.model_dump(mode="json"),
                original=one.original.model_dump(mode="json"),
                pages=[page.model_dump(mode="json") for page in one.fields.pages],
                signed=one.signed,
            )
        )
    notices = [*(notice for one in ready for notice in one.report), *definition.notices]
    row.report = [notice.model_dump(mode="json") for notice in notices]


def _changed(session: Session, row: TemplateRow, command: rpc.UpdateTemplate, limits: Limits, now: datetime) -> bool:
    given = {name for name in command.model_fields_set if getattr(command, name) is not None}
    if given & {"roles", "submitters", "fields"}:
        _write(row, _redefined(row, command, limits))
    if command.name is not None:
        problems = Problems()
        title = names.title(command.name, "name", problems)
        if not title:
            problems.add("name", "must not be blank")
        problems.refuse()
        _rename(row, title)
    if "external_id" in command.model_fields_set:
        _title, row.external_id = _names(None, command.external_id)
        if row.external_id is not None:
            with session.no_autoflush:
                queries.require_free(session, row.external_id, but=row.id)
    if command.folder_name is not None:
        row.folder = _folder(session, command.folder_name)
    if command.shared_link is not None:
        row.shared_link = command.shared_link
    if command.archived is not None:
        row.archived_at = (row.archived_at or now) if command.archived else None
    return bool(given - {"request_id", "actor", "id"}) or "external_id" in command.model_fields_set


def _redefined(row: TemplateRow, command: rpc.UpdateTemplate, limits: Limits) -> Definition:
    present = _definition(row)
    parties = present.parties
    if command.submitters is not None:
        parties = domain.with_parties(parties, command.submitters, limits)
    if command.roles is not None:
        parties = domain.with_role_names(parties, command.roles, limits)
    if command.fields is None:
        return Definition(parties, domain.with_roles_written(present.fields, parties))
    documents = {one.uuid: [PageSize.model_validate(page) for page in one.pages] for one in row.documents}
    return domain.redefine(command.fields, parties, documents, limits)


def _definition(row: TemplateRow) -> Definition:
    return Definition(
        [Party.model_validate(one) for one in row.parties], [FieldDefinition.model_validate(one) for one in row.fields]
    )


def _write(row: TemplateRow, definition: Definition) -> None:
    row.parties = [party.model_dump(mode="json") for party in definition.parties]
    row.fields = [one.model_dump(mode="json") for one in definition.fields]


def _rename(row: TemplateRow, name: str) -> None:
    row.name, row.name_lower = name, names.searchable(name)


def _copied(document: DocumentRow, new_uuid: str) -> DocumentRow:
    return DocumentRow(
        uuid=new_uuid,
        position=document.position,
        name=document.name,
        file=document.file,
        original=document.original,
        pages=document.pages,
        signed=document.signed,
    )


def _folder(session: Session, name: str | None) -> Folder:
    """The folder of this name, made when it is not there; two requests at once make one."""
    problems = Problems()
    chosen = names.folder(names.title(name or "", "folder_name", problems))
    problems.refuse()
    statement = sa.select(Folder).where(Folder.name == chosen)
    if (folder := session.scalar(statement)) is not None:
        return folder
    session.execute(insert_into(session, Folder).values(name=chosen).on_conflict_do_nothing(index_elements=["name"]))
    return session.scalars(statement).one()


def _author(actor: Actor) -> dict[str, Any]:
    return {"id": actor.user_id, "email": actor.email, "first_name": actor.name or None, "last_name": None}


def _announced(session: Session, event: Event, row: TemplateRow, links: LinkMaker, now: datetime) -> Template:
    """Emit the event with the whole template in it; the answer is the same with links that expire."""
    _announce(session, event, row, queries.as_template(row, row.documents, links.lasting()).model_dump(mode="json"))
    return queries.as_template(row, row.documents, links.expiring(now))


def _announce(session: Session, event: Event, row: TemplateRow, data: dict[str, Any]) -> None:
    row.sequence += 1
    public = PublicData(data=data, author_id=row.author_id, template_id=row.id, shared=row.shared_link)
    emit(session, event, public, subject=f"template:{row.id}", sequence=row.sequence)


def _archived_data(row: TemplateRow) -> dict[str, Any]:
    return {"id": row.id, "archived_at": iso(row.archived_at) if row.archived_at else None}


def _flush(session: Session) -> None:
    try:
        session.flush()
    except IntegrityError as error:
        raise queries.taken() from error
