"""The one guarded way out by HTTP: for webhooks, ``file`` and image URLs, providers.

Callers name the URL, so the URL may name our own machines. Only public addresses may be called, and only on ports of the web;
the name is resolved once, every address it has must be allowed, and the connection goes to the address that was checked, while
Host header, SNI and certificate check keep the name. A redirect is a new URL and is checked anew.

The operator may allow private networks, on whatever port. The addresses at which clouds tell a machine its secrets are called
only when they are named there one by one: whoever allows a range does not mean them.
"""

import errno
import ipaddress
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import requests
from prometheus_client import Counter
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.ssl_ import create_urllib3_context

from contracts.runtime.monitoring import observe, tracing
from contracts.runtime.settings import WEB_PORTS, ServiceSettings
from contracts.runtime.watchdog import watchdog

NOT_CALLED = Counter(
    "countersign_outbound_not_called_total", "Calls that were not made: no descriptor, port, thread or memory was left"
)

MAX_REDIRECTS = 3
LONGEST_URL = 2048
_CHUNK = 65_536
_REFUSED = 400

KEPT_SECONDS = 15.0
"""A connection waits that long for the next call; receivers close theirs after some time, too."""

OLDEST_SECONDS = 120.0
"""After that it is made anew, to wherever the name leads then."""

KEPT_AT_MOST = 64
_NOTHING_LEFT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL})

# What Python 3.11 calls global although it leads elsewhere: translated, tunnelled, relayed or not yet assigned for use.
_SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "::/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fec0::/10",
    )
)

# Where clouds tell a machine its credentials, or drive it. Some of them are public by their number.
_METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "169.254.169.254",  # nearly every cloud
        "169.254.170.2",  # AWS: tasks of ECS
        "169.254.170.23",  # AWS: pods of EKS
        "169.254.0.23",  # Tencent
        "169.254.42.42",  # Scaleway
        "168.63.129.16",  # Azure: wire server
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle, classic
        "fd00:ec2::254",  # AWS
        "fd00:ec2::23",  # AWS: pods of EKS
        "fd20:ce::254",  # Google
        "fd00:42::42",  # Scaleway
    )
)

log = observe.logger(__name__)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class OutboundRefused(Exception):
    """The URL or its address may not be called; ``reason`` is for the person who gave the URL."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OutboundFailed(Exception):
    """It was called and did not work: network, time-out, too large."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OutboundNotCalled(OutboundFailed):
    """It was not called: this process or machine has no descriptor, port, thread or memory left. No fault of the other side."""

    def __init__(self) -> None:
        super().__init__("could not be called: this machine has no descriptors, ports or memory left")


class OutboundUnreachable(OutboundFailed):
    """No connection came about, so nothing was sent, and what must not be done twice was not done."""


@dataclass(frozen=True)
class Fetched:
    """The answer of a URL. ``media_type`` and ``filename`` are what the other side said: to be looked at, not trusted."""

    data: bytes
    media_type: str
    filename: str


