"""Templates to rows and to events: what every command needs, in the transaction of the command."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import TEMPLATE_UPDATED, Event, PublicData
from contracts.problems import Problems
from contracts.rpc import templates as rpc
from contracts.runtime.bus.outbox import emit
from contracts.runtime.data.database import insert_into
from contracts.stored_documents import StoredDocument
from contracts.types import Actor, FieldDefinition, Notice, Party, Template
from services.templates import queries
from services.templates.access import chosen_folder
from services.templates.links import LinkMaker
from services.templates.models import DocumentRow, Folder, TemplateRow
from services.templates.rules import contract, document_conditions, names
from services.templates.rules.domain import Definition


def inserted(
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
    folder = folder or folder_named(session, command.actor, command.folder_name)
    if external_id is not None:
        queries.take_from_test(session, command.actor, external_id)
    new_id = session.scalar(
        insert.values(
            slug=secrets.token_urlsafe(16),
            name=name,
            name_lower=names.searchable(name),
            external_id=external_id,
            folder_id=folder.id,
            shared_link=command.shared_link,
            parties=[party.model_dump(mode="json") for party in definition.parties],
            fields=[field.model_dump(mode="json") for field in definition.fields],
            preferences={},
            report=[],
            author_id=command.actor.user_id,
            author=_author(command.actor),
            sequence=0,
            test=command.actor.test,
            created_at=now,
            updated_at=now,
        ).returning(TemplateRow.id)
    )
    return None if new_id is None else session.get_one(TemplateRow, new_id)


def put_documents(row: TemplateRow, documents: Sequence[StoredDocument], report: Sequence[Notice]) -> None:
    """These are the template's documents from now on. One that it has already keeps its row; what is not among them goes."""
    row_by_uuid = {document.uuid: document for document in row.documents}
    document_rows = []
    for position, document_ in enumerate(documents):
        document = row_by_uuid.get(document_.uuid) or document_row(document_)
        document.position = position
        document.conditions = [condition.model_dump(mode="json") for condition in document_.conditions]
        document_rows.append(document)
    row.documents = document_rows
    row.report = [notice.model_dump(mode="json") for notice in report]


def set_conditions(row: TemplateRow, definition: Definition) -> None:
    """These are the conditions of its documents from now on."""
    for document in row.documents:
        conditions = [condition.model_dump(mode="json") for condition in definition.conditions.get(document.uuid, ())]
        if conditions != (document.conditions or []):
            document.conditions = conditions


def document_row(document: StoredDocument) -> DocumentRow:
    """Without a template and a position yet."""
    stored = document.model_dump(mode="json")
    return DocumentRow(**{key: stored[key] for key in ("uuid", "name", "file", "original", "pages", "signed", "docx")})


def definition_of(row: TemplateRow) -> Definition:
    """Its roles and fields."""
    return Definition(
        [Party.model_validate(party) for party in row.parties],
        [FieldDefinition.model_validate(field) for field in row.fields],
        conditions=document_conditions.of([queries.stored(document) for document in row.documents]),
    )


def write(row: TemplateRow, definition: Definition) -> None:
    """These are its roles and fields from now on."""
    row.parties = [party.model_dump(mode="json") for party in definition.parties]
    row.fields = [field.model_dump(mode="json") for field in definition.fields]


def touch(row: TemplateRow, now: datetime) -> None:
    """It is changed at ``now``, and later than it was before: a change that has waited for another one began before that, and
    another process's clock may be behind. Others go by this time, to the millisecond, for which news is the latest."""
    row.updated_at = max(now, row.updated_at + timedelta(milliseconds=1))


def rename(row: TemplateRow, name: str) -> None:
    """A new name, which searches find."""
    row.name, row.name_lower = name, names.searchable(name)


def folder_named(session: Session, actor: Actor, name: str | None) -> Folder:
    """The folder of this name (``checked_folder``), made when it is not there; two requests at once make one."""
    chosen = checked_folder(actor, name)
    statement = sa.select(Folder).where(Folder.name == chosen)
    if (folder := session.scalar(statement)) is not None:
        return folder
    session.execute(insert_into(session, Folder).values(name=chosen).on_conflict_do_nothing(index_elements=["name"]))
    return session.scalars(statement).one()


def checked_folder(actor: Actor, name: str | None) -> str:
    """The name of the folder that something is put into (``access.chosen_folder``), cleaned; raises ServiceError when it cannot
    be."""
    problems = Problems()
    chosen = cleaned_folder(actor, name, problems)
    problems.refuse()
    return chosen


def cleaned_folder(actor: Actor, name: str | None, problems: Problems) -> str:
    """Do as ``checked_folder``, but add what is wrong to ``problems``."""
    return chosen_folder(actor, None if name is None else names.title(name, "folder_name", problems))


def checked_names(name: str | None, external_id: str | None) -> tuple[str, str | None]:
    """A template's name (empty when there is none) and key, cleaned; raises ServiceError when they cannot be."""
    problems = Problems()
    cleaned = cleaned_names(name, external_id, problems)
    problems.refuse()
    return cleaned


def cleaned_names(name: str | None, external_id: str | None, problems: Problems) -> tuple[str, str | None]:
    """Do as ``checked_names``, but add what is wrong to ``problems``."""
    return names.title(name or "", "name", problems), names.key(external_id or "", "external_id", problems) or None


def announced(
    session: Session, event: Event, row: TemplateRow, links: LinkMaker, now: datetime, **more: Any
) -> Template:
    """Emit the event with the whole template, and ``more``, in it; the answer is the template with links that expire."""
    data = queries.as_template(row, row.documents, links.lasting(row.id)).model_dump(mode="json")
    announce(session, event, row, {**data, **more})
    return queries.as_template(row, row.documents, links.expiring(now))


def announced_change(
    session: Session, row: TemplateRow, before: Definition, refuse_breaking: bool, links: LinkMaker, now: datetime
) -> Template:
    """Emit ``template.updated`` with the whole template and, as ``changes``, what that means for values that programs send.
    Raises ServiceError where these are to be refused."""
    changes = contract.changes(before, definition_of(row))
    if refuse_breaking:
        contract.refuse_breaking(changes)
    changes_told = [change.model_dump() for change in changes]
    return announced(session, TEMPLATE_UPDATED, row, links, now, changes=changes_told)


def announce(session: Session, event: Event, row: TemplateRow, data: dict[str, Any]) -> None:
    """Emit the event with the next number of this template."""
    row.sequence += 1
    public = PublicData(data=data, author_id=row.author_id, template_id=row.id, shared=row.shared_link, test=row.test)
    emit(session, event, public, subject=f"template:{row.id}", sequence=row.sequence)


def _author(actor: Actor) -> dict[str, Any]:
    first_name = actor.first_name or (
        None if actor.last_name else actor.name or None
    )  # older gateways send the name alone
    return {"id": actor.user_id, "email": actor.email, "first_name": first_name, "last_name": actor.last_name}
