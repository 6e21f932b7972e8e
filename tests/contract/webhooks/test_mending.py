"""What helps a receiver that was down, was made later, or changes its secret: on real databases, as the use cases do it."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from standardwebhooks.webhooks import Webhook as Verifier

from contracts.errors import ServiceError
from contracts.rpc import webhooks as rpc
from contracts.rpc.unchanged import state_of
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done
from services.webhooks import commands, queries
from services.webhooks.deliver import Deliverer, headers
from services.webhooks.models import Attempt, Delivery
from tests.contract.conftest import ON_BOTH
from tests.support.material.webhooks import (
    ADMIN,
    NOW,
    claimed,
    database,
    deliveries,
    envelope,
    erase,
    finish,
    new_webhook,
    numbers,
    record,
    row,
    settings,
)
from tests.support.servers.receiver import Receiver
from tests.support.services.secret_settings import LINK_SECRET

__all__ = ["database"]

LATER = NOW + timedelta(hours=20)


def failed(database: Database, *ids: int) -> None:
    """Tried three times, and planned for long after."""
    planned = sa.update(Delivery).where(Delivery.id.in_(ids)).values(attempts=3, next_attempt_at=LATER)
    database.write(lambda session: session.execute(planned))


def delivered(database: Database, delivery_id: int) -> None:
    attempt = Attempt(delivery_id=delivery_id, attempted_at=NOW, status=204, duration_ms=1)
    finish(database, delivery_id, Done(lambda session, it: commands.record_success(session, it, attempt)))


def states(database: Database, webhook_id: int) -> list[tuple[str, bool, int]]:
    """Of each delivery: the state of its row, whether its time has come, and how often it was tried."""
    rows = [row(database, each.id) for each in deliveries(database, webhook_id)]
    return [(each.state, each.next_attempt_at <= NOW, each.attempts) for each in rows]


def resend(database: Database, delivery: rpc.Delivery) -> rpc.Delivery:
    command = rpc.ResendDelivery(
        request_id=f"r{next(numbers)}", actor=ADMIN, webhook_id=delivery.webhook_id, id=delivery.id
    )
    return database.write(commands.resend, command, NOW)


def replay(database: Database, webhook_id: int, **more: Any) -> rpc.Replayed:
    asked = {"since": NOW - timedelta(days=1), **more}
    command = rpc.ReplayEvents(request_id=f"r{next(numbers)}", actor=ADMIN, id=webhook_id, **asked)
    return database.write(commands.replay, command, NOW + timedelta(hours=1), LINK_SECRET)


@ON_BOTH
def test_a_delivery_that_waits_for_its_next_attempt_is_sent_at_once(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(2), envelope(1, subject="submission:2"))
    first, _, other = deliveries(database, made.id)
    failed(database, first.id, other.id)
    assert resend(database, first).next_attempt_at == NOW
    assert states(database, made.id) == [("due", True, 3), ("waiting", True, 0), ("due", False, 3)]


@ON_BOTH
def test_what_is_to_be_told_before_it_comes_first_and_now(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(2), envelope(3))
    first, second, third = deliveries(database, made.id)
    delivered(database, first.id)
    failed(database, second.id)
    assert resend(database, third).state == "pending"
    assert states(database, made.id) == [("done", True, 1), ("due", True, 3), ("waiting", True, 0)]
    delivered(database, second.id)
    delivered(database, third.id)
    resend(database, third)
    assert [each.state for each in deliveries(database, made.id)] == ["delivered", "delivered", "pending"]


def test_a_new_address_has_what_waits_tried_at_once(database: Database) -> None:
    made, other = new_webhook(database), new_webhook(database)
    record(database, envelope(1), envelope(1, subject="submission:2"))
    failed(database, *[each.id for hook in (made, other) for each in deliveries(database, hook.id)])

    def change(**more: Any) -> None:
        command = rpc.UpdateWebhook(request_id=f"r{next(numbers)}", actor=ADMIN, id=made.id, **more)
        database.write(commands.update, command, NOW)

    change(events=["form.completed"])
    assert states(database, made.id) == [("due", False, 3)] * 2
    change(url="http://127.0.0.1:9/moved")
    assert states(database, made.id) == [("due", True, 3)] * 2
    assert states(database, other.id) == [("due", False, 3)] * 2


@ON_BOTH
def test_a_replay_tells_what_was_told_and_what_was_missed(database: Database) -> None:
    """In the order of each subject, with the ids that a poller and the first delivery have."""
    early = new_webhook(database)
    record(database, envelope(1), envelope(1, subject="submission:2"), envelope(2))
    record(database, envelope(1, subject="submission:9", kind="submission.created"))
    told = deliveries(database, early.id)
    late = new_webhook(database)
    record(database, envelope(3))
    assert [each.event_id for each in deliveries(database, late.id)] == ["event-submission:1-3"]
    answer = replay(database, late.id)
    assert (answer.queued, answer.next) == (len(told) + 1, None)
    mine = {each.event_id: each for each in deliveries(database, late.id)}
    assert set(mine) == {each.event_id for each in told} | {"event-submission:1-3"}
    assert all(each.message_id == event for event, each in mine.items())
    of_one = [row(database, mine[f"event-submission:1-{number}"].id).state for number in (1, 2, 3)]
    assert of_one == ["due", "waiting", "waiting"], "what was planned before waits for what comes before it"
    for delivery in told:
        if row(database, delivery.id).state == "due":
            delivered(database, delivery.id)
    again = replay(database, early.id, kinds=["form.completed"])
    assert again.queued == answer.queued
    assert {each.state for each in deliveries(database, early.id)} == {"pending"}
    assert [each.message_id for each in deliveries(database, early.id)][: len(told)] == [
        each.message_id for each in told
    ]
    assert replay(database, early.id, kinds=["submission.created"]).queued == 1
    assert replay(database, early.id, since=NOW + timedelta(seconds=1)).queued == 0
    assert replay(database, early.id, until=NOW - timedelta(seconds=1)).queued == 0


@ON_BOTH
def test_a_replay_goes_on_where_it_ended(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "REPLAYED_AT_ONCE", 2)
    record(database, *[envelope(number) for number in range(1, 6)])
    made = new_webhook(database)
    counts, after = [], None
    while True:
        answer = replay(database, made.id, after=after)
        counts.append(answer.queued)
        if answer.next is None:
            break
        after = answer.next
    assert counts == [2, 2, 1]
    assert [row(database, each.id).state for each in deliveries(database, made.id)] == ["due"] + ["waiting"] * 4
    for number, delivery in enumerate(deliveries(database, made.id), start=1):
        assert delivery.event_id == f"event-submission:1-{number}"
        delivered(database, delivery.id)
    assert {each.state for each in deliveries(database, made.id)} == {"delivered"}


def test_what_is_not_replayed(database: Database) -> None:
    record(database, envelope(1), envelope(1, subject="submission:2"))
    made = new_webhook(database)
    erase(database)
    assert replay(database, made.id).queued == 1
    assert [each.event_id for each in deliveries(database, made.id)] == ["event-submission:2-1"]
    with pytest.raises(ServiceError) as refused:
        replay(database, made.id, kinds=["form.completed", "form.nonsense"])
    assert refused.value.details[0]["field"] == "kinds[1]"
    with pytest.raises(ServiceError, match="to must not be before from"):
        replay(database, made.id, until=NOW - timedelta(days=2))
    assert replay(database, made.id, until=NOW - timedelta(days=1)).queued == 0, "a moment is a span"
    with Receiver(lambda _: (410, {}, b"")) as receiver:
        gone = new_webhook(database, receiver.url)
        record(database, envelope(1, subject="submission:3"))
        (delivery,) = deliveries(database, gone.id)
        finish(database, delivery.id, Deliverer(settings(database)).attempt(claimed(database, delivery.id)))
    with pytest.raises(ServiceError, match="is disabled"):
        replay(database, gone.id)
    with pytest.raises(ServiceError) as missing:
        replay(database, 2**60)
    assert missing.value.code == "not_found"


@ON_BOTH
def test_a_secret_that_was_replaced_signs_until_its_time_is_over(database: Database) -> None:
    with Receiver() as receiver:
        made = new_webhook(database, receiver.url)

        def replace(hours: float, at: Any = NOW) -> Any:
            command = rpc.ReplaceSecret(request_id=f"r{next(numbers)}", actor=ADMIN, id=made.id, overlap_hours=hours)
            return database.write(commands.replace_secret, command, at)

        second = replace(24)
        assert [each.secret for each in second.former_signing_secrets] == [made.signing_secret]
        third = replace(1)
        record(database, envelope(1))
        (delivery,) = deliveries(database, made.id)
        deliverer = Deliverer(settings(database))
        request = claimed(database, delivery.id).request
        assert request is not None
        keys = [third.signing_secret, second.signing_secret, made.signing_secret]

        def valid(hours: float) -> list[bool]:
            return [accepted(secret, request, NOW + timedelta(hours=hours)) for secret in keys]

        assert valid(0.5) == [True, True, True]
        assert valid(2) == [True, False, True]
        assert valid(25) == [True, False, False]
        finish(database, delivery.id, deliverer.attempt(claimed(database, delivery.id)))
    (received,) = receiver.requests
    Verifier(third.signing_secret).verify(received.body, received.headers)
    at_once = replace(0, NOW + timedelta(hours=2))
    assert [each.secret for each in at_once.former_signing_secrets] == [made.signing_secret]
    for _ in range(3):
        replace(24)
    with pytest.raises(ServiceError, match="4 former secrets"):
        replace(24)
    assert len(database.read(queries.webhook, rpc.GetWebhook(actor=ADMIN, id=made.id), NOW).former_signing_secrets) == 4
    for hours in (-1, 169, float("nan")):
        with pytest.raises(ServiceError, match="from 0 to 168"):
            replace(hours)


def accepted(secret: str, request: Any, moment: Any) -> bool:
    """Is there a signature with this secret among those of what is sent then?"""
    signatures = headers(request, "id", moment)["webhook-signature"].split(" ")
    return Verifier(secret).sign("id", moment, request.body.decode()) in signatures


def test_a_test_is_in_the_log_as_one(database: Database) -> None:
    record(database, envelope(1))
    made = new_webhook(database)
    database.write(commands.test, rpc.TestWebhook(request_id="try", actor=ADMIN, id=made.id), NOW, LINK_SECRET)
    record(database, envelope(2))
    assert [(each.test, each.event_id) for each in deliveries(database, made.id)] == [
        (True, "event-submission:1-1"),
        (False, "event-submission:1-2"),
    ]
    assert replay(database, made.id).queued == 2
    assert [each.test for each in deliveries(database, made.id)].count(True) == 1


def test_a_webhook_that_was_changed_meanwhile_is_neither_changed_nor_removed(database: Database) -> None:
    made = new_webhook(database)

    def read() -> str:
        shown = database.read(queries.webhook, rpc.GetWebhook(actor=ADMIN, id=made.id), NOW)
        return state_of(json.loads(rpc.GET.encode(shown)))

    def change(expected: str | None, **changes: Any) -> Any:
        about = {"request_id": f"r{next(numbers)}", "actor": ADMIN, "id": made.id, "expected_state": expected}
        return database.write(commands.update, rpc.UpdateWebhook(**about, **changes), LATER)

    def remove(expected: str) -> Any:
        about = {"request_id": f"r{next(numbers)}", "actor": ADMIN, "id": made.id, "expected_state": expected}
        return database.write(commands.remove, rpc.RemoveWebhook(**about), NOW)

    before = read()
    change(None, events=["form.viewed"])
    too_late: tuple[Callable[[], object], ...] = (
        lambda: change(before, url="http://127.0.0.1:9/late"),
        lambda: remove(before),
    )
    for late in too_late:
        with pytest.raises(ServiceError) as refused:
            late()
        assert refused.value.code == "precondition_failed"
    assert change(read(), url="http://127.0.0.1:9/in-time").url == "http://127.0.0.1:9/in-time"
    assert remove(read()).message == "Webhook has been deleted"
