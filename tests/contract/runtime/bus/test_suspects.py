"""Events are parked for what they did, not for what happened beside them."""

import collections
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pika
import psycopg
import psycopg.sql
import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.runtime.bus import suspects, topology
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.bus.suspects import Suspects, event_key
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work import holder
from contracts.runtime.data.tables import leases, runtime_metadata
from contracts.runtime.monitoring import liveness
from contracts.runtime.operations import parked
from deploy.rabbitmq import PrivateBroker
from tests.support.servers.broker_alarm import in_alarm
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, emptied, specimen
from tests.support.services.suite import wait_until

QUEUE = topology.event_queue_name(contract.NOTED, "specimen")
PARKED = topology.parked_queue_name(QUEUE)
RETRIES = [topology.retry_queue_name("specimen", seconds) for seconds in (0.2, 0.4)]
KEY = event_key(QUEUE, b"{}")


# --- the record


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    runtime_metadata.create_all(made.engine.execution_options(countersign_write=True))
    yield made
    made.dispose()


def recorded(database: Database, key: str, by: str, until: timedelta) -> None:
    row = {"name": f"{key} {by}", "holder": by, "until": now() + until}
    database.write(lambda session: session.execute(leases.insert().values(**row)) and None)


def dead(number: int) -> str:
    """A process of this machine that is no more."""
    return f"{holder.own_name().rpartition('/')[0]}/{number}"


def test_a_try_that_ended_is_no_death(database: Database) -> None:
    seen = Suspects(lambda: database)
    for _ in range(3):
        assert seen.begin(KEY) == 0
        assert seen.end(KEY)


def test_a_living_process_that_could_not_record_the_end_is_no_death(database: Database) -> None:
    seen = Suspects(lambda: database)
    assert [seen.begin(KEY) for _ in range(3)] == [0, 0, 0]


def test_deaths_of_processes_of_this_machine_are_counted_at_once_and_by_event(database: Database) -> None:
    for number in range(3):
        recorded(database, KEY, dead(number), timedelta(seconds=60))
    recorded(database, event_key(QUEUE, b"[]"), dead(9), timedelta(seconds=60))
    assert Suspects(lambda: database).begin(KEY) == 3


def test_a_process_elsewhere_counts_as_dead_when_its_lease_ran_out(database: Database) -> None:
    seen = Suspects(lambda: database)
    recorded(database, KEY, "elsewhere/pid:[1]/1/1", timedelta(seconds=30))
    with pytest.raises(ServiceError) as refused:
        seen.begin(KEY)
    assert refused.value.code == "unavailable"
    database.write(lambda session: session.execute(leases.update().values(until=now() - timedelta(seconds=1))) and None)
    assert seen.begin(KEY) == 1


def test_what_is_done_with_is_forgotten_and_so_is_what_is_old(database: Database) -> None:
    seen = Suspects(lambda: database)
    recorded(database, KEY, dead(1), timedelta(0))
    recorded(database, "relay", dead(1), -2 * suspects.KEPT)
    seen.forget(KEY)
    recorded(database, KEY, dead(2), -2 * suspects.KEPT)
    database.write(suspects.remove_old)
    (left,) = database.read(lambda session: session.scalars(sa.select(leases.c.name)).all())
    assert left.startswith("relay")


# --- a worker process


@pytest.fixture
def served(broker: PrivateBroker, postgres: PrivatePostgres, tmp_path: Path) -> Iterator[Specimen]:
    """A specimen on PostgreSQL, whose database can be cut off; its queues are empty at the end."""
    with specimen(broker.amqp_url, postgres.new_database(), tmp_path) as made:
        yield made
    wait_until(lambda: emptied(broker, QUEUE, PARKED, *RETRIES), what="empty queues")


