"""The webhooks service on real databases: the log's order, deliveries' order, polling, giving up, erasing."""

import json
import random
import sqlite3
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session
from standardwebhooks.webhooks import Webhook as Verifier

from contracts import links
from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import Admins
from contracts.links import FieldsOf, FileLink
from contracts.rpc import webhooks as rpc
from contracts.runtime import migrations
from contracts.runtime.bus import outbox
from contracts.runtime.clock import uuid7
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database, UtcDateTime
from contracts.runtime.data.due_work.background import Done, Park, Retry
from contracts.runtime.operations import retrying
from services.webhooks import commands, queries
from services.webhooks.deliver import Deliverer
from services.webhooks.models import Arrival, Attempt, Delivery, LoggedEvent
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
    record,
    row,
    settings,
)
from tests.support.servers.receiver import Receiver
from tests.support.services.secret_settings import LINK_SECRET

__all__ = ["database"]


def test_a_created_webhook_is_as_it_was_asked_for(database: Database) -> None:
    made = new_webhook(database, events=["template.created"], secret={"X-Key": "abc"})
    read = database.read(queries.webhook, rpc.GetWebhook(actor=ADMIN, id=made.id), NOW)
    assert read == made
    assert made.events == ["template.created"]
    assert made.secret == {"X-Key": "abc"}
    assert made.signing_secret.startswith("whsec_")


@ON_BOTH
def test_a_repeated_request_makes_one_webhook(database: Database) -> None:
    command = rpc.CreateWebhook(request_id="same", actor=ADMIN, url="http://example.com/")
    first = database.write(commands.create, command, NOW)
    assert database.write(commands.create, command, NOW) == first
    assert len(database.read(queries.webhooks, rpc.ListWebhooks(actor=ADMIN), NOW).data) == 1


def test_a_refused_change_changes_nothing(database: Database) -> None:
    made = new_webhook(database)
    update = rpc.UpdateWebhook(request_id="u", actor=ADMIN, id=made.id, url="http://example.org/", events=["nonsense"])
    with pytest.raises(ServiceError) as refused:
        database.write(commands.update, update, NOW)
    assert refused.value.code == "invalid"
    assert refused.value.details[0]["field"] == "events[0]"
    assert database.read(queries.webhook, rpc.GetWebhook(actor=ADMIN, id=made.id), NOW) == made


@ON_BOTH
def test_lists_are_walked_with_next(database: Database) -> None:
    ids = [new_webhook(database).id for _ in range(5)]
    seen: list[int] = []
    after = None
    while True:
        page = database.read(queries.webhooks, rpc.ListWebhooks(actor=ADMIN, limit=2, after=after), NOW)
        seen += [each.id for each in page.data]
        after = page.pagination.next
        if after is None:
            break
    assert seen == ids
    before = database.read(queries.webhooks, rpc.ListWebhooks(actor=ADMIN, limit=2, before=ids[3]), NOW)
    assert [each.id for each in before.data] == ids[1:3]
    assert before.pagination.model_dump() == {"count": 2, "next": ids[2], "prev": ids[1]}


def test_events_in_any_order_and_repeated_are_logged_in_order(database: Database) -> None:
    made = new_webhook(database)
    wanted = [envelope(sequence, subject=f"submission:{subject}") for subject in (1, 2) for sequence in range(1, 8)]
    shuffled = wanted * 2
    random.Random(7).shuffle(shuffled)
    record(database, *shuffled)
    logged = database.read(
        lambda session: session.execute(
            sa.select(LoggedEvent.subject, LoggedEvent.sequence).order_by(LoggedEvent.position)
        ).all()
    )
    for subject in ("submission:1", "submission:2"):
        assert [sequence for name, sequence in logged if name == subject] == list(range(1, 8))
    assert database.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(Arrival))) == 0
    told = deliveries(database, made.id)
    assert len(told) == 14
    assert len({each.event_id for each in told}) == 14


