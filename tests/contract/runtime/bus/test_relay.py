"""The outbox relay on a real broker and both databases: order, two relays, a broker that dies, stops or is full."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pytest
import sqlalchemy as sa

from contracts.runtime.bus import publisher, relay, topology
from contracts.runtime.bus.broker import BLOCKED
from contracts.runtime.bus.outbox import emit
from contracts.runtime.bus.publisher import CONFIRMED, UNKNOWN, UNROUTED, Message, Publisher
from contracts.runtime.bus.relay import Relay
from contracts.runtime.clock import now
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from deploy.rabbitmq import PrivateBroker
from tests.contract.conftest import on
from tests.support.noting import noting
from tests.support.servers.broker_alarm import end_alarm, in_alarm
from tests.support.services.loops import running
from tests.support.services.specimens import contract
from tests.support.services.suite import wait_until


class Site:
    """A database with an outbox, and a queue that takes what is published from it."""

    def __init__(self, broker: PrivateBroker, database_url: str) -> None:
        self.broker = broker
        self.database = Database(database_url)
        tables.runtime_metadata.create_all(self.database.engine.execution_options(countersign_write=True))
        self.queue = f"taker-{time.monotonic_ns()}"
        self.bind()

    def channel(self) -> Any:
        return pika.BlockingConnection(pika.URLParameters(self.broker.amqp_url)).channel()

    def bind(self) -> None:
        channel = self.channel()
        channel.queue_delete(topology.event_queue_name(contract.NOTED, "specimen"))  # other tests' worker had it
        channel.exchange_declare("specimen.events", "topic", durable=True)
        channel.queue_declare(self.queue, durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_bind(self.queue, "specimen.events", "thing.noted")
        channel.connection.close()

    def emit(self, *keys: str) -> None:
        def state(session: Any) -> None:
            for key in keys:
                emit(session, contract.NOTED, contract.Noted(key=key), subject="thing:1")

        self.database.write(state)

    def waiting(self) -> int:
        count = sa.select(sa.func.count()).select_from(tables.outbox)
        return self.database.read(lambda session: session.scalar(count) or 0)

    def received(self) -> list[tuple[Any, dict[str, Any]]]:
        channel, found = self.channel(), []
        while (got := channel.basic_get(self.queue, auto_ack=True))[0] is not None:
            found.append((got[1], json.loads(got[2])))
        channel.connection.close()
        return found

    def keys(self) -> list[str]:
        return [body["data"]["key"] for _, body in self.received()]

    def close(self) -> None:
        channel = self.channel()
        channel.queue_delete(self.queue)
        channel.connection.close()
        self.database.dispose()


@pytest.fixture
def site(broker: PrivateBroker, database_url: str) -> Iterator[Site]:
    made = Site(broker, database_url)
    yield made
    made.close()


@contextmanager
def relaying(site: Site, *, relays: int = 1) -> Iterator[None]:
    """Relays with connections of their own, as in processes of their own."""
    publishers = [Publisher(site.broker.amqp_url, name="relay").start() for _ in range(relays)]
    loops = [Relay("specimen", site.database, each) for each in publishers]
    try:
        with running(*loops):
            yield
    finally:
        for each in publishers:
            each.close()


def test_an_empty_outbox_is_read_again_when_the_database_has_changed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL does not say whether it has."""
    looks: list[Any] = []
    waiting = relay._waiting
    monkeypatch.setattr(relay, "_waiting", noting(looks, waiting))
    outgoing = Publisher(site.broker.amqp_url, name="relay").start()
    wait_until(lambda: outgoing.connected, what="the connection")
    loop = Relay("specimen", site.database, outgoing)
    loop.turn()
    for _ in range(10):
        assert loop.turn() == loop.poll_seconds
    assert len(looks) == (1 if site.database.sqlite else 11)
    site.emit("first")
    loop.turn()
    site.emit("second")
    loop.turn()
    outgoing.close()
    assert site.keys() == ["first", "second"]


def test_what_nobody_waits_for_is_told_apart(site: Site) -> None:
    outgoing = Publisher(site.broker.amqp_url, name="relay").start()
    wait_until(lambda: outgoing.connected, what="the connection")
    loop = Relay("specimen", site.database, outgoing, apart=0.5)
    rests = []
    for key in "first", None, "second":
        if key is not None:
            site.emit(key)
        loop.turn()
        rests.append(loop.gathers)
    outgoing.close()
    assert rests == [0.5, 0.0, 0.5], "the first of all is told at once"
    assert site.keys() == ["first", "second"]


