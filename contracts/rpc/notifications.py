"""Notifications: mails. Callers rarely ask it anything; the local mail page does."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.types import Moment, Page, PageRequest, Tolerant


class ListMails(PageRequest):
    """List mails, ordered by id; the page reverses them. ``test``: those of test mode, or all others; None: both."""

    submission_id: int | None = None
    test: bool | None = None


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
    """``test``: only if it is one of test mode, which are there also where mails are sent."""

    id: int
    test: bool | None = None


class MailAttachment(Tolerant):
    filename: str
    media_type: str
    size: int


class MailText(Mail):
    """A mail with its bodies, for the local mail page (when no SMTP server is configured), and of test mode."""

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


class FindRecipient(Tolerant):
    """Find the submissions about which mails were written to this address: those with an id above ``after``, the lowest
    first. ``test`` as of ListMails."""

    email: str
    after: int = 0
    limit: int = Field(default=10, ge=1, le=100)
    test: bool | None = None


class FoundRecipient(Tolerant):
    ids: list[int]


class DescribeRecipient(Tolerant):
    """What was written to a person about these submissions: to their address by mail, to the phones of the parties that they
    are (``submitter_ids``). ``others``: also mails that are about no submission, the latest ``MOST_OTHERS`` of them. ``test``
    as of ListMails."""

    email: str
    submission_ids: list[int] = Field(max_length=200)
    submitter_ids: list[int] = Field(default_factory=list)
    others: bool = False
    test: bool | None = None


MOST_OTHERS = 1_000


class WrittenMessage(Tolerant):
    """A mail or a message to a phone (``channel``: ``email``, ``sms``). ``state`` as of Mail. ``subject`` None to a phone."""

    channel: str
    kind: str
    to: str
    subject: str | None = None
    state: str
    submission_id: int | None = None
    created_at: Moment
    sent_at: Moment | None = None


class WrittenMessages(Tolerant):
    """In the order in which they were written."""

    data: list[WrittenMessage]


LIST = Rpc("notifications", "list", ListMails, Page[Mail])
GET = Rpc("notifications", "get", GetMail, MailText)
TEST_MAILS = Rpc("notifications", "test_mails", ListMails, Page[MailText])
LIST_PHONE_MESSAGES = Rpc("notifications", "list_phone_messages", ListMails, Page[PhoneMessage])
FIND_RECIPIENT = Rpc("notifications", "find_recipient", FindRecipient, FoundRecipient, timeout=60)
RECIPIENT = Rpc("notifications", "recipient", DescribeRecipient, WrittenMessages, timeout=30)
