"""The files of submissions: what was sealed, what parties attached, and documents that came without a template, by the folder
of the template and the age of the submission. Documents of templates are the templates'."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.operating import StoredFiles
from contracts.runtime.data.database import Database
from contracts.runtime.data.files import stored_files
from contracts.runtime.data.files.stored_files import AT_ONCE, Record
from services.submissions.models import AttachmentRow, SnapshotRow, SubmissionRow, TemplateRow


def count(database: Database, moment: datetime) -> list[StoredFiles]:
    """Count all of them, in portions: each is a transaction of its own."""
    return stored_files.counted(_records(database), moment)


def _records(database: Database) -> Iterator[Record]:
    after = 0
    while True:
        portion, attached = database.read(_portion, after)
        if not portion:
            return
        after = portion[-1][0]
        for number, template_id, folder, since, results, documents in portion:
            own_documents = documents if template_id is None else None
            yield folder, since, [results, own_documents, attached[number]]


def _portion(session: Session, after: int) -> tuple[list[Any], dict[int, list[Any]]]:
    chosen = (
        sa.select(
            SubmissionRow.id,
            SubmissionRow.template_id,
            TemplateRow.folder_name,
            SubmissionRow.created_at,
            SubmissionRow.results,
            sa.case((SubmissionRow.template_id.is_(None), SnapshotRow.documents), else_=None),
        )
        .outerjoin(TemplateRow, TemplateRow.id == SubmissionRow.template_id)
        .outerjoin(SnapshotRow, SnapshotRow.submission_id == SubmissionRow.id)
        .where(SubmissionRow.id > after)
        .order_by(SubmissionRow.id)
        .limit(AT_ONCE)
    )
    portion = list(session.execute(chosen).all())
    attached: dict[int, list[Any]] = defaultdict(list)
    of_portion = AttachmentRow.submission_id.in_([row[0] for row in portion])
    for number, file in session.execute(sa.select(AttachmentRow.submission_id, AttachmentRow.file).where(of_portion)):
        attached[number].append(file)
    return portion, attached
