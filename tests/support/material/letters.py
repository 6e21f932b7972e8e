"""Events as submissions writes them, for the tests of the mails."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from contracts.blobs import BlobRef
from contracts.events import (
    CompletionMails,
    DeclineMail,
    DelegatedMail,
    InvitationDue,
    LinkMail,
    MailContext,
    MailedFile,
    QuestionMail,
    Recipient,
    ReturnedMail,
    WrongRecipientMail,
)
from contracts.rpc.submissions.api import Message
from contracts.types import Account, DocumentLink

COMPLETED_AT = datetime(2026, 3, 4, 17, 5, tzinfo=UTC)


def party(number: int, email: str | None = None, **more: Any) -> Recipient:
    facts = {
        "submitter_id": number,
        "role": f"Role {number}",
        "email": email or f"signer{number}@example.com",
        "link": f"https://sign.example.com/s/slug{number}",
        "slug": f"slug{number}",
    }
    return Recipient(**(facts | more))


def context(*parties: Recipient, **more: Any) -> MailContext:
    facts = {
        "submission_id": 31,
        "submission_name": "Lease 2026",
        "submission_link": "https://sign.example.com/e/sub",
        "template_id": 7,
        "template_name": "Lease",
        "account": Account(name="Acme Ltd", time_zone="Europe/Vienna", locale="en-GB"),
        "sender_id": 1,
        "sender_name": "Ana Ray",
        "sender_email": "ana@acme.example",
        "parties": list(parties) or [party(1, name="Bo Buyer")],
    }
    return MailContext(**(facts | more))


def invitation(
    *parties: Recipient, message: Message | None = None, invitation_id: str = "i-1", **more: Any
) -> InvitationDue:
    due = {key: more.pop(key) for key in ("reply_to", "needs_signature", "submitter_id", "first_page") if key in more}
    wanted = {"invitation_id": invitation_id, "submitter_id": 1, "message": message, "context": context(*parties)}
    if "context" in more or more:
        wanted["context"] = context(*parties, **more)
    return InvitationDue(**(wanted | due))


def thumbnail(sha256: str = "0" * 64, key: str = "rendering/thumbnail") -> BlobRef:
    """The small picture of a first page, as rendering names it."""
    return BlobRef(key=key, sha256=sha256, size=10, media_type="image/png")


def file(name: str, size: int = 1000, key: str | None = None) -> MailedFile:
    blob = BlobRef(key=key or f"submissions/31/{name}", sha256="0" * 64, size=size, media_type="application/pdf")
    return MailedFile(
        name=name, file=blob, link=DocumentLink(name=name, url=f"https://sign.example.com/file/{quote(name)}")
    )


def completion(*parties: Recipient, sender: dict[str, Any] | None = None, **more: Any) -> CompletionMails:
    wanted = {
        "context": context(*parties, **(sender or {})),
        "completed_at": COMPLETED_AT,
        "documents": [file("Lease")],
        "audit_trail": file("Audit Log - Lease"),
        "notify_sender": True,
    }
    return CompletionMails(**(wanted | more))


def decline(reason: str = "", **more: Any) -> DeclineMail:
    return DeclineMail(context=context(party(1, name="Bo Buyer"), **more), submitter_id=1, reason=reason)


def wrong_recipient(reason: str = "", **more: Any) -> WrongRecipientMail:
    return WrongRecipientMail(context=context(party(1, name="Bo Buyer"), **more), submitter_id=1, reason=reason)


def delegation(reason: str = "", **more: Any) -> DelegatedMail:
    deputy = party(1, "deputy@example.com", name="Dee Puty")
    before = {"before_name": "Bo Buyer", "before_email": "signer1@example.com"}
    return DelegatedMail(context=context(deputy, **more), submitter_id=1, reason=reason, **before)


def sent_back(reason: str = "", **more: Any) -> ReturnedMail:
    return ReturnedMail(context=context(party(1, name="Bo Buyer"), **more), submitter_id=1, reason=reason)


def link(**more: Any) -> LinkMail:
    return LinkMail(context=context(party(1, name="Bo Buyer"), **more), submitter_id=1)


def question(reason: str = "Why?", *, known: bool = True, **more: Any) -> QuestionMail:
    asked_by = context(party(1, name="Bo Buyer"), **more)
    return QuestionMail(context=asked_by, submitter_id=1, reason=reason, address_is_known=known)
