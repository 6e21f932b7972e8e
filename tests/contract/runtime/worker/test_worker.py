"""A worker process on a real broker and both databases, with the specimen service: calls, crashes, signals, health."""

import asyncio
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pika
import pytest
import requests
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc import REGISTRY, Rpc
from contracts.runtime.bus import topology
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import uuid7
from contracts.runtime.monitoring import build, observe
from deploy.rabbitmq import PrivateBroker
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, answers, emptied, specimen
from tests.support.services.suite import wait_until

QUEUE = topology.event_queue_name(contract.NOTED, "specimen")


@pytest.fixture
def client(broker: PrivateBroker) -> Iterator[RpcClient]:
    opened = RpcClient(broker.amqp_url, name="test")
    yield opened
    opened.close()


@pytest.fixture
def served(broker: PrivateBroker, tmp_path: Path) -> Iterator[Specimen]:
    """A specimen on SQLite, without processes yet; its queues are empty at the end."""
    with specimen(broker.amqp_url, f"sqlite:///{tmp_path}/specimen.sqlite", tmp_path) as made:
        yield made
    empty(broker)


@pytest.fixture
def on_both(broker: PrivateBroker, database_url: str, tmp_path: Path) -> Iterator[Specimen]:
    """As ``served``, once on SQLite and once on PostgreSQL."""
    with specimen(broker.amqp_url, database_url, tmp_path) as made:
        yield made
    empty(broker)


def empty(broker: PrivateBroker) -> None:
    queues = (QUEUE, topology.parked_queue_name(QUEUE), "rpc-specimen")
    wait_until(lambda: emptied(broker, *queues), what="empty queues")


@pytest.fixture
def channel(broker: PrivateBroker) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    yield connection.channel()
    connection.close()


def publish(channel: Any, key: str, todo: str = "keep") -> None:
    envelope = {
        "id": uuid7(),
        "type": "thing.noted",
        "source": "specimen",
        "subject": "thing:1",
        "occurred_at": "2026-11-21T00:00:00.000Z",
        "request_id": "from-the-event",
        "data": {"key": key, "todo": todo},
    }
    channel.basic_publish("specimen.events", "thing.noted", json.dumps(envelope), pika.BasicProperties(delivery_mode=2))


def test_a_mistake_in_a_service_tells_its_caller_nothing(served: Specimen, client: RpcClient) -> None:
    served.serve(client)
    with pytest.raises(ServiceError) as refused:
        client.call(contract.BREAK, contract.Echo(payload={"canary": "c4n4ry"}))
    assert (refused.value.code, refused.value.message) == ("internal", "Internal error")
    correlation = refused.value.details[0]["reason"].rpartition(" ")[2]
    lines = [json.loads(line) for line in served.log("serve").splitlines() if correlation in line]
    assert lines
    assert "RuntimeError" in lines[0]["exception"]


def test_the_request_id_goes_through_the_bus_and_into_the_logs(served: Specimen, client: RpcClient) -> None:
    served.serve(client)
    with observe.request("request-4711"):
        client.call(contract.RELAY, contract.Relayed(seconds=0))
    handled = [
        json.loads(line)["call"]
        for line in served.log("serve").splitlines()
        if "rpc.handled" in line and "request-4711" in line
    ]
    assert sorted(handled) == ["specimen.relay", "specimen.wait"]


def test_events_carry_the_request_id_too(served: Specimen, client: RpcClient, channel: Any) -> None:
    served.serve(client)
    publish(channel, "with-id")
    wait_until(served.notes, what="the effect")
    assert served.rows("SELECT request_id FROM notes")[0].request_id == "from-the-event"


def test_calls_wait_side_by_side(served: Specimen, client: RpcClient) -> None:
    """Four calls are under way at once, and calls within calls find their way, while as many workers are busy."""
    served.serve(client)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: client.call(contract.MEET, contract.Meet(number=4)), range(4)))
    assert client.call(contract.RELAY, contract.Relayed(seconds=0.01)).payload == {"waited": 0.01}


def test_many_callers_and_an_event_loop_get_their_own_answers(served: Specimen, client: RpcClient) -> None:
    served.serve(client)

    async def ask(number: int) -> Any:
        return await client.call_json_async(contract.ECHO, contract.Echo(payload={"number": number}))

    async def everybody() -> list[Any]:
        return await asyncio.gather(*(ask(number) for number in range(200)))

    with ThreadPoolExecutor(8) as pool:
        threads = pool.map(
            lambda n: client.call(contract.ECHO, contract.Echo(payload={"n": n})).payload["n"], range(200)
        )
        loop = asyncio.run(everybody())
        assert list(threads) == list(range(200))
    assert [answer["payload"]["number"] for answer in loop] == list(range(200))


