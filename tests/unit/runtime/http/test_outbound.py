"""The guarded way out: which addresses may be called, and that nothing else is ever dialled (threats T31 to T34)."""

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contracts.runtime.http.outbound import Outbound, OutboundFailed, OutboundRefused, is_public

LOCAL = "127.0.0.0/8,::1/128"


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.255.254", "169.254.0.1",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.9", "192.0.0.171", "192.0.2.1",
        "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.255.255.250", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
        "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
        "2002:7f00:1::", "2002:808:808::", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_that_may_not_be_called(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1",
     "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "::ffff:8.8.8.8"],
)  # fmt: skip
def test_addresses_that_may(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "javascript:alert(1)", "data:text/plain,x",
        "//example.com/", "example.com", "", "http://", "http:///path", "https://user@example.com/",
        "https://user:pass@example.com/", "http://exa mple.com/", "http://example.com/\r\nHost: x", "http://example.com\\@x/",
        "http://example.com:99999/", "http://example.com:port/", "http://[::1", "https://example.com/" + "a" * 3000,
        "http://example.com/\x00", "http://127.0.0.1/", "http://[::1]/", "http://10.0.0.1:8080/x", "http://[fe80::1]/",
        "http://169.254.169.254/latest/meta-data/", "http://168.63.129.16/machine?comp=goalstate", "https://example.com:22/",
    ],
)  # fmt: skip
def test_urls_that_are_refused_by_their_letters(url: str) -> None:
    with pytest.raises(OutboundRefused):
        Outbound().check(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/hook?x=1#y",
        "http://example.com:8080",
        "https://[2606:4700:4700::1111]/",
        "HTTPS://EXAMPLE.com",
    ],
)
def test_urls_that_are_not(url: str) -> None:
    Outbound().check(url)


def test_allowed_networks_are_allowed() -> None:
    outbound = Outbound("10.1.0.0/16, ::1/128")
    outbound.check("http://10.1.2.3:25/")
    outbound.check("http://[::1]/")
    outbound.check("http://[::ffff:10.1.2.3]/")
    with pytest.raises(OutboundRefused):
        outbound.check("http://10.2.0.1/")


class Canary:
    """A server on loopback that counts its connections and answers with given bytes."""

    def __init__(self, answer: Callable[[socket.socket, bytes], None]) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.requests: list[bytes] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            request = connection.makefile("rb")
            head = b"".join(iter(request.readline, b"\r\n")) + b"\r\n"
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            self.requests.append(head + request.read(int(length[1]) if length else 0))
            try:
                self._answer(connection, head)
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()


@contextmanager
def canary(answer: bytes | Callable[[socket.socket, bytes], None] = b"") -> Iterator[Canary]:
    made = Canary(answer if callable(answer) else lambda connection, _: connection.sendall(answer))
    try:
        yield made
    finally:
        made.close()


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "0x7f000001", "2130706433", "127.1", "0177.0.0.1", "0x7f.1", "①②⑦.0.0.1", "0.0.0.0",
     "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "127.0.0.1.", "LOCALHOST", "[::]"],
)  # fmt: skip
def test_odd_ways_to_write_loopback_reach_nothing(host: str) -> None:
    with canary(response(b"internal")) as server:
        for call in (
            lambda url: Outbound().fetch(url, max_bytes=1000, timeout=5),
            lambda url: Outbound().post(url, b"x", {}),
        ):
            with pytest.raises((OutboundRefused, OutboundFailed)):
                call(f"http://{host}:{server.port}/")
        assert server.requests == []


