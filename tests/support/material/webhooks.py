"""Material for the tests of the webhooks service: events, webhooks and their deliveries on a real database."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.envelope import Envelope
from contracts.events import Erased, PublicData
from contracts.rpc import webhooks as rpc
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, More, Outcome, Park
from contracts.types import Actor, Role
from services.webhooks import commands, queries
from services.webhooks.deliver import prepare
from services.webhooks.models import Delivery
from services.webhooks.settings import Settings
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET

ADMIN = Actor(user_id=1, role=Role.ADMIN, email="admin@example.com")
EDITOR = Actor(user_id=2, role=Role.EDITOR, email="editor@example.com")
VIEWER = Actor(user_id=3, role=Role.VIEWER, email="viewer@example.com")
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
numbers = itertools.count()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("webhooks", database_url)
    database = Database(database_url)
    yield database
    database.engine.dispose()


def settings(database: Database, **more: Any) -> Settings:
    return Settings(
        amqp_url="amqp://unused",
        blob_url="file:///nowhere",
        base_url="http://localhost",
        link_secret=LINK_SECRET,
        database_url="sqlite://",
        allowed_private_networks="127.0.0.0/8",
        **more,
    )


def envelope(sequence: int, *, subject: str = "submission:1", kind: str = "form.completed", **public: Any) -> Envelope:
    data = {
        "data": {"id": sequence, "email": "ann@example.com"},
        "author_id": 2,
        "template_id": 5,
        "shared": True,
        **public,
    }
    return Envelope(
        id=f"event-{subject}-{sequence}",
        type=kind,
        source="submissions",
        subject=subject,
        sequence=sequence,
        occurred_at=NOW,
        data=data,
    )


def erasure(sequence: int | None = None, *, submission: int = 1, event_id: str = "gone") -> tuple[Envelope, Erased]:
    """What tells that a submission was removed for good. Without ``sequence`` as an older version says it: to services only."""
    data = {"id": submission, "erased": True, "reason": "request"}
    public = None if sequence is None else PublicData(data=data, author_id=2, template_id=5)
    erased = Erased(submission_id=submission, public=public)
    told = envelope(1, subject=f"submission:{submission}", kind="submission.erased")
    said = {"id": event_id, "sequence": sequence, "data": erased.model_dump(mode="json")}
    return told.model_copy(update=said), erased


def erase(database: Database, *told: Any, at: datetime = NOW) -> None:
    event, erased = told or erasure()
    database.write(commands.erase, event, erased, at, LINK_SECRET)


def new_webhook(database: Database, url: str = "http://127.0.0.1:9/hook", **more: Any) -> Any:
    command = rpc.CreateWebhook(request_id=f"r{next(numbers)}", actor=ADMIN, url=url, **more)
    return database.write(commands.create, command, NOW)


def record(database: Database, *envelopes: Envelope, at: datetime = NOW) -> None:
    for each in envelopes:
        database.write(commands.record_event, each, at, LINK_SECRET)


def deliveries(database: Database, webhook_id: int) -> list[rpc.Delivery]:
    return database.read(queries.deliveries, rpc.ListDeliveries(actor=ADMIN, webhook_id=webhook_id, limit=100)).data


def row(database: Database, delivery_id: int) -> Delivery:
    def load(session: Any) -> Delivery:
        found: Delivery = session.get_one(Delivery, delivery_id)
        session.expunge(found)
        return found

    return database.read(load)


def claimed(database: Database, delivery_id: int) -> Delivery:
    """The row as an attempt gets it."""

    def read(session: Any) -> Delivery:
        found: Delivery = session.get_one(Delivery, delivery_id)
        prepare(session, [found])
        return found

    return database.read(read)


def finish(database: Database, delivery_id: int, outcome: Outcome) -> None:
    """What the runtime does with an outcome: record and state in one transaction."""

    def write(session: Any) -> None:
        delivery = session.get(Delivery, delivery_id)
        if not isinstance(outcome, More) and outcome.record:
            outcome.record(session, delivery)
        delivery.attempts += 1
        if isinstance(outcome, Done) and delivery.state == "due":
            delivery.state = "done"
        if isinstance(outcome, Park):
            delivery.state = "parked"
        commands.follow_up(session, [delivery], now())

    database.write(write)
