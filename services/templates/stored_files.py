"""The files of templates: what their documents name, by the template's folder and age."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.operating import StoredFiles
from contracts.runtime.data.database import Database
from contracts.runtime.data.files import stored_files
from contracts.runtime.data.files.stored_files import AT_ONCE, Record
from services.templates.models import DocumentRow, Folder, TemplateRow


def count(database: Database, moment: datetime) -> list[StoredFiles]:
    """Count all of them, in portions: each is a transaction of its own."""
    return stored_files.counted(_records(database), moment)


def _records(database: Database) -> Iterator[Record]:
    after = 0
    while portion := database.read(_portion, after):
        after = portion[-1][0]
        for _, folder, since, *files in portion:
            yield folder, since, files


def _portion(session: Session, after: int) -> list[Any]:
    chosen = (
        sa.select(DocumentRow.id, Folder.name, TemplateRow.created_at, DocumentRow.file, DocumentRow.original)
        .join(TemplateRow, TemplateRow.id == DocumentRow.template_id)
        .join(Folder, Folder.id == TemplateRow.folder_id)
        .where(DocumentRow.id > after)
        .order_by(DocumentRow.id)
        .limit(AT_ONCE)
    )
    return list(session.execute(chosen).all())
