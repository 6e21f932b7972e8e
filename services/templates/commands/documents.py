"""Use cases that bring documents together or exchange them: merging templates, PUT /templates/:id/documents."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from contracts.errors import invalid
from contracts.events import TEMPLATE_CREATED
from contracts.problems import Problems
from contracts.rpc import templates as rpc
from contracts.runtime.bus.outbox import once
from contracts.stored_documents import StoredDocument
from contracts.types import Notice, Template
from services.templates import queries, store
from services.templates.access import require_owner, require_writer
from services.templates.commands import test_mode
from services.templates.intake.preparing import Ready
from services.templates.links import LinkMaker
from services.templates.models import TemplateRow
from services.templates.rules import combining, domain, names
from services.templates.rules.combining import Paper
from services.templates.rules.document_conditions import conditioned
from services.templates.rules.domain import Definition, Limits


@dataclass(frozen=True)
class Merged:
    """A template as it is made of several."""

    name: str
    external_id: str | None
    definition: Definition
    documents: list[StoredDocument]
    report: list[Notice]
    first: TemplateRow


@dataclass(frozen=True)
class Exchange:
    """A template's documents after a change, before they are stored. ``seen`` is the template that it was planned for."""

    seen: rpc.TemplateSnapshot
    definition: Definition
    documents: list[StoredDocument]
    report: list[Notice]


def merge(session: Session, command: rpc.MergeTemplates, links: LinkMaker, limits: Limits, now: datetime) -> Template:
    """A new template with copies of all documents, roles and fields, in the folder of the first unless named."""

    def decide() -> Template:
        merger = merged(session, command, limits)
        folder = (
            merger.first.folder
            if command.folder_name is None
            else store.folder_named(session, command.actor, command.folder_name)
        )
        like = rpc.CreateTemplate(request_id="", actor=command.actor, shared_link=command.shared_link)
        row = store.inserted(session, like, merger.name, merger.external_id, merger.definition, now, folder=folder)
        if row is None:
            raise queries.external_id_taken()
        row.preferences = merger.first.preferences
        store.put_documents(row, merger.documents, merger.report)
        session.flush()
        return store.announced(session, TEMPLATE_CREATED, row, links, now)

    return once(session, rpc.MERGE, command.request_id, decide)


def merged(session: Session, command: rpc.MergeTemplates, limits: Limits) -> Merged:
    """Return what merging makes. Raises ServiceError: ``not_found`` when one of them is not there for the actor."""
    require_writer(command.actor)
    title, external_id = store.checked_names(command.name, command.external_id)
    if external_id is not None and not queries.is_of_test(session, command.actor, external_id):
        queries.require_free(session, external_id)
    rows = [queries.visible_template(session, command.actor, template_id) for template_id in command.template_ids]
    if not rows:
        raise invalid("template_ids is required", "template_ids", "is required")
    count = sum(len(row.documents) for row in rows)
    if count > limits.documents:
        reason = f"must not have more than {limits.documents} documents in all (there are {count})"
        raise invalid(f"template_ids {reason}", "template_ids", reason)
    parts, documents = [], []
    for row in rows:
        fresh = {document.uuid: str(uuid.uuid4()) for document in row.documents}
        parts.append(domain.cloned(store.definition_of(row), fresh))
        documents += [
            queries.stored(document).model_copy(update={"uuid": fresh[document.uuid]}) for document in row.documents
        ]
    definition = combining.combined(parts, limits)
    documents = conditioned(documents, definition.conditions)
    if command.roles:
        parties = domain.with_role_names(definition.parties, command.roles, limits)
        fields = domain.with_roles_written(definition.fields, parties)
        definition = replace(definition, parties=parties, fields=fields)
    report = [Notice.model_validate(notice) for row in rows for notice in row.report] + definition.notices
    chosen = title or domain.clone_name(rows[0].name, " (Merged)")
    return Merged(chosen, external_id, definition, documents, report, rows[0])


def present(session: Session, command: rpc.ChangeDocuments) -> rpc.TemplateSnapshot:
    """The template as it is now; raises ServiceError when the actor may not change its documents."""
    require_writer(command.actor)
    require_owner(command.actor, queries.visible_template(session, command.actor, command.id))
    return queries.snapshot(session, rpc.GetTemplate(actor=command.actor, id=command.id))


def refuse_early(command: rpc.ChangeDocuments, template: rpc.TemplateSnapshot) -> None:
    """Refuse what is certain to be refused, before it keeps rendering busy."""
    if not command.documents and not command.merge:
        raise invalid("documents is required, unless merge is true", "documents", "is required")
    _targets(command.documents, template.documents)