@ON_BOTH
def test_events_recorded_together_are_logged_as_one_by_one(database: Database) -> None:
    """In one transaction several subjects, mixed, in any order, some of them twice, and some that have waited."""
    made = new_webhook(database)
    thin = new_webhook(database, payload="thin")
    wanted = [envelope(sequence, subject=f"submission:{subject}") for subject in (1, 2, 3) for sequence in range(1, 8)]
    shuffled = wanted * 2
    random.Random(3).shuffle(shuffled)
    while shuffled:
        together, shuffled = shuffled[:5], shuffled[5:]
        database.write(commands.record_events, together, NOW, LINK_SECRET)
    logged = database.read(
        lambda session: session.execute(
            sa.select(LoggedEvent.subject, LoggedEvent.sequence).order_by(LoggedEvent.position)
        ).all()
    )
    for number in (1, 2, 3):
        subject = f"submission:{number}"
        assert [sequence for name, sequence in logged if name == subject] == list(range(1, 8))
        for webhook in (made, thin):
            rows = database.read(
                lambda session, stream=f"{webhook.id}/{subject}": session.execute(  # type: ignore[misc]
                    sa.select(Delivery.event_id, Delivery.state)
                    .where(Delivery.stream == stream)
                    .order_by(Delivery.position)
                ).all()
            )
            assert [row.event_id for row in rows] == [envelope(n, subject=subject).id for n in range(1, 8)]
            assert [row.state for row in rows] == ["due", *["waiting"] * 6]
    assert database.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(Arrival))) == 0


@ON_BOTH
def test_an_event_that_an_operator_dropped_is_left_out_of_what_is_recorded_together(database: Database) -> None:
    new_webhook(database)
    database.write(outbox.drop, envelope(2).id)
    database.write(commands.record_events, [envelope(3), envelope(2), envelope(1)], NOW, LINK_SECRET)
    logged = database.read(lambda session: session.scalars(sa.select(LoggedEvent.sequence)).all())
    assert logged == [1]
    assert database.read(lambda session: session.scalars(sa.select(Arrival.sequence)).all()) == [3]


@ON_BOTH
def test_streams_of_any_number_are_looked_up(database: Database) -> None:
    """Several events at once have as many as there are webhooks, times their number."""
    made = new_webhook(database)
    record(database, envelope(1))
    if database.sqlite:  # as it is compiled by default: some builds take more
        most = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
        sa.event.listen(database.engine, "connect", lambda connection, _record: connection.setlimit(most, 32_766))
        database.engine.dispose()
    begun = f"{made.id}/submission:1"
    streams = [f"{number}/submission:2" for number in range(70_000)] + [begun]
    assert database.write(lambda session: commands._Log(session, NOW, LINK_SECRET)._begun(streams)) == {begun}


def test_events_recorded_by_many_at_once_are_logged_once(database: Database) -> None:
    made = new_webhook(database)
    wanted = [envelope(sequence) for sequence in range(1, 13)]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        mine = list(wanted)
        random.Random(seed).shuffle(mine)
        try:
            while mine:
                together = [mine.pop() for _ in range(min(len(mine), 1 + seed))]
                database.write(commands.record_events, together, NOW, LINK_SECRET)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [each.event_id for each in deliveries(database, made.id)] == [each.id for each in wanted]


def test_a_gap_is_waited_for(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(3))
    assert [each.event_id for each in deliveries(database, made.id)] == [envelope(1).id]
    record(database, envelope(2))
    assert [each.event_id for each in deliveries(database, made.id)] == [envelope(n).id for n in (1, 2, 3)]


def test_only_subscribed_and_enabled_webhooks_are_told(database: Database) -> None:
    forms = new_webhook(database)
    created = new_webhook(database, events=["submission.created"])
    record(database, envelope(1, kind="submission.created"), envelope(2), envelope(3, kind="form.sent"))
    assert [each.event_type for each in deliveries(database, forms.id)] == ["form.completed"]
    assert [each.event_type for each in deliveries(database, created.id)] == ["submission.created"]


