"""Heads of requests that are too large, on the gateway's process as it runs: whoever sends them, the others are answered."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.rabbitmq import PrivateBroker
from services.gateway.http.server import HEAD_LIMIT
from tests.support.services.gateway import ADMIN_KEY, RunningGateway, running_gateway, whole

MEGABYTE = 1024 * 1024
ONE_LINE = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Long: " + b"a" * MEGABYTE
MANY_LINES = b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: a\r\n" % number for number in range(100_000))
LONG_PATH = b"GET /" + b"a" * MEGABYTE
NO_LINE_YET = b"\r\n" * MEGABYTE
HEADS = {"one line": ONE_LINE, "many lines": MANY_LINES, "path": LONG_PATH, "no line": NO_LINE_YET}
CHUNKED = (
    f"POST /submissions HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {ADMIN_KEY}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
)


@pytest.fixture(scope="module")
def gateway(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with running_gateway(
        broker.amqp_url, f"sqlite:///{folder}/gateway.sqlite", folder, HEADER_TIMEOUT="300"
    ) as running:
        yield running


def connect(gateway: RunningGateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=60)


def others_are_answered(gateway: RunningGateway) -> bool:
    return gateway.call("GET", "/user").status_code == 200


def refused_head(connection: socket.socket) -> bool:
    """The answer is a whole 431 of ours, and then the connection is closed."""
    head, _, body = whole(connection).partition(b"\r\n\r\n")
    return (
        head.startswith(b"HTTP/1.1 431 ")
        and b"connection: close" in head
        and f"content-length: {len(body)}".encode() in head
        and json.loads(body) == {"error": "The head of the request is larger than 32 KB.", "code": "head_too_large"}
    )


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_large_head_is_refused_before_it_is_whole(gateway: RunningGateway, head: bytes) -> None:
    """Only a little more than is allowed is sent: that nothing follows does not matter."""
    with connect(gateway) as connection:
        connection.sendall(head[: HEAD_LIMIT + 1])
        assert refused_head(connection)


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_who_still_sends_a_large_head_gets_the_answer(gateway: RunningGateway, head: bytes) -> None:
    with connect(gateway) as connection:
        connection.sendall(head)
        assert refused_head(connection)


def test_a_head_that_comes_in_small_pieces_is_counted(gateway: RunningGateway) -> None:
    """And so is one behind another request on the same connection; who waits meanwhile is answered."""
    with connect(gateway) as connection:
        connection.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        for start in range(0, HEAD_LIMIT, 1000):
            connection.sendall(ONE_LINE[:HEAD_LIMIT][start : start + 1000])
        assert others_are_answered(gateway)
        connection.sendall(b"a")
        assert refused_head(connection)


@pytest.mark.parametrize("way", ["at once", "in pieces"])
def test_the_largest_head_that_is_taken(gateway: RunningGateway, way: str) -> None:
    end = b"\r\nConnection: close\r\n\r\n"
    head = ONE_LINE[: HEAD_LIMIT - len(end)] + end
    with connect(gateway) as connection:
        connection.sendall(head if way == "at once" else head[:9000])
        if way == "in pieces":
            connection.sendall(head[9000:])
        assert whole(connection).startswith(b"HTTP/1.1 200")


def test_large_heads_of_many_take_no_memory(gateway: RunningGateway) -> None:
    """The process's greatest memory ever, by the system's own count, does not grow by what they send."""
    before = greatest_memory(gateway)
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(connect(gateway)) for _ in range(50)]
        for connection in crowd:
            with contextlib.suppress(ConnectionError):
                connection.sendall(MANY_LINES)
        assert others_are_answered(gateway)
    assert greatest_memory(gateway) - before < 20 * MEGABYTE


def greatest_memory(gateway: RunningGateway) -> int:
    """Bytes."""
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) * 1024


@pytest.mark.parametrize(
    "more", [b"0\r\nX-Long: " + b"a" * MEGABYTE, b"1;extension=" + b"a" * MEGABYTE], ids=["a trailer", "an extension"]
)
def test_what_surrounds_a_body_is_no_larger_than_a_head(gateway: RunningGateway, more: bytes) -> None:
    with connect(gateway) as connection:
        connection.sendall(CHUNKED)
        with contextlib.suppress(ConnectionError):
            connection.sendall(more)
        assert whole(connection) == b""


def test_a_trailer_is_no_header(gateway: RunningGateway) -> None:
    """It comes when the request is on its way already, and a proxy that sets headers of its own may leave it as it is."""
    with connect(gateway) as connection:
        connection.sendall(CHUNKED.replace(b"X-Auth-Token", b"X-Other") + b"2\r\n{}\r\n0\r\nX-Auth-Token: ")
        connection.sendall(ADMIN_KEY.encode() + b"\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")