def test_what_is_on_the_wire(site: Site) -> None:
    with observe.request("request-1"):
        site.database.write(
            lambda session: emit(session, contract.NOTED, contract.Noted(key="k"), subject="thing:7", sequence=3)
        )
    with relaying(site):
        wait_until(lambda: site.waiting() == 0, what="the outbox to be empty")
    ((properties, body),) = site.received()
    assert (properties.content_type, properties.content_encoding, properties.delivery_mode) == (
        "application/json",
        "utf-8",
        2,
    )
    assert properties.message_id == body["id"]
    assert {key: body[key] for key in ("type", "version", "source", "subject", "sequence", "request_id", "data")} == {
        "type": "thing.noted",
        "version": 1,
        "source": "specimen",
        "subject": "thing:7",
        "sequence": 3,
        "request_id": "request-1",
        "data": {"key": "k", "todo": "keep"},
    }
    assert body["occurred_at"].endswith("Z")


def test_the_order_is_kept_over_many_batches(site: Site) -> None:
    keys = [str(number) for number in range(2 * relay.BATCH + 37)]
    site.emit(*keys)
    with relaying(site):
        wait_until(lambda: site.waiting() == 0, what="the outbox to be empty")
    assert site.keys() == keys


def test_two_relays_send_nothing_twice_and_keep_the_order(site: Site) -> None:
    """F28."""
    with relaying(site, relays=2):
        for batch in range(20):
            site.emit(*(f"{batch:02} {number:02}" for number in range(25)))
        wait_until(lambda: site.waiting() == 0, what="the outbox to be empty")
    keys = site.keys()
    assert keys == sorted(keys)
    assert len(keys) == 500


def test_what_no_queue_takes_stays_and_holds_up_nothing_else(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "UNROUTABLE_PAUSE", relay.UNROUTABLE_PAUSE / 30)
    channel = site.channel()
    channel.queue_unbind(site.queue, "specimen.events", "thing.noted")
    site.emit("first", "second")
    with relaying(site):
        error = sa.select(tables.outbox.c.error)
        wait_until(
            lambda: site.database.read(lambda session: set(session.scalars(error))) == {"no queue takes it"},
            what="the alarm",
        )
        wait_until(lambda: relay.UNROUTABLE.labels("specimen")._value.get() == 2, what="the alarm among the metrics")
        other = tables.outbox.insert().values(
            event_id="e", source="specimen", type="thing.routed", body='{"data": {"key": "other"}}', created_at=_now()
        )
        channel.queue_bind(site.queue, "specimen.events", "thing.routed")
        site.database.write(lambda session: session.execute(other))
        wait_until(lambda: site.waiting() == 2, what="the other kind")
        channel.queue_bind(site.queue, "specimen.events", "thing.noted")
        wait_until(lambda: site.waiting() == 0, what="the outbox to be empty")
    channel.connection.close()
    assert site.keys() == ["other", "first", "second"]


def _now() -> Any:
    from contracts.runtime.clock import now

    return now()


@on("postgresql")
def test_a_broker_that_dies_under_the_relay(site: Site) -> None:
    """F4: nothing is lost; what was under way may come twice."""
    keys = [f"{number:04}" for number in range(600)]
    # A quorum queue of RabbitMQ 3.10 that is killed within half a second of its declaration never confirms again.
    time.sleep(2)
    with relaying(site):
        site.emit(*keys[:300])
        site.broker.kill()
        site.emit(*keys[300:])
        assert site.waiting() >= 300
        site.broker.start()
        wait_until(lambda: site.waiting() == 0, what="the outbox to be empty")
    received = site.keys()
    assert sorted(set(received)) == keys
    assert len(received) < 2 * len(keys)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # on PostgreSQL a lock is held while publishing
