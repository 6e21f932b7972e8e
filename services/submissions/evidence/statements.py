"""Statements: each completion is confirmed in its transaction, signed by rendering, and compared before sealing.

The rows here are notes: rendering keeps what counts, where whoever can change this database cannot reach it
(docs/evidence.md, "Statements").
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts import events
from contracts.blobs import BlobRef
from contracts.errors import not_found
from contracts.events import StatementDue, StatementSigned
from contracts.evidence import statements
from contracts.evidence.statements import LineReference, Parts, SignedStatement, Statement
from contracts.rpc.rendering import GivenByParty, ToCheck
from contracts.rpc.submissions.receipts import FindReceipt, FoundReceipt
from contracts.runtime.bus.outbox import emit
from contracts.types import SealingStatus, SubmitterStatus
from services.submissions.evidence import shown
from services.submissions.models import AttachmentRow, SnapshotRow, StatementRow, SubmissionRow, SubmitterRow, TrailRow
from services.submissions.storage import store, trail


def confirm(
    submission: store.LoadedSubmission, lines: Sequence[trail.Appended], at: datetime, *, sealing: bool
) -> dict[int, str]:
    """State each completion among the ``lines`` that were just appended, and have it signed: with ``sealing`` by the order to
    seal that is given next, which has it in it. Returns the receipts, by submitter."""
    return {
        line.submitter_id: _confirm(submission, submission.submitter(line.submitter_id), line, at, sealing=sealing)
        for line in lines
        if line.event_type in trail.COMPLETIONS and line.submitter_id is not None
    }


def _confirm(
    submission: store.LoadedSubmission, submitter: SubmitterRow, line: trail.Appended, at: datetime, *, sealing: bool
) -> str:
    row, snapshot = submission.row, submission.snapshot
    parts = Parts(
        paper=statements.paper_parts(_documents(snapshot), snapshot.fields, submitter.party_uuid),
        values=statements.value_parts(shown.values(submitter, submission.attachments), submitter.reasons),
    )
    statement = Statement(
        submission=row.id,
        submitter=submitter.id,
        completed_at=at,
        line=LineReference(number=line.number, hash=line.hash),
        head=LineReference(number=row.trail_length, hash=row.trail_hash),
        shown=line.data.get("shown"),
        values=line.data["values"],
        documents={document["uuid"]: document["file"]["sha256"] for document in snapshot.documents},
        paper=statements.paper_digest(parts.paper),
    )
    sha256 = statements.digest(statement)
    receipt = statements.receipt(sha256)
    note = {
        "sha256": sha256,
        "submission_id": row.id,
        "submitter_id": submitter.id,
        "receipt": receipt,
        "statement": statement.model_dump(mode="json"),
        "parts": parts.model_dump(mode="json"),
        "created_at": at,
    }
    submission.session.execute(sa.insert(StatementRow), note)
    if not sealing:
        due = StatementDue(statement=statement, parts=parts, test=row.test)
        emit(submission.session, events.STATEMENT_DUE, due, subject=f"submission:{row.id}")
    return receipt


def to_check(submission: store.LoadedSubmission) -> ToCheck:
    """Describe what is to be sealed as the rows have it today, for rendering to compare with the statements."""
    row_by_submitter = {row.submitter_id: row for row in of_submission(submission.session, submission.row.id)}
    completed = [submitter for submitter in submission.submitters if submitter.status == SubmitterStatus.COMPLETED]
    return ToCheck(
        documents=_documents(submission.snapshot),
        fields=submission.snapshot.fields,
        parties=[
            _given_by_party(submitter, submission.attachments, row_by_submitter.get(submitter.id))
            for submitter in completed
        ],
    )


def _given_by_party(
    submitter: SubmitterRow, attachments: Iterable[AttachmentRow], statement_row: StatementRow | None
) -> GivenByParty:
    return GivenByParty(
        submitter_id=submitter.id,
        party_uuid=submitter.party_uuid,
        values=shown.values(submitter, attachments),
        reasons=dict(submitter.reasons),
        statement=Statement.model_validate(statement_row.statement) if statement_row else None,
        parts=Parts.model_validate(statement_row.parts) if statement_row else None,
    )


def _documents(snapshot: SnapshotRow) -> dict[str, dict[str, Any]]:
    return {document["uuid"]: shown.document(document) for document in snapshot.documents}


def note_signed(session: Session, signed: StatementSigned) -> None:
    """Note where a statement is kept."""
    session.execute(_NOTE, {"key": signed.sha256, "kept": signed.signed.model_dump(mode="json")})


# Compiled once, and of the table: building a statement costs more than running it.
_STATEMENTS: Any = StatementRow.__table__
_NOTE = (
    sa.update(_STATEMENTS)
    .where(_STATEMENTS.c.sha256 == sa.bindparam("key"))
    .values(signed=sa.bindparam("kept", type_=_STATEMENTS.c.signed.type))
)


def of_submission(session: Session, submission_id: int) -> list[StatementRow]:
    """The statements of a submission, in the order of the completions."""
    rows = session.scalars(sa.select(StatementRow).where(StatementRow.submission_id == submission_id))
    return sorted(rows, key=_line_number)


def _line_number(row: StatementRow) -> int:
    return Statement.model_validate(row.statement).line.number


def receipts(session: Session, submission_id: int) -> dict[int, str]:
    """The receipt of each party that has completed, by submitter: of who has done so more than once, that of the last time."""
    return {row.submitter_id: row.receipt for row in of_submission(session, submission_id)}


def receipt_of(session: Session, submitter_id: int) -> str | None:
    """The receipt of a party, of the last time that they have completed; None before, and where an older version recorded
    that."""
    rows = session.scalars(sa.select(StatementRow).where(StatementRow.submitter_id == submitter_id))
    last = max(rows, key=_line_number, default=None)
    return None if last is None else last.receipt


def find(session: Session, query: FindReceipt) -> FoundReceipt:
    """Tell what a receipt stands for. Raises ServiceError("not_found") for what is none of ours."""
    digits = statements.read_receipt(query.receipt)
    match = session.execute(
        sa.select(StatementRow, SubmissionRow)
        .join(SubmissionRow, SubmissionRow.id == StatementRow.submission_id)
        .where(StatementRow.receipt == digits)
    ).first()
    if digits is None or match is None:
        raise not_found("Receipt")
    row, submission = match
    statement = Statement.model_validate(row.statement)
    files = [BlobRef.model_validate(document["file"]) for document in (submission.results or {}).get("documents", ())]
    if submission.results:
        files.append(BlobRef.model_validate(submission.results["audit_trail"]))
    return FoundReceipt(
        receipt=row.receipt,
        statement=statement,
        completed_at=statement.completed_at,
        signed=SignedStatement.model_validate(row.signed) if row.signed else None,
        sealing_status=SealingStatus(submission.sealing_status) if submission.sealing_status else None,
        sealed_at=_sealed_at(session, submission),
        sealed=[file.sha256 for file in files],
        test=submission.test,
    )


def _sealed_at(session: Session, submission: SubmissionRow) -> datetime | None:
    if not submission.results:
        return None
    sealed = sa.select(TrailRow.occurred_at).where(
        TrailRow.submission_id == submission.id, TrailRow.event_type == trail.COMPLETE_SUBMISSION
    )
    return session.scalar(sealed.limit(1))
