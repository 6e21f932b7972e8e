"""A stored mail as the bytes that are sent (RFC 5322, RFC 2045 to 2049)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime

from services.notifications import addresses

_LONGEST_LINE = 900


@dataclass(frozen=True)
class Attachment:
    """A file that goes along."""

    filename: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Envelope:
    """The headers of a mail."""

    sender_name: str
    sender: str
    to_name: str
    to: str
    reply_to: Sequence[str]
    subject: str
    message_id: str
    date: datetime


def built(
    envelope: Envelope, text: str, html: str, attachments: Sequence[Attachment] = (), logo: bytes | None = None
) -> bytes:
    """The whole mail: plain text and HTML of the same content, then the files. ``logo`` is the PNG that the HTML shows.

    Header values are made safe before they get here and once more by ``EmailMessage``, which refuses line breaks.
    """
    for one in (envelope.sender, envelope.to, *envelope.reply_to):
        if not addresses.valid(one):
            raise ValueError("not an e-mail address")
    wired = [addresses.for_wire(one) for one in (envelope.sender, envelope.to, *envelope.reply_to)]
    message = EmailMessage(policy=SMTP if all(one.isascii() for one in wired) else SMTPUTF8)
    message["From"] = _address(envelope.sender_name, envelope.sender)
    message["To"] = _address(envelope.to_name, envelope.to)
    if envelope.reply_to:
        message["Reply-To"] = [_address("", one) for one in envelope.reply_to]
    message["Subject"] = addresses.one_line(envelope.subject)
    message["Date"] = format_datetime(envelope.date)
    message["Message-ID"] = envelope.message_id
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text, charset="utf-8", cte=_transfer_encoding(text))
    message.add_alternative(html, subtype="html", charset="utf-8", cte=_transfer_encoding(html))
    if logo is not None and (body := message.get_body(("html",))) is not None:
        assert isinstance(body, EmailMessage)
        body.add_related(logo, maintype="image", subtype="png", cid="<logo>", disposition="inline", filename="logo.png")
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
