"""A process that cannot work ends, and says so before: real processes, broken from the inside (see the specimen's ``harm``)."""

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from contracts.errors import ServiceError
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.monitoring import liveness
from contracts.runtime.monitoring.liveness import Watched
from deploy.processes.logged import LoggedProcess
from deploy.rabbitmq import PrivateBroker
from tests.support.services import processes
from tests.support.services.gateway import RunningGateway
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, specimen
from tests.support.services.suite import wait_until

QUICK = {"ROUND_SECONDS": "12"}
"""How soon a specimen is found to stand still."""


@pytest.fixture
def served(broker: PrivateBroker, tmp_path: Path) -> Iterator[Specimen]:
    with specimen(broker.amqp_url, f"sqlite:///{tmp_path}/specimen.sqlite", tmp_path) as made:
        yield made


@pytest.fixture
def client(broker: PrivateBroker) -> Iterator[RpcClient]:
    opened = RpcClient(broker.amqp_url, name="test")
    yield opened
    opened.close()


def break_down(client: RpcClient, way: str) -> None:
    """What is broken may be what the answer would come by."""
    with contextlib.suppress(ServiceError):
        client.call(contract.HARM, contract.Harm(way=way))


def reasons(process: LoggedProcess, log: str) -> list[str]:
    """The problems in the last line of the log of a process that ends by itself."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(60)
    assert process.poll() == liveness.STATUS, processes.log_of(Path(log))[-5000:]
    words = json.loads(processes.log_of(Path(log)).splitlines()[-1])
    assert words["event"] == "process.cannot_go_on"
    return list(words["problems"])


def probe(port: int, path: str) -> tuple[int, list[str]]:
    """What a probe gets, within the time that Kubernetes gives it."""
    answer = requests.get(f"http://127.0.0.1:{port}{path}", timeout=60)
    return answer.status_code, answer.json().get("problems", [])


def ready(port: int) -> bool:
    try:
        return probe(port, "/readyz") == (200, [])
    except requests.ConnectionError:
        return False


@pytest.mark.parametrize("connection", ["specimen-worker", "specimen-replies", "specimen-moves"])
def test_a_worker_ends_with_one_of_its_threads(served: Specimen, client: RpcClient, connection: str) -> None:
    process = served.serve(client)
    break_down(client, f"end {connection}")
    assert reasons(process, f"{served.folder}/serve.log") == [f"the I/O thread amqp-{connection} has ended"]


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("stop specimen-worker", "the I/O thread amqp-specimen-worker has not come round for 12 s"),
        ("stop specimen-replies", "the I/O thread amqp-specimen-replies has not come round for 12 s"),
        ("deafen specimen-worker", "the bus of specimen has not come round for 12 s"),
    ],
)
def test_a_worker_that_stands_still_ends(served: Specimen, client: RpcClient, way: str, problem: str) -> None:
    process = served.serve(client, **QUICK)
    break_down(client, way)
    assert problem in reasons(process, f"{served.folder}/serve.log")


def test_a_worker_whose_event_loop_stands_still_ends(served: Specimen, client: RpcClient) -> None:
    """All its green threads stand still with it; which of them is noticed first is chance."""
    process = served.serve(client, **QUICK)
    break_down(client, "stand still")
    found = reasons(process, f"{served.folder}/serve.log")
    assert {problem.partition(" has ")[2] for problem in found} == {"not come round for 12 s"}


def test_a_worker_whose_handlers_never_end_ends(served: Specimen, client: RpcClient) -> None:
    """One keeps its message, and those that wait for its place, from everybody. An event: see test_suspects."""
    process = served.serve(client, TURN_SECONDS="6")
    with pytest.raises(ServiceError):
        client.call(replace(contract.MEET, timeout=1), contract.Meet(number=2))
    assert reasons(process, f"{served.folder}/serve.log") == ["the call specimen.meet has not ended for 6 s"]


def test_a_call_that_fails_beside_its_handler_is_answered(served: Specimen, client: RpcClient) -> None:
    served.serve(client)
    break_down(client, "lose one answer")
    with pytest.raises(ServiceError) as failed:
        client.call(contract.ECHO, contract.Echo(payload={}))
    assert failed.value.code == "internal"
    client.call(contract.ECHO, contract.Echo(payload={}))


@pytest.mark.parametrize("connection", ["relay-specimen", "hints"])
def test_a_background_process_ends_with_one_of_its_connections(served: Specimen, connection: str) -> None:
    process = served.start("background", HARM=f"end {connection}")
    assert reasons(process, f"{served.folder}/background.log") == [f"the I/O thread amqp-{connection} has ended"]


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("end loop", "the loop ending has ended"),
        ("stuck loop", "the loop stuck has not come round for 10 s"),
    ],
)
def test_a_background_process_ends_with_one_of_its_loops(served: Specimen, way: str, problem: str) -> None:
    process = served.start("background", HARM=way, **QUICK)
    assert reasons(process, f"{served.folder}/background.log") == [problem]


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("end gateway", "the I/O thread amqp-gateway has ended"),
        ("stop gateway", "the I/O thread amqp-gateway has not come round for 12 s"),
        ("stop event loop", "the event loop has not come round for 12 s"),
    ],
)
def test_a_gateway_that_cannot_work_ends(broker: PrivateBroker, tmp_path: Path, way: str, problem: str) -> None:
    gateway = RunningGateway(broker.amqp_url, f"sqlite:///{tmp_path}/gateway.sqlite", tmp_path, **QUICK)
    processes.migrate("gateway", gateway.settings)
    program = f"""
