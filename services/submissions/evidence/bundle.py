"""What proves a sealed submission, for ``GET /submissions/:id/evidence``: its files and the lines of its trail.

It is the same whenever it is asked for: the lines end with the one that says that the documents were sealed.
"""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.errors import invalid, not_found
from contracts.events import SealedDocument
from contracts.evidence.audit_chain import as_hashed
from contracts.rpc.submissions import api as rpc
from contracts.rpc.submissions import receipts
from contracts.stored_documents import StoredDocument
from services.submissions.evidence import told_parties
from services.submissions.models import SnapshotRow, SubmissionRow, TrailRow
from services.submissions.reading import queries
from services.submissions.storage import trail

LINES_AT_ONCE = 200


def of(session: Session, query: rpc.GetEvidence) -> rpc.Evidence:
    """Give the evidence, or further lines of it. Raises ServiceError: ``not_found``; ``invalid`` before the sealing."""
    row, _template = queries.visible_submission(session, query.actor, query.id)
    query_of_lines = sa.select(TrailRow).where(TrailRow.submission_id == row.id)
    sealed = query_of_lines.where(TrailRow.event_type == trail.COMPLETE_SUBMISSION).order_by(TrailRow.position).limit(1)
    last = session.scalar(sealed)
    if not row.results or last is None:
        reason = "has no evidence before its documents are sealed"
        raise invalid(f"The submission {reason}.", "id", reason)
    until_sealed = query_of_lines.where(TrailRow.position <= last.position)
    lines = session.scalars(
        until_sealed.where(TrailRow.position > query.after).order_by(TrailRow.position).limit(LINES_AT_ONCE)
    )
    completed = session.scalars(
        until_sealed.where(TrailRow.event_type.in_(trail.COMPLETIONS)).order_by(TrailRow.position)
    )
    return rpc.Evidence(
        id=row.id,
        sealed_at=last.occurred_at,
        documents=_documents(session, row),
        audit_trail=BlobRef.model_validate(row.results["audit_trail"]),
        completed=list(dict.fromkeys(line.submitter_id for line in completed if line.submitter_id is not None)),
        line_count=last.position,
        head=last.hash,
        lines=[
            as_hashed(
                submitter_id=line.submitter_id,
                event_type=line.event_type,
                occurred_at=line.occurred_at,
                data=line.data,
            )
            for line in lines
        ],
    )


def sealed_file(session: Session, query: receipts.FindSealed) -> receipts.FoundSealed:
    """Tell somebody who has a sealed file what it is. Raises ServiceError("not_found") when it is none of this submission."""
    row = session.get(SubmissionRow, query.submission_id)
    results = (row.results or {}) if row is not None else {}
    versions = [results, *results.get("earlier", ())] if results else []
    documents = {
        document["file"]["sha256"]: document["name"] for version in versions for document in version["documents"]
    }
    trails = {version["audit_trail"]["sha256"] for version in versions}
    if row is None or query.sha256 not in {*documents, *trails}:
        raise not_found("File")
    lines = trail.lines_of(session, [row.id])
    sealed = next(line for line in lines if line.event_type == trail.COMPLETE_SUBMISSION)
    submitters = told_parties.parties(queries.submitters_of(session, [row.id]), lines)
    return receipts.FoundSealed(
        submission_id=row.id,
        test=row.test,
        name=told_parties.submission(row, lines).name or session.get_one(SnapshotRow, row.id).template_name or "",
        document=documents.get(query.sha256),
        sealed_at=sealed.occurred_at,
        parties=[
            receipts.NamedParty(
                name=submitter.name or submitter.email or submitter.phone or submitter.role,
                completed_at=submitter.completed_at,
                by_api=submitter.completed_by_api is not None,
            )
            for submitter in submitters
        ],
    )


def _documents(session: Session, row: SubmissionRow) -> list[rpc.EvidenceDocument]:
    snapshot = session.get_one(SnapshotRow, row.id)
    sources = {document["uuid"]: StoredDocument.model_validate(document) for document in snapshot.documents}
    sealed = [SealedDocument.model_validate(document) for document in (row.results or {})["documents"]]
    return [
        rpc.EvidenceDocument(
            uuid=document.uuid,
            name=document.name,
            original=sources[document.uuid].original,
            shown=sources[document.uuid].file,
            sealed=document.file,
        )
        for document in sealed
    ]
