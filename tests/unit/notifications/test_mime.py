"""The bytes of a mail, read again by the standard library: every part is there, as every server takes it."""

from datetime import UTC, datetime
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import compat32, default
from email.utils import parseaddr
from typing import Any

import pytest

from services.notifications.sending.mime import Attachment, Envelope, build

SENT_AT = datetime(2026, 3, 4, 17, 5, tzinfo=UTC)


def envelope(**more: Any) -> Envelope:
    facts: dict[str, Any] = {
        "sender_name": "Acme",
        "sender": "no-reply@acme.example",
        "to_name": "Bo",
        "to": "bo@example.com",
        "reply_to": [],
        "subject": "Hello",
        "message_id": "<1@acme.example>",
        "date": SENT_AT,
    }
    return Envelope(**(facts | more))


def read(raw: bytes) -> EmailMessage:
    message = BytesParser(policy=default).parsebytes(raw)
    assert isinstance(message, EmailMessage)
    return message


def part_of(message: EmailMessage, kind: str) -> Any:
    part = message.get_body((kind,))
    assert part is not None
    return part


def words(message: EmailMessage, kind: str) -> str:
    return str(part_of(message, kind).get_content()).replace("\r\n", "\n")


def test_a_mail_says_the_same_in_text_and_in_html() -> None:
    message = read(build(envelope(), "Hello Bo", "<p>Hello Bo</p>"))
    assert message.get_content_type() == "multipart/alternative"
    assert words(message, "plain") == "Hello Bo\n"
    assert words(message, "html") == "<p>Hello Bo</p>\n"
    assert message["Date"].datetime == SENT_AT
    assert message["Message-ID"] == "<1@acme.example>"
    assert message["Auto-Submitted"] == "auto-generated", "nobody's holiday answers it"
    assert message["Reply-To"] is None
    assert message["X-Request-Id"] is None


def test_the_request_that_it_comes_of_is_named_whole() -> None:
    request_id = "a.b:c_d-" * 16
    raw = build(envelope(request_id=request_id), "Hello", "<p>Hello</p>")
    assert read(raw)["X-Request-Id"] == request_id


def test_files_and_the_pictures_go_along() -> None:
    files = [
        Attachment("Lease.pdf", "application/pdf", b"%PDF-1"),
        Attachment("Räumung.pdf", "application/pdf", b"%PDF-2"),
    ]
    pictures = {"logo": b"\x89PNG 1", "first_page": b"\x89PNG 2"}
    html = '<img src="cid:logo"><img src="cid:first_page">'
    message = read(build(envelope(), "text", html, files, pictures))
    attached = list(message.iter_attachments())
    assert [(file.get_filename(), file.get_content_type()) for file in attached] == [
        ("Lease.pdf", "application/pdf"),
        ("Räumung.pdf", "application/pdf"),
    ]
    assert [file.get_content() for file in attached] == [b"%PDF-1", b"%PDF-2"]
    found = [part for part in message.walk() if part.get_content_type() == "image/png"]
    assert [(part["Content-ID"], part.get_content_disposition(), part.get_filename()) for part in found] == [
        ("<logo>", "inline", "logo.png"),
        ("<first_page>", "inline", "first-page.png"),
    ]
    assert [part.get_payload(decode=True) for part in found] == list(pictures.values())
    related = part_of(message, "related")
    assert [part.get_content_type() for part in related.iter_parts()] == ["text/html", "image/png", "image/png"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("plain", "7bit"),
        ("", "7bit"),
        ("x" * 900 + "\n" + "y" * 900, "7bit"),
        ("x" * 901, "quoted-printable"),
        ("x" * 600 + "\f" + "y" * 600, "quoted-printable"),
        ("Räumung", "quoted-printable"),
    ],
)
def test_every_server_takes_the_lines(text: str, encoding: str) -> None:
    raw = build(envelope(), text, "<p>html</p>")
    message = read(raw)
    assert part_of(message, "plain")["Content-Transfer-Encoding"] == encoding
    assert words(message, "plain") == f"{text}\n"
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998, "RFC 5322, 2.1.1"


@pytest.mark.parametrize(
    "text",
    [
        "a line with a blank at its end \nand a tab\t\n.\n..two\nFrom me\n--=_0\n",
        "é = 1,50 €\n=_=\n.\n \nFrom é\t\nend ",
        "é\r\nCR LF\rCR",
        "日本語" * 400,
    ],
)
def test_what_is_written_arrives_as_it_is(text: str) -> None:
    written = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n") + "\n"
    raw = build(envelope(), text, text, [Attachment("a.bin", "application/octet-stream", text.encode())])
    message = read(raw)
    assert words(message, "plain") == words(message, "html") == written
    assert [part.get_content() for part in message.iter_attachments()] == [text.encode()]
    assert not any(part.defects for part in message.walk())
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b""), "RFC 5321, 2.3.8"


def test_the_longest_names_of_files_arrive() -> None:
    names = ["Räumung und Übergabe " * 10 + ".pdf", "x" * 250 + ".pdf", 'say "yes"; or no.pdf']
    files = [Attachment(name, "application/pdf", b"%PDF") for name in names]
    raw = build(envelope(), "text", "<p>html</p>", files)
    message = read(raw)
    assert [part.get_filename() for part in message.iter_attachments()] == names
    assert max(map(len, raw.split(b"\r\n"))) <= 998


def test_two_mails_of_the_same_have_boundaries_of_their_own() -> None:
    first, second = (read(build(envelope(), "text", "<p>html</p>")).get_boundary() for _ in range(2))
    assert first is not None
    assert first != second


@pytest.mark.parametrize("role", ["sender", "to", "reply_to"])
def test_an_address_that_could_end_a_header_is_refused(role: str) -> None:
    bad = "bo@example.com\r\nBcc: x@example.com"
    with pytest.raises(ValueError, match="not an e-mail address"):
        build(envelope(**{role: [bad] if role == "reply_to" else bad}), "text", "<p>html</p>")


def test_a_name_of_100_characters_is_whole() -> None:
    for length, shown in ((100, "x" * 100), (101, "x" * 99 + "…")):
        raw = build(envelope(to_name="x" * length), "text", "<p>html</p>")
        name, address = parseaddr(str(BytesParser(policy=compat32).parsebytes(raw)["To"]))
        assert (str(make_header(decode_header(name))), address) == (shown, "bo@example.com")