def taken(attempt: Attempt) -> Done:
    return Done(lambda session, it: commands.record_success(session, it, attempt))


def test_deliveries_of_a_subject_wait_for_each_other_and_not_for_other_subjects(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(2), envelope(1, subject="submission:2"))
    first, second, other = deliveries(database, made.id)
    assert [row(database, each.id).state for each in (first, second, other)] == ["due", "waiting", "due"]
    attempt = Attempt(delivery_id=first.id, attempted_at=NOW, status=204, duration_ms=1)
    finish(database, first.id, taken(attempt))
    assert row(database, second.id).state == "due"


def test_what_ends_together_lets_the_next_of_each_subject_go(database: Database) -> None:
    made = new_webhook(database)
    for sequence in (1, 2, 3):
        record(database, *(envelope(sequence, subject=f"submission:{number}") for number in (1, 2, 3)))
    first = [each.id for each in deliveries(database, made.id)[:3]]

    def end(session: Session) -> None:
        ended = [session.get_one(Delivery, number) for number in first]
        ended[0].outcome, ended[1].outcome = "delivered", "exhausted"  # the third one is tried again
        commands.follow_up(session, ended, NOW)

    database.write(end)
    states = [row(database, each.id).state for each in deliveries(database, made.id)[3:]]
    assert states == ["due", "due", "waiting"] + ["waiting"] * 3


def test_planning_and_finishing_at_once_forget_nobody(database: Database) -> None:
    """While one delivery is being finished the next is planned: each must see the other, or the next one waits for ever."""
    made = new_webhook(database)
    finished: set[int] = set()

    def finish_what_is_due() -> None:
        while len(finished) < 40:
            for each in deliveries(database, made.id):
                if each.state == "pending" and row(database, each.id).state == "due":
                    attempt = Attempt(delivery_id=each.id, attempted_at=NOW, status=204, duration_ms=1)
                    finish(
                        database,
                        each.id,
                        taken(attempt),
                    )
                    finished.add(each.id)

    finisher = threading.Thread(target=finish_what_is_due, daemon=True)
    finisher.start()
    for sequence in range(1, 41):
        record(database, envelope(sequence))
    finisher.join(60)
    assert len(finished) == 40
    assert database.write(commands.release_forgotten, NOW) == 0


def test_a_forgotten_delivery_is_released(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(2), envelope(3))
    first, second, third = deliveries(database, made.id)
    database.write(
        lambda session: session.execute(sa.update(Delivery).where(Delivery.id == first.id).values(outcome="delivered"))
    )
    assert database.write(commands.release_forgotten, NOW) == 1
    assert [row(database, each.id).state for each in (second, third)] == ["due", "waiting"]


def test_an_attempt_carries_the_logged_bytes_and_verifies(database: Database) -> None:
    with Receiver() as receiver:
        made = new_webhook(database, receiver.url, secret={"X-Our-Key": "s3cret"})
        record(database, envelope(1))
        (delivery,) = deliveries(database, made.id)
        deliverer = Deliverer(settings(database))
        finish(database, delivery.id, deliverer.attempt(claimed(database, delivery.id)))
    (received,) = receiver.requests
    logged = database.read(lambda session: session.scalar(sa.select(LoggedEvent.body)))
    assert logged is not None
    assert received.body == logged.encode()
    assert received.headers["x-our-key"] == "s3cret"
    told = Verifier(made.signing_secret).verify(received.body, received.headers)
    assert told == {"event_type": "form.completed", "timestamp": "2026-03-04T05:06:07.000Z", "data": told["data"]}
    (delivery,) = deliveries(database, made.id)
    assert delivery.state == "delivered"
    assert [attempt.status for attempt in delivery.attempts] == [204]