@dataclass(frozen=True)
class Answer:
    """The answer to a POST or a GET; ``data`` is the beginning of its body, ``text`` the same as UTF-8."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class ClientCertificate:
    """What this side shows of itself (mutual TLS): ``chain``, its own certificate first, and its private key, both PEM."""

    chain: str
    private_key: str = field(repr=False)

    def context(self) -> ssl.SSLContext:
        """For connections that show it. Raises ValueError when the two are none, or do not belong together."""
        context = create_urllib3_context()
        # OpenSSL reads them by name only. This file is in memory and has no name on any disk.
        with open(os.memfd_create("client certificate", os.MFD_CLOEXEC), "wb") as file:  # noqa: PTH123
            file.write(f"{self.chain.strip()}\n{self.private_key.strip()}\n".encode())
            file.flush()
            try:
                context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=_no_password)
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                raise ValueError(
                    "certificate and private key are not a pair of PEM texts, or the key has a password"
                ) from error
        return context


def _no_password() -> str:
    """OpenSSL would ask the terminal."""
    raise ValueError("the key has a password")


class Outbound:
    """Calls other people's servers. ``allowed_private_networks``: comma-separated CIDRs that may be called all the same, on any
    port; ``ports``: comma-separated, those that may be called elsewhere."""

    def __init__(self, allowed_private_networks: str = "", ports: str = WEB_PORTS) -> None:
        self._allowed = tuple(
            ipaddress.ip_network(cidr.strip()) for cidr in allowed_private_networks.split(",") if cidr.strip()
        )
        self._ports = frozenset(int(port) for port in ports.split(","))
        self._idle: list[_Line] = []
        self._lock = threading.Lock()

    @classmethod
    def configured(cls, settings: ServiceSettings) -> "Outbound":
        """Build the one that the operator's settings allow."""
        return cls(settings.allowed_private_networks, settings.outbound_ports)

    @classmethod
    def to_operators_own(cls, settings: ServiceSettings) -> "Outbound":
        """For a URL that no caller and nobody's answer can change, because it stands in the settings: that is leave enough for
        a private network and any port. Not for metadata, which must be allowed one by one all the same."""
        anywhere = ",".join(filter(None, (settings.allowed_private_networks, "0.0.0.0/0", "::/0")))
        return cls(anywhere, settings.outbound_ports)

    def check(self, url: str) -> None:
        """Refuse what can never be called: another scheme, credentials, a literal address or a port that is not allowed."""
        host, port = _parts(url)
        try:
            literal = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            if not self._allowed:  # else the name may lead to where every port is allowed
                self._check_port(port, [])
            return
        if not self._may_call(literal):
            raise OutboundRefused("must not name a private or reserved address")
        self._check_port(port, [literal])

    def check_form(self, url: str) -> None:
        """As ``check``, of the letters alone: for a URL that the operator gave, which may lead into their own network."""
        _parts(url)

    def fetch(self, url: str, *, max_bytes: int, timeout: float = 10.0) -> Fetched:
        """GET; at most three redirects, ``timeout`` seconds for everything together.

        OutboundRefused when the URL may not be called, OutboundFailed for any answer but 2xx or more than ``max_bytes``.
        """
        deadline = time.monotonic() + timeout
        for _ in range(MAX_REDIRECTS + 1):
            with self._exchange("GET", url, None, {"Accept": "*/*"}, 5.0, deadline) as answer:
                if answer.is_redirect:
                    url = urljoin(url, answer.headers["Location"])
                    continue
                if not 200 <= answer.status_code < 300:
                    raise OutboundFailed(f"answered {answer.status_code}")
                data = _read(answer, max_bytes, deadline)
                if len(data) > max_bytes:
                    raise OutboundFailed(f"is larger than {max_bytes:,} bytes")
                media_type = (
                    answer.headers.get("Content-Type", "application/octet-stream").partition(";")[0].strip().lower()
                )
                return Fetched(data, media_type, _filename(url, answer.headers.get("Content-Disposition")))
        raise OutboundFailed(f"redirects more than {MAX_REDIRECTS} times")

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        connect_timeout: float = 5.0,
        total_timeout: float = 15.0,
        max_response: int = 16_384,
        keep_alive: bool = False,
        client: ClientCertificate | None = None,
    ) -> Answer:
        """POST ``body`` as it is. Redirects are not followed: a 3xx is an answer like any other.

        ``keep_alive`` keeps the connection, to the address that was checked, for the next call to that host. Only for bodies
        that may come twice: a connection may turn out to be closed, and then the body is sent again over a new one.
        Not with ``client``, which is what this side shows of itself, over https.
        """
        keep_alive = keep_alive and client is None
        deadline = time.monotonic() + total_timeout
        while (line := self._idle_line(url) if keep_alive else None) is not None:
            try:
                with self._exchange("POST", url, body, headers, connect_timeout, deadline, line, keep=True) as answer:
                    return _answered(answer, max_response, deadline)
            except _Stale:
                continue
        with self._exchange(
            "POST", url, body, headers, connect_timeout, deadline, keep=keep_alive, client=client
        ) as answer:
            return _answered(answer, max_response, deadline)

    def get(
        self, url: str, headers: Mapping[str, str], *, total_timeout: float = 15.0, max_response: int = 16_384
    ) -> Answer:
        """GET with headers that are for this URL alone. Redirects are not followed: a 3xx is an answer like any other."""
        deadline = time.monotonic() + total_timeout
        with self._exchange("GET", url, None, headers, min(5.0, total_timeout), deadline) as answer:
            return _answered(answer, max_response, deadline)

    @contextmanager
    def _exchange(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        connect_timeout: float,
        deadline: float,
        idle: "_Line | None" = None,
        *,
        keep: bool = False,
        client: ClientCertificate | None = None,
    ) -> Iterator[requests.Response]:
        host = _parts(url)
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise OutboundFailed("took too long")
        line = idle or _Line(self, urlsplit(url).scheme, host, client)
        adapter = line.adapter
        done = False
        with _span(method, url) as span:
            try:
                # A receiver that sends a byte now and then never runs into a read time-out: the watchdog cuts the line.
                with (
                    watchdog.within(remaining, adapter.cut),
                    adapter.send(
                        _request(method, url, body, {**tracing.outgoing(), **headers}),
                        stream=True,
                        timeout=(min(connect_timeout, remaining), remaining),
                    ) as answer,
                ):
                    _note_status(span, answer.status_code)
                    yield answer
                if adapter.was_cut:
                    # An answer that was cut in its headers looks like one without a body.
                    raise OutboundFailed("took too long")
                done = True
            except (OutboundRefused, OutboundFailed):
                raise
            except (requests.RequestException, OSError, ValueError, RuntimeError) as error:
                if idle is not None and not adapter.was_cut and _was_closed(error):
                    raise _Stale from error
                raise self._explained(error, time.monotonic() >= deadline, sent=adapter.has_connected) from error
            finally:
                if done and keep:
                    self._keep_line(line)
                else:
                    line.adapter.close()

    def close_idle(self) -> None:
        """Close connections that were kept and are not wanted any more."""
        now = time.monotonic()
        with self._lock:
            fresh = [line for line in self._idle if line.is_fresh(now)][-KEPT_AT_MOST:]
            old = [line for line in self._idle if line not in fresh]
            self._idle = fresh
        for line in old:
            line.adapter.close()

    def _idle_line(self, url: str) -> "_Line | None":
        self.close_idle()
        origin = urlsplit(url).scheme, _parts(url)
        with self._lock:
            line = next((line for line in reversed(self._idle) if line.origin == origin), None)
            if line is not None:
                self._idle.remove(line)
            return line

    def _keep_line(self, line: "_Line") -> None:
        line.used_at = time.monotonic()
        with self._lock:
            self._idle.append(line)
        self.close_idle()

    def _explained(self, error: Exception, late: bool, *, sent: bool) -> Exception:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, OutboundRefused):
                return cause
            if isinstance(cause, OSError) and cause.errno in _NOTHING_LEFT:
                return _not_called(error)
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, RuntimeError) or _no_descriptor_left():
            return _not_called(error)
        kind = OutboundFailed if sent else OutboundUnreachable
        if late or isinstance(error, requests.Timeout):
            return kind("took too long")
        return kind(f"cannot be reached: {type(error).__name__}")

    def addresses(self, host: str, port: int, timeout: float = 5.0) -> list[tuple[Any, ...]]:
        """Resolve ``host`` within ``timeout`` seconds, if every address of it may be called."""
        entries = _resolve(host, port, timeout)
        resolved = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries]
        if not resolved or not all(self._may_call(address) for address in resolved):
            raise OutboundRefused("must not lead to a private or reserved address")
        self._check_port(port, resolved)
        return list(entries)

    def _check_port(self, port: int, resolved: Sequence[Address]) -> None:
        """Behind other ports are services that are not HTTP: nobody's webhook is there."""
        if port not in self._ports and not (resolved and all(self._is_allowed(address) for address in resolved)):
            raise OutboundRefused(f"must not use port {port}")

    def _may_call(self, address: Address) -> bool:
        return self._is_allowed(address) or is_public(address)

    def _is_allowed(self, address: Address) -> bool:
        """Is it in one of the allowed networks? Of metadata addresses: is it one of them by itself?"""
        plain = _unwrapped(address)
        networks = [network for network in self._allowed if plain.version == network.version and plain in network]
        return any(network.num_addresses == 1 for network in networks) if is_metadata(address) else bool(networks)


