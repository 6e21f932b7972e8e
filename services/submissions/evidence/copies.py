"""What a party that has completed may have of the documents while others have yet to complete: what they saw and gave, and
nothing that came later. The finished documents take its place."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.fields import conditions
from contracts.rpc.rendering import FillRequest
from contracts.rpc.submissions.signing.form import Copies, FormDocument
from contracts.stored_documents import StoredDocument
from contracts.types import ActsAs, FieldDefinition, SealingStatus
from services.submissions.evidence import shown
from services.submissions.evidence.sealing import Signer, preview_request, without_documents
from services.submissions.models import AttachmentRow, SnapshotRow, StatementRow, SubmissionRow, SubmitterRow
from services.submissions.reading import present
from services.submissions.rules import providers
from services.submissions.rules.preferences import COPIES


def offered(row: SubmissionRow, snapshot: SnapshotRow, submitters: Sequence[SubmitterRow]) -> Copies | None:
    """Return what there is for a party that has completed, None where the sender wants no copies, and when the documents are
    finished or will be in a moment."""
    if row.results or not row.preferences.get(COPIES, True):
        return None
    done, parties = progress(submitters)
    soon = row.sealing_status == SealingStatus.SEALING and not providers.waiting(row.certsign, row.dutystamp)
    if done == parties and soon:
        return None
    documents = [StoredDocument.model_validate(document) for document in snapshot.documents]
    hidden = conditions.hidden(
        [FieldDefinition.model_validate(field) for field in snapshot.fields],
        conditions.of_documents(snapshot.documents),
        {uuid: value for submitter in submitters if submitter.completed_at for uuid, value in submitter.values.items()},
    )
    shown_documents = [
        FormDocument(uuid=document.uuid, name=document.name, pages=[])
        for document in documents
        if document.uuid not in hidden
    ]
    return Copies(documents=shown_documents, done=done, parties=parties)


def progress(submitters: Sequence[SubmitterRow]) -> tuple[int, int]:
    """Count the parties that have completed, and all that have to; viewers have nothing to complete."""
    needed = [submitter for submitter in submitters if present.acts_as(submitter) is not ActsAs.VIEWER]
    return sum(submitter.completed_at is not None for submitter in needed), len(needed)


def request(
    session: Session,
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
    submitter: SubmitterRow,
    attachments: Sequence[AttachmentRow],
    now: datetime,
) -> FillRequest:
    """Describe the documents as ``submitter`` saw them when they completed, with what they gave."""
    seen = _seen(session, submitter, submitters)
    everything = [FieldDefinition.model_validate(field) for field in snapshot.fields]
    signer = Signer(
        row=submitter,
        values=submitter.values,
        reasons=submitter.reasons,
        at=submitter.completed_at or now,
        time_zone=submitter.visit.get("time_zone"),
    )
    before = [other for other in submitters if other.id == submitter.id or other.id in seen or not other.completed_at]
    uuids = {field.uuid for field in everything}
    filled = preview_request(row, snapshot, before, attachments, signer, uuids)
    values = {uuid: value for other in before if other.completed_at for uuid, value in other.values.items()}
    hidden = conditions.hidden(everything, conditions.of_documents(snapshot.documents), values)
    return without_documents(filled, hidden)


def _seen(session: Session, submitter: SubmitterRow, submitters: Sequence[SubmitterRow]) -> set[int]:
    """Return the parties whose values were covered by what this one signed; of a completion that says nothing of it, those that
    had completed before."""
    query = sa.select(StatementRow.statement).where(StatementRow.submitter_id == submitter.id)
    stated = next(iter(session.scalars(query.order_by(StatementRow.created_at.desc()))), None)
    covers = shown.covered((stated or {}).get("shown"))
    return {
        other.id
        for other in submitters
        if other.id != submitter.id and other.completed_at and submitter.completed_at
        if (other.completed_at <= submitter.completed_at if covers is None else covers >> other.position & 1)
    }
