"""``dry_run``: what a creating call would make, with everything that it would be refused for. Reads only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy.orm import Session

from contracts.detection import PagePicture
from contracts.dry_run import DryRun, DryRunDocument
from contracts.errors import ServiceError
from contracts.problems import Problems
from contracts.rpc import templates as rpc
from contracts.stored_documents import StoredDocument
from contracts.types import Notice
from services.templates import queries, store
from services.templates.access import require_owner, require_writer
from services.templates.commands import documents as document_commands
from services.templates.commands import templates as commands
from services.templates.commands.documents import Exchange
from services.templates.intake.preparing import Ready
from services.templates.rules import contract, domain
from services.templates.rules.domain import Definition, Limits


@contextmanager
def telling_of_names(command: rpc.CreateTemplate) -> Iterator[None]:
    """Have a refusal of the documents name what is wrong with the template's name and key, too."""
    try:
        yield
    except ServiceError as refused:
        problems = Problems()
        if refused.code == "invalid":
            store.cleaned_names(command.name, command.external_id, problems)
        raise ServiceError(refused.code, refused.message, [*refused.details, *problems.entries]) from refused


def create(
    session: Session,
    command: rpc.CreateTemplate,
    ready: Sequence[Ready],
    limits: Limits,
    pictures: Sequence[list[PagePicture]] | None = None,
) -> DryRun:
    """POST /templates/pdf and /html. ``pictures``: for each document those of the pages on which fields were detected."""
    require_writer(command.actor)
    problems = Problems()
    store.cleaned_folder(command.actor, command.folder_name, problems)
    title, external_id = store.cleaned_names(command.name, command.external_id, problems)
    row = queries.holder(session, external_id)
    if row is not None and row.test and not command.actor.test:
        row = None  # it would lose the key to this one
    if row is not None:
        require_owner(command.actor, row)
    previous = store.definition_of(row) if row is not None else None
    definition = domain.define([prepared.fields for prepared in ready], limits, previous, trial=True)
    name = title or (row.name if row is not None else None if command.html_documents else ready[0].name)
    report = [*(notice for prepared in ready for notice in prepared.report), *definition.notices]
    problems_told = [*problems.entries, *definition.problems, *_breaking(command, previous, definition)]
    definition = replace(definition, problems=problems_told)
    result = _dry_run_of(name, definition, [prepared.stored for prepared in ready], report)
    if pictures is None:
        return result
    return result.model_copy(
        update={
            "detected": [field for prepared in ready for field in prepared.detected or ()],
            "documents": [
                document.model_copy(update={"pictures": of_document})
                for document, of_document in zip(result.documents, pictures, strict=True)
            ],
        }
    )


def merge(session: Session, command: rpc.MergeTemplates, limits: Limits) -> DryRun:
    """POST /templates/merge."""
    if command.folder_name is not None:
        store.checked_folder(command.actor, command.folder_name)
    merger = document_commands.merged(session, command, limits)
    return _dry_run_of(merger.name, merger.definition, merger.documents, merger.report)


def clone(session: Session, command: rpc.CloneTemplate) -> DryRun:
    """POST /templates/:id/clone."""
    require_writer(command.actor)
    if command.folder_name is not None:
        store.checked_folder(command.actor, command.folder_name)
    source = queries.visible_template(session, command.actor, command.id)
    title, external_id = store.checked_names(command.name, command.external_id)
    if external_id is not None and not queries.is_of_test(session, command.actor, external_id):
        queries.require_free(session, external_id)
    report = [Notice.model_validate(notice) for notice in source.report]
    definition, documents = store.definition_of(source), commands.renamed(command, source)
    return _dry_run_of(title or domain.clone_name(source.name), definition, documents, report)


def change(session: Session, command: rpc.ChangeDocuments, exchange: Exchange) -> DryRun:
    """PUT /templates/:id/documents."""
    row = queries.visible_template(session, command.actor, command.id)
    require_owner(command.actor, row)
    report = document_commands.report_after(row, exchange)
    definition = exchange.definition
    problems_told = [*definition.problems, *_breaking(command, store.definition_of(row), definition)]
    return _dry_run_of(row.name, replace(definition, problems=problems_told), exchange.documents, report)


def _breaking(
    command: rpc.CreateTemplate | rpc.ChangeDocuments, before: Definition | None, after: Definition
) -> list[dict[str, str]]:
    return contract.problems(contract.changes(before, after)) if command.refuse_breaking and before else []


def _dry_run_of(
    name: str | None, definition: Definition, documents: Sequence[StoredDocument], report: Sequence[Notice]
) -> DryRun:
    return DryRun(
        accepted=not definition.problems,
        problems=definition.problems,
        report=list(report),
        name=name,
        roles=[party.name for party in definition.parties],
        fields=definition.fields,
        documents=[
            DryRunDocument(
                name=document.name, pages=document.pages, signed=document.signed, sha256=document.original.sha256
            )
            for document in documents
        ],
    )
