"""Traces of a worker on a real broker, told to a real collector: over calls and events, killed, stopped, and with nobody who takes them."""

import json
import os
import signal
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from contracts.errors import ServiceError
from contracts.runtime.bus import topology
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import uuid7
from contracts.runtime.monitoring import tracing
from contracts.runtime.operations import checking
from contracts.runtime.settings import ServiceSettings
from deploy.rabbitmq import PrivateBroker
from tests.support.servers.collector import Collector, Told
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, emptied, specimen
from tests.support.services.suite import wait_until

QUEUE = topology.event_queue_name(contract.NOTED, "specimen")
PROCESS = f"process {QUEUE}"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as opened:
        yield opened


@pytest.fixture
def client(broker: PrivateBroker) -> Iterator[RpcClient]:
    opened = RpcClient(broker.amqp_url, name="test")
    yield opened
    opened.close()


@pytest.fixture
def served(broker: PrivateBroker, collector: Collector, tmp_path: Path) -> Iterator[Specimen]:
    """A specimen on SQLite that tells its traces; without processes yet."""
    url = f"sqlite:///{tmp_path}/specimen.sqlite"
    with specimen(broker.amqp_url, url, tmp_path, **collector.settings) as made:
        yield made
    wait_until(lambda: emptied(broker, QUEUE, "rpc-specimen"), what="empty queues")


@pytest.fixture
def trace(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A trace that this process has begun, and tells the same collector."""
    for name, value in collector.settings.items():
        monkeypatch.setenv(name, value)
    assert tracing.start("test") is None
    with tracing.span("the test", root=True) as span:
        yield span.ids()["trace_id"]
    tracing.finish(60)


def publish(broker: PrivateBroker, trace: str, todo: str) -> None:
    """An event as the owner's relay would send it, of which the envelope alone names the trace."""
    envelope = {
        "id": uuid7(),
        "type": "thing.noted",
        "source": "specimen",
        "subject": "thing:1",
        "occurred_at": "2026-11-21T00:00:00.000Z",
        "traceparent": f"00-{trace}-{uuid.uuid4().hex[:16]}-01",
        "data": {"key": todo, "todo": todo},
    }
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    properties = pika.BasicProperties(delivery_mode=2)
    connection.channel().basic_publish("specimen.events", "thing.noted", json.dumps(envelope), properties)
    connection.close()


def kinds(collector: Collector, trace: str, name: str) -> set[str]:
    return {span.kind for span in collector.of(trace) if span.name == name}


def test_calls_of_calls_are_one_trace(served: Specimen, client: RpcClient, collector: Collector, trace: str) -> None:
    served.serve(client)
    client.call(contract.RELAY, contract.Relayed(seconds=0.01))
    with pytest.raises(ServiceError):
        client.call(contract.BREAK, contract.Echo(payload={"name": "Zoe Angstrom"}))
    names = ("specimen/wait", "specimen/relay", "specimen/break_down")
    both = {"CLIENT", "SERVER"}
    wait_until(lambda: all(kinds(collector, trace, name) == both for name in names), what="both spans of each call")
    spans = collector.of(trace)
    by_id = {span.id: span for span in spans}
    chain: Told | None = next(span for span in spans if (span.name, span.kind) == ("specimen/wait", "SERVER"))
    above = []
    while chain and (chain := by_id.get(chain.parent)) is not None:
        above.append((chain.name, chain.kind, chain.service))
    assert above == [
        ("specimen/wait", "CLIENT", "countersign-specimen"),
        ("specimen/relay", "SERVER", "countersign-specimen"),
        ("specimen/relay", "CLIENT", "countersign-test"),
    ], "and the test itself, which is not over"
    broken = {span.kind: span for span in spans if span.name == "specimen/break_down"}
    assert {(kind, span.attributes["error.type"]) for kind, span in broken.items()} == {
        ("SERVER", "internal"),
        ("CLIENT", "internal"),
    }
    assert not any(b"Angstrom" in body or b"as it was told" in body for body in collector.bodies)


def test_each_try_of_an_event_is_in_the_trace_of_its_cause(
    served: Specimen, client: RpcClient, broker: PrivateBroker, collector: Collector
) -> None:
    served.serve(client)
    trace = uuid.uuid4().hex
    publish(broker, trace, "fail")
    wait_until(lambda: len(collector.of(trace)) >= 3, what="the span of each try")
    spans = collector.of(trace)
    assert {(span.name, span.kind, span.failed) for span in spans} == {(PROCESS, "CONSUMER", True)}
    assert sorted(span.attributes["countersign.failures"] for span in spans) == [0, 1, 2]
    lines = [json.loads(line) for line in served.log("serve").splitlines() if "event.handled" in line]
    assert {line["trace_id"] for line in lines} == {trace}


def test_a_worker_that_is_killed_loses_its_spans_and_nothing_else(
    served: Specimen, client: RpcClient, broker: PrivateBroker, collector: Collector
) -> None:
    first = served.serve(client)
    trace = uuid.uuid4().hex
    publish(broker, trace, "die once")
    first.wait()
    served.serve(client)
    wait_until(served.notes, what="the event has its effect")
    (span,) = collector.wait_for(trace, PROCESS)
    assert not span.failed
    second = served._started[-1]
    os.kill(second.pid, signal.SIGKILL)
    second.wait()
    served.serve(client)


def test_the_end_of_a_process_sends_what_it_has(
    served: Specimen, client: RpcClient, collector: Collector, trace: str
) -> None:
    process = served.serve(client, OTEL_BSP_SCHEDULE_DELAY="600000")
    client.call(contract.WAIT, contract.Wait(seconds=0.01))
    assert "SERVER" not in kinds(collector, trace, "specimen/wait")
    process.terminate()
    assert process.wait() == 0
    assert "SERVER" in kinds(collector, trace, "specimen/wait")


def test_a_collector_that_does_not_answer_stops_nobody(served: Specimen, client: RpcClient, trace: str) -> None:
    """It takes connections and says nothing, which is worse than one that is away."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        few = {"OTEL_BSP_MAX_QUEUE_SIZE": "5", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"}
        process = served.serve(client, OTEL_EXPORTER_OTLP_ENDPOINT=url, **few)
        for number in range(30):
            answer = client.call(contract.ECHO, contract.Echo(payload={"number": number}))
            assert answer.payload == {"number": number}
        process.terminate()
        assert process.wait() == 0


def test_check_asks_the_collector(collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> tuple[bool, str]:
        urls: dict[str, Any] = {
            "database_url": f"sqlite:///{tmp_path}/none.sqlite",
            "amqp_url": "amqp://",
            "blob_url": "file:///nowhere",
        }
        settings = ServiceSettings.model_construct(**urls)
        tried = [trial for trial in checking.trials("webhooks", settings) if trial.name == "traces"]
        return checking.outcome(tried[0]) if tried else (True, "not tried")

    assert said() == (True, "not tried")
    for name, value in {**collector.settings, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert said() == (True, "traces: ok")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{collector.url}/elsewhere")
    assert said() == (False, "traces: the collector does not answer, or takes no traces")
