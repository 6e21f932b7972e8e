"""Our SMTP channel against a real server: answers of every kind, broken lines, TLS, login, connections kept for a burst."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from services.notifications.channels.dkim_keys import load, signed
from services.notifications.channels.outcome import NotSent, Refused
from services.notifications.channels.server import Server
from services.notifications.channels.smtp import SmtpChannel
from services.notifications.sending import mime
from services.notifications.sending.mime import Attachment, Envelope
from tests.support.judges.mails.mail_dkim import verdicts
from tests.support.servers.mail_server import CLOSE, HANG, MailServer, self_signed

MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as running:
        yield running


@contextmanager
def channel_to(url: str, sender: str = "sign@acme.example", **more: Any) -> Iterator[SmtpChannel]:
    channel = SmtpChannel(Server.from_url(url), sender, **({"timeout": 10, "attempt_seconds": 30} | more))
    try:
        yield channel
    finally:
        channel.close()


def mail(to: str = "bo@example.com", **more: Any) -> bytes:
    facts: dict[str, Any] = {
        "sender_name": "Acme Ltd",
        "sender": "sign@acme.example",
        "to_name": "Bo Buyer",
        "to": to,
        "reply_to": ["ana@acme.example"],
        "subject": "Please sign",
        "message_id": "<1@acme.example>",
        "date": MOMENT,
    }
    text = more.pop("text", "Hello\n.\nthere\n")
    html = more.pop("html", "<p>Hello</p>")
    attachments = more.pop("attachments", [])
    return mime.build(Envelope(**(facts | more)), text, html, attachments)


def test_a_signature_holds_behind_the_mail_server(server: MailServer, tmp_path: Path) -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "key.pem").write_bytes(pem)
    (key,) = load(f"s1:{tmp_path / 'key.pem'}", "acme.example")
    files = [Attachment("Lease.pdf", "application/pdf", bytes(range(256)) * 10)]
    text = "Grüße\n.\n..\nFrom me\n" + "x" * 2000 + "\n"
    with channel_to(server.url) as channel:
        channel.send(1, "bo@example.com", signed(mail(text=text, attachments=files), [key]))
    (found,) = verdicts(server.raw[-1], {"s1._domainkey.acme.example": key.record})
    assert (found["result"], found["domain"]) == ("pass", "acme.example")


def test_a_mail_arrives_as_it_was_written(server: MailServer) -> None:
    pdf = bytes(range(256)) * 10
    files = [Attachment("Lease “2026” für Zoë.pdf", "application/pdf", pdf)]
    text = "Grüße\n.\n..\nFrom me\nhttps://sign.example.com/s/Jx3kTq9mWz0aQ1rX5c8vNw\n" + "x" * 2000 + "\n"
    with channel_to(server.url) as channel:
        answer = channel.send(1, "bo@example.com", mail(text=text, html="<p>Grüße</p>", attachments=files))
    assert answer == "250 OK queued as 1"
    assert server.senders == ["sign@acme.example"]
    message = server.message("bo@example.com")
    assert message["From"] == "Acme Ltd <sign@acme.example>"
    assert message["To"] == "Bo Buyer <bo@example.com>"
    assert message["Reply-To"] == "ana@acme.example"
    assert message["Message-ID"] == "<1@acme.example>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "multipart/mixed"
    plain, rich = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None
    assert rich is not None
    assert plain.get_content().replace("\r\n", "\n") == text
    assert rich.get_content().strip() == "<p>Grüße</p>"
    (attachment,) = message.iter_attachments()
    assert (attachment.get_filename(), attachment.get_content()) == ("Lease “2026” für Zoë.pdf", pdf)
    assert all(len(line) <= 998 for line in server.raw[0].split(b"\r\n"))
    # A slug survives in the raw mail in one piece, for whoever looks at the file.
    assert b"Jx3kTq9mWz0aQ1rX5c8vNw" in server.raw[0]


def test_without_files_it_is_text_and_html_of_the_same(server: MailServer) -> None:
    with channel_to(server.url) as channel:
        channel.send(1, "bo@example.com", mail())
    message = server.message("bo@example.com")
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]


@pytest.mark.parametrize(
    "evil", ["x\r\nBcc: evil@example.com", "x\nBcc: evil@example.com", "x\rBcc: evil@example.com", "x\x00"]
)
def test_no_header_takes_a_line_break(server: MailServer, evil: str) -> None:
    with channel_to(server.url) as channel:
        channel.send(1, "bo@example.com", mail(subject=evil, sender_name=evil, to_name=evil))
    message = server.message("bo@example.com")
    assert message["Bcc"] is None
    assert sorted({key.lower() for key in message}) == sorted(
        ["from", "to", "reply-to", "subject", "date", "message-id", "auto-submitted", "content-type", "mime-version"]
    )
    with pytest.raises(ValueError, match="not an e-mail address"):
        mail(to=f"bo@example.com{evil[1:]}")


NAMES = ['Müller, "Jörg" <x@y.z>', "=?utf-8?q?trick?=", "名前", "a" * 300, "Bo\u202egpj", "", "\\", "a:b;"]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_a_name(server: MailServer, name: str) -> None:
    with channel_to(server.url) as channel:
        channel.send(1, "bo@example.com", mail(sender_name=name, to_name=name))
    message = server.message("bo@example.com")
    assert [one.addr_spec for one in message["From"].addresses] == ["sign@acme.example"]
    assert [one.addr_spec for one in message["To"].addresses] == ["bo@example.com"]


def test_one_connection_serves_a_burst(server: MailServer) -> None:
    with channel_to(server.url) as channel:
        for number in range(10):
            channel.send(number, f"bo{number}@example.com", mail())
    assert server.connections == 1
    assert len(server.received) == 10


def test_a_refused_recipient_does_not_cost_the_connection(server: MailServer) -> None:
    server.rcpt = lambda address: "550 5.1.1 no such user" if address.startswith("bad") else None
    with channel_to(server.url) as channel:
        channel.send(1, "a@example.com", mail())
        with pytest.raises(Refused, match=r"550 5\.1\.1 no such user"):
            channel.send(2, "bad@example.com", mail())
        channel.send(3, "b@example.com", mail())
    assert server.recipients() == ["a@example.com", "b@example.com"]
    assert server.connections == 1


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data"])
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("421 4.3.0 busy", NotSent),
        ("450 4.2.0 greylisted", NotSent),
        ("530 5.7.0 login first", NotSent),
        ("552 5.3.4 too big", Refused),
    ],
)
def test_answers_of_every_stage(server: MailServer, stage: str, answer: str, outcome: type[Exception]) -> None:
    setattr(server, stage, lambda _address: answer)
    with channel_to(server.url) as channel:
        with pytest.raises(outcome, match=answer[4:]) as caught:
            channel.send(1, "bo@example.com", mail())
        if isinstance(caught.value, Refused):
            assert caught.value.too_large
        setattr(server, stage, lambda _address: None)
        channel.send(1, "bo@example.com", mail())
    assert server.recipients() == ["bo@example.com"]


@pytest.mark.parametrize(("stage", "outcome"), [("rcpt", Refused), ("data", Refused), ("mail", NotSent)])
def test_a_final_no_to_the_recipient_or_the_mail_is_final_one_to_the_sender_is_not(
    server: MailServer, stage: str, outcome: type[Exception]
) -> None:
    setattr(server, stage, lambda _address: "554 5.7.1 not from you")
    with channel_to(server.url) as channel, pytest.raises(outcome, match=r"554 5\.7\.1 not from you"):
        channel.send(1, "bo@example.com", mail())


def test_a_closed_idle_connection_is_opened_again(server: MailServer) -> None:
    with channel_to(server.url) as channel:
        channel.send(1, "a@example.com", mail())
        server.stop()
        server.start()
        channel.send(2, "b@example.com", mail())
    assert server.recipients() == ["a@example.com", "b@example.com"]


def test_a_line_that_breaks_after_the_mail_was_handed_over_is_no_success(server: MailServer) -> None:
    server.data = lambda _address: CLOSE
    with channel_to(server.url) as channel:
        with pytest.raises(NotSent):
            channel.send(1, "bo@example.com", mail())
        server.data = lambda _address: None
        channel.send(1, "bo@example.com", mail())
    assert [message["Message-ID"] for _address, message in server.received] == ["<1@acme.example>"] * 2


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data"])
def test_a_server_that_hangs_is_left(server: MailServer, stage: str) -> None:
    setattr(server, stage, lambda _address: HANG)
    with channel_to(server.url, timeout=0.3) as channel, pytest.raises(NotSent):
        channel.send(1, "bo@example.com", mail())


@pytest.mark.parametrize(
    "greeting", [b"", b"554 go away\r\n", b"220 hi\r\n", b"nonsense\r\n", b"220 " + b"x" * 100_000]
)
def test_a_server_that_is_none_is_left(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=_greet, args=(listener, greeting), daemon=True)
        answering.start()
        url = f"smtp://127.0.0.1:{listener.getsockname()[1]}"
        with channel_to(url, timeout=0.3) as channel, pytest.raises(NotSent):
            channel.send(1, "bo@example.com", mail())
        answering.join(120)


def _greet(listener: socket.socket, greeting: bytes) -> None:
    connection, _address = listener.accept()
    with connection:
        connection.sendall(greeting)
        connection.settimeout(10)
        try:
            while connection.recv(1000):
                pass
        except OSError:
            pass


def test_a_server_that_drips_is_cut_off() -> None:
    """Each byte comes in time, the line never does."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=_drip, args=(listener, stop), daemon=True)
        dripping.start()
        url = f"smtp://127.0.0.1:{listener.getsockname()[1]}"
        with channel_to(url, timeout=30, attempt_seconds=0.5) as channel, pytest.raises(NotSent):
            channel.send(1, "bo@example.com", mail())
        stop.set()
        dripping.join(120)
        assert not dripping.is_alive()


