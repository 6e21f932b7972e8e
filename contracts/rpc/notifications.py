"""Notifications: mails. Callers rarely ask it anything; the local mail page does."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.types import Moment, Page, PageRequest, Tolerant


class ListMails(PageRequest):
    """List mails, ordered by id; the page reverses them."""

    submission_id: int | None = None


class Mail(Tolerant):
    """One mail to one recipient. ``state``: ``pending``, ``sent``, ``failed``."""

    id: int
    kind: str
    to: str
    subject: str
    state: str
    error: str | None = None
    submission_id: int | None = None
    attempts: int
    created_at: Moment
    sent_at: Moment | None = None


class GetMail(Tolerant):
    id: int


class MailAttachment(Tolerant):
    filename: str
    media_type: str
    size: int


class MailText(Mail):
    """A mail with its bodies, for the local mail page (only when no SMTP server is configured)."""

    text: str
    html: str
    attachments: list[MailAttachment] = Field(default_factory=list)
    links: list[str] = Field(default_factory=list)


class PhoneMessage(Tolerant):
    """One message to one phone. ``state``: ``pending``, ``sent``, ``failed``. ``text`` is there only where messages are kept
    instead of being sent."""

    id: int
    kind: str
    to: str
    state: str
    text: str = ""
    error: str | None = None
    submission_id: int | None = None
    attempts: int
    created_at: Moment
    sent_at: Moment | None = None


LIST = Rpc("notifications", "list", ListMails, Page[Mail])
GET = Rpc("notifications", "get", GetMail, MailText)
LIST_PHONE_MESSAGES = Rpc("notifications", "list_phone_messages", ListMails, Page[PhoneMessage])