def test_every_attempt_sends_the_same_id_and_bytes(database: Database) -> None:
    replies = iter([(500, {}, b"no"), (302, {"Location": "http://127.0.0.1:1/"}, b""), (200, {}, b"ok")])
    with Receiver(lambda _: next(replies)) as receiver:
        made = new_webhook(database, receiver.url)
        record(database, envelope(1))
        (delivery,) = deliveries(database, made.id)
        deliverer = Deliverer(settings(database))
        outcomes = []
        for _ in range(3):
            outcome = deliverer.attempt(claimed(database, delivery.id))
            finish(database, delivery.id, outcome)
            outcomes.append(type(outcome))
    assert outcomes == [Retry, Retry, Done]
    assert {(each.message_id, each.body) for each in receiver.requests} == {(envelope(1).id, receiver.requests[0].body)}
    (delivery,) = deliveries(database, made.id)
    assert [attempt.status for attempt in delivery.attempts] == [500, 302, 200]
    assert delivery.attempts[0].response == "no"


@ON_BOTH
def test_thin_events_say_which_record_they_are_about_and_stay_so(database: Database) -> None:
    """Whatever becomes of the webhook: each attempt sends the same bytes. The test button is as thin, and the log has everything."""
    with Receiver(lambda _: (500, {}, b"")) as receiver:
        made = new_webhook(database, receiver.url, payload="thin")
        record(database, envelope(1))
        (delivery,) = deliveries(database, made.id)
        deliverer = Deliverer(settings(database))
        finish(database, delivery.id, deliverer.attempt(claimed(database, delivery.id)))
        changed = rpc.UpdateWebhook(request_id="u1", actor=ADMIN, id=made.id, payload="full")
        assert database.write(commands.update, changed, NOW).payload == "full"
        finish(database, delivery.id, deliverer.attempt(claimed(database, delivery.id)))
        record(database, envelope(2))
        other = new_webhook(database, receiver.url, payload="thin")
        database.write(commands.test, rpc.TestWebhook(request_id="t1", actor=ADMIN, id=other.id), NOW, LINK_SECRET)
        (tried,) = deliveries(database, other.id)
        finish(database, tried.id, deliverer.attempt(claimed(database, tried.id)))
    first, again, by_button = [json.loads(each.body) for each in receiver.requests]
    assert receiver.requests[0].body == receiver.requests[1].body
    logged = json.loads(database.read(lambda session: session.scalar(sa.select(LoggedEvent.body).limit(1))) or "")
    assert first == again == {**logged, "data": {"id": logged["data"]["id"]}}
    assert len(logged["data"]) > 1
    assert set(by_button["data"]) == {"id"}
    bodies = database.read(
        lambda session: session.scalars(sa.select(Delivery.body).where(Delivery.test.is_(False))).all()
    )
    assert [body is None for body in bodies] == [False, True], "the second one was told in full"


def file_url(subject: str, number: int, **more: Any) -> str:
    """A link as the owner of the ``subject`` puts it into events."""
    service, _, owner = subject.partition(":")
    of = FieldsOf(f"{service}s", int(owner), "")  # type: ignore[arg-type]
    link = FileLink(f"submissions/{number}", "application/pdf", f"{number}.pdf", None, fields_of=of)
    return links.url("https://sign.example.com", LINK_SECRET, replace(link, **more))


def with_files(sequence: int, subject: str = "submission:1") -> Envelope:
    """A completion with a document and a picture, and with what a signer has typed: the link of another submission's event."""
    typed = file_url("submission:2", 9)
    data = {
        "id": sequence,
        "audit_log_url": file_url(subject, 1),
        "documents": [{"name": "Lease", "url": file_url(subject, 2)}],
        "values": {"Photo": [file_url(subject, 3, page=1)], "Remarks": typed, "Site": "https://x.example/file/AAAA/a"},
        "submission_url": "https://sign.example.com/e/abc",
    }
    return envelope(sequence, subject=subject, data=data)


