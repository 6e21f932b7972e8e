"""The runtime on a real broker, with a real service (webhooks) in processes of its own: the wire, retries, parking, crashes."""

import itertools
import json
import sqlite3
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pika
import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc import Rpc, health
from contracts.rpc import templates as foreign
from contracts.rpc import webhooks as rpc
from contracts.runtime.bus import outbox, topology
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.operations import parked
from contracts.types import Actor, Role
from deploy.rabbitmq import PrivateBroker
from tests.support.services import processes
from tests.support.services.suite import wait_until

ADMIN = Actor(user_id=1, role=Role.ADMIN, email="admin@example.com")
QUEUE = "evt-submissions-form.viewed--webhooks"
numbers = itertools.count(1)


class Worker:
    """The webhooks service's ``serve`` process, on SQLite, and what the tests need of it."""

    def __init__(self, amqp_url: str, folder: Path) -> None:
        self.amqp_url = amqp_url
        self.folder = folder
        self.database = folder / "webhooks.sqlite"
        self.settings = processes.environment(
            "webhooks", amqp_url, f"sqlite:///{self.database}", folder, EVENT_RETRY_SECONDS="0.2,0.4", MAX_WORKERS="4"
        )
        processes.migrate("webhooks", self.settings)
        self.log = (folder / "serve.log").open("ab")
        self.process = processes.start("webhooks", "serve", self.settings, self.log)

    def restart(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = processes.start("webhooks", "serve", self.settings, self.log)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()

    def logged(self, subject: str) -> list[tuple[int, str]]:
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        try:
            query = "SELECT sequence, event_type FROM events WHERE subject = ? ORDER BY position"
            return connection.execute(query, (subject,)).fetchall()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def worker(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    started = Worker(broker.amqp_url, tmp_path_factory.mktemp("worker"))
    yield started
    started.stop()


@pytest.fixture
def channel(broker: PrivateBroker, worker: Worker) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    opened = connection.channel()
    opened.confirm_delivery()  # What was published is in its queues: an empty one has been emptied.
    yield opened
    connection.close()


@pytest.fixture
def client(broker: PrivateBroker, worker: Worker) -> Iterator[RpcClient]:
    opened = RpcClient(broker.amqp_url)
    wait_until(lambda: is_ready(opened), what="the worker answers")
    yield opened
    opened.close()


def is_ready(client: RpcClient) -> bool:
    try:
        client.call(rpc.LIST, rpc.ListWebhooks(actor=ADMIN))
    except ServiceError:
        return False
    return True


def new_subject() -> str:
    return f"submission:{next(numbers)}{time.monotonic_ns() % 10**9}"


def envelope(subject: str, sequence: int | None = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": uuid7(),
        "type": "form.viewed",
        "version": 1,
        "source": "submissions",
        "subject": subject,
        "sequence": sequence,
        "occurred_at": datetime.now(UTC).isoformat(),
        "data": {"data": {"id": 5}},
        **more,
    }


def publish(channel: Any, body: Any) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    channel.basic_publish("submissions.events", "form.viewed", raw, pika.BasicProperties(delivery_mode=2))


def one_parked(channel: Any) -> tuple[dict[str, Any], bytes]:
    """The next message of the parking queue, removed from it."""

    def got() -> Any:
        method, properties, body = channel.basic_get(topology.parked_queue_name(QUEUE), auto_ack=True)
        return (properties.headers, body) if method else None

    return wait_until(got, what="a parked message")  # type: ignore[no-any-return]


# The wire, with nothing but pika.


def test_a_request_and_its_reply_are_nameko_s(channel: Any, client: RpcClient) -> None:
    reply_to, correlation = str(uuid.uuid4()), "c-1"
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "nameko-rpc", reply_to)

    def ask(method: str, body: bytes) -> dict[str, Any]:
        properties = pika.BasicProperties(
            content_type="application/json", content_encoding="utf-8", reply_to=reply_to, correlation_id=correlation
        )
        channel.basic_publish("nameko-rpc", f"webhooks.{method}", body, properties)

        def got() -> Any:
            found, answered, reply = channel.basic_get(queue, auto_ack=True)
            return (answered, reply) if found else None

        answered, reply = wait_until(got, what="the reply")
        assert answered.correlation_id == correlation
        assert answered.content_type == "application/json"
        decoded: dict[str, Any] = json.loads(reply)
        return decoded

    kwargs = {"actor": ADMIN.model_dump(mode="json"), "limit": 1, "unknown_key": "ignored"}
    reply = ask("list", json.dumps({"args": [], "kwargs": kwargs}).encode())
    assert set(reply) == {"result", "error"}
    assert reply["error"] is None
    assert set(reply["result"]) == {"data", "pagination"}

    missing = ask("get", json.dumps({"args": [], "kwargs": {**kwargs, "id": 987}}).encode())
    assert missing["result"] is None
    assert missing["error"]["exc_type"] == "ServiceError"
    assert missing["error"]["exc_args"][:2] == ["not_found", "Webhook not found"]

    wrong = ask("get", json.dumps({"args": [], "kwargs": {**kwargs, "id": "seven"}}).encode())
    code, _, details = wrong["error"]["exc_args"]
    assert code == "invalid"
    assert json.loads(details)[0]["field"] == "id"

    assert ask("get", b"{not json")["error"]["exc_args"][0] == "bad_request"
    assert ask("no_such_call", b"{}")["error"]["exc_type"] == "MethodNotFound"


def test_details_survive_the_bus(client: RpcClient) -> None:
    bad = rpc.CreateWebhook(request_id="x", actor=ADMIN, url="http://127.0.0.1/", events=["form.viewed", "nonsense"])
    with pytest.raises(ServiceError) as refused:
        client.call(rpc.CREATE, bad)
    assert refused.value.status == 422
    assert refused.value.details[0]["field"] == "events[1]"


def test_a_service_that_nobody_runs_is_known_at_once(client: RpcClient) -> None:
    with pytest.raises(ServiceError) as refused:
        client.call(foreign.GET, foreign.GetTemplate(actor=ADMIN, id=1))
    assert refused.value.status == 503
    assert (
        refused.value.message == "The service templates is not running."
    )  # the broker says so: nothing was waited for


def test_a_repeated_write_is_answered_once(client: RpcClient) -> None:
    command = rpc.CreateWebhook(request_id="same-request", actor=ADMIN, url="http://127.0.0.1/")
    first = client.call(rpc.CREATE, command)
    assert client.call(rpc.CREATE, command) == first


def test_a_service_that_is_down_is_given_up_and_its_stale_request_is_not_run(client: RpcClient, worker: Worker) -> None:
    """F14: the queue is there, so the request waits; when the service comes back the caller has long had its answer."""
    impatient: Rpc[rpc.CreateWebhook, Any] = Rpc(
        "webhooks", "create", rpc.CreateWebhook, rpc.CREATE.response, timeout=0.5
    )
    before = client.call(rpc.LIST, rpc.ListWebhooks(actor=ADMIN, limit=100)).pagination.count
    worker.process.kill()
    worker.process.wait()
    with pytest.raises(ServiceError) as refused:
        client.call(impatient, rpc.CreateWebhook(request_id="stale", actor=ADMIN, url="http://127.0.0.1/stale"))
    assert refused.value.status == 503
    worker.restart()
    wait_until(lambda: is_ready(client), what="the worker is back")
    assert client.call(rpc.LIST, rpc.ListWebhooks(actor=ADMIN, limit=100)).pagination.count == before


# Events.


def test_an_event_delivered_twice_has_one_effect(channel: Any, worker: Worker, client: RpcClient) -> None:
    subject = new_subject()
    first, second = envelope(subject, 1), envelope(subject, 2)
    for body in (second, first, first, second, first):
        publish(channel, body)
    wait_until(lambda: len(worker.logged(subject)) == 2, what="both events logged")
    assert [sequence for sequence, _ in worker.logged(subject)] == [1, 2]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\xff\x00 no json", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"id": "1"}', "wrong shape"),
        ({**envelope("submission:1"), "version": 2}, "version 2"),
    ],
)
def test_poison_is_parked_at_once_and_others_flow(
    channel: Any, worker: Worker, client: RpcClient, body: Any, reason: str
) -> None:
    subject = new_subject()
    publish(channel, body)
    publish(channel, envelope(subject))
    headers, raw = one_parked(channel)
    assert reason in headers[topology.REASON_HEADER]
    assert raw == (body if isinstance(body, bytes) else json.dumps(body).encode())
    wait_until(lambda: worker.logged(subject), what="the next event")