def _drip(listener: socket.socket, stop: threading.Event) -> None:
    connection, _address = listener.accept()
    with connection:
        try:
            while not stop.wait(0.05):
                connection.sendall(b"2")
        except OSError:
            pass


def test_a_server_that_never_ends_its_answer_after_a_refusal_is_cut_off() -> None:
    """The refusal counts; whether the connection can be kept is not worth waiting for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hung_up = threading.Event()
        talking = threading.Thread(target=_refuse_and_go_on, args=(listener, hung_up), daemon=True)
        talking.start()
        url = f"smtp://127.0.0.1:{listener.getsockname()[1]}"
        with (
            channel_to(url, timeout=30, attempt_seconds=0.5) as channel,
            pytest.raises(Refused, match="550 no such user"),
        ):
            channel.send(1, "bo@example.com", mail())
        talking.join(120)
        assert hung_up.is_set()


def _refuse_and_go_on(listener: socket.socket, hung_up: threading.Event) -> None:
    connection, _address = listener.accept()
    with connection, connection.makefile("rb") as lines:
        connection.sendall(b"220 hello\r\n")
        for answer in (b"250 hello", b"250 fine", b"550 no such user"):
            lines.readline()
            connection.sendall(answer + b"\r\n")
        lines.readline()  # RSET
        try:
            for _ in range(200):
                connection.sendall(b"250-and\r\n")
                time.sleep(0.05)
        except OSError:
            hung_up.set()


def test_nobody_listens(free_port: int) -> None:
    with channel_to(f"smtp://127.0.0.1:{free_port}") as channel, pytest.raises(NotSent, match="refused"):
        channel.send(1, "bo@example.com", mail())


def test_starttls_is_used_when_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, trusted = self_signed(tmp_path)
    with MailServer(tls_context=context) as server:
        with channel_to(server.url) as channel, pytest.raises(NotSent, match="certificate"):
            channel.send(1, "bo@example.com", mail())
        monkeypatch.setenv("SSL_CERT_FILE", trusted)
        for url in (server.url, f"{server.url}?starttls=required"):
            with channel_to(url) as channel:
                channel.send(1, "bo@example.com", mail())
        monkeypatch.delenv("SSL_CERT_FILE")
        with channel_to(f"{server.url}?verify=never") as channel:
            channel.send(1, "bo@example.com", mail())
        with channel_to(f"{server.url}?starttls=never") as channel:
            channel.send(1, "bo@example.com", mail())
    assert server.over_tls == [True, True, True, False]


def test_starttls_that_is_required_and_not_offered_is_no_plain_text(server: MailServer) -> None:
    with channel_to(f"{server.url}?starttls=required") as channel, pytest.raises(NotSent, match="STARTTLS"):
        channel.send(1, "bo@example.com", mail())
    assert server.received == []


def test_smtps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, trusted = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", trusted)
    with MailServer(ssl_context=context) as server, channel_to(server.url.replace("smtp:", "smtps:")) as channel:
        channel.send(1, "bo@example.com", mail())
        assert server.over_tls == [True]


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_login() -> None:
    with MailServer(login=("post@acme.example", "p@ss:/wörd")) as server:
        place = f"127.0.0.1:{server.port}"
        with channel_to(f"smtp://post%40acme.example:p%40ss%3A%2Fw%C3%B6rd@{place}") as channel:
            channel.send(1, "bo@example.com", mail())
    with MailServer(login=("post@acme.example", "p@ss:/word")) as server:
        place = f"127.0.0.1:{server.port}"
        with channel_to(f"smtp://post%40acme.example:p%40ss%3A%2Fword@{place}") as channel:
            channel.send(1, "bo@example.com", mail())
        for wrong in (f"smtp://post%40acme.example:wrong@{place}", f"smtp://{place}"):
            # Not the recipient's fault: the mail waits until an operator has mended it.
            with channel_to(wrong) as channel, pytest.raises(NotSent, match=r"53[05]"):
                channel.send(1, "bo@example.com", mail())
    assert server.recipients() == ["bo@example.com"]


def test_addresses_beyond_ascii() -> None:
    with MailServer(enable_SMTPUTF8=False) as server, channel_to(server.url) as channel:
        channel.send(1, "bo@exämple.de", mail(to="bo@exämple.de"))
        with pytest.raises(Refused, match="ASCII"):
            channel.send(2, "bö@example.com", mail(to="bö@example.com"))
    assert server.recipients() == ["bo@xn--exmple-cua.de"]
    assert server.message("bo@xn--exmple-cua.de")["To"] == "Bo Buyer <bo@xn--exmple-cua.de>"
    with MailServer(enable_SMTPUTF8=True) as modern, channel_to(modern.url) as channel:
        channel.send(1, "bö@example.com", mail(to="bö@example.com"))
        assert modern.recipients() == ["bö@example.com"]
        assert "SMTPUTF8" in modern.options[0]
        assert "bö@example.com" in modern.raw[0].decode()
        # The others still go in plain ASCII.
        channel.send(2, "bo@example.com", mail(subject="Grüße"))
        assert modern.raw[1].isascii()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example.com", Server("mail.example.com", 587)),
        ("smtps://mail.example.com", Server("mail.example.com", 465, "implicit")),
        ("smtp://u:p@mail.example.com:25?starttls=never", Server("mail.example.com", 25, "never", "u", "p")),
        ("smtp://u%40x.example:p%3A@h:2525?starttls=required", Server("h", 2525, "required", "u@x.example", "p:")),
        ("smtp://[::1]:25?verify=never", Server("::1", 25, verify=False)),
    ],
)
def test_urls(url: str, expected: Server) -> None:
    assert Server.from_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "http://x",
        "smtp://",
        "smtp://x:port",
        "smtp://x?starttls=maybe",
        "smtp://x?tls=1",
        "smtp://x?verify=1",
    ],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError):
        Server.from_url(url)