@ON_BOTH
def test_links_in_events_are_good_without_a_key_for_a_time(database: Database) -> None:
    """Of whom asks for it: until so long after it was planned, in the same bytes each time. The log keeps what it had, and a
    change holds for what comes."""
    with Receiver(lambda _: (500, {}, b"")) as receiver:
        made = new_webhook(database, receiver.url, file_link_minutes=60)
        plain = new_webhook(database)
        deliverer = Deliverer(settings(database))
        record(database, with_files(1))
        (delivery,) = deliveries(database, made.id)
        finish(database, delivery.id, deliverer.attempt(claimed(database, delivery.id)))
        change = rpc.UpdateWebhook(request_id="u1", actor=ADMIN, id=made.id, file_link_minutes=None)
        assert database.write(commands.update, change, NOW).file_link_minutes is None
        command = rpc.ResendDelivery(request_id="u2", actor=ADMIN, webhook_id=made.id, id=delivery.id)
        database.write(commands.resend, command, NOW + timedelta(hours=2))
        finish(database, delivery.id, deliverer.attempt(claimed(database, delivery.id)))
        record(database, with_files(2), at=NOW)
    first, again = receiver.requests
    assert first.body == again.body
    logged = database.read(lambda session: session.scalars(sa.select(LoggedEvent.body)).all())
    whole, told = json.loads(logged[0]), json.loads(first.body)
    assert {**told, "data": None} == {**whole, "data": None}
    opened = [told["data"]["audit_log_url"], told["data"]["documents"][0]["url"], told["data"]["values"]["Photo"][0]]
    for number, url in enumerate(opened, start=1):
        link = links.read(LINK_SECRET, url.split("/file/")[1].split("/")[0])
        assert (link.key, link.expires_at) == (f"submissions/{number}", int(NOW.timestamp()) + 3600)
        assert link.key_after
        assert url.startswith("https://sign.example.com/file/")
    untouched = ("Remarks", "Site")
    assert [told["data"]["values"][name] for name in untouched] == [whole["data"]["values"][name] for name in untouched]
    assert told["data"]["submission_url"] == whole["data"]["submission_url"]
    bodies = database.read(lambda session: session.scalars(sa.select(Delivery.body).order_by(Delivery.id)).all())
    assert [body is None for body in bodies] == [False, True, True, True], "all others have the log's own bytes"
    assert len(deliveries(database, plain.id)) == 2


def test_a_replay_keeps_the_bytes_that_there_are_and_opens_the_links_of_others(database: Database) -> None:
    record(database, with_files(1))
    made = new_webhook(database, file_link_minutes=1)
    record(database, with_files(2))
    (before,) = deliveries(database, made.id)
    kept = row(database, before.id).body
    later = NOW + timedelta(days=3)
    command = rpc.ReplayEvents(request_id="r", actor=ADMIN, id=made.id, since=NOW)
    assert database.write(commands.replay, command, later, LINK_SECRET).queued == 2
    told = {each.event_id: row(database, each.id).body for each in deliveries(database, made.id)}
    assert told[before.event_id] == kept
    url = json.loads(told["event-submission:1-1"] or "")["data"]["audit_log_url"]
    link = links.read(LINK_SECRET, url.split("/file/")[1].split("/")[0])
    assert link.expires_at == int(later.timestamp()) + 60


def test_a_thin_event_has_no_links_to_open_and_the_test_button_opens_them(database: Database) -> None:
    thin = new_webhook(database, payload="thin", file_link_minutes=5)
    full = new_webhook(database, file_link_minutes=5)
    record(database, with_files(1))
    (told,) = deliveries(database, thin.id)
    assert set(json.loads(row(database, told.id).body or "")["data"]) == {"id"}
    press = rpc.TestWebhook(request_id="t1", actor=ADMIN, id=full.id)
    later = NOW + timedelta(days=1)
    database.write(commands.test, press, later, LINK_SECRET)
    body = row(database, deliveries(database, full.id)[-1].id).body
    url = json.loads(body or "")["data"]["audit_log_url"]
    link = links.read(LINK_SECRET, url.split("/file/")[1].split("/")[0])
    assert (link.expires_at, link.key_after) == (int(later.timestamp()) + 300, True)


