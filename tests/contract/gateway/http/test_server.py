"""The gateway's process as it runs: clients that are slow, silent, too many or not HTTP, and the end on SIGTERM."""

import asyncio
import contextlib
import http.client
import json
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import pytest
import requests
import uvicorn

from deploy.rabbitmq import PrivateBroker, free_port
from services.gateway.http import server
from tests.support.services import processes
from tests.support.services.gateway import RunningGateway, whole
from tests.support.services.suite import wait_until

KEY = "the-first-admin-s-key"
MOST = 30


class Running:
    def __init__(self, port: int, process: object) -> None:
        self.port = port
        self.process = process

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"X-Auth-Token": KEY})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.ask("GET", "/healthz")[0] == 200
        return False


@pytest.fixture(scope="module")
def gateway(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    port = free_port()
    limits = {
        "MAX_CONNECTIONS": MOST,
        "HEADER_TIMEOUT": 1,
        "BODY_TIMEOUT": 1,
        "PAGE_THREADS": 2,
        "MAX_REQUEST_SIZE": 300_000,
    }
    settings = processes.environment(
        "gateway",
        broker.amqp_url,
        f"sqlite:///{folder}/gateway.sqlite",
        folder,
        PORT=str(port),
        ADMIN_EMAIL="admin@example.com",
        ADMIN_API_KEY=KEY,
        **{name: str(value) for name, value in limits.items()},
    )
    processes.migrate("gateway", settings)
    with processes.running("gateway", "serve", settings, folder / "log") as process:
        running = Running(port, process)
        wait_until(running.answers, what="the gateway answers")
        yield running
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, (folder / "log").read_text()[-3000:]


def test_a_connection_that_says_nothing_is_closed(gateway: Running) -> None:
    with gateway.connect() as silent:
        assert whole(silent) == b""


@pytest.mark.parametrize("beginning", [b"GET /user HTTP/1.1\r\nX-A", b"POST /sub"])
def test_half_a_head_is_closed(gateway: Running, beginning: bytes) -> None:
    with gateway.connect() as slow:
        slow.sendall(beginning)
        assert whole(slow) == b""


def test_the_server_does_not_look_whether_it_is_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told by the signal's handler, however long it would wait."""
    monkeypatch.setattr(server, "_DATE_SECONDS", 3600.0)
    config = uvicorn.Config(lambda: None, lifespan="off", log_config=None)
    config.load()
    http = server.Server(config, server.Room(8, 8))
    looks: list[int] = []
    on_tick = http.on_tick

    async def look(counter: int) -> bool:
        looks.append(counter)
        return await on_tick(counter)

    monkeypatch.setattr(http, "on_tick", look)

    async def run() -> None:
        waiting = asyncio.create_task(http.main_loop())
        while not looks:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [name for name, _ in http.server_state.default_headers] == [b"date", b"server"]
        http.handle_exit(signal.SIGTERM, None)
        await asyncio.wait_for(waiting, 300)

    asyncio.run(run())
    assert len(looks) == 2


def test_half_a_second_head_is_closed_after_the_first_answer(gateway: Running) -> None:
    with gateway.connect() as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /healthz HTTP/1.1\r\nHo")
        received = whole(slow)
    assert received.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("path", ["/submissions", "/s/abcdefghijklmnopqrstuv/values"])
def test_a_body_that_never_comes_is_408(gateway: Running, path: str) -> None:
    with gateway.connect() as silent:
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {KEY}\r\nContent-Length: 100\r\n\r\n{{"
        silent.sendall(head.encode())
        received = whole(silent)
    assert received.startswith(b"HTTP/1.1 408")
    assert b'"code":"timeout"' in received


def test_a_chunked_body_is_read_to_the_limit_only(gateway: Running) -> None:
    with gateway.connect() as sender:
        sender.sendall(
            f"POST /submissions HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {KEY}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(10):
            sender.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        sender.sendall(b"0\r\n\r\n")
        assert sender.recv(65536).startswith(b"HTTP/1.1 413")


def test_slow_uploads_do_not_stop_the_pages(gateway: Running) -> None:
    head = b"POST /s/abcdefghijklmnopqrstuv/values HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(gateway.connect()).sendall(head)
        assert gateway.ask("GET", "/")[0] == 200


def test_too_many_connections_are_told_so_and_the_next_ones_work_again(gateway: Running) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(gateway.connect())
        status, headers, body = gateway.ask("GET", "/user")
    assert (status, json.loads(body)["code"]) == (503, "unavailable")
    assert int(headers["retry-after"]) > 0
    wait_until(lambda: gateway.ask("GET", "/user")[0] == 200, what="there is room again")


@pytest.mark.parametrize("most", [256, 1024])
def test_where_descriptors_are_few_everybody_is_answered(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """More than it may have open, all at once: 200 or 503, never a reset, and all is well afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    database = f"sqlite:///{tmp_path}/gateway.sqlite"
    running = RunningGateway(broker.amqp_url, database, tmp_path, MAX_CONNECTIONS="1000", HEADER_TIMEOUT="5")
    monkeypatch.setattr(processes, "start", partial(limited, most))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        running.start()
        with contextlib.ExitStack() as stack:
            crowd = [
                stack.enter_context(socket.create_connection(("127.0.0.1", running.port), 30))
                for _ in range(most + 150)
            ]
            for each in crowd:
                each.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            answers = [answered(each) for each in crowd]
            assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
            refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 503")]
            assert all(b"retry-after: " in answer and b'"code":"unavailable"' in answer for answer in refused)
        wait_until(lambda: running.call("GET", "/user").status_code == 200, what="there is room again")
        with contextlib.ExitStack() as stack:
            for _ in range(most + 150):
                stack.enter_context(socket.create_connection(("127.0.0.1", running.port), 30))
            # They say nothing. A request is told that there is no room, or answered once some of them were closed.
            assert running.call("GET", "/user").status_code in (200, 503)
            assert process_has_room(running, most)
        wait_until(lambda: running.call("GET", "/user").status_code == 200, what="there is room again")
        assert "cannot_accept" not in running.log.read_text()
    finally:
        running.kill()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def answered(connection: socket.socket) -> bytes:
    """An answer to ``/healthz``, or the refusal, after which the connection is closed."""
    received = connection.recv(65536)
    return received if received.startswith(b"HTTP/1.1 200") else received + whole(connection)


def limited(most: int, service: str, command: str, settings: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """A process as under ``ulimit -Hn``, with a soft limit below it."""
    limits = f'ulimit -Sn {most // 2}; ulimit -Hn {most}; exec "$@"'
    return subprocess.Popen(
        ["bash", "-c", limits, "bash", sys.executable, "-m", f"services.{service}", command],
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )


def process_has_room(running: RunningGateway, most: int) -> bool:
    """By its own count, which an operator watches."""
    metrics = requests.get(f"http://127.0.0.1:{running.health_port}/metrics", timeout=120).text
    values = {
        name: float(value)
        for name, value in (line.split() for line in metrics.splitlines() if line.startswith("process_"))
    }
    return values["process_max_fds"] == most and values["process_open_fds"] < most


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_http_is_refused(gateway: Running, garbage: bytes) -> None:
    with gateway.connect() as odd:
        odd.sendall(garbage)
        assert whole(odd).startswith(b"HTTP/1.1 400")
    assert gateway.ask("GET", "/user")[0] == 200


def test_an_upgrade_is_an_ordinary_request(gateway: Running) -> None:
    with gateway.connect() as odd:
        odd.sendall(
            b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert whole(odd).startswith(b"HTTP/1.1 200")


def test_head_has_no_body(gateway: Running) -> None:
    for path in ("/user", "/healthz", "/", "/docs", "/reference.md"):
        got, head = gateway.ask("GET", path), gateway.ask("HEAD", path)
        assert (head[0], head[2]) == (200, b"")
        assert head[1]["content-length"] == got[1]["content-length"]
