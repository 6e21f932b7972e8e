"""Every handler of every service notes the event's id with its effect: what is not noted would be fetched again and again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.events import ADMINS_CHANGED, Admins, Event
from contracts.rpc.health import SERVICES
from contracts.runtime.bus import declare
from contracts.runtime.bus.marks import subscriptions_of
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from tests.support.material.events import data_of
from tests.support.services import processes
from tests.support.services.migrated import migrated

TAKEN = [
    pytest.param(service, method, event, id=f"{service}-{event.type}")
    for service in SERVICES
    for method, event in subscriptions_of(declare.service_class(service) or object).items()
]


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The service's own class with an empty database, outside any worker and without a bus."""
    service = request.param
    url = f"sqlite:///{tmp_path / 'database.sqlite'}"
    migrated(service, url)
    for name, value in processes.environment(service, "amqp://guest:guest@127.0.0.1:1/", url, tmp_path).items():
        monkeypatch.setenv(name, value)
    found = declare.service_class(service)
    assert found is not None
    made = found()
    database = Database(url)
    context = type(made.context)(made.context._settings_class)
    context.__dict__["database"] = database
    monkeypatch.setattr(found, "context", context)
    yield made
    database.dispose()


@pytest.mark.parametrize(("served", "method", "event"), TAKEN, indirect=["served"])
def test_it_is_noted_and_the_second_time_changes_nothing(served: Any, method: str, event: Event) -> None:
    database: Database = served.context.database
    data = data_of(event)
    envelope = Envelope(
        id=uuid7(),
        type=event.type,
        source=event.source,
        subject="template:7" if event.source == "templates" else "submission:7",
        sequence=1 if event.public else None,
        occurred_at=now(),
        data=data.model_dump(mode="json"),
    )
    if served.name == "notifications":  # mails to the admins wait until it is known who they are
        told = envelope.model_copy(update={"id": uuid7(), "type": ADMINS_CHANGED.type, "source": ADMINS_CHANGED.source})
        served.on_admins_changed(told, Admins(emails=["admin@example.com"], revision=1))
    getattr(served, method)(envelope, data)
    noted = sa.select(tables.inbox.c.handler).where(tables.inbox.c.event_id == envelope.id)
    assert len(database.read(lambda session: list(session.scalars(noted)))) == 1
    before = contents(database)
    getattr(served, method)(envelope, data)
    assert contents(database) == before


def contents(database: Database) -> dict[str, list[Any]]:
    """Every row of every table."""
    names = sa.inspect(database.engine).get_table_names()
    return {name: database.read(_rows, sa.text(f"SELECT * FROM {name}")) for name in names}


def _rows(session: Session, query: sa.TextClause) -> list[Any]:
    return [tuple(row) for row in session.execute(query)]
