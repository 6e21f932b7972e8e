"""How many files records name, by folder and age, on both databases."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.health import Pong
from contracts.rpc.operating import StoredFiles
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files import stored_files
from contracts.runtime.operations import operating
from services.submissions.models import AttachmentRow, SnapshotRow, StorageReportRow, SubmissionRow, SubmitterRow
from services.submissions.models import TemplateRow as KnownTemplateRow
from services.submissions.reading import stored_files as of_submissions
from services.templates import stored_files as of_templates
from services.templates.models import DocumentRow, Folder, TemplateRow
from tests.contract.deploy.test_stuck import inserted
from tests.support.services.migrated import migrated_database

DAY = timedelta(days=1)
_sizes = iter(range(1, 1000))


@pytest.fixture
def submissions(database_url: str) -> Iterator[Database]:
    yield from migrated_database("submissions", database_url)


def ref(size: int, key: str = "") -> dict[str, Any]:
    return {"key": key or f"files/{next(_sizes)}", "sha256": "0" * 64, "size": size, "media_type": "application/pdf"}


def told(parts: list[StoredFiles]) -> list[tuple[str | None, str, int, int]]:
    return [(part.folder, part.age, part.files, part.bytes) for part in parts]


def _execute(session: Session, statement: Any) -> None:
    session.execute(statement)


def submission(database: Database, days: float, template_id: int | None = None, **files: Any) -> int:
    values = {"signing_order": "preserved", "status": "pending", "template_id": template_id}
    number = inserted(database, SubmissionRow, **values, created_at=now() - days * DAY, results=files.get("results"))
    snapshot = {"documents": files.get("documents", []), "fields": [], "parties": [], "account": {}}

    database.write(
        lambda session: session.execute(sa.insert(SnapshotRow).values(submission_id=number, **snapshot)) and None
    )
    return number


def test_templates_by_folder(database_url: str) -> None:
    for database in migrated_database("templates", database_url):
        for name, days, sizes in (("Sales", 1, (100, 20)), ("Sales", 400, (3, 4)), ("Law / NDA", 40, (7, 0))):
            known = database.read(Session.scalar, sa.select(Folder.id).filter_by(name=name))
            folder = known or inserted(database, Folder, name=name)
            template = inserted(database, TemplateRow, folder_id=folder, created_at=now() - days * DAY)
            file, original = ref(sizes[0]), ref(sizes[1])
            inserted(database, DocumentRow, template_id=template, file=file, original=original if sizes[1] else file)
        assert told(of_templates.count(database, now())) == [
            ("Law / NDA", "1 year", 1, 7),
            ("Sales", "30 days", 2, 120),
            ("Sales", "older", 2, 7),
        ]


def test_submissions_by_the_folder_of_their_template(submissions: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_submissions, "AT_ONCE", 2)
    template = inserted(submissions, KnownTemplateRow, folder_name="Sales")
    results = {"documents": [{"file": ref(1000)}, {"file": ref(2000)}], "audit_trail": ref(500)}
    of_template = [{"file": ref(9), "original": ref(9)}]
    submission(submissions, 1, template, results=results, documents=of_template)
    shared = ref(70)
    submission(submissions, 1, documents=[{"file": shared, "original": shared}])
    submission(submissions, 1, template)
    number = submission(submissions, 60, documents=[{"file": ref(1)}])
    submitter = inserted(submissions, SubmitterRow, submission_id=number, status="pending")
    common = {"submission_id": number, "submitter_id": submitter}
    for uuid in ("a", "b"):
        attachment = {"uuid": uuid, "type": "file", "filename": "a.pdf", "created_at": now(), "file": ref(30)}
        adding = sa.insert(AttachmentRow).values(**common, **attachment)
        submissions.write(_execute, adding)
    assert told(of_submissions.count(submissions, now())) == [
        ("Sales", "30 days", 3, 3500),
        (None, "1 year", 3, 61),
        (None, "30 days", 1, 70),
    ]


def test_it_is_counted_once_a_day_and_shown_as_it_was(submissions: Database) -> None:
    def standing() -> Any:
        return operating.standing("submissions", submissions, Pong(ready=True)).storage

    look = stored_files.kept_counted(submissions, StorageReportRow, of_submissions.count)
    assert (standing().at, standing().files) == (None, [])
    look()
    first = standing()
    assert (first.at is not None, first.files) == (True, [])
    submission(submissions, 1, documents=[{"file": ref(5)}])
    look()
    assert standing() == first
    yesterday = now() - stored_files.COUNTED_EVERY
    submissions.write(lambda session: session.execute(sa.update(StorageReportRow).values(at=yesterday)) and None)
    look()
    assert told(standing().files) == [(None, "30 days", 1, 5)]