@pytest.mark.parametrize("minutes", [0, -1, 10081])
def test_how_long_links_are_good_is_within_limits(database: Database, minutes: int) -> None:
    made = new_webhook(database, file_link_minutes=10080)
    assert made.file_link_minutes == 10080
    change = rpc.UpdateWebhook(request_id="u", actor=ADMIN, id=made.id, file_link_minutes=minutes)
    for refusing in (
        lambda: database.write(commands.update, change, NOW),
        lambda: new_webhook(database, file_link_minutes=minutes),
    ):
        with pytest.raises(ServiceError) as refused:
            refusing()
        assert refused.value.details == [{"field": "file_link_minutes", "reason": "must be from 1 to 10080"}]
    assert database.read(queries.webhook, rpc.GetWebhook(actor=ADMIN, id=made.id), NOW) == made


def test_retry_after_is_passed_on(database: Database) -> None:
    with Receiver(lambda _: (503, {"Retry-After": "77"}, b"")) as receiver:
        made = new_webhook(database, receiver.url)
        record(database, envelope(1))
        (delivery,) = deliveries(database, made.id)
        outcome = Deliverer(settings(database)).attempt(claimed(database, delivery.id))
    assert isinstance(outcome, Retry)
    assert outcome.after == timedelta(seconds=77)


def test_a_private_address_is_not_called(database: Database) -> None:
    with Receiver() as receiver:
        made = new_webhook(database, receiver.url)
        record(database, envelope(1))
        (delivery,) = deliveries(database, made.id)
        closed = settings(database).model_copy(update={"allowed_private_networks": ""})
        outcome = Deliverer(closed).attempt(claimed(database, delivery.id))
        finish(database, delivery.id, outcome)
        assert isinstance(outcome, Retry)
        assert receiver.requests == []
    assert deliveries(database, made.id)[0].attempts[0].error


@ON_BOTH
def test_410_disables_and_tells_the_owner(database: Database) -> None:
    with Receiver(lambda _: (410, {}, b"")) as receiver:
        made = new_webhook(database, receiver.url)
        record(database, envelope(1), envelope(2))
        first, _ = deliveries(database, made.id)
        finish(database, first.id, Deliverer(settings(database)).attempt(claimed(database, first.id)))
    disabled = database.read(queries.webhook, rpc.GetWebhook(actor=ADMIN, id=made.id), NOW)
    assert disabled.disabled_at is not None
    assert [each.state for each in deliveries(database, made.id)] == ["exhausted", "cancelled"]
    emitted = database.read(
        lambda session: session.execute(sa.select(tables.outbox.c.type, tables.outbox.c.body)).all()
    )
    assert [kind for kind, _ in emitted] == ["webhook.disabled"]
    assert json.loads(emitted[0][1])["data"]["admins"] == ["admin@example.com"]
    record(database, envelope(3))
    assert len(deliveries(database, made.id)) == 2
    update = rpc.UpdateWebhook(request_id="on", actor=ADMIN, id=made.id, events=["form.completed"])
    assert database.write(commands.update, update, NOW).disabled_at is None
    record(database, envelope(4))
    assert len(deliveries(database, made.id)) == 3


@ON_BOTH
def test_all_admins_are_told_whoever_made_the_webhook(database: Database) -> None:
    def told(emails: list[str], revision: int) -> None:
        database.write(commands.keep_admins, uuid7(), Admins(emails=emails, revision=revision))

    told(["old@example.com"], 1)
    told(["ada@example.com", "grace@example.com"], 3)
    told(["late@example.com"], 2)  # news that were overtaken
    told(["ada@example.com", "grace@example.com"], 3)
    with Receiver(lambda _: (410, {}, b"")) as receiver:
        made = new_webhook(database, receiver.url)
        record(database, envelope(1))
        (first,) = deliveries(database, made.id)
        finish(database, first.id, Deliverer(settings(database)).attempt(claimed(database, first.id)))
    (body,) = database.read(lambda session: session.scalars(sa.select(tables.outbox.c.body)).all())
    assert json.loads(body)["data"]["admins"] == ["ada@example.com", "grace@example.com"]


