"""Documents for a one-off submission (specification 4.3.1), and several documents as one PDF.

Nothing is kept: what was made stays among the incoming files until somebody takes it over, or the sweep comes.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError, invalid
from contracts.rpc import rendering
from contracts.rpc import templates as rpc
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.stored_documents import StoredDocument
from services.templates.intake.preparing import Bus, Ready
from services.templates.rules import combining, document_conditions, domain, names
from services.templates.rules.combining import Paper
from services.templates.rules.document_conditions import conditioned
from services.templates.rules.domain import Definition, Limits


@dataclass(frozen=True)
class Joiner:
    """Makes one PDF of several."""

    bus: Bus
    blobs: BlobStore

    def joined(self, documents: Sequence[StoredDocument], name: str, path: str) -> StoredDocument:
        """All pages in order, prepared as an upload is: tried out, and within the limits of one document. Raises ServiceError
        that names ``path``, the key of the request that asked for it."""
        for document in documents:
            if document.docx is not None:
                reason = f"cannot be done: {document.name!r} has variables, which are filled for each submission"
                raise invalid(f"{path} {reason}", path, reason)
            if document.conditions:
                reason = f"cannot be done: {document.name!r} is shown under conditions of its own"
                raise invalid(f"{path} {reason}", path, reason)
            if document.signed:
                reason = f"cannot be done: {document.name!r} is signed, and a signature is only valid in its own file"
                raise invalid(f"{path} {reason}", path, reason)
        files = [self._incoming(documents[0].file), *(document.file for document in documents[1:])]
        try:
            file = self.bus.call(rendering.COMBINE, rendering.Combine(files=files, name=name)).file
            # Its fields and tags are known; it is tried out, and its pages are counted.
            prepared = self.bus.call(
                rendering.PREPARE_PDF, rendering.PreparePdf(name=name, file=file, remove_tags=False)
            )
        except ServiceError as error:
            if error.status >= 500:
                raise
            raise invalid(f"{path}: {error.message}", path, error.message) from error
        finally:
            if files[0].key != documents[0].file.key:
                self.blobs.delete(files[0].key)
        return StoredDocument(
            uuid=str(uuid.uuid4()),
            name=name,
            file=prepared.file,
            original=prepared.original,
            pages=prepared.pages,
            signed=False,
        )

    def _incoming(self, file: BlobRef) -> BlobRef:
        """Return what rendering makes lies beside the first file: it must not be beside a template's."""
        if file.key.startswith(INCOMING):
            return file
        return self.blobs.put(self.blobs.get(file), file.media_type, INCOMING)


def composed(
    command: rpc.ComposeDocuments,
    snapshots: Sequence[rpc.TemplateSnapshot],
    ready: Sequence[Ready],
    join: Callable[[Sequence[StoredDocument], str, str], StoredDocument],
    limits: Limits,
    *,
    trial: bool = False,
) -> rpc.Composition:
    """Return what ``submissions`` makes a submission of. Roles, fields and documents of templates get uuids of their own."""
    parts, copied_documents = _copies(snapshots)
    documents = combining.placed(copied_documents, [(prepared.stored, prepared.position) for prepared in ready])
    order = [document.uuid for document in documents]
    sent = sorted((prepared.fields for prepared in ready), key=lambda field_group: order.index(field_group.uuid))
    if parts:
        present = combining.combined(parts, limits)
        definition = domain.extended(present, sent, order, limits, trial=trial)
        definition = replace(definition, notices=[*present.notices, *definition.notices])
    else:
        definition = domain.define(sent, limits, trial=trial)
    fields = definition.fields
    documents = conditioned(documents, definition.conditions)
    if command.merge_documents and len(documents) > 1:
        title = names.cleaned(command.name or "") or documents[0].name
        joined = join(documents, title, "merge_documents")
        fields = combining.joined(
            fields, [Paper(document.uuid, document.name, document.pages) for document in documents], joined.uuid
        )
        documents = [joined]
    return rpc.Composition(
        name=command.name,
        parties=definition.parties,
        fields=fields,
        documents=documents,
        report=[*(notice for prepared in ready for notice in prepared.report), *definition.notices],
        problems=definition.problems,
    )


def _copies(snapshots: Sequence[rpc.TemplateSnapshot]) -> tuple[list[Definition], list[StoredDocument]]:
    parts, documents = [], []
    for snapshot in snapshots:
        fresh = {document.uuid: str(uuid.uuid4()) for document in snapshot.documents}
        present = Definition(snapshot.parties, snapshot.fields, conditions=document_conditions.of(snapshot.documents))
        parts.append(domain.cloned(present, fresh))
        documents += [document.model_copy(update={"uuid": fresh[document.uuid]}) for document in snapshot.documents]
    return parts, documents
