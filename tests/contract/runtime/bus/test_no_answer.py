"""A call that cannot be answered says so within seconds, whatever is the matter; one that is only slow is waited for."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pika
import pytest

from contracts.errors import ServiceError
from contracts.rpc import REGISTRY, Rpc
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.bus.topology import rpc_queue
from deploy.rabbitmq import PrivateBroker
from tests.support.servers.broker_alarm import in_alarm
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, answers, specimen
from tests.support.services.suite import wait_until

SOON = 120.0
"""Seconds. It is meant to be 2; calls used to wait for as long as they may, which is here ``PATIENT``."""
PATIENT = 600.0

TOO_LATE = "The service specimen did not answer in time."


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateBroker]:
    """One that can be treated badly."""
    own = PrivateBroker(tmp_path_factory.mktemp("broker"), "for tests")
    own.start()
    yield own
    own.stop()


@pytest.fixture(scope="module")
def service(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Specimen]:
    folder = tmp_path_factory.mktemp("specimen")
    with specimen(broker.amqp_url, f"sqlite:///{folder}/specimen.sqlite", folder) as made:
        yield made


@pytest.fixture
def client(broker: PrivateBroker) -> Iterator[RpcClient]:
    opened = RpcClient(broker.amqp_url, name="no-answer")
    yield opened
    opened.close()


@pytest.fixture
def worker(service: Specimen, client: RpcClient) -> Iterator[Any]:
    process = service.serve(client)
    yield process
    end(process)


def end(process: Any) -> None:
    process.kill()
    process.wait()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def refused(call: Callable[[], Any]) -> str:
    """The sentence with which the call is told, soon, that nobody answers."""
    began = time.monotonic()
    with pytest.raises(ServiceError) as told:
        call()
    assert time.monotonic() - began < SOON
    assert told.value.code == "unavailable"
    return told.value.message


def waiting_for(rpc: Rpc[Any, Any], seconds: float) -> Rpc[Any, Any]:
    """The same call, of somebody who waits for so long."""
    made = replace(rpc, timeout=seconds)
    REGISTRY[f"{rpc.service}.{rpc.method}"] = rpc
    return made


ECHO, WAIT = (waiting_for(rpc, PATIENT) for rpc in (contract.ECHO, contract.WAIT))


def echo(client: RpcClient) -> Callable[[], Any]:
    return lambda: client.call(ECHO, contract.Echo(payload={}))


def wait(client: RpcClient, seconds: float) -> Callable[[], Any]:
    return lambda: client.call(WAIT, contract.Wait(seconds=seconds))


def impatient(rpc: Rpc[Any, Any]) -> Rpc[Any, Any]:
    return waiting_for(rpc, 2)


def waiting_requests(broker: PrivateBroker) -> int:
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    try:
        declared = connection.channel().queue_declare(rpc_queue("specimen").name, passive=True)
        count: int = declared.method.message_count
        return count
    finally:
        connection.close()


def test_a_slow_answer_is_waited_for(client: RpcClient, worker: Any) -> None:
    with ThreadPoolExecutor() as several:
        slow = [several.submit(wait(client, seconds)) for seconds in (3, 7)]
        assert [each.result().payload["waited"] for each in slow] == [3, 7]


def test_nobody_serves(broker: PrivateBroker, service: Specimen, client: RpcClient, worker: Any) -> None:
    """Its queue is durable and takes every request. Once it is known that nobody reads it, it gets none."""
    end(worker)
    assert refused(echo(client)) == "The service specimen is not running."
    before = waiting_requests(broker)
    with ThreadPoolExecutor(20) as several:
        assert set(several.map(refused, [echo(client)] * 20)) == {"The service specimen is not running."}
    assert waiting_requests(broker) <= before
    other = service.serve(client)
    assert wait(client, 3)().payload["waited"] == 3
    end(other)


def test_killed_while_it_answers(client: RpcClient, worker: Any) -> None:
    with ThreadPoolExecutor() as other:
        under_way = other.submit(refused, wait(client, 15))
        assert not answered_within(under_way, 2)
        worker.kill()
        assert under_way.result() == "The service specimen is not running."


def answered_within(future: Any, seconds: float) -> bool:
    finished = threading.Event()
    future.add_done_callback(lambda _future: finished.set())
    return finished.wait(seconds)


def test_its_queue_is_gone(broker: PrivateBroker, service: Specimen, client: RpcClient, worker: Any) -> None:
    end(worker)
    refused(echo(client))
    broker.ctl("delete_queue", rpc_queue("specimen").name)
    for _ in range(2):
        assert refused(echo(client)) == "The service specimen is not running."
    end(service.serve(client))


def test_the_broker_is_killed(broker: PrivateBroker, client: RpcClient, worker: Any) -> None:
    broker.kill()
    for _ in range(2):
        assert "message broker" in refused(echo(client))
    broker.start()
    wait_until(lambda: answers(client), what="the specimen answers again")


def answered_or_refused(client: RpcClient) -> bool:
    """Whether it was answered; if not, it was refused soon."""
    began = time.monotonic()
    answered = answers(client)
    assert time.monotonic() - began < SOON
    return answered


def test_the_broker_is_wiped(broker: PrivateBroker, client: RpcClient, worker: Any) -> None:
    broker.kill()
    shutil.rmtree(broker.folder / "mnesia")
    broker.start()

    wait_until(lambda: answered_or_refused(client), what="the specimen answers again")


def test_the_broker_is_silent(broker: PrivateBroker, client: RpcClient, worker: Any) -> None:
    """Its connections are there, and nothing comes of them."""
    with stopped(broker.pid):
        for _ in range(3):
            assert "message broker" in refused(echo(client))
    wait_until(lambda: answers(client), what="the specimen answers again")


def test_the_broker_takes_nothing(broker: PrivateBroker, client: RpcClient, worker: Any) -> None:
    """It is short of memory. The first to publish is the one by whom it is found out."""
    with in_alarm(broker):
        for _ in range(3):
            assert refused(echo(client)) == "The message broker accepts nothing at the moment."
    wait_until(lambda: answers(client), what="the specimen answers again")


def test_a_process_that_hangs(client: RpcClient, worker: Any) -> None:
    """To the broker it is there. Who comes first waits for as long as the call may, who comes later does not."""
    with stopped(worker.pid):
        assert refused(lambda: client.call(impatient(contract.ECHO), contract.Echo(payload={}))) == TOO_LATE
        for _ in range(2):
            assert refused(echo(client)) == "The service specimen does not answer."
    wait_until(lambda: answers(client), what="the specimen answers again")
    assert wait(client, 3)().payload["waited"] == 3


def test_one_call_that_takes_too_long_is_no_process_that_hangs(client: RpcClient, worker: Any) -> None:
    assert refused(lambda: client.call(impatient(contract.WAIT), contract.Wait(seconds=6))) == TOO_LATE
    assert wait(client, 3)().payload["waited"] == 3