def resolver(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names resolve to the next of ``answers``; addresses as they are. Returns the list of the names that were asked for."""
    asked: list[str] = []
    left = list(answers)

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["93.184.216.34", "127.0.0.1"])
    with canary() as server, pytest.raises(OutboundRefused):
        Outbound().post(f"http://rebind.example:{server.port}/", b"", {})
    assert server.requests == []


def test_the_checked_address_is_the_one_that_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the name is asked for once; a second answer could be another."""
    with canary(response(b"ok")) as server:
        asked = resolver(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
        answer = Outbound("127.0.0.0/8").post(f"http://rebind.example:{server.port}/", b"", {})
        assert answer.text == "ok"
        assert asked == ["rebind.example"]
        assert f"Host: rebind.example:{server.port}".encode() in server.requests[0]


METADATA = [
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "169.254.42.42", "168.63.129.16", "100.100.100.200",
    "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
]  # fmt: skip


def forms(address: str) -> list[str]:
    """An IPv4 address as the translators and tunnels write it; by hand, from RFC 4038, 6052, 3056, 4380, 5214."""
    a, b, c, d = ipaddress.IPv4Address(address).packed
    low = f"{a:02x}{b:02x}:{c:02x}{d:02x}"
    return [
        f"::ffff:{low}",  # mapped
        f"::ffff:0:{low}",  # SIIT
        f"::{low}",  # compatible
        f"64:ff9b::{low}",  # NAT64, well-known
        f"64:ff9b:1:{a:02x}{b:02x}:{c:02x}:{d:02x}00::",  # NAT64, a prefix of 48 bits
        f"64:ff9b:1:7{a:02x}:{b:02x}:{c:02x}{d:02x}::",  # of 56
        f"64:ff9b:1:7:{a:02x}:{b:02x}{c:02x}:{d:02x}00:0",  # of 64
        f"2606:4700:{low}::",  # of 32, of an operator's own
        f"2606:4700:7{a:02x}:{b:02x}{c:02x}:{d:02x}::",  # of 40
        f"2606:4700:1:2:3:4:{low}",  # of 96
        f"2002:{low}::",  # 6to4
        f"2001:0:{low}::",  # Teredo, its server
        f"2001:0:102:304::{a ^ 255:02x}{b ^ 255:02x}:{c ^ 255:02x}{d ^ 255:02x}",  # Teredo, its client
        f"fe80::5efe:{low}",  # ISATAP
    ]


@pytest.mark.parametrize("address", METADATA)
@pytest.mark.parametrize("networks", ["", "0.0.0.0/0, ::/0", "168.63.129.16/31, 169.254.169.254/31, fd00:ec2::/32"])
def test_metadata_of_clouds_is_called_only_when_its_address_is_named(
    monkeypatch: pytest.MonkeyPatch, address: str, networks: str
) -> None:
    """Decided, never dialled: a machine that runs this may be one in a cloud."""
    guard = Outbound(networks)
    for form in [address, *([] if ":" in address else forms(address))]:
        resolver(monkeypatch, [form])
        with pytest.raises(OutboundRefused, match="private or reserved"):
            guard.addresses("metadata.example", 80)
        with pytest.raises(OutboundRefused, match="private or reserved"):
            guard.check(f"http://[{form}]/" if ":" in form else f"http://{form}/")
    resolver(monkeypatch, [address])
    named = Outbound(f"{networks or '10.0.0.0/8'}, {address}")
    assert named.addresses("metadata.example", 80)
    named.check(f"http://[{address}]/" if ":" in address else f"http://{address}/")


def test_beside_metadata_everything_is_as_it_was() -> None:
    for address in ("168.63.129.15", "168.63.129.17", "2606:4700::a83f:8111", "2606:4700:4700::1111"):
        assert is_public(ipaddress.ip_address(address))
    allowing = Outbound("169.254.0.0/16, fd00:ec2::/32, 100.64.0.0/10")
    for url in ("http://169.254.169.253/", "http://[fd00:ec2::253]/", "http://100.100.100.201:5000/"):
        allowing.check(url)


OTHER_PORTS = (1, 22, 25, 53, 81, 143, 445, 3306, 5432, 6379, 8081, 9200, 11211, 32526, 65535)


@pytest.mark.parametrize("port", OTHER_PORTS)
def test_ports_of_others_are_not_called(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    resolver(monkeypatch, ["93.184.216.34"])
    for networks in ("", "10.0.0.0/8"):
        with pytest.raises(OutboundRefused, match=f"must not use port {port}$"):
            Outbound(networks).addresses("public.example", port)
        with pytest.raises(OutboundRefused, match=f"must not use port {port}$"):
            Outbound(networks).check(f"http://93.184.216.34:{port}/")
    with pytest.raises(OutboundRefused, match=f"must not use port {port}$"):
        Outbound().check(f"https://public.example:{port}/")
    Outbound("10.0.0.0/8").check(f"https://perhaps-inside.example:{port}/")
    resolver(monkeypatch, ["10.0.0.1", "93.184.216.34"])
    with pytest.raises(OutboundRefused, match=f"must not use port {port}$"):
        Outbound("10.0.0.0/8").addresses("half-inside.example", port)
    resolver(monkeypatch, ["10.0.0.1", "10.0.0.2"])
    assert len(Outbound("10.0.0.0/8").addresses("inside.example", port)) == 2


def test_ports_of_the_web_are_called_and_those_that_are_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["93.184.216.34"])
    for port in (80, 443, 8080, 8443):
        assert Outbound().addresses("public.example", port)
        Outbound().check(f"https://public.example:{port}/")
    configured = Outbound(ports="443, 9443")
    assert configured.addresses("public.example", 9443)
    configured.check("https://93.184.216.34:9443/")
    with pytest.raises(OutboundRefused, match=r"must not use port 80$"):
        configured.addresses("public.example", 80)


def test_a_fetch() -> None:
    headers = ("Content-Type: Application/PDF; x=y", 'Content-Disposition: attachment; filename="../a/b.pdf"')
    with canary(response(b"%PDF-", *headers)) as server:
        fetched = Outbound(LOCAL).fetch(f"http://127.0.0.1:{server.port}/x/c%20d.pdf?q", max_bytes=100)
    assert (fetched.data, fetched.media_type, fetched.filename) == (b"%PDF-", "application/pdf", "b.pdf")
    with canary(response(b"x")) as server:
        fetched = Outbound(LOCAL).fetch(f"http://127.0.0.1:{server.port}/x/c%20d.pdf?q", max_bytes=100)
    assert (fetched.media_type, fetched.filename) == ("application/octet-stream", "c d.pdf")


@pytest.mark.parametrize("size", [101, 10_000_000])
def test_a_fetch_takes_no_more_than_it_was_allowed(size: int) -> None:
    def endless(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        connection.sendall(b"x" * size)

    with canary(endless) as server, pytest.raises(OutboundFailed, match="larger than 100 bytes"):
        Outbound(LOCAL).fetch(f"http://127.0.0.1:{server.port}/", max_bytes=100)


def test_compressed_answers_are_counted_as_they_are_read() -> None:
    import gzip

    bomb = gzip.compress(b"\x00" * 50_000_000)
    with canary(response(bomb, "Content-Encoding: gzip")) as server, pytest.raises(OutboundFailed, match="larger"):
        Outbound(LOCAL).fetch(f"http://127.0.0.1:{server.port}/", max_bytes=100_000)


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "304 Not Modified"])
def test_only_2xx_is_a_file(status: str) -> None:
    with canary(response(b"", status=status)) as server, pytest.raises(OutboundFailed, match=status[:3]):
        Outbound(LOCAL).fetch(f"http://127.0.0.1:{server.port}/", max_bytes=100)


def test_redirects_are_checked_each() -> None:
    with canary(response(b"internal")) as inner:
        for target in (
            f"http://127.0.0.2:{inner.port}/",
            "file:///etc/passwd",
            "gopher://x/",
        ):
            moved = response(b"", f"Location: {target}", status="302 Found")
            with canary(moved) as outer, pytest.raises(OutboundRefused):
                Outbound("127.0.0.1/32").fetch(f"http://127.0.0.1:{outer.port}/", max_bytes=100)
        assert [request for request in inner.requests if b"127.0.0.2" in request] == []


def test_redirects_are_followed_three_times_and_never_by_a_post() -> None:
    hops = 0

    def hop(connection: socket.socket, _request: bytes) -> None:
        nonlocal hops
        hops += 1
        connection.sendall(response(b"there") if hops == 4 else response(b"", f"Location: /{hops}", status="302 Found"))

    with canary(hop) as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert Outbound(LOCAL).fetch(url, max_bytes=100).data == b"there"
        hops = -10
        with pytest.raises(OutboundFailed, match="more than 3"):
            Outbound(LOCAL).fetch(url, max_bytes=100)
        hops = -10
        answer = Outbound(LOCAL).post(url, b"body", {})
        assert (answer.status, hops) == (302, -9)


def test_a_post_sends_the_bytes_as_they_are_and_cuts_the_answer() -> None:
    body = b'{"order":  "kept", "\xc3\xbc": 1}'
    with canary(response(b"y" * 100_000, "X-Seen: yes", status="201 Created")) as server:
        answer = Outbound(LOCAL).post(
            f"http://127.0.0.1:{server.port}/hook", body, {"Content-Type": "application/json"}
        )
    assert (answer.status, answer.headers["x-seen"], len(answer.text)) == (201, "yes", 16_384)
    assert server.requests[0].startswith(b"POST /hook HTTP/1.1\r\n")
    assert server.requests[0].endswith(body)


@pytest.mark.parametrize("stage", ["before the status", "in the headers", "in the body"])
def test_an_answer_that_drips_is_cut(stage: str) -> None:
    """A byte now and then never runs into a read time-out; the whole exchange has a limit."""
    stop = threading.Event()

    def drip(connection: socket.socket, _request: bytes) -> None:
        start = {
            "before the status": b"",
            "in the headers": b"HTTP/1.1 200 OK\r\nX: ",
            "in the body": b"HTTP/1.1 200 OK\r\n\r\n",
        }
        connection.sendall(start[stage])
        while not stop.wait(0.05):
            connection.sendall(b"a" if stage != "before the status" else b"H")

    with canary(drip) as server:
        for call in (
            lambda url: Outbound(LOCAL).fetch(url, max_bytes=10**6, timeout=0.6),
            lambda url: Outbound(LOCAL).post(url, b"", {}, total_timeout=0.6),
        ):
            with pytest.raises(OutboundFailed):
                call(f"http://127.0.0.1:{server.port}/")
        stop.set()


def test_a_resolver_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    release, came_back = threading.Event(), threading.Event()

    def hang(*_: Any, **__: Any) -> list[Any]:
        release.wait(600)
        came_back.set()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(OutboundFailed):
        Outbound().post("http://slow.example/", b"", {}, connect_timeout=0.3, total_timeout=0.6)
    assert not came_back.is_set()
    release.set()


def test_nobody_there(free_port: int) -> None:
    with pytest.raises(OutboundFailed, match="cannot be reached"):
        Outbound(LOCAL).post(f"http://127.0.0.1:{free_port}/", b"", {})
    with pytest.raises(OutboundFailed):
        Outbound().fetch("http://name.invalid/", max_bytes=1)


def test_the_environment_s_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with canary(response(b"proxied")) as proxy, canary(response(b"direct")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert Outbound(LOCAL).fetch(f"http://127.0.0.1:{server.port}/", max_bytes=100).data == b"direct"
        assert proxy.requests == []