def test_a_handler_that_always_fails_is_tried_again_later_then_parked_and_can_be_requeued(
    channel: Any, worker: Worker, client: RpcClient, broker: PrivateBroker
) -> None:
    # A public event has a sequence; one without makes the handler raise, each time.
    publish(channel, envelope(new_subject(), None))
    wait_until(
        lambda: channel.queue_declare(topology.parked_queue_name(QUEUE), passive=True).method.message_count == 1,
        what="the message parked",
    )
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    lines = list(parked.listed(connection))
    assert lines[0] == f"{topology.parked_queue_name(QUEUE)}: 1"
    assert "after 3 tries" in lines[1]
    assert parked.moved(connection, topology.parked_queue_name(QUEUE), again=True) == 1
    connection.close()
    headers, _ = one_parked(channel)
    assert headers[topology.FAILURES_HEADER] == 3
    assert headers[topology.PARKED_AT_HEADER]


def test_a_dropped_message_counts_as_dealt_with(
    channel: Any, worker: Worker, client: RpcClient, broker: PrivateBroker
) -> None:
    """Else it would be fetched from its owner again, and what comes after it would wait for it for ever."""
    subject = new_subject()
    hopeless = envelope(subject, None)
    publish(channel, hopeless)
    queue = topology.parked_queue_name(QUEUE)
    wait_until(lambda: channel.queue_declare(queue, passive=True).method.message_count == 1, what="the message parked")
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    assert parked.moved(connection, queue, again=False) == 1
    connection.close()
    database = Database(f"sqlite:///{worker.database}")
    noted = sa.select(tables.inbox.c.handler).where(tables.inbox.c.event_id == hopeless["id"])
    wait_until(
        lambda: database.read(lambda session: list(session.scalars(noted))) == ["dropped"], what="the note of the drop"
    )
    assert not database.write(outbox.first_time, "event_log", hopeless["id"]), "a copy of it would be handled"
    assert channel.queue_declare(queue, passive=True).method.message_count == 0
    database.dispose()


