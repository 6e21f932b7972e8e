"""Material for the tests of seal jobs: a database, a workshop with real children, orders and what became of them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.envelope import Envelope
from contracts.events import DOCUMENTS_SEALED, DocumentsSealed
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import outbox
from services.rendering import commands, queries
from services.rendering.models import News, SealJob
from services.rendering.rules import domain
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET

NOW = datetime.now(UTC)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("rendering", database_url)
    made = Database(database_url)
    yield made
    made.dispose()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


def settings(keys: Path, **more: Any) -> Settings:
    needed: dict[str, Any] = {
        "amqp_url": "amqp://nowhere",
        "blob_url": "file:///nowhere",
        "base_url": "http://localhost",
        "link_secret": LINK_SECRET,
        "database_url": "sqlite:////nowhere",
        "certificate_dir": keys,
        "signing_key_type": "ec-p256",
        "rendering_children": 1,
        "allowed_private_networks": "127.0.0.0/8",
    }
    return Settings(**{**needed, **more})


@pytest.fixture(scope="module")
def workshop(keys: Path) -> Iterator[Workshop]:
    made = Workshop(settings(keys)).open()
    yield made
    made.close()


def order(database: Database, request: SealRequest, event_id: str = "") -> None:
    envelope = Envelope(
        id=event_id or uuid7(),
        type="sealing.due",
        source="submissions",
        subject=f"submission:{request.submission_id}",
        occurred_at=NOW,
        data={},
    )
    database.write(commands.accept_job, envelope, request, NOW)


def claimed(database: Database, seal_id: str = "seal-1", attempts: int = 1) -> SealJob:
    """The job as an attempt gets it."""

    def claim(session: Any) -> SealJob:
        job = queries.job(session, seal_id)
        assert job is not None
        job.attempts = attempts
        return job

    return database.write(claim)


def told(database: Database) -> list[dict[str, Any]]:
    rows = database.read(
        lambda session: session.execute(sa.select(outbox.c.body).order_by(outbox.c.seq)).scalars().all()
    )
    return [json.loads(body) for body in rows]


def sealed_event(database: Database) -> DocumentsSealed:
    (event,) = told(database)
    assert event["type"] == DOCUMENTS_SEALED.type
    return DocumentsSealed.model_validate(event["data"])


def work_on(database: Database, work: SealWork, **more: Any) -> None:
    """The real loop, until nothing is due."""
    schedule = more.pop("schedule", domain.SCHEDULE)
    loop = DueWork(
        "seal",
        database,
        SealJob,
        work.attempt,
        schedule=schedule,
        lease=timedelta(minutes=5),
        on_park=commands.fail_job,
    )
    while loop.turn() == 0.0:
        loop.finish()


def put_clock_back(database: Database) -> datetime:
    """What was told so far was told by a clock that was an hour ahead. Returns the latest moment that is in it."""

    def ahead(session: Any) -> None:
        session.execute(sa.update(News).values(at=NOW + timedelta(hours=1)))

    database.write(ahead)
    return NOW + timedelta(hours=1)


def files_of(tmp_path: Path) -> list[str]:
    folder = tmp_path / "blobs" / "submissions" / "7"
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("seal-"))


def count(database: Database, table: type[Any]) -> int:
    return database.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(table))) or 0


def attempt(database: Database, work: SealWork, attempts: int = 1) -> Any:
    return work.attempt(claimed(database, attempts=attempts))
