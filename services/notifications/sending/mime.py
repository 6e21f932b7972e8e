"""A stored mail as the bytes that are sent (RFC 5322, RFC 2045 to 2049)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
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
    message = EmailMessage(policy=_SMTP if all(address.isascii() for address in wired) else _SMTPUTF8)
    message["From"] = _address(envelope.sender_name, envelope.sender)
    message["To"] = _address(envelope.to_name, envelope.to)
    if envelope.reply_to:
        message["Reply-To"] = [_address("", address) for address in envelope.reply_to]
    message["Subject"] = addresses.one_line(envelope.subject)
    message["Date"] = format_datetime(envelope.date)
    message["Message-ID"] = envelope.message_id
    if envelope.thread is not None:
        message["In-Reply-To"] = message["References"] = envelope.thread
    message["Auto-Submitted"] = "auto-generated"
    if envelope.request_id is not None:
        message["X-Request-Id"] = envelope.request_id
    message.set_content(text, charset="utf-8", cte=_transfer_encoding(text))
    message.add_alternative(html, subtype="html", charset="utf-8", cte=_transfer_encoding(html))
    for name, picture in (pictures or {}).items():
        body = message.get_body(("related", "html"))  # the HTML alone, or with the pictures before this one
        assert isinstance(body, EmailMessage)
        body.add_related(
            picture,
            maintype="image",
            subtype="png",
            cid=f"<{name}>",
            disposition="inline",
            filename=f"{name.replace('_', '-')}.png",
        )
    for file in attachments:
        main, _, sub = file.media_type.partition("/")
        message.add_attachment(file.data, maintype=main, subtype=sub, filename=file.filename)
    return message.as_bytes()


def _address(name: str, address: str) -> Address:
    # Not as addr_spec: the parser there knows no characters beyond ASCII (RFC 6532).
    local, _, domain = addresses.for_wire(address).rpartition("@")
    return Address(addresses.one_line(name, 100), local, domain)


def _transfer_encoding(text: str) -> str:
    """As it is when every server takes it, else quoted-printable, which stays readable."""
    plain = text.isascii() and max(map(len, text.splitlines()), default=0) <= _LONGEST_LINE
    return "7bit" if plain else "quoted-printable"