def test_kill_9_in_the_middle_of_a_handler_loses_nothing(channel: Any, worker: Worker, client: RpcClient) -> None:
    subject = new_subject()
    lock = sqlite3.connect(worker.database, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")  # the handler has the message and waits for the database
    try:
        publish(channel, envelope(subject))
        wait_until(
            lambda: channel.queue_declare(QUEUE, passive=True).method.message_count == 0, what="the message to be taken"
        )
        worker.restart()
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    wait_until(lambda: worker.logged(subject), what="the event after the crash")
    assert len(worker.logged(subject)) == 1


def test_sigterm_finishes_what_is_under_way(channel: Any, worker: Worker, client: RpcClient) -> None:
    subject = new_subject()
    lock = sqlite3.connect(worker.database, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    publish(channel, envelope(subject))
    wait_until(
        lambda: channel.queue_declare(QUEUE, passive=True).method.message_count == 0, what="the message to be taken"
    )
    worker.process.terminate()
    time.sleep(0.3)  # for the signal to come first; when it comes later, there is less to see
    lock.execute("ROLLBACK")
    lock.close()
    ended = worker.process.wait(120)
    logged = worker.logged(subject)
    worker.restart()
    wait_until(lambda: is_ready(client), what="the worker is back")
    assert (ended, len(logged)) == (0, 1)


# The relay, with a background process.


def test_an_event_that_no_queue_takes_stays_until_one_does(
    channel: Any, worker: Worker, client: RpcClient, tmp_path: Path
) -> None:
    from contracts.events import WEBHOOK_DISABLED, WebhookDisabled

    channel.queue_delete(topology.event_queue_name(WEBHOOK_DISABLED, "notifications"))
    database = Database(f"sqlite:///{worker.database}")
    told = WebhookDisabled(webhook_id=1, url="http://127.0.0.1/", reason="for tests", admins=["admin@example.com"])
    with processes.running("webhooks", "background", worker.settings, tmp_path / "background.log"):
        wait_until(lambda: client.call(health.PING["webhooks"], health.Ping()).ready, what="the background process")
        identifiers = [
            database.write(lambda session: outbox.emit(session, WEBHOOK_DISABLED, told, subject="webhook:1"))
            for _ in range(3)
        ]

        def waiting() -> list[Any]:
            connection = sqlite3.connect(worker.database)
            try:
                return connection.execute("SELECT error FROM outbox ORDER BY seq").fetchall()
            finally:
                connection.close()

        wait_until(lambda: waiting() == [("no queue takes it",)] * 3, what="the alarm")
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "webhooks.events", "webhook.disabled")
        # They are tried again after 15 s; here it is time at once.
        database.write(lambda session: session.execute(sa.update(tables.outbox).values(retry_at=now())))
        wait_until(lambda: waiting() == [], what="the outbox to be empty")
    bodies = [json.loads(channel.basic_get(queue, auto_ack=True)[2]) for _ in range(3)]
    assert [body["id"] for body in bodies] == identifiers
    database.dispose()


# What this does to the broker comes last.


def test_calls_and_events_survive_a_broken_broker(broker: PrivateBroker, worker: Worker, client: RpcClient) -> None:
    broker.kill()
    with pytest.raises(ServiceError) as refused:
        client.call(rpc.LIST, rpc.ListWebhooks(actor=ADMIN))
    assert refused.value.status == 503
    assert "in time" not in refused.value.message, "it was refused, not waited for"
    broker.start()
    wait_until(lambda: is_ready(client), what="calls after the restart")
    subject = new_subject()
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    publish(connection.channel(), envelope(subject))
    connection.close()
    wait_until(lambda: worker.logged(subject), what="events after the restart")