def _span(method: str, url: str) -> tracing.Span:
    """Return the span of a call to somebody else's server. Not where it goes: the URL is its receiver's, and may be secret."""
    if not tracing.on():
        return tracing.NOTHING
    return tracing.span(method, tracing.CLIENT, {"http.request.method": method, "url.scheme": urlsplit(url).scheme})


def _note_status(span: tracing.Span, status: int) -> None:
    span.set({"http.response.status_code": status})
    if status >= _REFUSED:
        span.fail(str(status))


class _Stale(Exception):
    """A kept connection turned out to be closed before anything was answered."""


def _was_closed(error: Exception) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _not_called(error: Exception) -> OutboundNotCalled:
    NOT_CALLED.inc()
    log.error("outbound.not_called", reason=f"{type(error).__name__}: {error}")
    return OutboundNotCalled()


def _no_descriptor_left() -> bool:
    """Whoever resolves names does not say so."""
    try:
        os.close(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        return error.errno in _NOTHING_LEFT
    return False


def is_public(address: Address) -> bool:
    """True for an address of the public Internet, not private, local, reserved, multicast, translated or tunnelled."""
    plain = _unwrapped(address)
    if not plain.is_global or plain.is_multicast or plain.is_reserved or is_metadata(address):
        return False
    return not any(plain.version == network.version and plain in network for network in _SPECIAL)


def is_metadata(address: Address) -> bool:
    """True for an address at which a cloud tells a machine its secrets, in whatever form."""
    return any(form in _METADATA for form in _forms(address))


def _forms(address: Address) -> Iterator[Address]:
    """The address, and each IPv4 address that a translator or the end of a tunnel may make of it.

    In an IPv6 address it has one of the places of RFC 6052 (NAT64; the last one is also that of mapped and of compatible
    addresses and of ISATAP) or that of 6to4 (RFC 3056); Teredo (RFC 4380) writes it with every bit turned.
    """
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        packed = address.packed
        octets = packed[:8] + packed[9:]  # RFC 6052 leaves out the one after the prefix of 64 bits
        for start in (2, 4, 5, 6, 7, 8, 11):
            yield ipaddress.IPv4Address(octets[start : start + 4])
        yield ipaddress.IPv4Address(bytes(octet ^ 0xFF for octet in packed[12:]))


def _unwrapped(address: Address) -> Address:
    return getattr(address, "ipv4_mapped", None) or address


def _parts(url: str) -> tuple[str, int]:
    """Host and port of a URL that may be called as far as its letters tell; OutboundRefused otherwise."""
    if len(url) > LONGEST_URL:
        raise OutboundRefused(f"must not be longer than {LONGEST_URL} characters")
    if any(character.isspace() or not character.isprintable() for character in url) or "\\" in url:
        raise OutboundRefused("must not contain blanks, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise OutboundRefused("is not a valid URL") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OutboundRefused("must be an http or https URL")
    if parts.username is not None or parts.password is not None:
        raise OutboundRefused("must not contain a user name or password")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _answered(answer: requests.Response, limit: int, deadline: float) -> Answer:
    return Answer(answer.status_code, answer.headers, _read(answer, limit, deadline)[:limit])


def _read(answer: requests.Response, limit: int, deadline: float) -> bytes:
    """Up to a little more than ``limit`` bytes of the body."""
    data = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        data += chunk
        if len(data) > limit:
            break
        if time.monotonic() >= deadline:
            raise OutboundFailed("took too long")
    return bytes(data)


def _resolve(host: str, port: int, timeout: float) -> list[Any]:
    """The C library's resolver takes no time-out: it is asked in a thread that is left behind when it takes too long."""
    answers: list[Any] = []

    def ask() -> None:
        with suppress(OSError, UnicodeError):
            answers.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))

    thread = threading.Thread(target=ask, name="resolve", daemon=True)
    thread.start()
    thread.join(timeout)
    if not answers:
        raise OSError(f"{host} cannot be resolved")
    return list(answers)


