"""A real SMTP server (aiosmtpd) that does as a test tells it: refuse, hang, close the line, and keep what it took."""

import asyncio
import email
import email.policy
import ssl
import threading
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

Answer = str | None
"""What the server says instead of taking it, such as ``550 no such user``; None: it takes it."""

HANG = "hang"
CLOSE = "close"


class MailServer:
    """``rcpt`` and ``data`` decide about each mail by its recipient; ``connect`` about each MAIL FROM.

    They may also return HANG (no answer until ``stop``) or CLOSE (the line is cut). ``data`` with CLOSE keeps the mail
    first: the server has it, and the client cannot know.
    """

    def __init__(
        self, port: int = 0, *, host: str = "127.0.0.1", login: tuple[str, str] | None = None, **more: Any
    ) -> None:
        self.received: list[tuple[str, EmailMessage]] = []
        self.raw: list[bytes] = []
        self.senders: list[str] = []
        self.options: list[list[str]] = []
        self.connections = 0
        self.over_tls: list[bool] = []
        self.mail: Callable[[str], Answer] = lambda _sender: None
        self.rcpt: Callable[[str], Answer] = lambda _address: None
        self.data: Callable[[str], Answer] = lambda _address: None
        self.busy = 0
        self.most_busy = 0
        self._login = login
        self._lock = threading.Lock()
        self._more = more
        self._host = host
        self._wanted_port = port
        self._controller: Controller | None = None

    def start(self) -> "MailServer":
        if self._login is not None:
            self._more |= {"authenticator": self._check, "auth_require_tls": False, "auth_required": True}
        self._controller = _Controller(self, hostname=self._host, port=self._wanted_port, **self._more)
        self._controller.start()
        self._wanted_port = self._controller.port
        return self

    def stop(self) -> None:
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    def __enter__(self) -> "MailServer":
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self._wanted_port

    @property
    def url(self) -> str:
        return f"smtp://{self._host}:{self.port}"

    def recipients(self) -> list[str]:
        return [address for address, _message in self.received]

    def message(self, address: str) -> EmailMessage:
        (found,) = [message for recipient, message in self.received if recipient == address]
        return found

    def _check(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        assert isinstance(given, LoginPassword)
        right = (given.login.decode(), given.password.decode()) == self._login
        return AuthResult(success=right, handled=right)

    # aiosmtpd's hooks.

    async def handle_EHLO(
        self, server: SMTP, session: Any, _envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        self.connections += 1
        return responses

    async def handle_MAIL(self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        if (said := await self._said(server, self.mail(address))) is not None:
            return said
        self.senders.append(address)
        self.options.append(options)
        assert server.transport is not None
        self.over_tls.append(server.transport.get_extra_info("sslcontext") is not None)
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server: SMTP, _session: Any, envelope: Any, address: str, _options: list[str]) -> str:
        if (said := await self._said(server, self.rcpt(address))) is not None:
            return said
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Any, envelope: Any) -> str:
        with self._lock:
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)
        try:
            answers = {address: self.data(address) for address in envelope.rcpt_tos}
            for address, answer in answers.items():
                if answer in (None, CLOSE):
                    self.raw.append(envelope.original_content)
                    message = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
                    assert isinstance(message, EmailMessage)
                    self.received.append((address, message))
            for answer in answers.values():
                if (said := await self._said(server, answer)) is not None:
                    return said
            return f"250 OK queued as {len(self.received)}"
        finally:
            with self._lock:
                self.busy -= 1

    async def _said(self, server: SMTP, answer: Answer) -> str | None:
        if answer == HANG:
            await asyncio.sleep(3600)
        if answer == CLOSE:
            transport: Any = server.transport
            transport.abort()
            return "421 closing"
        return answer


class _Controller(Controller):
    """Takes any free port; the base class then connects to the port that it was told."""

    def _trigger_server(self) -> None:
        server: Any = self.server
        self.port = server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


def self_signed(folder: Any, host: str = "127.0.0.1") -> tuple[ssl.SSLContext, str]:
    """A server's TLS context with a certificate of its own, and the file that a client must trust."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    return context, str(certificate_file)
