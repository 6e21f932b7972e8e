"""That a submission was removed for good is told once, last, to who asked for it by name; on SQLite and PostgreSQL."""

import json
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc import webhooks as rpc
from contracts.rpc.events import SubjectEvents
from contracts.runtime.data.database import Database
from contracts.runtime.data.tables import outbox
from services.webhooks import commands, queries
from services.webhooks.models import Delivery
from tests.contract.conftest import ON_BOTH
from tests.support.material.webhooks import (
    ADMIN,
    NOW,
    database,
    deliveries,
    envelope,
    erase,
    erasure,
    new_webhook,
    numbers,
    record,
    row,
)
from tests.support.services.secret_settings import LINK_SECRET

__all__ = ["database"]

BOTH = ["form.completed", "submission.erased"]
GONE = {"id": 1, "erased": True, "reason": "request"}


def log(database: Database) -> list[tuple[str, Any]]:
    page = database.read(queries.feed, rpc.ReadFeed(actor=ADMIN))
    return [(each.event_type, each.data) for each in page.data]


def confirmed(database: Database) -> list[dict[str, Any]]:
    """What submissions is told."""
    told = sa.select(outbox.c.body).where(outbox.c.type == "event_log.erased").order_by(outbox.c.seq)
    return [json.loads(body)["data"] for body in database.read(lambda session: list(session.scalars(told)))]


def test_it_is_told_last_and_what_was_to_be_told_before_is_dropped(database: Database) -> None:
    by_default, by_name = new_webhook(database), new_webhook(database, events=BOTH)
    record(database, envelope(1), envelope(2))
    erase(database, *erasure(3))
    assert [each.state for each in deliveries(database, by_default.id)] == ["cancelled"] * 2
    told = deliveries(database, by_name.id)
    assert [(each.event_type, each.state) for each in told] == [
        ("form.completed", "cancelled"),
        ("form.completed", "cancelled"),
        ("submission.erased", "pending"),
    ]
    assert row(database, told[-1].id).state == "due", "it waits for nothing"
    blank = {"id": 1, "erased": True}
    assert log(database) == [("form.completed", blank), ("form.completed", blank), ("submission.erased", GONE)]
    (said,) = confirmed(database)
    assert (said["submission_id"], said["deleted"]) == (1, {"events": 2, "deliveries": 4})


def test_it_comes_twice_early_and_again_after_a_restore(database: Database) -> None:
    made = new_webhook(database, events=BOTH)
    record(database, envelope(1))
    erase(database, *erasure(3))
    erase(database, *erasure(3))
    assert len(log(database)) == 1, "what came before it is waited for"
    record(database, envelope(2))
    assert [kind for kind, _ in log(database)] == ["form.completed", "form.completed", "submission.erased"]
    erase(database, *erasure(4, event_id="removed once more"))
    assert [kind for kind, _ in log(database)].count("submission.erased") == 1
    assert len(confirmed(database)) == 2, "submissions asked twice"
    assert [each.event_id for each in deliveries(database, made.id) if each.state == "pending"] == ["gone"]


def test_who_missed_what_came_before_hears_of_the_erasure(database: Database) -> None:
    """The owner has blanked it: what is left of the submission is that it was removed."""
    made = new_webhook(database, events=BOTH)
    record(database, envelope(1))
    told, erased = erasure(4)
    erase(database, told, erased)
    (gap,) = database.read(queries.gaps, NOW + timedelta(minutes=1))
    history = SubjectEvents(epoch="", kept_since=NOW - timedelta(days=1), events=[told])
    database.write(commands.catch_up, gap, history, NOW, LINK_SECRET)
    assert log(database)[-1] == ("submission.erased", GONE)
    assert [each.event_id for each in deliveries(database, made.id) if each.state == "pending"] == ["gone"]


def test_what_is_caught_up_with_before_it_comes_itself_waits_for_nothing(database: Database) -> None:
    made = new_webhook(database, events=BOTH)
    record(database, envelope(1), envelope(4))
    told, erased = erasure(3)
    (gap,) = database.read(queries.gaps, NOW + timedelta(minutes=1))
    history = SubjectEvents(epoch="", kept_since=NOW - timedelta(days=1), events=[told])
    database.write(commands.catch_up, gap, history, NOW, LINK_SECRET)
    assert [kind for kind, _ in log(database)] == ["form.completed", "submission.erased", "form.completed"]
    erase(database, told, erased)
    (left,) = [each for each in deliveries(database, made.id) if each.state == "pending"]
    assert (left.event_type, row(database, left.id).state) == ("submission.erased", "due")
    assert [kind for kind, _ in log(database)].count("submission.erased") == 1


def test_it_waits_for_the_attempt_that_was_under_way(database: Database) -> None:
    made = new_webhook(database, events=BOTH)
    record(database, envelope(1))
    lease = NOW + timedelta(seconds=60)

    def begin(session: Any) -> None:
        delivery = session.scalars(sa.select(Delivery)).one()
        delivery.leased_by, delivery.leased_until, delivery.attempts = "somebody", lease, 1

    database.write(begin)
    erase(database, *erasure(2))
    assert row(database, deliveries(database, made.id)[-1].id).next_attempt_at == lease


def test_an_older_version_tells_nobody_and_is_asked_what_it_has_deleted(database: Database) -> None:
    new_webhook(database, events=BOTH)
    record(database, envelope(1))
    erase(database)
    assert [kind for kind, _ in log(database)] == ["form.completed"]
    assert len(confirmed(database)) == 1


def test_it_can_be_replayed(database: Database) -> None:
    record(database, envelope(1))
    erase(database, *erasure(2))
    made = new_webhook(database, events=BOTH)
    command = rpc.ReplayEvents(actor=ADMIN, request_id=f"r{next(numbers)}", id=made.id, since=NOW - timedelta(days=1))
    assert database.write(commands.replay, command, NOW, LINK_SECRET).queued == 1
    assert [each.event_type for each in deliveries(database, made.id)] == ["submission.erased"]


@ON_BOTH
def test_what_is_left_of_its_events_is_not_sent_again(database: Database) -> None:
    """The bytes are others by then, under an id that the receiver may know, or takes for news of that kind."""
    made = new_webhook(database, events=BOTH)
    record(database, envelope(1), envelope(1, subject="submission:2"))
    first, other = deliveries(database, made.id)

    def give_up(session: Any) -> None:
        for each in session.scalars(sa.select(Delivery)):
            each.outcome, each.state = "exhausted", "parked"

    def retriable(session: Any) -> list[int]:
        return list(session.scalars(sa.select(Delivery.id).where(Delivery.may_be_retried())))

    database.write(give_up)
    erase(database, *erasure(2))
    assert database.read(retriable) == [other.id]
    *_, last = deliveries(database, made.id)

    def resend(delivery: rpc.Delivery) -> rpc.Delivery:
        command = rpc.ResendDelivery(request_id=f"r{next(numbers)}", actor=ADMIN, webhook_id=made.id, id=delivery.id)
        return database.write(commands.resend, command, NOW)

    with pytest.raises(ServiceError, match="delivery_id is of a submission that was removed for good"):
        resend(first)
    assert resend(other).state == resend(last).state == "pending"
    assert last.event_type == "submission.erased"