from tests.support.services.specimens.specimen.harm import harm_soon
from contracts.runtime.main import run
harm_soon({way!r})
run("gateway", arguments=["serve"])
"""
    with gateway.log.open("ab") as log:
        process = processes.logged([sys.executable, "-c", program], gateway.settings, log)
    try:
        assert problem in reasons(process, str(gateway.log))
    finally:
        process.kill()
        process.wait()


def test_what_is_ready_and_what_lives(served: Specimen, client: RpcClient, free_port: int) -> None:
    """A worker that hears nothing any more is not ready, though it is connected, and lives until its time is over."""
    served.serve(client, HEALTH_PORT=str(free_port))
    wait_until(lambda: ready(free_port), what="readiness")
    break_down(client, "deafen specimen-worker")
    wait_until(lambda: not ready(free_port), what="that it is not ready")
    silent = "specimen: what it sends by the connection of its {} does not come back"
    wait_until(
        lambda: probe(free_port, "/readyz") == (503, [silent.format("replies"), silent.format("moves")]),
        what="the reasons",
    )
    assert probe(free_port, "/healthz") == (200, [])


def test_another_replica_proves_nothing(served: Specimen, client: RpcClient, free_port: int) -> None:
    """Calls go on, by the replica that hears them; the deaf one does not take that for its own doing."""
    deaf = served.serve(client, HEALTH_PORT=str(free_port))
    wait_until(lambda: ready(free_port), what="readiness")
    break_down(client, "deafen specimen-worker")
    served.serve(client)
    wait_until(lambda: not ready(free_port), what="that it is not ready")
    for _ in range(5):
        client.call(contract.ECHO, contract.Echo(payload={}))
    assert not ready(free_port)
    assert deaf.poll() is None


def test_a_broker_that_is_away_kills_nobody(
    broker: PrivateBroker, served: Specimen, client: RpcClient, free_port: int
) -> None:
    """Stopped or killed: both probes answer in time, one tells it and one that this is no reason to start anew."""
    limit = 30
    process = served.serve(client, HEALTH_PORT=str(free_port), ROUND_SECONDS=str(limit))
    wait_until(lambda: ready(free_port), what="readiness")
    broker._signal(signal.SIGSTOP)
    try:
        _alive_but_not_ready(process, free_port, limit * 1.5)
    finally:
        broker._signal(signal.SIGCONT)
    wait_until(lambda: ready(free_port), what="readiness after the stop")
    broker.kill()
    try:
        _alive_but_not_ready(process, free_port, limit * 1.5)
    finally:
        broker.start()
    wait_until(lambda: ready(free_port), what="readiness after the kill")
    assert process.poll() is None


def _alive_but_not_ready(process: LoggedProcess, port: int, seconds: float) -> None:
    wait_until(lambda: not ready(port), what="that it is not ready")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert probe(port, "/healthz") == (200, [])
        assert probe(port, "/readyz")[0] == 503
        assert process.poll() is None
        time.sleep(0.5)


def test_a_process_that_was_stopped_is_not_blamed(served: Specimen, client: RpcClient) -> None:
    """SIGSTOP for longer than the limit, as a laptop that was asleep: its watcher slept as well."""
    process = served.serve(client, **QUICK)
    background = served.start("background", **QUICK)
    for one in (process, background):
        one.send_signal(signal.SIGSTOP)
    time.sleep(20)
    for one in (process, background):
        one.send_signal(signal.SIGCONT)
    wait_until(lambda: _answers(client), what="the specimen answers again")
    time.sleep(2)
    assert (process.poll(), background.poll()) == (None, None)


def _answers(client: RpcClient) -> bool:
    try:
        client.call(contract.ECHO, contract.Echo(payload={}))
    except ServiceError:
        return False
    return True


def test_a_database_that_is_locked_is_no_reason(served: Specimen) -> None:
    """The loops wait for it, time and again."""
    process = served.start("background", **QUICK)
    wait_until(lambda: "background.started" in served.log("background"), what="the background process")
    with contextlib.closing(sqlite3.connect(served.folder / "specimen.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(25)
        assert process.poll() is None
        connection.execute("ROLLBACK")


def test_looks_without_a_round_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_watched", [])
    thread = Watched("a thread", limit=3 * liveness.LOOK_SECONDS)

    def looks(times: int) -> list[str]:
        for _ in range(times):
            thread.look()
        return liveness.problems()

    assert looks(2) == []
    thread.beat()
    assert looks(3) == []
    assert looks(1) == ["a thread has not come round for 15 s"]
    assert liveness.health()[0] == 503
    thread.beat()
    assert looks(1) == []
    thread.rest()
    assert looks(100) == []
    thread.beat()
    assert looks(4) == ["a thread has not come round for 15 s"]
    thread.finish()
    assert liveness.health() == (200, b'{"status": "ok"}')


def test_a_thread_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_watched", [])
    returned, raised, finished = Watched("one"), Watched("two"), Watched("three")
    returned.run(lambda: None)

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        raised.run(fail)
    finished.finish()
    finished.run(lambda: None)
    assert liveness.problems() == ["one has ended", "two has ended"]


def test_calls_go_on_whatever_becomes_of_the_log(
    broker: PrivateBroker, served: Specimen, client: RpcClient, free_port: int, tmp_path: Path
) -> None:
    """As in a container: stderr a pipe, whose reader stops for seconds; each call logs a burst, eight clients call, and the
    broker is restarted in between. Calls fail during the restart only, every connection comes back, and each line is whole."""
    log = tmp_path / "piped.log"
    with log.open("wb") as file:
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
    assert reader.stdin is not None
    settings = {**served.settings, "HEALTH_PORT": str(free_port)}
    program = [sys.executable, "-m", "tests.support.services.specimens", "serve"]
    process = subprocess.Popen(program, env=settings, stdout=reader.stdin, stderr=reader.stdin)
    reader.stdin.close()
    restarting, over = threading.Event(), threading.Event()
    try:
        wait_until(lambda: ready(free_port), what="readiness")
        with ThreadPoolExecutor(8) as pool:
            counts = [0] * 8
            calling = [pool.submit(_call_until, over, restarting, broker.amqp_url, counts, each) for each in range(8)]
            try:
                wait_until(lambda: over.is_set() or min(counts) > 10, what="calls of all")
                reader.send_signal(signal.SIGSTOP)
                time.sleep(4)
                reader.send_signal(signal.SIGCONT)
                time.sleep(1)
                restarting.set()
                reader.send_signal(signal.SIGSTOP)
                broker.kill()
                broker.start()
                wait_until(lambda: ready(free_port), what="readiness, while nobody reads the log")
                reader.send_signal(signal.SIGCONT)
                wait_until(lambda: all(_answers(client) for _ in range(3)), what="answers")
                time.sleep(5)
                restarting.clear()
                time.sleep(3)
            finally:
                over.set()
            for future in calling:
                future.result()
        assert ready(free_port)
        assert probe(free_port, "/healthz") == (200, [])
    finally:
        reader.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(60)
        reader.wait(60)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    dropped = sum(line["lines"] for line in lines if line["event"] == "log.dropped")
    bursts = sum(line["event"] == "burst" for line in lines)
    assert bursts + dropped >= sum(counts) * contract.BURST
    assert lines[-1]["event"] == "worker.stopped"
    assert [line for line in lines if "Second simultaneous" in json.dumps(line)] == []


def _call_until(
    over: threading.Event, restarting: threading.Event, amqp_url: str, counts: list[int], place: int
) -> None:
    """Count the calls that are answered; one that fails while nothing is restarted is a failure of the test."""
    client = RpcClient(amqp_url, name="caller")
    try:
        while not over.is_set():
            try:
                client.call(contract.BURST_OF_LINES, contract.Echo(payload={}))
                counts[place] += 1
            except ServiceError:
                if not restarting.is_set():
                    raise
            over.wait(0.1)  # eight of them log thousands of lines a second all the same: more than wait for a reader
    finally:
        client.close()
