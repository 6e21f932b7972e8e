"""Wiping test mode: its templates go, and the files that came with them."""

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import TestModeWiped
from contracts.runtime.bus.outbox import first_time, forget
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import Database, insert_into
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import answers
from services.templates.models import DocumentRow, TemplateRow, TestFileRow

_FILES_AT_ONCE = 100
_SAID = '"test":true'


def record_files(session: Session, row: TemplateRow, keys: Iterable[str]) -> None:
    """Remember files that came for a test template; copies of templates share theirs and bring none."""
    if not row.test:
        return
    for key in dict.fromkeys(keys):
        session.execute(insert_into(session, TestFileRow).values(key=key).on_conflict_do_nothing())


def wipe(session: Session, event_id: str, wiped: TestModeWiped, now: datetime) -> None:
    """Remove the templates that were made in test mode before, and have the files deleted that none that stays uses."""
    if not first_time(session, "test_mode", event_id):
        return
    which = sa.and_(TemplateRow.test, TemplateRow.created_at <= wiped.at)
    numbers = list(session.scalars(sa.select(TemplateRow.id).where(which)))
    for number in numbers:
        forget(session, f"template:{number}")
    session.execute(sa.delete(DocumentRow).where(DocumentRow.template_id.in_(numbers)))
    session.execute(sa.delete(TemplateRow).where(TemplateRow.id.in_(numbers)))
    # Answers to requests are kept for a while to repeat them; those about test templates say so.
    session.execute(sa.delete(answers).where(answers.c.method.like("templates.%"), answers.c.answer.contains(_SAID)))
    left = sa.select(DocumentRow.file, DocumentRow.original).join(TemplateRow).where(TemplateRow.test)
    used = {file["key"] for row in session.execute(left) for file in row}
    session.execute(
        sa.update(TestFileRow).where(TestFileRow.key.not_in(used), TestFileRow.wiped_at.is_(None)).values(wiped_at=now)
    )
    scrubbing.ask(session)


def delete_files(database: Database, blobs: BlobStore) -> bool:
    """Delete some of the files that are to go; True while there may be more. One that is deleted already is deleted again."""
    due = sa.select(TestFileRow.key).where(TestFileRow.wiped_at.is_not(None)).limit(_FILES_AT_ONCE)
    keys = database.read(lambda session: list(session.scalars(due)))
    for key in keys:
        blobs.delete(key)
    if keys:
        database.write(
            lambda session: session.execute(sa.delete(TestFileRow).where(TestFileRow.key.in_(keys))) and None
        )
    return len(keys) == _FILES_AT_ONCE