def test_five_days_of_failure_disable_but_one_success_clears(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1))
    (delivery,) = deliveries(database, made.id)

    def fail(at: datetime) -> None:
        attempt = Attempt(delivery_id=delivery.id, attempted_at=at, error="refused", duration_ms=1)
        database.write(
            lambda session: commands.record_failure(
                session,
                session.get_one(Delivery, delivery.id),
                attempt,
                at,
                gone=False,
                give_up_after=timedelta(hours=120),
                attempts_kept=3,
            )
        )

    def disabled() -> bool:
        return database.read(queries.webhook, rpc.GetWebhook(actor=ADMIN, id=made.id), NOW).disabled_at is not None

    for hours in (0, 60, 119):
        fail(NOW + timedelta(hours=hours))
        assert not disabled()
    record(database, envelope(1, subject="submission:2"))
    other = deliveries(database, made.id)[-1]
    success = Attempt(delivery_id=other.id, attempted_at=NOW, status=200, duration_ms=1)
    finish(database, other.id, Done(lambda session, it: commands.record_success(session, it, success)))
    for hours in (130, 200, 249):
        fail(NOW + timedelta(hours=hours))
        assert not disabled()
    fail(NOW + timedelta(hours=250))
    assert disabled()
    assert len(deliveries(database, made.id)[0].attempts) == 3


def test_an_exhausted_delivery_lets_the_next_go_and_can_be_sent_again(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(2))
    first, second = deliveries(database, made.id)
    finish(database, first.id, Park("the schedule is at its end", commands.record_exhaustion))
    assert deliveries(database, made.id)[0].state == "exhausted"
    assert row(database, second.id).state == "due"
    again = rpc.ResendDelivery(request_id="again", actor=ADMIN, webhook_id=made.id, id=first.id)
    assert database.write(commands.resend, again, NOW).state == "pending"
    assert database.write(commands.resend, again.model_copy(update={"request_id": "twice"}), NOW).state == "pending"
    assert row(database, second.id).state == "due"
    foreign = again.model_copy(update={"request_id": "foreign", "webhook_id": made.id + 1})
    with pytest.raises(ServiceError) as refused:
        database.write(commands.resend, foreign, NOW)
    assert refused.value.code == "not_found"


@ON_BOTH
def test_an_operator_has_exhausted_deliveries_tried_again_but_none_that_were_cancelled(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(2))
    first, second = deliveries(database, made.id)

    def end(session: Session) -> None:
        for number, outcome in ((first.id, "exhausted"), (second.id, "cancelled")):
            delivery = session.get_one(Delivery, number)
            delivery.state, delivery.outcome, delivery.finished_at = "parked", outcome, NOW

    database.write(end)
    assert retrying.made_due(database, Delivery, []) == 1
    assert [one.state for one in deliveries(database, made.id)] == ["pending", "cancelled"]
    assert row(database, first.id).state == "due"


@ON_BOTH
def test_the_test_button_sends_the_newest_completed_submitter(database: Database) -> None:
    with Receiver() as receiver:
        made = new_webhook(database, receiver.url, events=["template.created"])
        press = rpc.TestWebhook(request_id="t1", actor=ADMIN, id=made.id)
        with pytest.raises(ServiceError, match="No completed submitter found"):
            database.write(commands.test, press, NOW, LINK_SECRET)
        record(database, envelope(1), envelope(2))
        database.write(commands.test, press, NOW, LINK_SECRET)
        (delivery,) = deliveries(database, made.id)
        finish(database, delivery.id, Deliverer(settings(database)).attempt(claimed(database, delivery.id)))
        erase(database)
        with pytest.raises(ServiceError, match="No completed submitter found"):  # nothing is left to tell of them
            database.write(commands.test, press.model_copy(update={"request_id": "t2"}), NOW, LINK_SECRET)
    (received,) = receiver.requests
    assert json.loads(received.body)["data"]["id"] == 2
    assert received.message_id.startswith("test_")


