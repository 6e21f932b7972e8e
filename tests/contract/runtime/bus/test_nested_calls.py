"""Calls within calls (threats: F13, F15): nobody waits for somebody who waits for them, and who works long is not taken for dead."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pika
import pytest

from contracts.errors import ServiceError
from contracts.runtime.bus.client import RpcClient
from deploy import broker_roles
from deploy.rabbitmq import PrivateBroker
from deploy.services import ROOT, SERVICES
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, answers, specimen
from tests.support.services.suite import wait_until

ALLOWED = {
    "gateway": {*SERVICES} - {"gateway"},
    "submissions": {"templates", "rendering"},
    "templates": {"rendering"},
}
"""Who may call whom and wait. There is no circle in it."""
ASKED_IN_THE_BACKGROUND = ("events_told", "events_by_id", "events_since")


@pytest.fixture
def client(broker: PrivateBroker) -> Iterator[RpcClient]:
    opened = RpcClient(broker.amqp_url, name="test")
    yield opened
    opened.close()


@pytest.fixture
def served(broker: PrivateBroker, tmp_path: Path) -> Iterator[Specimen]:
    with specimen(broker.amqp_url, f"sqlite:///{tmp_path}/specimen.sqlite", tmp_path) as made:
        yield made
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    connection.channel().queue_purge("rpc-specimen")
    connection.close()


def called_by(service: str) -> set[str]:
    """The services whose calls are named in a service's source. Its background process may ask any owner of events for them."""
    called = (call.split(".") for call in broker_roles.calls_in_code(service))
    return {owner for owner, method in called if method not in ASKED_IN_THE_BACKGROUND} - {service}


@pytest.mark.parametrize("service", SERVICES)
def test_who_calls_whom_has_no_circle(service: str) -> None:
    """A calls B calls A is how a pool of workers waits for itself for ever. Rules of the bus: design, rule 2."""
    assert called_by(service) <= ALLOWED.get(service, set())


def test_the_source_is_read_for_calls_at_all() -> None:
    assert called_by("submissions") == {"templates", "rendering"}
    assert called_by("templates") == {"rendering"}


def test_fifty_calls_that_call_their_own_service_come_to_an_end(served: Specimen, client: RpcClient) -> None:
    """The worst circle there is, with four workers for fifty of them: each is answered or refused, and the service goes on."""
    served.serve(client)

    def relay(_: int) -> Any:
        try:
            return client.call(contract.RELAY, contract.Relayed(seconds=0.01)).payload
        except ServiceError as error:
            return error.code

    with ThreadPoolExecutor(50) as pool:
        calls = [pool.submit(relay, number) for number in range(50)]
        done, waiting = wait(calls, timeout=120)
    assert not waiting
    assert {str(call.result()) for call in done} <= {"{'waited': 0.01}", "unavailable"}
    wait_until(lambda: answers(client), what="the specimen answers afterwards")


def test_a_handler_that_takes_longer_than_heartbeats_keeps_its_connection(
    broker: PrivateBroker, served: Specimen, client: RpcClient
) -> None:
    """F13: else the broker takes the worker for dead, gives its message to the next one, and so on for ever."""
    broker.evaluate("application:set_env(rabbit, heartbeat, 1).")
    try:
        served.serve(client)
        slow = RpcClient(broker.amqp_url, name="slow")
        try:
            assert slow.call(contract.WAIT, contract.Wait(seconds=7)).payload == {"waited": 7}
        finally:
            slow.close()
    finally:
        broker.evaluate("application:set_env(rabbit, heartbeat, 60).")
    log = served.log("serve")
    assert "broker.lost" not in log
    assert log.count('"specimen.wait"') == 1, "the broker gave it to somebody a second time"


def test_as_many_services_as_there_are_folders() -> None:
    assert {each.parent.name for each in (ROOT / "services").glob("*/__main__.py")} == {*SERVICES}
