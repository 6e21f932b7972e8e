"""Use cases that bring documents together or exchange them: merging templates, PUT /templates/:id/documents."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from contracts.errors import invalid
from contracts.events import TEMPLATE_CREATED, TEMPLATE_UPDATED
from contracts.problems import Problems
from contracts.rpc import templates as rpc
from contracts.runtime.bus.outbox import once
from contracts.stored_documents import StoredDocument
from contracts.types import Notice, Template
from services.templates import queries, store
from services.templates.access import require_owner, require_writer
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
        made = merged(session, command, limits)
        folder = made.first.folder if command.folder_name is None else store.folder_named(session, command.folder_name)
        like = rpc.CreateTemplate(request_id="", actor=command.actor, shared_link=command.shared_link)
        row = store.inserted(session, like, made.name, made.external_id, made.definition, now, folder=folder)
        if row is None:
            raise queries.taken()
        row.preferences = made.first.preferences
        store.put_documents(row, made.documents, made.report)
        session.flush()
        return store.announced(session, TEMPLATE_CREATED, row, links, now)

    return once(session, rpc.MERGE, command.request_id, decide)


def merged(session: Session, command: rpc.MergeTemplates, limits: Limits) -> Merged:
    """What merging makes. Raises ServiceError: ``not_found`` when one of them is not there for the actor."""
    require_writer(command.actor)
    title, external_id = store.checked_names(command.name, command.external_id)
    if external_id is not None:
        queries.require_free(session, external_id)
    rows = [queries.found(session, command.actor, template_id) for template_id in command.template_ids]
    if not rows:
        raise invalid("template_ids is required", "template_ids", "is required")
    count = sum(len(row.documents) for row in rows)
    if count > limits.documents:
        reason = f"must not have more than {limits.documents} documents in all (there are {count})"
        raise invalid(f"template_ids {reason}", "template_ids", reason)
    parts, documents = [], []
    for row in rows:
        fresh = {one.uuid: str(uuid.uuid4()) for one in row.documents}
        parts.append(domain.cloned(store.definition_of(row), fresh))
        documents += [queries.stored(one).model_copy(update={"uuid": fresh[one.uuid]}) for one in row.documents]
    definition = combining.combined(parts, limits)
    documents = conditioned(documents, definition.conditions)
    if command.roles:
        parties = domain.with_role_names(definition.parties, command.roles, limits)
        fields = domain.with_roles_written(definition.fields, parties)
        definition = replace(definition, parties=parties, fields=fields)
    report = [Notice.model_validate(one) for row in rows for one in row.report] + definition.notices
    chosen = title or domain.clone_name(rows[0].name, " (Merged)")
    return Merged(chosen, external_id, definition, documents, report, rows[0])


def present(session: Session, command: rpc.ChangeDocuments) -> rpc.TemplateSnapshot:
    """The template as it is now; raises ServiceError when the actor may not change its documents."""
    require_writer(command.actor)
    require_owner(command.actor, queries.found(session, command.actor, command.id))
    return queries.snapshot(session, rpc.GetTemplate(actor=command.actor, id=command.id))


def refuse_early(command: rpc.ChangeDocuments, template: rpc.TemplateSnapshot) -> None:
    """What is certain to be refused should not keep rendering busy first."""
    if not command.documents and not command.merge:
        raise invalid("documents is required, unless merge is true", "documents", "is required")
    _targets(command.documents, template.documents)


def planned(
    command: rpc.ChangeDocuments,
    template: rpc.TemplateSnapshot,
    ready: Sequence[Ready | None],
    limits: Limits,
    *,
    trial: bool = False,
) -> Exchange:
    """The documents after the change, with the fields on them. ``ready`` has what each entry of the command sends in."""
    there = template.documents
    targets = _targets(command.documents, there)
    coming = {i: one for i, one in enumerate(ready) if one is not None}
    gone: dict[str, Paper | None] = {}
    new: dict[str, StoredDocument] = {}
    for i, target in targets.items():
        gone[target.uuid] = None
        if (successor := coming.get(i)) is not None:
            named = successor.stored.model_copy(update={"name": _name(command.documents[i], successor, target)})
            new[target.uuid] = named
            if not (successor.fields.found or successor.fields.explicit):
                gone[target.uuid] = Paper(named.uuid, named.name, named.pages)
    kept = [new.get(one.uuid, one) for one in there if one.uuid in new or one.uuid not in gone]
    added = [(one.stored, command.documents[i].position) for i, one in coming.items() if i not in targets]
    documents = combining.placed(kept, added)
    if not documents:
        raise invalid("A template must keep at least one document", "documents", "must leave at least one document")
    # What takes a document's place is shown when that was.
    kept_as = {one.uuid: new.get(one.uuid, one).uuid for one in there if one.uuid in new or one.uuid not in gone}
    conditions = {kept_as[one.uuid]: one.conditions for one in there if one.conditions and one.uuid in kept_as}
    left = combining.without(Definition(template.parties, template.fields, conditions=conditions), gone)
    fields = [coming[i].fields for i in sorted(coming)]
    definition = domain.extended(left, fields, [one.uuid for one in documents], limits, trial=trial)
    report = [
        *(notice for one in coming.values() for notice in one.report),
        *left.notices,
        *definition.notices,
    ]
    return Exchange(template, definition, conditioned(documents, definition.conditions), report)


def in_one(exchange: Exchange, whole: StoredDocument) -> Exchange:
    """The same when all documents have become ``whole``."""
    papers = [Paper(one.uuid, one.name, one.pages) for one in exchange.documents]
    fields = combining.joined(exchange.definition.fields, papers, whole.uuid)
    return replace(exchange, definition=replace(exchange.definition, fields=fields), documents=[whole])


def change(
    session: Session, command: rpc.ChangeDocuments, exchange: Exchange, links: LinkMaker, now: datetime
) -> Template | None:
    """Store the documents as planned; None when the template is another by now, so that it must be planned anew."""
    row = queries.found(session, command.actor, command.id, lock=True)
    require_owner(command.actor, row)
    unchanged = [one.uuid for one in row.documents] == [one.uuid for one in exchange.seen.documents]
    if not unchanged or row.updated_at != exchange.seen.updated_at:
        return None

    def decide() -> Template:
        store.write(row, exchange.definition)
        store.put_documents(row, exchange.documents, report_after(row, exchange))
        row.updated_at = now
        session.flush()
        return store.announced(session, TEMPLATE_UPDATED, row, links, now)

    return once(session, rpc.CHANGE_DOCUMENTS, command.request_id, decide)


def report_after(row: TemplateRow, exchange: Exchange) -> list[Notice]:
    """What is said of the documents that stay, then of those that came."""
    about = {one.name for one in row.documents} - {one.name for one in exchange.documents}
    kept = [notice for notice in map(Notice.model_validate, row.report) if notice.document not in about]
    return [*kept, *exchange.report]


def _targets(changes: Sequence[rpc.DocumentChange], there: Sequence[StoredDocument]) -> dict[int, StoredDocument]:
    """Which document each entry removes or replaces. Refuses what names none, or one that another entry names, too."""
    problems = Problems()
    found: dict[int, StoredDocument] = {}
    for i, one in enumerate(changes):
        path = f"documents[{i}]"
        if one.remove and one.replace:
            problems.add(f"{path}.remove", "must not be combined with replace")
        elif one.remove and (one.file is not None or one.html is not None):
            problems.add(f"{path}.remove", "must not be combined with file or html")
        elif one.file is not None and one.html is not None:
            problems.add(f"{path}.file", "must not be combined with html")
        elif one.replace and one.position is None:
            problems.add(f"{path}.position", "is required to replace a document")
        elif one.remove and one.position is None and not (one.name or "").strip():
            problems.add(f"{path}.position", "is required to remove a document, unless name is given")
        elif one.remove or one.replace:
            if (target := _target(one, there, path, problems)) is None:
                continue
            if target in found.values():
                problems.add(path, f"is about the same document as another entry: {target.name!r}")
            found[i] = target
    problems.refuse()
    return found


def _target(
    one: rpc.DocumentChange, there: Sequence[StoredDocument], path: str, problems: Problems
) -> StoredDocument | None:
    if one.position is not None:
        if 0 <= one.position < len(there):
            return there[one.position]
        problems.add(f"{path}.position", f"must be between 0 and {len(there) - 1}: no other document is there")
        return None
    wanted = names.document((one.name or "").strip())
    same = [document for document in there if document.name == wanted]
    if len(same) == 1:
        return same[0]
    problems.add(f"{path}.name", "is that of several documents: give position" if same else "is that of no document")
    return None


def _name(change: rpc.DocumentChange, successor: Ready, target: StoredDocument) -> str:
    """A successor without a name of its own goes by that of the document that it replaces."""
    return successor.name if (change.name or "").strip() else target.name
