"""How a service stands, and what an operator may have it do, on real databases and a real broker."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pika
import pytest
import sqlalchemy as sa
from pika.exceptions import ChannelClosedByBroker

from contracts.errors import ServiceError
from contracts.events import MAIL_FAILED
from contracts.rpc import operating as rpc
from contracts.rpc.health import SERVICES, Pong
from contracts.runtime import process
from contracts.runtime.bus import declare, topology
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.tables import heartbeats, outbox
from contracts.runtime.monitoring import build
from contracts.runtime.operations import operating, parked
from contracts.runtime.operations.stuck import FAILING, GIVEN_UP
from deploy.manifest import Places
from deploy.rabbitmq import PrivateBroker
from services.notifications.models import MailRow, SubmissionRow
from services.notifications.service import NotificationsService
from services.rendering.models import SealJob
from services.webhooks.models import Delivery, Webhook
from tests.contract.deploy.test_stuck import LONG_AGO, inserted
from tests.support.services.migrated import migrated_database

WELL = Pong(ready=True)
LADDER = (1.0, 5.0)


@pytest.fixture
def mails(database_url: str) -> Iterator[Database]:
    yield from migrated_database("notifications", database_url)


def act(database: Database, service: str = "notifications", **order: Any) -> rpc.Done:
    return operating.act(service, database, rpc.ActOnWork(**{"work": "mails", **order}))


def refusal(database: Database, service: str = "notifications", **order: Any) -> tuple[str, str]:
    with pytest.raises(ServiceError) as refused:
        act(database, service, **order)
    return refused.value.code, refused.value.message


def row_of(database: Database, model: Any, number: int) -> Any:
    return database.read(lambda session: session.get(model, number))


def given_up_mail(database: Database, **more: Any) -> int:
    values = {"submission_id": None, "state": "parked", "attempts": 9, "last_error": "550 no such user"}
    return inserted(database, MailRow, **values | more)


def test_every_service_stands_well_with_an_empty_database(places: Places) -> None:
    for service in (*SERVICES, "gateway"):
        database = Database(places.databases[service], pool_size=1)
        found = operating.standing(service, database, WELL)
        database.dispose()
        assert (found.stuck, found.problems, found.unseen) == ([], [], [])
        assert {line.due + line.later + line.waiting + line.parked for line in found.backlog} == {0}, service
        assert [(one.kind, one.version) for one in found.processes] == [("serve", build.version())]


def test_which_builds_run_in_the_background(mails: Database) -> None:
    mails.write(process._beat_of, "notifications")
    other = {"name": f"{process.BUILD_BEAT}0.0.9 abc", "at": now() - timedelta(seconds=10)}
    long_ago = {"name": f"{process.BUILD_BEAT}0.0.8 abc", "at": now() - timedelta(days=2)}
    mails.write(lambda session: session.execute(heartbeats.insert().values([other, long_ago])) and None)
    told = operating.standing("notifications", mails, WELL).processes[1:]
    assert [(one.kind, one.version, one.revision) for one in told] == [
        ("background", "0.0.9", "abc"),
        ("background", build.version(), build.revision()),
    ]
    mails.write(process._clean_up)
    left = mails.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(heartbeats)))
    assert left == 3, "those of long ago are gone, the service's own is not"


def test_work_is_counted_by_what_it_waits_for(mails: Database) -> None:
    moment = now()
    due = {"submission_id": None, "state": "due", "attempts": 0}
    inserted(mails, MailRow, **due, next_attempt_at=moment - LONG_AGO)
    inserted(mails, MailRow, **due, next_attempt_at=moment)
    inserted(mails, MailRow, **due, next_attempt_at=moment + LONG_AGO)
    inserted(mails, MailRow, submission_id=None, state="done", attempts=1)
    given_up_mail(mails)
    (line,) = [one for one in operating.standing("notifications", mails, WELL).backlog if one.work == "mails"]
    assert (line.due, line.later, line.waiting, line.parked) == (2, 1, 0, 1)
    assert line.oldest == moment - LONG_AGO


def test_work_that_was_given_up_is_tried_again_once(mails: Database) -> None:
    number, other = given_up_mail(mails), given_up_mail(mails)
    assert act(mails, action="retry", key=number).count == 1
    row = row_of(mails, MailRow, number)
    assert (row.state, row.attempts) == ("due", 0)
    assert refusal(mails, action="retry", key=number) == (
        "conflict",
        f"mails {number} is still being tried, there is nothing to try again",
    )
    assert act(mails, action="retry").count == 1
    assert row_of(mails, MailRow, other).state == "due"
    assert act(mails, action="retry").count == 0
    assert refusal(mails, action="retry", key=424242) == ("not_found", "Row 424242 of mails not found")
    assert refusal(mails, action="retry", work="letters") == ("not_found", "Work letters not found")
    erased = given_up_mail(mails, erased_at=now())
    assert refusal(mails, action="retry", key=erased)[0] == "conflict"


def test_a_mail_that_is_given_up_is_told_to_have_failed(mails: Database) -> None:
    soon = now() + timedelta(minutes=3)
    about = {"submission_id": inserted(mails, SubmissionRow), "submitter_id": 7, "kind": "invitation"}
    failing = {**about, "state": "due", "attempts": 3, "next_attempt_at": soon, "last_error": "450 later"}
    number = inserted(mails, MailRow, **failing)
    (stuck,) = operating.standing("notifications", mails, WELL).stuck
    assert (stuck.state, stuck.actions) == (FAILING, (rpc.GIVE_UP,))
    assert act(mails, action="give_up", key=number).count == 1
    row = row_of(mails, MailRow, number)
    assert (row.state, row.last_error) == ("parked", "given up by an operator; the last reason was: 450 later")
    told = mails.read(lambda session: list(session.scalars(sa.select(outbox.c.type))))
    assert told == [MAIL_FAILED.type]
    (stuck,) = operating.standing("notifications", mails, WELL).stuck
    assert (stuck.state, stuck.actions) == (GIVEN_UP, (rpc.RETRY,))
    assert refusal(mails, action="give_up", key=number)[0] == "conflict"
    assert refusal(mails, action="give_up", key=None)[0] == "invalid"
    held = {**failing, "leased_until": now() + timedelta(minutes=1), "leased_by": "elsewhere/1"}
    assert "is under way" in refusal(mails, action="give_up", key=inserted(mails, MailRow, **held))[1]
    assert refusal(mails, action="give_up", key=424242)[0] == "not_found"


def test_a_delivery_that_is_given_up_lets_the_next_one_go(database_url: str) -> None:
    for database in migrated_database("webhooks", database_url):
        webhook = inserted(database, Webhook)
        common = {"webhook_id": webhook, "stream": "1 submission:1", "next_attempt_at": now() + timedelta(hours=1)}
        failing = inserted(database, Delivery, **common, position=1, state="due", attempts=4, last_error="500")
        behind = inserted(database, Delivery, **common, position=2, state="waiting", attempts=0)
        act(database, "webhooks", action="give_up", work="deliveries", key=failing)
        assert (row_of(database, Delivery, failing).outcome, row_of(database, Delivery, failing).state) == (
            "exhausted",
            "parked",
        )
        assert row_of(database, Delivery, behind).state == "due"


def test_a_seal_is_not_given_up_by_hand(tmp_path: Path) -> None:
    for database in migrated_database("rendering", f"sqlite:///{tmp_path}/rendering.sqlite"):
        job = inserted(database, SealJob, submission_id=1, state="due", attempts=3, last_error="no key")
        refused = refusal(database, "rendering", action="give_up", work="seal_jobs", key=job)
        assert refused == ("conflict", "seal_jobs of rendering are not given up by hand")


# --- what is parked at the broker


def service(broker: PrivateBroker, database: Database, amqp_url: str = "") -> Any:
    """The service's own class, with a database and a broker of the test's."""
    settings = SimpleNamespace(amqp_url=amqp_url or broker.amqp_url)
    context = SimpleNamespace(database=database, settings=settings, pong=lambda: WELL)
    return type("Notifications", (NotificationsService,), {"context": context})()


@pytest.fixture
def parking(broker: PrivateBroker) -> Iterator[tuple[Any, str]]:
    """A channel, and a parking queue of notifications with two events and something else in it."""
    plans = declare.plans(NotificationsService, "notifications", LADDER)
    declare._declare(broker.amqp_url, plans)
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    channel = connection.channel()
    queue = next(plan.name for plan in plans if plan.name.endswith(".parked"))
    headers = {topology.REASON_HEADER: "KeyError: 'a'", topology.FAILURES_HEADER: 7, "x-of-the-broker": 1}
    for body in (b'{"id": "one"}', b'{"id": "two"}', b"no event"):
        channel.basic_publish("", queue, body, pika.BasicProperties(headers=headers, delivery_mode=2))
    yield channel, queue
    for plan in plans:
        channel.queue_delete(plan.name)
    connection.close()


def handed_back(channel: Any, queue: str) -> list[tuple[bytes, dict[str, Any]]]:
    got = (channel.basic_get(queue.removesuffix(".parked"), auto_ack=True) for _ in range(3))
    return [
        (body, {name: value for name, value in properties.headers.items() if not name.startswith("x-")})
        for method, properties, body in got
        if method is not None
    ]


def test_parked_events_are_read_and_handed_back_one_by_one(
    broker: PrivateBroker, tmp_path: Path, parking: tuple[Any, str]
) -> None:
    channel, queue = parking
    for database in migrated_database("notifications", f"sqlite:///{tmp_path}/notifications.sqlite"):
        asked = service(broker, database)
        assert [(one.queue, one.count) for one in asked.look_around(rpc.LookAround()).parked] == [(queue, 3)]
        read = asked.read_parked(rpc.ReadParked(queue=queue)).events
        assert sorted((one.event_id or "", one.tries, one.reason) for one in read) == [
            ("", 7, "KeyError: 'a'"),
            ("one", 7, "KeyError: 'a'"),
            ("two", 7, "KeyError: 'a'"),
        ]
        order = rpc.ActOnParked(action="requeue", queue=queue, event_id="two")
        assert asked.act_on_parked(order).count == 1
        assert handed_back(channel, queue) == [(b'{"id": "two"}', {})]
        with pytest.raises(ServiceError, match="Parked event two not found"):
            asked.act_on_parked(order)
        dropped = asked.act_on_parked(rpc.ActOnParked(action="drop", queue=queue))
        marked = {topology.DROPPED_HEADER: True}
        assert dropped.count == 2
        assert sorted(handed_back(channel, queue)) == [(b"no event", marked), (b'{"id": "one"}', marked)]
        assert asked.act_on_parked(rpc.ActOnParked(action="drop", queue=queue)).count == 0


@pytest.mark.parametrize("queue", ["rpc-notifications", "evt-submissions-form.completed--webhooks.parked", ""])
def test_no_queue_but_one_s_own_parking_queues(broker: PrivateBroker, queue: str) -> None:
    asked = service(broker, None)  # type: ignore[arg-type]
    questions: tuple[Callable[[], object], ...] = (
        lambda: asked.read_parked(rpc.ReadParked(queue=queue)),
        lambda: asked.act_on_parked(rpc.ActOnParked(action="drop", queue=queue)),
    )
    for ask in questions:
        with pytest.raises(ServiceError) as refused:
            ask()
        assert refused.value.code == "not_found"


def test_a_broker_that_is_away_hides_only_what_is_parked(broker: PrivateBroker, tmp_path: Path) -> None:
    for database in migrated_database("notifications", f"sqlite:///{tmp_path}/notifications.sqlite"):
        given_up_mail(database)
        found = service(broker, database, "amqp://guest:guest@127.0.0.1:1/").look_around(rpc.LookAround())
        assert [one.work for one in found.stuck] == ["mails"]
        assert found.unseen == ["parked events: the broker cannot be asked: connection refused"]
        encoded = rpc.LOOK_AROUND["notifications"].encode(found)
        told = rpc.LOOK_AROUND["notifications"].decode(json.loads(encoded))
        assert (told.stuck, told.backlog, told.unseen) == (found.stuck, found.backlog, found.unseen)


def test_a_queue_of_which_nothing_can_be_known_is_not_taken_for_one_that_is_not_there(broker: PrivateBroker) -> None:
    holding, asking = (pika.BlockingConnection(pika.URLParameters(broker.amqp_url)) for _ in range(2))
    holding.channel().queue_declare("held", exclusive=True)
    assert dict(declare.messages_by_queue(asking, ["missing"])) == {"missing": None}
    for look in (parked.counted, lambda connection, queues: [*declare.messages_by_queue(connection, queues)]):
        with pytest.raises(ChannelClosedByBroker) as refused:
            look(asking, ["missing", "held"])
        assert refused.value.reply_code == 405  # RESOURCE_LOCKED
    holding.close()
    asking.close()