def test_a_cancelled_or_late_call_leaves_nothing_behind(served: Specimen, client: RpcClient) -> None:
    served.serve(client)

    async def impatient() -> None:
        await asyncio.wait_for(client.call_async(contract.WAIT, contract.Wait(seconds=5)), 0.1)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    hasty: Rpc[Any, Any] = _unregistered("wait", contract.Wait, 0.2)
    with pytest.raises(ServiceError) as late:
        client.call(hasty, contract.Wait(seconds=5))
    assert late.value.status == 503
    assert client._pending == {}
    assert answers(client)


def _unregistered(method: str, request: Any, timeout: float) -> Rpc[Any, Any]:
    from contracts.rpc import REGISTRY

    rpc: Rpc[Any, Any] = Rpc("specimen", method, request, contract.Echo, timeout=timeout)
    del REGISTRY[f"specimen.{method}"]
    return rpc


def test_a_request_whose_caller_has_given_up_is_not_run(served: Specimen, client: RpcClient, channel: Any) -> None:
    """F14 for what the broker cannot see: the request came in time and then waited in the worker, or its deadline passed."""
    served.serve(client)
    body = json.dumps({"args": [], "kwargs": {"request_id": "late", "key": "late"}}).encode()
    headers = {topology.DEADLINE_HEADER: f"{time.time() - 300:.3f}", topology.TIMEOUT_HEADER: "5"}
    channel.basic_publish("nameko-rpc", "specimen.count", body, pika.BasicProperties(headers=headers))
    wait_until(lambda: "rpc.dropped" in served.log("serve"), what="the request to be dropped")
    assert served.rows("SELECT key FROM counters") == []


def test_one_effect_for_one_request_id(on_both: Specimen, client: RpcClient) -> None:
    on_both.serve(client)
    on_both.serve(client)
    requests_ = [contract.Count(request_id=f"r{number % 5}", key="k") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        totals = list(pool.map(lambda request: client.call(contract.COUNT, request).total, requests_))
    assert set(totals) == {1, 2, 3, 4, 5}
    by_request: dict[str, set[int]] = {request.request_id: set() for request in requests_}
    for request, total in zip(requests_, totals, strict=True):
        by_request[request.request_id].add(total)
    assert all(len(seen) == 1 for seen in by_request.values())


def test_a_waiting_writer_does_not_stop_the_service(on_both: Specimen, client: RpcClient) -> None:
    """On SQLite one writer at a time: the one that waits must not keep the event loop from others."""
    on_both.serve(client)
    release = threading.Event()
    holding = threading.Event()

    def hold(session: Any) -> None:
        session.execute(sa.text("UPDATE counters SET total = total"))
        if not on_both.database.sqlite:
            session.execute(sa.text("LOCK TABLE counters IN ACCESS EXCLUSIVE MODE"))
        holding.set()
        release.wait(120)

    with ThreadPoolExecutor(4) as pool:
        held = pool.submit(on_both.database.write, hold)
        holding.wait(120)
        blocked = [
            pool.submit(client.call, contract.COUNT, contract.Count(request_id=str(n), key="k")) for n in range(2)
        ]
        try:
            for _ in range(20):
                assert client.call(contract.ECHO, contract.Echo(payload={"n": 1})).payload == {"n": 1}
            assert not any(call.done() for call in blocked)
        finally:
            release.set()
        held.result(120)
        assert sorted(call.result(120).total for call in blocked) == [1, 2]


def test_a_killer_is_parked_and_its_neighbours_are_not(served: Specimen, client: RpcClient, channel: Any) -> None:
    """F12: the process dies with every delivery of one message, and is started again each time, as a supervisor does."""
    publish(channel, "innocent 1")
    publish(channel, "killer", "die")
    publish(channel, "innocent 2")
    publish(channel, "innocent 3")
    process = served.start("serve")
    deaths = 0

    def parked() -> bool:
        nonlocal process, deaths
        if process.poll() == 9:
            deaths += 1
            process = served.start("serve")
        return bool(channel.queue_declare(topology.parked_queue_name(QUEUE), passive=True).method.message_count == 1)

    wait_until(parked, what="the killer to be parked")
    wait_until(lambda: len(served.notes()) == 3, what="the others")
    assert sorted(served.notes()) == ["innocent 1", "innocent 2", "innocent 3"]
    # Each time it is set aside for a neighbour it gets a clean slate, and that neighbour is done.
    assert topology.CRASH_LIMIT <= deaths <= topology.CRASH_LIMIT + 3
    _, properties, body = channel.basic_get(topology.parked_queue_name(QUEUE), auto_ack=True)
    assert json.loads(body)["data"]["key"] == "killer"
    assert "ends the process" in properties.headers[topology.REASON_HEADER]


def test_dying_once_in_a_handler_costs_nothing(served: Specimen, client: RpcClient, channel: Any) -> None:
    process = served.serve(client)
    publish(channel, "unlucky", "die once")
    assert process.wait(120) == 9
    served.serve(client)
    wait_until(lambda: served.notes() == ["unlucky"], what="the effect")


def test_sigterm_lets_calls_finish_and_takes_no_new_ones(served: Specimen, client: RpcClient) -> None:
    process = served.serve(client)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.call, contract.WAIT, contract.Wait(seconds=2))
        wait_until(lambda: client._pending, what="the call to be under way")
        assert client.call(contract.ECHO, contract.Echo(payload={"after": "it"}))
        process.send_signal(signal.SIGTERM)
        assert slow.result(120).payload == {"waited": 2}
    assert process.wait(120) == 0
    assert json.loads(served.log("serve").splitlines()[-1])["drained"] is True