def plan_exchange(
    command: rpc.ChangeDocuments,
    template: rpc.TemplateSnapshot,
    ready: Sequence[Ready | None],
    limits: Limits,
    *,
    trial: bool = False,
) -> Exchange:
    """The documents after the change, with the fields on them. ``ready`` has what each entry of the command sends in."""
    documents_before = template.documents
    targets = _targets(command.documents, documents_before)
    coming = {i: prepared for i, prepared in enumerate(ready) if prepared is not None}
    successors: dict[str, Paper | None] = {}
    new: dict[str, StoredDocument] = {}
    for i, target in targets.items():
        successors[target.uuid] = None
        if (successor := coming.get(i)) is not None:
            renamed_document = successor.stored.model_copy(
                update={"name": _name(command.documents[i], successor, target)}
            )
            new[target.uuid] = renamed_document
            if not (successor.fields.tag_fields or successor.fields.explicit):
                successors[target.uuid] = Paper(renamed_document.uuid, renamed_document.name, renamed_document.pages)
    remaining = [
        new.get(document.uuid, document)
        for document in documents_before
        if document.uuid in new or document.uuid not in successors
    ]
    added = [(prepared.stored, command.documents[i].position) for i, prepared in coming.items() if i not in targets]
    documents = combining.placed(remaining, added)
    if not documents:
        raise invalid("A template must keep at least one document.", "documents", "must leave at least one document")
    # What takes a document's place is shown when that was.
    kept_as = {
        document.uuid: new.get(document.uuid, document).uuid
        for document in documents_before
        if document.uuid in new or document.uuid not in successors
    }
    conditions = {
        kept_as[document.uuid]: document.conditions
        for document in documents_before
        if document.conditions and document.uuid in kept_as
    }
    reduced = combining.without(Definition(template.parties, template.fields, conditions=conditions), successors)
    fields = [coming[i].fields for i in sorted(coming)]
    definition = domain.extended(reduced, fields, [document.uuid for document in documents], limits, trial=trial)
    report = [
        *(notice for prepared in coming.values() for notice in prepared.report),
        *reduced.notices,
        *definition.notices,
    ]
    return Exchange(template, definition, conditioned(documents, definition.conditions), report)


def in_one(exchange: Exchange, joined: StoredDocument) -> Exchange:
    """The same when all documents have become ``joined``."""
    papers = [Paper(document.uuid, document.name, document.pages) for document in exchange.documents]
    fields = combining.joined(exchange.definition.fields, papers, joined.uuid)
    return replace(exchange, definition=replace(exchange.definition, fields=fields), documents=[joined])


def change(
    session: Session, command: rpc.ChangeDocuments, exchange: Exchange, links: LinkMaker, now: datetime
) -> Template | None:
    """Store the documents as planned; None when the template is another by now, so that it must be planned anew."""
    row = queries.visible_template(session, command.actor, command.id, lock=True)
    require_owner(command.actor, row)
    unchanged = [document.uuid for document in row.documents] == [document.uuid for document in exchange.seen.documents]
    if not unchanged or row.updated_at != exchange.seen.updated_at:
        return None

    def decide() -> Template:
        before = store.definition_of(row)
        store.write(row, exchange.definition)
        uuids_before = {document.uuid for document in row.documents}
        store.put_documents(row, exchange.documents, report_after(row, exchange))
        store.touch(row, now)
        session.flush()
        added = [document for document in exchange.documents if document.uuid not in uuids_before]
        test_mode.record_files(
            session, row, [file.key for document in added for file in (document.file, document.original)]
        )
        return store.announced_change(session, row, before, command.refuse_breaking, links, now)

    return once(session, rpc.CHANGE_DOCUMENTS, command.request_id, decide)


def report_after(row: TemplateRow, exchange: Exchange) -> list[Notice]:
    """Return what is said of the documents that stay, then of those that came."""
    about = {document.name for document in row.documents} - {document.name for document in exchange.documents}
    notices = [notice for notice in map(Notice.model_validate, row.report) if notice.document not in about]
    return [*notices, *exchange.report]


def _targets(changes: Sequence[rpc.DocumentChange], documents: Sequence[StoredDocument]) -> dict[int, StoredDocument]:
    """Return which document each entry removes or replaces. Refuses what names none, or one that another entry names, too."""
    problems = Problems()
    targets: dict[int, StoredDocument] = {}
    for i, change in enumerate(changes):
        path = f"documents[{i}]"
        if change.remove and change.replace:
            problems.add(f"{path}.remove", "must not be combined with replace")
        elif change.remove and (change.file is not None or change.html is not None):
            problems.add(f"{path}.remove", "must not be combined with file or html")
        elif change.file is not None and change.html is not None:
            problems.add(f"{path}.file", "must not be combined with html")
        elif change.replace and change.position is None:
            problems.add(f"{path}.position", "is required to replace a document")
        elif change.remove and change.position is None and not (change.name or "").strip():
            problems.add(f"{path}.position", "is required to remove a document, unless name is given")
        elif change.remove or change.replace:
            if (target := _target(change, documents, path, problems)) is None:
                continue
            if target in targets.values():
                problems.add(path, f"is about the same document as another entry: {target.name!r}")
            targets[i] = target
    problems.refuse()
    return targets


def _target(
    change: rpc.DocumentChange, documents: Sequence[StoredDocument], path: str, problems: Problems
) -> StoredDocument | None:
    if change.position is not None:
        if 0 <= change.position < len(documents):
            return documents[change.position]
        problems.add(f"{path}.position", f"must be between 0 and {len(documents) - 1}: no other document is there")
        return None
    name = names.document((change.name or "").strip())
    same = [document for document in documents if document.name == name]
    if len(same) == 1:
        return same[0]
    problems.add(
        f"{path}.name", "is the name of several documents: give position" if same else "is not the name of a document"
    )
    return None


def _name(change: rpc.DocumentChange, successor: Ready, target: StoredDocument) -> str:
    """A successor without a name of its own goes by that of the document that it replaces."""
    return successor.name if (change.name or "").strip() else target.name