def publish(broker: PrivateBroker, *events: tuple[str, str], again: bool = False) -> None:
    """``again``: as if they had been delivered before."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    for key, todo in events:
        envelope = {
            "id": uuid7(),
            "type": "thing.noted",
            "source": "specimen",
            "subject": "thing:1",
            "occurred_at": "2026-11-21T00:00:00.000Z",
            "data": {"key": key, "todo": todo},
        }
        headers = {topology.SUSPECT_HEADER: True} if again else None
        properties = pika.BasicProperties(delivery_mode=2, headers=headers)
        connection.channel().basic_publish("specimen.events", "thing.noted", json.dumps(envelope), properties)
    connection.close()


def waiting(broker: PrivateBroker, queue: str) -> int:
    """Messages in the queue, those that are under way included."""
    return broker.messages()[queue]


def tries(served: Specimen, outcome: str) -> int:
    lines = [line for line in served.log("serve").splitlines() if '"event.handled"' in line]
    return sum(json.loads(line)["outcome"] == outcome for line in lines)


@contextmanager
def database_away(served: Specimen) -> Iterator[None]:
    url = served.database.url
    where = f"postgresql://postgres@127.0.0.1:{url.port}/postgres"
    name = psycopg.sql.Identifier(str(url.database))
    with psycopg.connect(where, autocommit=True) as admin:
        admin.execute(psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        try:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [url.database])
            yield
        finally:
            admin.execute(psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))


def test_an_outage_of_the_database_that_outlasts_all_tries_parks_nobody(
    broker: PrivateBroker, served: Specimen
) -> None:
    names = sorted(f"event {number}" for number in range(6))
    served.start("serve")
    wait_until(lambda: "worker.consuming" in served.log("serve"), what="the worker")
    with database_away(served):
        publish(broker, *((name, "keep") for name in names))
        wait_until(lambda: tries(served, "waiting") > 5 * len(names), what="more tries than the ladder has")
    wait_until(lambda: sorted(served.notes()) == names, what="all of them")
    assert waiting(broker, PARKED) == tries(served, "parked") == 0


def test_what_came_again_before_the_database_went_away_is_handled_when_it_is_back(
    broker: PrivateBroker, served: Specimen
) -> None:
    """How its try ended can be recorded as little as its beginning. A worker that holds it for longer than any handler takes goes
    on living."""
    names = sorted(f"event {number}" for number in range(8))
    worker = served.start("serve", TURN_SECONDS="5")
    wait_until(lambda: "worker.consuming" in served.log("serve"), what="the worker")
    with database_away(served):
        publish(broker, *((name, "keep") for name in names), again=True)
        # Two of them are held, with pauses of up to 5 s: by then for longer than the limit.
        wait_until(lambda: served.log("serve").count("suspect.not_recorded") >= 16, what="many tries")
    wait_until(lambda: sorted(served.notes()) == names, what="all of them")
    wait_until(lambda: waiting(broker, QUEUE) == 0, what="the queue to be empty")
    assert waiting(broker, PARKED) == tries(served, "parked") == 0
    assert worker.poll() is None
    assert "event.without_outcome" not in served.log("serve"), "they were held"


def test_a_message_that_nobody_is_at_goes_back_into_its_queue(broker: PrivateBroker, served: Specimen) -> None:
    """A mistake beside the handler, where no outcome comes of it: once it stayed with the worker for as long as that lived."""
    client = RpcClient(broker.amqp_url, name="test")
    served.serve(client)
    client.call(contract.HARM, contract.Harm(way="lose one outcome"))
    client.close()
    publish(broker, ("unlucky", "keep"))
    wait_until(lambda: "event.without_outcome" in served.log("serve"), what="the mistake")
    wait_until(lambda: waiting(broker, QUEUE) == 0, what="the queue to be empty")
    assert served.notes() == ["unlucky"]


def test_an_event_whose_handler_never_ends_goes_to_another_process(broker: PrivateBroker, served: Specimen) -> None:
    first = served.start("serve", TURN_SECONDS="6")
    publish(broker, ("slow", "linger"), ("quick", "keep"))
    assert first.wait(60) == liveness.STATUS
    (reason,) = json.loads(served.log("serve").splitlines()[-1])["problems"]
    assert re.fullmatch("the event thing.noted [0-9a-f-]{36} has not ended for 6 s", reason)
    assert "in on_noted" in served.log("serve"), "where it waits"
    (served.folder / "go on").touch()
    served.start("serve")
    wait_until(lambda: sorted(served.notes()) == ["quick", "slow"], what="both")


def test_an_outage_of_database_and_broker_together_parks_nobody(broker: PrivateBroker, served: Specimen) -> None:
    """What fails can be moved nowhere meanwhile. Given back to its queue each time, it was soon taken for a killer."""
    names = sorted(f"event {number}" for number in range(11))
    served.start("serve")
    wait_until(lambda: "worker.consuming" in served.log("serve"), what="the worker")
    with database_away(served):
        publish(broker, *((name, "keep") for name in names))
        with in_alarm(broker):
            time.sleep(70)
    wait_until(lambda: sorted(served.notes()) == names, what="all of them")
    wait_until(lambda: waiting(broker, QUEUE) == 0, what="the queue to be empty")
    assert waiting(broker, PARKED) == tries(served, "parked") == 0


def test_lost_connections_and_restarts_of_the_broker_park_nobody(broker: PrivateBroker, served: Specimen) -> None:
    """More of them than there are deaths until an event is parked, or deliveries until the broker itself parks it."""
    served.start("serve")
    publish(broker, ("slow", "linger"), ("quick", "keep"))
    wait_until(lambda: served.notes() == ["quick"], what="the worker to be at it")
    for number in range(topology.DELIVERY_LIMIT + 2):
        consuming = served.log("serve").count("worker.consuming")
        if number % 6 == 5:
            broker.kill()
            broker.start()
        else:
            # As rabbitmqctl close_all_connections, which starts a node of its own: a second of a processor.
            broker.evaluate(
                '[rabbit_networking:close_connection(Pid, "as told") || Pid <- rabbit_networking:connections()].'
            )
        wait_until(
            lambda: served.log("serve").count("worker.consuming") > consuming,  # noqa: B023
            what="the next connection",
        )
    (served.folder / "go on").touch()
    wait_until(lambda: sorted(served.notes()) == ["quick", "slow"], what="both")
    wait_until(lambda: waiting(broker, QUEUE) == 0, what="the queue to be empty")
    assert waiting(broker, PARKED) == tries(served, "parked") == 0


def test_killers_are_parked_and_what_was_under_way_with_them_is_handled(
    broker: PrivateBroker, served: Specimen
) -> None:
    """With nothing left of their deaths when an operator has them handled again."""
    innocents = sorted(f"innocent {number}" for number in range(8))
    publish(broker, ("killer 1", "die"), *((name, "keep") for name in innocents), ("killer 2", "die"))
    processes = [served.start("serve")]
    deaths = 0

    def ended() -> bool:
        """With nothing under way: a killer that was put back at the moment of a death is there twice, and kills once more."""
        nonlocal deaths
        if (status := processes[-1].poll()) is not None:
            assert status == 9, f"it ended otherwise than by an event: {served.log('serve')[-5000:]}"
            deaths += 1
            processes.append(served.start("serve"))
        left = broker.messages()
        print(left, processes[-1].poll(), end="\r")  # the last of them is shown when the test fails
        return (
            left[PARKED] >= 2
            and not any(left[queue] for queue in (QUEUE, *RETRIES))
            and sorted(served.notes()) == innocents
            and processes[-1].poll() is None
        )

    wait_until(ended, within=420, what="the killers to be parked and the others to be handled")
    # The first time nobody knows which of them it was.
    times_parked = tries(served, "parked")
    assert 2 * topology.CRASH_LIMIT <= deaths <= times_parked * topology.CRASH_LIMIT + 2

    def of_the_killers() -> list[str]:
        """An innocent one may leave a row: when its process was ended after the acknowledgement, before the row was removed."""
        rows = served.rows("SELECT name FROM leases WHERE name LIKE 'event %'")
        deaths = collections.Counter(row[0].rsplit(" ", 1)[0] for row in rows)
        return [key for key, number in deaths.items() if number > 1]

    wait_until(lambda: of_the_killers() == [], what="nothing kept of them")


def test_what_the_broker_gave_up_is_listed_with_its_reason(broker: PrivateBroker, served: Specimen) -> None:
    publish(broker, ("unlucky", "keep"))
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    for _ in range(topology.DELIVERY_LIMIT + 1):
        channel = connection.channel()
        wait_until(lambda: channel.basic_get(QUEUE)[0], what="the next delivery")  # noqa: B023
        channel.close()
    wait_until(lambda: waiting(broker, PARKED) == 1, what="the broker to park it")
    lines: list[Any] = list(parked.listed(connection, [PARKED]))
    connection.close()
    assert len(lines) == 2
    assert "the broker gave up on it" in lines[1]
