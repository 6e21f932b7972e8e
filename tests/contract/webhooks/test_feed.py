"""The feed of all events on real databases: in one order, each once, by those who may."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc import webhooks as rpc
from contracts.runtime.data.database import Database
from services.webhooks import queries
from tests.contract.conftest import ON_BOTH
from tests.support.material.webhooks import ADMIN, EDITOR, NOW, VIEWER, database, envelope, erase, record

__all__ = ["database"]


def feed(database: Database, **more: Any) -> rpc.FeedPage:
    return database.read(queries.feed, rpc.ReadFeed(**{"actor": ADMIN, **more}))


def ids(database: Database, **more: Any) -> list[str]:
    return [each.id.removeprefix("event-") for each in feed(database, **more).data]


def test_a_reader_sees_every_event_once_while_others_write(database: Database) -> None:
    """Eight writers; one reader that keeps ``next``, and never waits for a second to be over."""

    def write(subject: int) -> None:
        for n in range(1, 9):
            record(database, envelope(n, subject=f"submission:{subject}"), at=datetime.now(UTC))

    writers = [threading.Thread(target=write, args=(subject,)) for subject in range(8)]
    for writer in writers:
        writer.start()
    seen: list[str] = []
    after = 0
    while True:
        over = not any(writer.is_alive() for writer in writers)
        page = feed(database, limit=7, after=after)
        seen += [each.id for each in page.data]
        assert [each.sequence for each in page.data] == sorted(each.sequence for each in page.data)
        if page.data:
            assert page.pagination.prev is not None
            assert page.pagination.prev > after
            assert page.pagination.next is not None
            after = page.pagination.next
        elif over:
            break
    for writer in writers:
        writer.join()
    assert sorted(seen) == sorted(envelope(n, subject=f"submission:{s}").id for s in range(8) for n in range(1, 9))
    for subject in range(8):
        of_one = [each for each in seen if each.startswith(f"event-submission:{subject}-")]
        assert of_one == [envelope(n, subject=f"submission:{subject}").id for n in range(1, 9)]


@ON_BOTH
def test_kinds_pages_and_what_is_no_cursor(database: Database) -> None:
    assert feed(database).pagination.model_dump() == {"count": 0, "next": None, "prev": None}
    kinds = ["submission.created", "form.viewed", "form.completed", "form.viewed", "template.created"]
    for number, kind in enumerate(kinds, start=1):
        subject = "template:5" if kind.startswith("template.") else f"submission:{number}"
        record(database, envelope(1, subject=subject, kind=kind), at=NOW + timedelta(seconds=number))
    whole = feed(database).data
    assert [each.event_type for each in whole] == kinds
    assert (
        whole[0].model_dump(mode="json").items()
        >= {
            "id": "event-submission:1-1",
            "event_type": "submission.created",
            "timestamp": "2026-03-04T05:06:08.000Z",
        }.items()
    )
    assert ids(database, kinds=["form.viewed"]) == ["submission:2-1", "submission:4-1"]
    two = ["template.created", "form.viewed", "form.viewed"]
    assert ids(database, kinds=two, limit=2) == ["submission:2-1", "submission:4-1"]
    assert ids(database, kinds=two, after=whole[1].sequence) == ["submission:4-1", "template:5-1"]
    assert ids(database, kinds=["form.declined"]) == []
    assert ids(database, after=whole[-1].sequence) == []
    for beyond in (whole[-1].sequence + 1, 2**63, 10**30):
        with pytest.raises(ServiceError, match=f"greater than {whole[-1].sequence}") as refused:
            feed(database, after=beyond)
        assert refused.value.details[0]["field"] == "after"
    with pytest.raises(ServiceError) as unknown:
        feed(database, kinds=["form.viewed", "form.nonsense"])
    assert unknown.value.details[0]["field"] == "kinds[1]"


@ON_BOTH
def test_who_sees_what_and_what_is_left_of_the_erased(database: Database) -> None:
    record(
        database,
        envelope(1, author_id=99),
        envelope(1, subject="submission:2", author_id=EDITOR.user_id, template_id=6, shared=False),
        envelope(1, subject="submission:3", author_id=99, template_id=7, shared=False),
        envelope(1, subject="template:8", kind="template.created", author_id=99, template_id=8, shared=True),
        envelope(1, subject="template:9", kind="template.created", author_id=99, template_id=9, shared=False),
        envelope(1, subject="template:10", kind="template.created", author_id=2, template_id=10, shared=False),
    )
    assert len(ids(database)) == 6
    assert ids(database, actor=EDITOR) == ["submission:2-1", "template:8-1", "template:10-1"]
    assert ids(database, actor=VIEWER) == ["submission:1-1", "template:8-1"]
    erase(database)
    assert feed(database).data[0].data == {"id": 1, "erased": True}


def test_the_end_of_the_feed_is_that_of_the_whole_log(database: Database) -> None:
    """Whoever may see the events: who waits reads the feed when it has moved."""
    ends = [database.read(queries.feed_end).sequence]
    for number in (1, 2):
        record(database, envelope(number, subject="submission:7"))
        ends.append(database.read(queries.feed_end).sequence)
    assert ends[0] == 0
    assert ends[1:] == [each.sequence for each in feed(database).data]
    for chosen in ({}, {"limit": 1}, {"after": ends[-1]}, {"kinds": ["form.declined"]}):
        assert feed(database, **chosen).end == ends[-1]