def test_sigterm_does_not_wait_for_ever(served: Specimen, client: RpcClient) -> None:
    process = served.serve(client, DRAIN_SECONDS="0.5")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.call, _unregistered("wait", contract.Wait, 3), contract.Wait(seconds=60))
        wait_until(lambda: client._pending, what="the call to be under way")
        assert answers(client)
        process.terminate()
        assert process.wait(120) == 0
        with pytest.raises(ServiceError):
            slow.result(120)


def test_the_health_port(served: Specimen, client: RpcClient, free_port: int) -> None:
    served.serve(client, HEALTH_PORT=str(free_port), COUNTERSIGN_REVISION="4711abc")
    address = f"http://127.0.0.1:{free_port}"
    assert requests.get(f"{address}/healthz", timeout=120).status_code == 200
    # The first call may be answered a moment before the broker has confirmed the last of the subscriptions.
    wait_until(lambda: requests.get(f"{address}/readyz", timeout=120).ok, what="readiness")
    assert requests.get(f"{address}/readyz", timeout=120).json() == {"ready": True, "problems": []}
    assert requests.get(f"{address}/nothing", timeout=120).status_code == 404
    metrics = requests.get(f"{address}/metrics", timeout=120).text
    assert 'countersign_rpc_handled_total{call="specimen.echo",outcome="ok"}' in metrics
    assert "countersign_event_loop_late_seconds" in metrics
    assert f'countersign_build_info{{revision="4711abc",service="specimen",version="{build.version()}"}} 1.0' in metrics
    connections = dict(re.findall(r'^countersign_broker_connected{connection="(.+)"} (.+)$', metrics, re.MULTILINE))
    assert connections
    assert set(connections.values()) == {"1.0"}
    assert set(re.findall(r"^countersign_broker_blocked{.+} (.+)$", metrics, re.MULTILINE)) == {"0.0"}


def test_a_worker_waits_for_its_schema_and_its_broker(
    broker: PrivateBroker, served: Specimen, client: RpcClient, free_port: int
) -> None:
    """F3: started before everything else, it neither crashes nor serves, and then does."""
    (version,) = served.rows("SELECT version_num FROM alembic_version")[0]
    served.database.write(lambda session: session.execute(sa.text("DELETE FROM alembic_version")))
    broker.kill()
    try:
        process = served.start("serve", HEALTH_PORT=str(free_port))
        wait_until(lambda: "run migrate" in served.log("serve"), what="a word about the schema")
        restored = sa.text("INSERT INTO alembic_version VALUES (:version)")
        served.database.write(lambda session: session.execute(restored, {"version": version}) and None)
        wait_until(lambda: "broker.lost" in served.log("serve"), what="a word about the broker")
        assert process.poll() is None
        ready = requests.get(f"http://127.0.0.1:{free_port}/readyz", timeout=120)
        assert ready.status_code == 503
        assert ready.json()["problems"] == ["specimen: not connected to the message broker"]
    finally:
        broker.start()
    wait_until(lambda: answers(client), what="the specimen answers")


def test_calls_under_way_fail_at_once_when_the_broker_dies_and_new_ones_wait_a_moment(
    broker: PrivateBroker, served: Specimen, client: RpcClient
) -> None:
    served.serve(client)
    patient = replace(contract.WAIT, timeout=600)
    REGISTRY["specimen.wait"] = contract.WAIT
    with ThreadPoolExecutor(4) as pool:
        pending = [pool.submit(client.call, patient, contract.Wait(seconds=15)) for _ in range(3)]
        wait_until(lambda: len(client._pending) == 3, what="the calls to be under way")
        assert answers(client)
        broker.kill()
        try:
            for call in pending:
                with pytest.raises(ServiceError) as lost:
                    call.result(120)
                assert lost.value.status == 503
            with pytest.raises(ServiceError) as away:
                client.call(contract.ECHO, contract.Echo(payload={}))
            assert away.value.message == "The message broker is not available."
        finally:
            broker.start()
    wait_until(lambda: answers(client), what="calls after the restart")


def test_a_stopped_broker_is_given_up(broker: PrivateBroker, served: Specimen, client: RpcClient) -> None:
    """F5: a SIGSTOPped node keeps its connections and says nothing."""
    served.serve(client)
    hasty = _unregistered("wait", contract.Wait, 1)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ServiceError) as late:
            client.call(hasty, contract.Wait(seconds=0))
        assert late.value.message == "The service specimen did not answer in time."
        wait_until(lambda: not client.connected, what="the client to give the connection up")
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    wait_until(lambda: answers(client), what="calls after it went on")
