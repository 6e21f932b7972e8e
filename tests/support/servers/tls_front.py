"""Mutual TLS before a plain HTTP server of this machine: whoever shows no certificate of its authority is not let through, and
who does is known behind it by a header, as behind many a gateway. One request for each connection."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


@dataclass
class Front:
    """``ca`` (a file) is what a client must trust, ``certificate`` and ``private_key`` (PEM) what it must show; ``seen`` are the
    names in the certificates that were shown."""

    url: str
    ca: Path
    certificate: str
    private_key: str
    seen: list[str] = field(default_factory=list)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _issue(subject: str, issuer: str, issuer_key: Any = None) -> tuple[Any, str, str]:
    """Key, certificate and key in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    moment = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(issuer))
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(moment - timedelta(hours=1)).not_valid_after(moment + timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=issuer_key is None, path_length=None), critical=True)
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(here, critical=False).sign(issuer_key or key, hashes.SHA256())
    plain = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key, certificate.public_bytes(PEM).decode(), plain.decode()


@contextmanager
def before(port: int, folder: Path, header: str, client: str = "Countersign") -> Iterator[Front]:
    """A front of the server at this port, until the end of the block. ``header`` is added to each request."""
    folder.mkdir(parents=True, exist_ok=True)
    ca_key, ca, _ = _issue("CA", "CA")
    _, server, server_key = _issue("Server", "CA", ca_key)
    _, certificate, private_key = _issue(client, "CA", ca_key)
    (folder / "ca.pem").write_text(ca)
    (folder / "server.pem").write_text(server + server_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    listening = socket.create_server(("127.0.0.1", 0))
    front = Front(f"https://127.0.0.1:{listening.getsockname()[1]}", folder / "ca.pem", certificate, private_key)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as shown:
            certificate: Any = shown.getpeercert()
            subject = dict(part for parts in certificate["subject"] for part in parts)
            front.seen.append(subject["commonName"])
            with socket.create_connection(("127.0.0.1", port)) as behind:
                back = threading.Thread(target=_pass_on, args=(behind, shown), daemon=True)
                back.start()
                line, _, rest = shown.recv(65_536).partition(b"\r\n")
                behind.sendall(b"\r\n".join((line, header.encode(), rest)))
                _pass_on(shown, behind)
                back.join(120)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield front
    finally:
        listening.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
