"""GET /submissions/:id/documents (specification 4.3): the sealed documents, or what they look like so far.

Rendering makes what is not there yet, outside any transaction; what it made is kept with the submission. Two at once make it
twice and keep one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.errors import not_found
from contracts.fields import boxes
from contracts.fields.boxes import FieldBoxes
from contracts.links import FieldsOf
from contracts.rpc import rendering
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import GetFieldBoxes
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.stored import reading
from contracts.types import Submission, SubmissionDocument, SubmissionDocuments
from services.submissions.commands import erasing
from services.submissions.evidence import sealing
from services.submissions.models import SubmissionRow
from services.submissions.planning.preparing import Bus
from services.submissions.reading import present, queries
from services.submissions.site import Site
from services.submissions.storage import store


@dataclass(frozen=True)
class Documents:
    """``documents`` as asked for, each with name and file; ``merged`` one PDF of all, when that was asked for."""

    bus: Bus
    database: Database
    site: Site

    def of(self, query: rpc.GetDocuments) -> SubmissionDocuments:
        with reading(Submission, query.id):
            return self._of(query)

    def _of(self, query: rpc.GetDocuments) -> SubmissionDocuments:
        state = self.database.read(state_of, query, self.site)
        if state.filled is not None and state.results is None:
            state = self._drafted(state)
        files = (state.results or {}).get("documents", [])
        if query.merge and len(files) > 1:
            files = [{"name": state.title, "file": self._merged(state).model_dump()}]
        links = self.site.expiring(now())
        return SubmissionDocuments(
            id=query.id,
            documents=[
                SubmissionDocument(
                    name=file["name"],
                    url=links.to_pdf(file["file"], file["name"]),
                    sha256=file["file"]["sha256"],
                    preview_image_url=links.to_pictures(file["file"], file["name"], _fields_of(query.id, file)),
                )
                for file in files
            ],
        )

    def combined(self, query: rpc.GetSubmission) -> None:
        """Make the one PDF of all sealed documents, if there are several and it is not there yet."""
        with reading(Submission, query.id):
            state = self.database.read(state_of, rpc.GetDocuments(actor=query.actor, id=query.id), self.site)
            if state.filled is None and state.results is not None and len(state.results["documents"]) > 1:
                self._merged(state)

    def _drafted(self, state: "State") -> "State":
        drafts = self.bus.call(rendering.FILL_DRAFTS, state.filled)
        results = {"version": state.version, "documents": [document.model_dump() for document in drafts.documents]}
        drafts_kept = self.database.write(keep_drafts, state.id, results, self.site, now())
        return State(state.id, state.title, state.version, drafts_kept, state.filled, state.test)

    def _merged(self, state: "State") -> BlobRef:
        results = state.results or {}
        if results.get("merged"):
            return BlobRef.model_validate(results["merged"])
        order = rendering.Combine(
            files=[BlobRef.model_validate(document["file"]) for document in results["documents"]],
            seal=state.filled is None,
            name=state.title,
            test=state.test,
        )
        merged = self.bus.call(rendering.COMBINE, order).file
        return self.database.write(keep_merged, state.id, results, merged, now())


def _fields_of(submission_id: int, document: dict[str, Any]) -> FieldsOf | None:
    """None for what was merged: where its parts begin nobody has written down."""
    uuid = document.get("uuid")
    return FieldsOf("submissions", submission_id, uuid) if uuid else None


@dataclass(frozen=True)
class State:
    """``filled`` is what drafts are made of, None once the documents are sealed. ``results`` is what there is already:
    ``SubmissionRow.results``, or ``drafts`` of the present values."""

    id: int
    title: str
    version: int
    results: dict[str, Any] | None
    filled: rendering.FillRequest | None
    test: bool = False


def state_of(session: Session, query: rpc.GetDocuments, site: Site) -> State:
    row, template = queries.visible_submission(session, query.actor, query.id)
    title = present.title(row, template)
    if row.results:
        return State(row.id, title, row.values_version, row.results, None, row.test)
    loaded = store.loaded(session, row)
    filled = sealing.fill_request(row, loaded.snapshot, loaded.submitters, loaded.attachments, site)
    current = row.drafts if row.drafts and row.drafts["version"] == row.values_version else None
    return State(row.id, title, row.values_version, current, filled, row.test)


def field_boxes(session: Session, request: GetFieldBoxes) -> FieldBoxes:
    """Return where the fields are on a document; those that are filled in show their values. For who has a link to its
    pictures."""
    row = session.get(SubmissionRow, request.id)
    loaded = store.loaded(session, row) if row is not None else None
    documents = [document["uuid"] for document in loaded.snapshot.documents] if loaded else []
    if loaded is None or request.document_uuid not in documents:
        raise not_found("Document")
    parties = [submitter.party_uuid for submitter in loaded.submitters]
    fields_of_parties = [field for field in loaded.fields if field.submitter_uuid in parties]
    filled = sealing.fill_request(loaded.row, loaded.snapshot, loaded.submitters, loaded.attachments, None).values
    shown = {entry.field.uuid for entry in filled}
    return FieldBoxes(boxes=boxes.field_boxes(fields_of_parties, parties, request.document_uuid, documents[0], shown))


def keep_drafts(
    session: Session, submission_id: int, drafts: dict[str, Any], site: Site, at: datetime
) -> dict[str, Any]:
    """Remember drafts. The files that they replace go when the links to them have run out."""
    submission = store.lock(session, submission_id)
    later = at + timedelta(seconds=site.link_ttl)
    if submission is None or submission.row.results or submission.row.values_version != drafts["version"]:
        erasing.remove_blobs(session, submission_id, erasing.blobs_in(drafts), at, at=later)
        return drafts
    earlier = submission.row.drafts
    if earlier and earlier["version"] == drafts["version"]:
        erasing.remove_blobs(session, submission_id, erasing.blobs_in(drafts), at)
        return earlier
    if earlier:
        erasing.remove_blobs(session, submission_id, erasing.blobs_in(earlier), at, at=later)
    submission.row.drafts = drafts
    return drafts


def keep_merged(session: Session, submission_id: int, of: dict[str, Any], merged: BlobRef, at: datetime) -> BlobRef:
    """Remember the merged file beside the documents that it was made of; the first one counts."""
    submission = store.lock(session, submission_id)
    row = submission.row if submission else None
    for column in ("results", "drafts"):
        results = getattr(row, column, None)
        if row is None or not results or results["documents"] != of["documents"]:
            continue
        if results.get("merged"):
            erasing.remove_blobs(session, submission_id, [merged.key], at)
            return BlobRef.model_validate(results["merged"])
        setattr(row, column, {**results, "merged": merged.model_dump()})
        return merged
    erasing.remove_blobs(session, submission_id, [merged.key], at, at=at + timedelta(days=1))
    return merged
