"""A stored mail as the bytes that are sent (RFC 5322, RFC 2045 to 2049)."""

import base64
import binascii
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage, MIMEPart
from email.policy import EmailPolicy
from functools import lru_cache
from typing import Any

from services.notifications import addresses

_LONGEST_LINE = 900
_LONGEST_UNFOLDED = 66
"""Characters of a mailbox that stand on one line of 78 with the header's name before it (RFC 5322, 2.1.1)."""


class _OneAddressEach(EmailPolicy):
    """Writes headers of addresses so that a name is never read as an address, however long it is.

    The standard library's folding drops the quotes of a display name that does not fit its line: a comma in the name then
    begins another address. A name that does not fit, or is not ASCII, is therefore written in encoded words (RFC 2047,
    section 5), in which nothing has a meaning of its own.
    """

    def fold_binary(self, name: str, value: Any) -> bytes:
        if hasattr(value, "addresses"):
            return self._written(name, value).encode("utf-8" if self.utf8 else "ascii")
        return super().fold_binary(name, value)

    def _written(self, name: str, value: Any) -> str:
        separator = f",{self.linesep} "
        return f"{name}: {separator.join(self._mailbox(address) for address in value.addresses)}{self.linesep}"

    def _mailbox(self, address: Address) -> str:
        if not address.display_name:
            return address.addr_spec
        if address.display_name.isascii() and "=?" not in address.display_name:
            mailbox = str(address)  # quoted where it must be
            if len(mailbox) <= _LONGEST_UNFOLDED:
                return mailbox
        words = Header(address.display_name, "utf-8", header_name="Reply-To").encode(linesep=self.linesep)
        return f"{words}{self.linesep} <{address.addr_spec}>"


_SMTP = _OneAddressEach(linesep="\r\n")
_SMTPUTF8 = _SMTP.clone(utf8=True)


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

    Header values are made safe before they get here and once more by ``EmailMessage``, which refuses line breaks.
    """
    for address in (envelope.sender, envelope.to, *envelope.reply_to):
        if not addresses.valid(address):
            raise ValueError("not an e-mail address")
    wired = [addresses.for_wire(address) for address in (envelope.sender, envelope.to, *envelope.reply_to)]
    head = EmailMessage(policy=_SMTP if all(address.isascii() for address in wired) else _SMTPUTF8)
    head["From"] = _address(envelope.sender_name, envelope.sender)
    head["To"] = _address(envelope.to_name, envelope.to)
    if envelope.reply_to:
        head["Reply-To"] = [_address("", address) for address in envelope.reply_to]
    head["Subject"] = addresses.one_line(envelope.subject)
    head["Date"] = envelope.date
    head["Message-ID"] = envelope.message_id
    if envelope.thread is not None:
        head["In-Reply-To"] = head["References"] = envelope.thread
    head["Auto-Submitted"] = "auto-generated"
    if envelope.request_id is not None:
        head["X-Request-Id"] = envelope.request_id
    head["MIME-Version"] = "1.0"
    shown = _text("html", html)
    if pictures:
        shown = _multipart("related", [shown, *(_picture(name, data) for name, data in pictures.items())])
    whole = _multipart("alternative", [_text("plain", text), shown])
    if attachments:
        files = [_encoded(_headers(file.media_type, "attachment", file.filename), file.data) for file in attachments]
        whole = _multipart("mixed", [whole, *files])
    return _headers_of(head) + whole


# The parts are put together here: the standard library parses each header that it is given, which takes ten times as long as
# all the rest. Each is the headers of a part, an empty line, and its content.


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
    return _headers_of(part)


def _headers_of(part: MIMEPart) -> bytes:
    return part.as_bytes().partition(b"\r\n\r\n")[0] + b"\r\n"


def _address(name: str, address: str) -> Address:
    # Not as addr_spec: the parser there knows no characters beyond ASCII (RFC 6532).
    local, _, domain = addresses.for_wire(address).rpartition("@")
    return Address(addresses.one_line(name, 100), local, domain)


def _transfer_encoding(text: str) -> str:
    """As it is when every server takes it, else quoted-printable, which stays readable."""
    # Of the bytes: in a text there are more characters that end a line (form feed, for one), but not in a mail.
    plain = text.isascii() and max(map(len, text.encode().splitlines()), default=0) <= _LONGEST_LINE
    return "7bit" if plain else "quoted-printable"
