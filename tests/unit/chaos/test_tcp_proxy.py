"""The proxy between services and what they need: each mode, seen by a client of an echo server."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from tests.support.servers.tcp_proxy import TcpProxy
from tests.support.services.suite import wait_until


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(1000):
            self.request.sendall(data)


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        made = TcpProxy(server.server_address[1], delay_seconds=0.01)
        yield made
        made.close()
        server.shutdown()


def connect(proxy: TcpProxy) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", proxy.port), timeout=10)
    client.settimeout(10)
    return client


def echoed(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return client.recv(1000)


def is_reset(client: socket.socket) -> bool:
    try:
        client.sendall(b"x")
        return client.recv(1000) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("mode", ["pass", "delay"])
def test_it_hands_on(proxy: TcpProxy, mode: str) -> None:
    proxy.mode = mode  # type: ignore[assignment]
    with connect(proxy) as client:
        assert echoed(client, b"hello") == b"hello"


def test_cut_resets_what_is_open_and_takes_new_ones(proxy: TcpProxy) -> None:
    with connect(proxy) as client:
        assert echoed(client, b"hello") == b"hello"
        proxy.cut()
        wait_until(lambda: is_reset(client), what="the reset")
    with connect(proxy) as client:
        assert echoed(client, b"again") == b"again"


def test_refuse_resets_new_ones(proxy: TcpProxy) -> None:
    proxy.mode = "refuse"
    with connect(proxy) as client:
        wait_until(lambda: is_reset(client), what="the reset")


def test_a_black_hole_keeps_connections_open_and_hands_on_later(proxy: TcpProxy) -> None:
    with connect(proxy) as client:
        assert echoed(client, b"hello") == b"hello"
        proxy.mode = "blackhole"
        client.sendall(b"lost for now")
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1000)
        client.settimeout(10)
        proxy.mode = "pass"
        assert client.recv(1000) == b"lost for now"
