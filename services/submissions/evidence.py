"""What proves a sealed submission, for ``GET /submissions/:id/evidence``: its files and the lines of its trail.

It is the same whenever it is asked for: the lines end with the one that says that the documents were sealed.
"""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.audit_chain import as_hashed
from contracts.blobs import BlobRef
from contracts.errors import invalid
from contracts.events import SealedDocument
from contracts.rpc.submissions import api as rpc
from contracts.stored_documents import StoredDocument
from services.submissions import queries, trail
from services.submissions.models import SnapshotRow, SubmissionRow, TrailRow

LINES_AT_ONCE = 200
_COMPLETIONS = (trail.COMPLETE_FORM, trail.API_COMPLETE_FORM)


def of(session: Session, query: rpc.GetEvidence) -> rpc.Evidence:
    """Give the evidence, or further lines of it. Raises ServiceError: ``not_found``; ``invalid`` before the sealing."""
    row, _template = queries.found(session, query.actor, query.id)
    own = sa.select(TrailRow).where(TrailRow.submission_id == row.id)
    sealed = own.where(TrailRow.event_type == trail.COMPLETE_SUBMISSION).order_by(TrailRow.position).limit(1)
    last = session.scalar(sealed)
    if not row.results or last is None:
        reason = "has no evidence before its documents are sealed"
        raise invalid(f"The submission {reason}", "id", reason)
    told = own.where(TrailRow.position <= last.position)
    lines = session.scalars(
        told.where(TrailRow.position > query.after).order_by(TrailRow.position).limit(LINES_AT_ONCE)
    )
    completed = session.scalars(told.where(TrailRow.event_type.in_(_COMPLETIONS)).order_by(TrailRow.position))
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


def _documents(session: Session, row: SubmissionRow) -> list[rpc.EvidenceDocument]:
    snapshot = session.get_one(SnapshotRow, row.id)
    sources = {one["uuid"]: StoredDocument.model_validate(one) for one in snapshot.documents}
    sealed = [SealedDocument.model_validate(one) for one in (row.results or {})["documents"]]
    return [
        rpc.EvidenceDocument(
            uuid=one.uuid,
            name=one.name,
            original=sources[one.uuid].original,
            shown=sources[one.uuid].file,
            sealed=one.file,
        )
        for one in sealed
    ]
