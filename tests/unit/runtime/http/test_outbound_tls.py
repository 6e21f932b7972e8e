"""What this side shows of itself (mutual TLS), to a server in the same process; and what was never sent."""

import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from contracts.runtime.http.outbound import ClientCertificate, Outbound, OutboundFailed, OutboundUnreachable

LOOPBACK = "127.0.0.0/8"
PEM = serialization.Encoding.PEM


@dataclass
class Tls:
    """A server that wants a certificate of its clients. ``seen``: the names in those that it was shown."""

    url: str
    ca: Path
    client: ClientCertificate
    stranger: ClientCertificate
    seen: list[str] = field(default_factory=list)


def name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def issue(subject: str, issuer: str, issuer_key: Any = None, *, password: bytes | None = None) -> tuple[Any, str, str]:
    """Key, certificate and key in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(key.public_key())
    )
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=issuer_key is None, path_length=None), critical=True)
    alternatives = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(alternatives, critical=False).sign(issuer_key or key, hashes.SHA256())
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return (
        key,
        certificate.public_bytes(PEM).decode(),
        key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption).decode(),
    )


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tls]:
    ca_key, ca, _ = issue("CA", "CA")
    _, server, server_key = issue("Server", "CA", ca_key)
    _, client, client_key = issue("Client", "CA", ca_key)
    _, stranger, stranger_key = issue("Stranger", "Nobody", ec.generate_private_key(ec.SECP256R1()))
    (tmp_path / "ca.pem").write_text(ca)
    (tmp_path / "server.pem").write_text(server + server_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    context.load_verify_locations(tmp_path / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # lines stay open

        def do_POST(self) -> None:
            subject = self.connection.getpeercert()["subject"]
            seen.append(dict(part for parts in subject for part in [parts[0]])["commonName"])
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Clients that show nothing good are no news."""

        def finish_request(self, request: Any, client_address: Any) -> None:
            """The handshake in the connection's own thread."""
            super().finish_request(context.wrap_socket(request, server_side=True), client_address)

    running = Server(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
    # What the certificates of servers must lead to, for this test.
    monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(tmp_path / "ca.pem"))
    url = f"https://127.0.0.1:{running.server_address[1]}/"
    yield Tls(
        url, tmp_path / "ca.pem", ClientCertificate(client, client_key), ClientCertificate(stranger, stranger_key), seen
    )
    running.shutdown()
    running.server_close()


def test_a_client_certificate_is_shown(tls: Tls) -> None:
    outbound = Outbound(LOOPBACK)
    for _ in range(2):
        assert outbound.post(tls.url, b"{}", {}, client=tls.client, keep_alive=True).text == "ok"
    assert tls.seen == ["Client", "Client"]
    assert tls.client.private_key not in repr(tls.client)


def test_without_it_or_with_a_strangers_nothing_is_answered(tls: Tls) -> None:
    outbound = Outbound(LOOPBACK)
    assert outbound.post(tls.url, b"{}", {}, client=tls.client, keep_alive=True).text == "ok"
    for client in (None, tls.stranger):
        with pytest.raises(OutboundFailed):
            outbound.post(tls.url, b"{}", {}, client=client, keep_alive=True)
    assert tls.seen == ["Client"], "and no connection of another one is used"


def test_the_server_must_be_who_it_says_also_then(tls: Tls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Our certificate is shown to nobody whose own does not lead to a trusted root, or is for another name."""
    other = tmp_path / "other.pem"
    other.write_text(issue("Other CA", "Other CA")[1])
    with monkeypatch.context() as patched:
        patched.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(other))
        with pytest.raises(OutboundFailed, match="SSLError"):
            Outbound(LOOPBACK).post(tls.url, b"{}", {}, client=tls.client)
    with pytest.raises(OutboundFailed, match="SSLError"):
        Outbound("127.0.0.0/8,::1/128").post(tls.url.replace("127.0.0.1", "localhost"), b"{}", {}, client=tls.client)
    assert tls.seen == []


def test_what_is_no_pair_of_certificate_and_key_is_refused(tls: Tls) -> None:
    locked = issue("Locked", "Locked", password=b"secret")
    for pair in (
        ClientCertificate("", ""),
        ClientCertificate("no PEM", tls.client.private_key),
        ClientCertificate(tls.client.chain, "no PEM"),
        ClientCertificate(tls.client.chain, tls.stranger.private_key),
        ClientCertificate(locked[1], locked[2]),
    ):
        with pytest.raises(ValueError, match="pair of PEM texts") as caught:
            pair.context()
        assert pair.private_key not in f"{caught.value!r}" or not pair.private_key


def test_what_was_never_sent_is_told_apart() -> None:
    """Nobody listens; against somebody who takes the request and says nothing."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(OutboundUnreachable):
        Outbound(LOOPBACK).post(f"http://127.0.0.1:{port}/", b"{}", {})
    with pytest.raises(OutboundUnreachable):
        Outbound(LOOPBACK).post("http://nobody.invalid/", b"{}", {})
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"

        def take_and_go() -> None:
            connection, _ = deaf.accept()
            connection.recv(65_536)
            connection.close()

        threading.Thread(target=take_and_go, daemon=True).start()
        with pytest.raises(OutboundFailed) as caught:
            Outbound(LOOPBACK).post(url, b"{}", {})
        assert not isinstance(caught.value, OutboundUnreachable)
