"""What this service knows of the others: compared with what they have themselves, after one of them was restored."""

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import StatementDue
from contracts.evidence.statements import Parts, Statement
from contracts.types import SealingStatus
from services.submissions.models import BatchRow, ErasureRow, StatementRow, SubmissionRow, TemplateRow


def known(session: Session) -> dict[str, set[int]]:
    """The ids that this service has heard of, by ``service.table``."""
    return {
        "templates.templates": {*session.scalars(sa.select(TemplateRow.id))},
        "gateway.users": {
            *session.scalars(sa.select(SubmissionRow.created_by_id).distinct()),
            *session.scalars(sa.select(BatchRow.created_by_id).distinct()),
        }
        - {None},
    }


def erased(session: Session) -> set[int]:
    """The submissions that were removed for good, and are not there."""
    is_there = sa.exists().where(SubmissionRow.id == ErasureRow.submission_id)
    return {*session.scalars(sa.select(ErasureRow.submission_id).where(~is_there))}


def sealing(session: Session) -> dict[str, int]:
    """The submissions that wait for their documents, by ``seal_id``."""
    waiting = SubmissionRow.sealing_status == SealingStatus.SEALING.value
    rows = session.execute(sa.select(SubmissionRow.seal_id, SubmissionRow.id).where(waiting).order_by(SubmissionRow.id))
    return {seal_id: number for seal_id, number in rows if seal_id is not None}


def statements(session: Session) -> dict[str, StatementDue]:
    """Return what was stated of each completion, by the SHA-256 of its bytes."""
    rows = session.execute(
        sa.select(StatementRow.sha256, StatementRow.statement, StatementRow.parts, SubmissionRow.test).join(
            SubmissionRow, SubmissionRow.id == StatementRow.submission_id
        )
    )
    return {
        sha256: StatementDue(
            statement=Statement.model_validate(statement), parts=Parts.model_validate(parts), test=test
        )
        for sha256, statement, parts, test in rows
    }


def sealed(session: Session) -> Iterator[tuple[int, list[str]]]:
    """Each completed submission with the SHA-256 of what was sealed for it."""
    rows = sa.select(SubmissionRow.id, SubmissionRow.results).where(SubmissionRow.status == "completed")
    for number, results in session.execute(rows.order_by(SubmissionRow.id).execution_options(yield_per=500)):
        yield (
            number,
            [*(document["file"]["sha256"] for document in results["documents"]), results["audit_trail"]["sha256"]],
        )