def test_a_relay_that_slept_beyond_its_lease_asks_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the lease it need not ask; afterwards another one may be at it, and both at once would lose the order."""
    sender = Publisher(site.broker.amqp_url, name="relay").start()
    wait_until(lambda: sender.publish([Message("1", "", site.queue, b"{}")])["1"] == CONFIRMED, what="the connection")
    one, other = Relay("specimen", site.database, sender), Relay("specimen", site.database, sender)
    for key in "ab":
        site.emit(key)
        other.turn() if key == "b" else one.turn()
        assert site.waiting() == (key == "b")
    later = now() + relay.LEASE * 2
    monkeypatch.setattr(relay, "now", lambda: later)
    monkeypatch.setattr(relay, "without_leaps", lambda _: later)
    other.turn()
    assert site.waiting() == 0
    site.emit("c")
    one.turn()
    assert site.waiting() == 1
    sender.close()


def test_a_broker_that_is_stopped_does_not_hold_the_relay_for_ever(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """F5: SIGSTOP in mid-publish. The relay gives up after its time, and the rows are still there."""
    monkeypatch.setattr(publisher, "CONFIRM_SECONDS", 1.0)
    sender = Publisher(site.broker.amqp_url, name="relay").start()
    wait_until(lambda: sender.publish([Message("1", "", site.queue, b"{}")])["1"] == CONFIRMED, what="the connection")
    one = Relay("specimen", site.database, sender)
    site.emit("stopped")
    os.kill(site.broker.pid, signal.SIGSTOP)
    try:
        one.turn()
        assert site.waiting() == 1
        assert sender.publish([Message("2", "", site.queue, b"{}")])["2"] == UNKNOWN
    finally:
        os.kill(site.broker.pid, signal.SIGCONT)
    wait_until(lambda: one.turn() is not None and site.waiting() == 0, what="the outbox to be empty")
    sender.close()
    assert "stopped" in [body["data"]["key"] for _, body in site.received() if body]


@on("sqlite")
def test_a_broker_without_disk_space_takes_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """F5: a broker in an alarm takes messages for ever without confirming them."""
    monkeypatch.setattr(publisher, "CONFIRM_SECONDS", 1.0)
    with in_alarm(site.broker), relaying(site):
        site.emit("one")
        time.sleep(2.5)
        assert site.waiting() == 1
        blocked = BLOCKED.labels("relay")._value
        wait_until(lambda: blocked.get() == 1, what="the alarm among the metrics")
        end_alarm(site.broker)
        wait_until(lambda: site.waiting() == 0, what="the outbox to be empty")
        wait_until(lambda: blocked.get() == 0, what="the end of the alarm among the metrics")
    assert set(site.keys()) == {"one"}


def test_outcomes_of_a_publisher(broker: PrivateBroker) -> None:
    sender = Publisher(broker.amqp_url, name="test").start()
    assert sender.publish([]) == {}
    channel = pika.BlockingConnection(pika.URLParameters(broker.amqp_url)).channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    wait_until(lambda: sender.publish([Message("x", "", queue, b"")])["x"] == CONFIRMED, what="the connection")
    messages = [Message(str(n), "", queue if n % 3 else "no such queue", b"body", {"n": n}) for n in range(100)]
    outcomes = sender.publish(messages)
    assert outcomes == {str(n): CONFIRMED if n % 3 else UNROUTED for n in range(100)}
    sender.close()
    channel.connection.close()


def test_names_on_the_broker() -> None:
    """Renaming a queue loses what is in it: these are for ever."""
    assert topology.rpc_queue("templates") == topology.QueuePlan("rpc-templates", {}, (("nameko-rpc", "templates.*"),))
    parked, taking = topology.event_queues(contract.NOTED, "webhooks")
    assert taking.name == "evt-specimen-thing.noted--webhooks"
    assert taking.bindings == (
        ("specimen.events", "thing.noted"),
        ("webhooks.queues", "evt-specimen-thing.noted--webhooks"),
        ("webhooks.again", "#.evt-specimen-thing.noted--webhooks"),
    )
    assert parked.name == "evt-specimen-thing.noted--webhooks.parked"
    assert [(plan.name, plan.bindings) for plan in topology.retry_queues("webhooks", (0.2, 5.0, 600.0))] == [
        ("webhooks.retry-0.2s", (("webhooks.queues", "retry.0.2s.#"),)),
        ("webhooks.retry-5s", (("webhooks.queues", "retry.5s.#"),)),
        ("webhooks.retry-600s", (("webhooks.queues", "retry.600s.#"),)),
    ]