@ON_BOTH
def test_an_erased_submission_keeps_no_personal_data(database: Database) -> None:
    with Receiver(lambda _: (500, {}, b"ann@example.com")) as receiver:
        made = new_webhook(database, receiver.url)
        record(database, envelope(1), envelope(2), envelope(4))
        (first, _) = deliveries(database, made.id)
        finish(database, first.id, Deliverer(settings(database)).attempt(claimed(database, first.id)))
        erase(database)
        record(database, envelope(3))

    def everything(session: Any) -> str:
        found = []
        for table in (LoggedEvent, Delivery, Attempt, Arrival):
            found += [str(each) for each in session.execute(sa.select(table.__table__)).all()]
        return "\n".join(found)

    text = database.read(everything)
    assert "event-submission:1-4" in text
    assert "ann@example.com" not in text
    assert {each.state for each in deliveries(database, made.id)} == {"cancelled"}


@ON_BOTH
def test_the_schema_is_what_the_models_say(database_url: str) -> None:
    migrations.upgrade("webhooks", database_url)
    assert migrations.differences("webhooks", database_url) == []


@ON_BOTH
def test_deliveries_and_attempts_outlive_the_change_of_ids(database_url: str) -> None:
    """What was planned before keeps its id, and each row its attempts and rules, there and back."""
    migrations.upgrade("webhooks", database_url, "0010")
    database = Database(database_url)
    former = _planned(database, 5, "event-1.5", "event-1")
    migrations.upgrade("webhooks", database_url)
    later = _planned(database, 6, "event-1", "event-1")

    def ids(session: Session) -> list[tuple[Any, ...]]:
        rows = session.execute(
            sa.select(Delivery.id, Delivery.message_id).join(Attempt, Attempt.delivery_id == Delivery.id)
        )
        return sorted(tuple(row) for row in rows)

    assert database.read(ids) == [(former, "event-1.5"), (later, "event-1")]
    with pytest.raises(sa.exc.IntegrityError):
        _planned(database, 6, "event-1", "event-1")
    with pytest.raises(sa.exc.IntegrityError):
        database.write(lambda session: session.execute(sa.update(Delivery).values(outcome="nonsense")))
    database.engine.dispose()
    migrations.downgrade("webhooks", database_url, "0010")
    assert database.read(ids) == [(former, "event-1.5"), (later, "event-1.6")]
    with pytest.raises(sa.exc.IntegrityError):
        _planned(database, 7, "event-1.5", "event-1")
    database.engine.dispose()
    migrations.upgrade("webhooks", database_url)
    assert migrations.differences("webhooks", database_url) == []


def _planned(database: Database, webhook: int, message: str, event: str) -> int:
    """A delivery with an attempt, written in words that each version's tables understand."""

    def write(session: Session) -> int:
        common = {"webhook": webhook, "message": message, "event": event}
        at = sa.bindparam("at", NOW, type_=UtcDateTime())
        session.execute(
            sa.text(
                "INSERT INTO webhooks (id, url, events, secret, signing_secret, owner_email, created_at, updated_at)"
                " SELECT :webhook, 'http://x/', '[]', '{}', 'whsec_AAAA', 'a@example.com', :at, :at"
                " WHERE NOT EXISTS (SELECT 1 FROM webhooks WHERE id = :webhook)"
            ).bindparams(at),
            {"webhook": webhook},
        )
        number = session.scalar(
            sa.text(
                "INSERT INTO deliveries (webhook_id, position, event_id, event_type, message_id, stream, test, created_at,"
                " next_attempt_at) VALUES (:webhook, 1, :event, 'form.completed', :message, 'x', false, :at, :at)"
                " RETURNING id"
            ).bindparams(at),
            common,
        )
        session.execute(
            sa.text(
                "INSERT INTO attempts (delivery_id, attempted_at, duration_ms) VALUES (:delivery, :at, 1)"
            ).bindparams(at),
            {"delivery": number},
        )
        return int(number or 0)

    return database.write(write)