def _filename(url: str, disposition: str | None) -> str:
    if disposition:
        header = Message()
        header["Content-Disposition"] = disposition
        if name := header.get_filename():
            return name.replace("\\", "/").rpartition("/")[2]
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _request(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> requests.PreparedRequest:
    """Build the request by itself, without a session: that adds what the environment says, cookies and credentials, of which
    nothing is wanted here, and takes as long again as the rest."""
    request = requests.PreparedRequest()
    request.prepare(method, url, {**_USUAL_HEADERS, **headers}, data=body)
    return request


_USUAL_HEADERS = {**requests.utils.default_headers(), "Accept-Encoding": "identity"}


class _Line:
    """One connection to one host. No cookie of one call is sent with another."""

    def __init__(
        self, guard: Outbound, scheme: str, host: tuple[str, int], client: ClientCertificate | None = None
    ) -> None:
        self.origin = scheme, host
        self.adapter = _GuardedAdapter(guard, client)
        self.made_at = self.used_at = time.monotonic()

    def is_fresh(self, now: float) -> bool:
        return now - self.used_at < KEPT_SECONDS and now - self.made_at < OLDEST_SECONDS


class _Guarded:
    """Mixed into urllib3's connections: dials one of the addresses that were checked."""

    guard: Outbound
    opened: list[socket.socket]
    adapter: "_GuardedAdapter"

    def _new_conn(self) -> socket.socket:
        problem: OSError = OSError("no address")
        for family, kind, protocol, _, address in self._checked_addresses():
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(self.timeout)  # type: ignore[attr-defined]
            # Head and body are sent apart: the body of the next call would wait for the other side's delayed acknowledgement
            # of its head (measured: 45 ms for each call over a kept connection, 2 without).
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                connection.connect(address)
            except OSError as error:
                connection.close()
                problem = error
                continue
            self.opened.append(connection)
            if self.adapter.was_cut:  # while it was being made: nobody would cut this one
                connection.close()
                raise TimeoutError("took too long")
            return connection
        raise problem

    def _checked_addresses(self) -> list[tuple[Any, ...]]:
        timeout = self.timeout if isinstance(self.timeout, int | float) else 5.0  # type: ignore[attr-defined]
        return self.guard.addresses(self._dns_host, self.port, timeout)  # type: ignore[attr-defined]


class _GuardedAdapter(HTTPAdapter):
    """One exchange at a time: its connections are guarded, and can be cut from another thread."""

    def __init__(self, guard: Outbound, client: ClientCertificate | None = None) -> None:
        self._guard, self._client = guard, client
        self._opened: list[socket.socket] = []
        self.was_cut = False
        super().__init__(max_retries=0)

    @property
    def has_connected(self) -> bool:
        return bool(self._opened)

    def cut(self) -> None:
        """End every connection now, whatever is going on in it."""
        self.was_cut = True
        for connection in self._opened:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        if self._client is not None:
            options["ssl_context"] = self._client.context()
        super().init_poolmanager(*arguments, **options)
        guarded = {"guard": self._guard, "opened": self._opened, "adapter": self}
        plain = type("GuardedHTTP", (_Guarded, HTTPConnection), guarded)
        secure = type("GuardedHTTPS", (_Guarded, HTTPSConnection), guarded)
        self.poolmanager.pool_classes_by_scheme = {
            "http": type("HTTPPool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("HTTPSPool", (HTTPSConnectionPool,), {"ConnectionCls": secure}),
        }
