"""Polling of events on real databases: each is seen once, page by page, by those who may."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc import webhooks as rpc
from contracts.runtime.data.database import Database
from contracts.types import Actor
from services.webhooks import queries
from tests.contract.conftest import ON_BOTH
from tests.support.material.webhooks import ADMIN, EDITOR, NOW, VIEWER, database, envelope, record

__all__ = ["database"]


def test_a_poller_sees_every_event_once_while_others_write(database: Database) -> None:
    """T55: eight writers, one poller that only passes ``next`` as ``after``."""
    start = datetime.now(UTC)
    seen: list[str] = []
    after: float | None = None

    def write(subject: int) -> None:
        for n in range(1, 9):
            record(database, envelope(n, subject=f"submission:{subject}"), at=datetime.now(UTC))

    writers = [threading.Thread(target=write, args=(subject,)) for subject in range(8)]
    for writer in writers:
        writer.start()
    moment = start
    while len(seen) < 64:
        moment = max(datetime.now(UTC), moment)
        if not any(writer.is_alive() for writer in writers):
            moment += timedelta(seconds=2)
        request = rpc.ListEvents(actor=ADMIN, event_type="form.completed", limit=7, after=after)
        page = database.write(queries.events, request, moment)
        seen += [each.id for each in page.data]
        after = page.pagination.next or after
        assert moment < start + timedelta(minutes=10), "the poller never saw them all"
    for writer in writers:
        writer.join()
    assert sorted(seen) == sorted(envelope(n, subject=f"submission:{s}").id for s in range(8) for n in range(1, 9))


@ON_BOTH
def test_polling_pages_and_cursors(database: Database) -> None:
    for number in range(1, 6):
        record(database, envelope(number), at=NOW + timedelta(seconds=10 * number))
    later = NOW + timedelta(hours=1)

    def page(**more: Any) -> rpc.EventPage:
        return database.write(queries.events, rpc.ListEvents(actor=ADMIN, event_type="form.completed", **more), later)

    unix = int(NOW.timestamp())
    first = page(limit=2)
    assert [each.data["id"] for each in first.data] == [1, 2]
    assert first.pagination.model_dump() == {"count": 2, "next": unix + 20, "prev": unix + 10}
    assert [each.data["id"] for each in page(limit=2, after=first.pagination.next).data] == [3, 4]
    last = page(limit=2, after=unix + 40)
    assert [each.data["id"] for each in last.data] == [5]
    assert last.pagination.next == unix + 50
    empty = page(limit=2, after=last.pagination.next)
    assert (empty.data, empty.pagination.model_dump()) == ([], {"count": 0, "next": None, "prev": None})
    assert [each.data["id"] for each in page(limit=2, before=unix + 40).data] == [2, 3]
    assert len(page(before=253402300799).data) == 5
    assert page(after=253402300799).data == []
    assert database.write(queries.events, rpc.ListEvents(actor=ADMIN, event_type="form.viewed"), later).data == []
    with pytest.raises(ServiceError):
        database.write(queries.events, rpc.ListEvents(actor=ADMIN, event_type="form.nonsense"), later)


@ON_BOTH
def test_polling_shows_only_what_the_role_may_see(database: Database) -> None:
    """As the template is now, whatever it was when the event was told."""
    record(
        database,
        envelope(1, author_id=99),
        envelope(2, shared=False, author_id=EDITOR.user_id),
        envelope(3, shared=False, author_id=99),
        envelope(4, author_id=99, created_by_id=EDITOR.user_id),
        envelope(5, author_id=99, template_id=7),
    )
    later = NOW + timedelta(hours=1)

    def seen(actor: Actor) -> list[int]:
        page = database.write(queries.events, rpc.ListEvents(actor=actor, event_type="form.completed"), later)
        return [each.data["id"] for each in page.data]

    def template_says(number: int, **public: Any) -> None:
        record(database, envelope(number, subject="template:7", kind="template.updated", template_id=7, **public))

    assert seen(ADMIN) == [1, 2, 3, 4, 5]
    assert seen(EDITOR) == [2, 4]
    assert seen(VIEWER) == [1, 4, 5]
    template_says(1, shared=False, author_id=EDITOR.user_id)
    assert seen(EDITOR) == [2, 4, 5]
    assert seen(VIEWER) == [1, 4]
    template_says(2, shared=True, author_id=99)
    assert seen(EDITOR) == [2, 4]
    assert seen(VIEWER) == [1, 4, 5]
