"""A stored mail as the bytes that are sent (RFC 5322, RFC 2045 to 2049)."""

import base64
import binascii
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.headerregistry import Address
from email.message import MIMEPart
from email.policy import EmailPolicy
from email.utils import format_datetime
from functools import lru_cache

from services.notifications import addresses

_LONGEST_LINE = 900
_LONGEST_UNFOLDED = 66
"""Characters of a mailbox that stand on one line of 78 with the header's name before it (RFC 5322, 2.1.1)."""


_CRLF = "\r\n"
_SMTP = EmailPolicy(linesep=_CRLF)


@dataclass(frozen=True)
class Attachment:
    """A file that goes along."""

    filename: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Envelope:
    """The headers of a mail. ``thread`` is the Message-ID that all mails about one submission name, so that they are shown
    together. ``request_id`` is the id of the request that it comes of, as the log and the answer have it."""

    sender_name: str
    sender: str
    to_name: str
    to: str
    reply_to: Sequence[str]
    subject: str
    message_id: str
    date: datetime
    thread: str | None = None
    request_id: str | None = None


def build(
    envelope: Envelope,
    text: str,
    html: str,
    attachments: Sequence[Attachment] = (),
    pictures: Mapping[str, bytes] | None = None,
) -> bytes:
    """The whole mail: plain text and HTML of the same content, then the files. ``pictures`` are the PNGs that the HTML shows,
    by the name that it has for each after ``cid:`` (RFC 2392).

    Header values are made safe before they get here; a line break in one is refused.
    """
    for address in (envelope.sender, envelope.to, *envelope.reply_to):
        if not addresses.valid(address):
            raise ValueError("not an e-mail address")
    shown = _text("html", html)
    if pictures:
        shown = _multipart("related", [shown, *(_picture(name, data) for name, data in pictures.items())])
    whole = _multipart("alternative", [_text("plain", text), shown])
    if attachments:
        files = [_encoded(_headers(file.media_type, "attachment", file.filename), file.data) for file in attachments]
        whole = _multipart("mixed", [whole, *files])
    return _head(envelope) + whole


# Headers and parts are put together here: the standard library parses each header that it is given, which takes twenty times as
# long as all the rest. A part is its headers, an empty line, and its content.


def _head(envelope: Envelope) -> bytes:
    """The headers of the mail. Addresses with characters beyond ASCII stay as they are (RFC 6532)."""
    headers = [
        ("From", _mailbox(envelope.sender_name, envelope.sender)),
        ("To", _mailbox(envelope.to_name, envelope.to)),
        ("Reply-To", f",{_CRLF} ".join(addresses.for_wire(address) for address in envelope.reply_to)),
        ("Subject", _subject(addresses.one_line(envelope.subject))),
        ("Date", format_datetime(envelope.date)),
        ("Message-ID", _one_line(envelope.message_id)),
        ("In-Reply-To", _one_line(envelope.thread or "")),
        ("References", _one_line(envelope.thread or "")),
        ("Auto-Submitted", "auto-generated"),
        ("X-Request-Id", _one_line(envelope.request_id or "")),
        ("MIME-Version", "1.0"),
    ]
    return "".join(f"{name}: {value}{_CRLF}" for name, value in headers if value or name == "Subject").encode()


def _mailbox(name: str, address: str) -> str:
    """An address with its name, which is never read as an address, however long it is: a name that does not fit its line, or is
    not ASCII, is written in encoded words (RFC 2047, section 5), in which nothing has a meaning of its own."""
    # Not as addr_spec: the parser there knows no characters beyond ASCII.
    local, _, domain = addresses.for_wire(address).rpartition("@")
    whole = Address(addresses.one_line(name, 100), local, domain)
    if not whole.display_name:
        return whole.addr_spec
    if whole.display_name.isascii() and "=?" not in whole.display_name:
        mailbox = str(whole)  # quoted where it must be
        if len(mailbox) <= _LONGEST_UNFOLDED:
            return mailbox
    words = Header(whole.display_name, "utf-8", header_name="Reply-To").encode(linesep=_CRLF)
    return f"{words}{_CRLF} <{whole.addr_spec}>"


def _subject(text: str) -> str:
    """Return it as it is where it fits its line, else folded between its words; in encoded words where it is not ASCII, would
    be read as such, or has a word that fits no line."""
    plain = text.isascii() and "=?" not in text and all(len(word) <= _LONGEST_UNFOLDED for word in text.split(" "))
    if plain and len(text) <= _LONGEST_UNFOLDED:
        return text
    return Header(text, "us-ascii" if plain else "utf-8", header_name="Subject").encode(linesep=_CRLF)


def _one_line(text: str) -> str:
    if "\r" in text or "\n" in text:
        raise ValueError("a header has a line break in it")
    return text


def _multipart(subtype: str, parts: Sequence[bytes]) -> bytes:
    """Parts one after the other (RFC 2046, 5.1). No encoded content has ``=_`` in it, and no text what was drawn just now."""
    boundary = f"=_{secrets.token_hex(16)}"
    line = f"--{boundary}\r\n".encode()
    content = b"".join(line + part + b"\r\n" for part in parts)
    kind = f'Content-Type: multipart/{subtype}; boundary="{boundary}"\r\n\r\n'.encode()
    return kind + content + f"--{boundary}--\r\n".encode()


def _text(subtype: str, text: str) -> bytes:
    encoding = _transfer_encoding(text)
    content = b"\r\n".join(text.encode().splitlines()) + b"\r\n"
    kind = f'Content-Type: text/{subtype}; charset="utf-8"\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n'
    return kind.encode() + (content if encoding == "7bit" else binascii.b2a_qp(content))


def _picture(name: str, data: bytes) -> bytes:
    return _encoded(_headers("image/png", "inline", f"{name.replace('_', '-')}.png", f"<{name}>"), data)


def _encoded(headers: bytes, data: bytes) -> bytes:
    return headers + b"\r\n" + base64.encodebytes(data).replace(b"\n", b"\r\n")


@lru_cache(256)
def _headers(media_type: str, disposition: str, filename: str, cid: str | None = None) -> bytes:
    """The headers of a file. Kept: a mail's recipients get the same files."""
    main, _, sub = media_type.partition("/")
    part: MIMEPart = MIMEPart(policy=_SMTP)
    part.set_content(b"", maintype=main, subtype=sub, disposition=disposition, filename=filename, cid=cid)
    return part.as_bytes().partition(b"\r\n\r\n")[0] + b"\r\n"


def _transfer_encoding(text: str) -> str:
    """As it is when every server takes it, else quoted-printable, which stays readable."""
    # Of the bytes: in a text there are more characters that end a line (form feed, for one), but not in a mail.
    plain = text.isascii() and max(map(len, text.encode().splitlines()), default=0) <= _LONGEST_LINE
    return "7bit" if plain else "quoted-printable"
