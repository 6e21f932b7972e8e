"""One mail to one recipient over SMTP (RFC 5321). A connection is kept for the next mail of a burst.

Permanent is what the server says of this recipient or this mail with a 5xx. A 5xx about ourselves (login, sender) is an
operator's to mend, so the mail waits. A connection that breaks after the mail was handed over leaves open whether it
arrived: it is sent again, with the same Message-ID.
"""

import base64
import contextlib
import smtplib
import socket
import ssl
import threading
import time

from contracts.runtime.monitoring import observe
from contracts.runtime.watchdog import watchdog
from services.notifications import addresses
from services.notifications.channels.outcome import NotSent, Refused
from services.notifications.channels.server import Server

log = observe.logger(__name__)

KEPT_SECONDS = 20.0
"""Servers close idle connections after minutes; a burst is over in seconds."""

_ABOUT_US = frozenset({454, 530, 534, 535, 538})
_TOO_LARGE = frozenset({523, 552})


class SmtpChannel:
    """``send`` may be called from several threads; each uses a connection of its own."""

    keeps_mails = False

    def __init__(self, server: Server, sender: str, *, timeout: float, attempt_seconds: float) -> None:
        self._server = server
        self._sender = addresses.for_wire(sender)
        self._timeout = timeout
        self._attempt_seconds = attempt_seconds
        self._idle: list[tuple[smtplib.SMTP, float]] = []
        self._lock = threading.Lock()

    def send(self, mail_id: int, recipient: str, message: bytes) -> str:
        """Hand the mail over; the server's last answer. Raises NotSent or Refused."""
        connection = self._kept()
        if connection is not None:
            try:
                return self._hand_over(connection, recipient, message, reused=True)
            except _Stale:
                log.info("smtp.reconnecting", mail=mail_id)
        return self._hand_over(self._connected(), recipient, message, reused=False)

    def try_out(self) -> str:
        """Connect, log in and name the sender as for a mail, and send none; the answer to the sender. Raises NotSent."""
        connection = self._connected()
        try:
            with self._limited(connection):
                code, text = connection.mail(self._sender)
                connection.rset()
        except (OSError, smtplib.SMTPException) as error:
            raise NotSent(_words(error)) from error
        finally:
            _quit(connection)
        if code != 250:
            raise NotSent(f"the sender {self._sender} is refused: {_answer(code, text)}")
        return _answer(code, text)

    def close_idle(self) -> bool:
        """Close what has not been used for a while. True when something is left to be closed later."""
        long_ago = time.monotonic() - KEPT_SECONDS
        with self._lock:
            old = [connection for connection, since in self._idle if since < long_ago]
            self._idle = [(connection, since) for connection, since in self._idle if since >= long_ago]
            left = bool(self._idle)
        for connection in old:
            _quit(connection)
        return left

    def close(self) -> None:
        """Close what is not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _since in idle:
            _quit(connection)

    def _hand_over(self, connection: smtplib.SMTP, recipient: str, message: bytes, *, reused: bool) -> str:
        try:
            with self._limited(connection):
                answer = _transaction(connection, self._sender, addresses.for_wire(recipient), message, reused)
        except (Refused, _Again) as refusal:
            self._keep_if_usable(connection)
            if isinstance(refusal, _Again):
                raise NotSent(str(refusal)) from None
            raise
        except _Stale:
            connection.close()
            raise
        except (OSError, smtplib.SMTPException) as error:
            connection.close()
            raise NotSent(_words(error)) from error
        with self._lock:
            self._idle.append((connection, time.monotonic()))
        return answer

    def _connected(self) -> smtplib.SMTP:
        server = self._server
        connection = _unconnected(server, self._sender.rpartition("@")[2], self._timeout)
        try:
            with self._limited(connection):
                code, text = connection.connect(server.host, server.port)
                if code != 220:
                    raise NotSent(_answer(code, text))
                _introduce(connection, server)
        except (OSError, smtplib.SMTPException, NotSent) as error:
            connection.close()
            raise NotSent(_words(error)) from error
        return connection

    def _limited(self, connection: smtplib.SMTP) -> contextlib.AbstractContextManager[None]:
        """A server that answers one byte at a time never runs into the time-out: then the whole is cut off."""
        return watchdog.within(self._attempt_seconds, lambda: _cut(connection))

    def _kept(self) -> smtplib.SMTP | None:
        self.close_idle()
        with self._lock:
            return self._idle.pop()[0] if self._idle else None

    def _keep_if_usable(self, connection: smtplib.SMTP) -> None:
        try:
            with self._limited(connection):
                code, _text = connection.rset()
        except (OSError, smtplib.SMTPException):
            code = 0
        if code != 250:
            connection.close()
            return
        with self._lock:
            self._idle.append((connection, time.monotonic()))


class _Stale(Exception):
    """A kept connection turned out to be closed before anything was said about the mail."""


class _Again(Exception):
    """A temporary answer; the connection is fine."""


def _unconnected(server: Server, greeting: str, timeout: float) -> smtplib.SMTP:
    # Connecting is a step of its own, so that it can be cut off; the host is what TLS compares the certificate with.
    if server.encryption == "implicit":
        secure = smtplib.SMTP_SSL(local_hostname=greeting, timeout=timeout, context=_tls(server))
        secure._host = server.host  # type: ignore[attr-defined]
        return secure
    plain = smtplib.SMTP(local_hostname=greeting, timeout=timeout)
    plain._host = server.host  # type: ignore[attr-defined]
    return plain


def _introduce(connection: smtplib.SMTP, server: Server) -> None:
    connection.ehlo_or_helo_if_needed()
    if server.encryption in ("required", "offered"):
        if connection.has_extn("starttls"):
            connection.starttls(context=_tls(server))
            connection.ehlo_or_helo_if_needed()
        elif server.encryption == "required":
            raise NotSent("The mail server does not offer STARTTLS, which SMTP_URL requires.")
    if server.user is not None:
        _log_in(connection, server.user, server.password or "")


def _log_in(connection: smtplib.SMTP, user: str, password: str) -> None:
    if (user + password).isascii():
        connection.login(user, password)
        return
    # smtplib knows ASCII only; RFC 4616 says UTF-8.
    connection.ehlo_or_helo_if_needed()
    secret = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
    code, text = connection.docmd("AUTH", f"PLAIN {secret}")
    if code != 235:
        raise smtplib.SMTPAuthenticationError(code, text)


def _transaction(connection: smtplib.SMTP, sender: str, recipient: str, message: bytes, reused: bool) -> str:
    options = [f"SIZE={len(message)}"] if connection.has_extn("size") else []
    if not recipient.isascii():
        if not connection.has_extn("smtputf8"):
            raise Refused("The mail server takes no addresses with characters other than ASCII before the @")
        options += ["SMTPUTF8", "BODY=8BITMIME"]
    try:
        code, text = connection.mail(sender, options)
    except smtplib.SMTPServerDisconnected as error:
        raise (_Stale() if reused else error) from error
    if code == 421 and reused:
        raise _Stale
    if code != 250:
        if code in _TOO_LARGE:
            raise Refused(_answer(code, text), too_large=True)
        raise _Again(_answer(code, text))
    code, text = connection.rcpt(recipient)
    if code not in (250, 251):
        raise _refusal(code, text)
    try:
        code, text = connection.data(message)
    except smtplib.SMTPDataError as error:
        code, text = (
            error.smtp_code,
            error.smtp_error if isinstance(error.smtp_error, bytes) else str(error.smtp_error).encode(),
        )
    if code != 250:
        raise _refusal(code, text)
    return _answer(code, text)


def _refusal(code: int, text: bytes) -> Exception:
    if code >= 500 and code not in _ABOUT_US:
        return Refused(_answer(code, text), too_large=code in _TOO_LARGE)
    return _Again(_answer(code, text))


def _answer(code: int, text: bytes) -> str:
    return f"{code} {addresses.one_line(text.decode('utf-8', 'replace'), 500)}"


def _words(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return _answer(error.smtp_code, _text(error))
    return addresses.one_line(f"{type(error).__name__}: {error}" if not isinstance(error, NotSent) else str(error), 500)


def _text(error: smtplib.SMTPResponseException) -> bytes:
    return error.smtp_error if isinstance(error.smtp_error, bytes) else str(error.smtp_error).encode()


def _tls(server: Server) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not server.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _cut(connection: smtplib.SMTP) -> None:
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _quit(connection: smtplib.SMTP) -> None:
    with contextlib.suppress(OSError, smtplib.SMTPException):
        connection.quit()
    connection.close()
