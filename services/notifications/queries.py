"""Reads, straight to contract models."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import invalid, not_found
from contracts.events import MailedFile
from contracts.rpc import notifications as rpc
from contracts.runtime.data.lists.listing import Listing
from contracts.runtime.data.lists.page import LARGEST_ID, page, stored_id
from contracts.types import Page, Pagination
from services.notifications.messages.composing import file_name
from services.notifications.models import KnownAdmins, MailRow, PhoneMessageRow

STATES = {"due": "pending", "done": "sent", "parked": "failed"}


def mails(session: Session, request: rpc.ListMails) -> Page[rpc.Mail]:
    """A page, ids ascending. Erased mails are left out."""
    rows, pagination = _page(session, MailRow, request)
    return Page(data=[rpc.Mail.model_validate(_mail(row)) for row in rows], pagination=pagination)


def phone_messages(session: Session, request: rpc.ListMails) -> Page[rpc.PhoneMessage]:
    """A page, ids ascending. Erased messages are left out."""
    rows, pagination = _page(session, PhoneMessageRow, request)
    data = [
        rpc.PhoneMessage(
            id=row.id,
            kind=row.kind,
            to=row.to_phone,
            state=STATES[row.state],
            text=row.text if row.state == "done" else "",
            error=row.last_error,
            submission_id=row.submission_id,
            attempts=row.attempts,
            created_at=row.created_at,
            sent_at=row.finished_at if row.state == "done" else None,
        )
        for row in rows
    ]
    return Page(data=data, pagination=pagination)


def _page(session: Session, model: Any, request: rpc.ListMails) -> tuple[list[Any], Pagination]:
    if request.limit < 1:
        raise invalid("limit must be at least 1", "limit", "must be at least 1")
    mine: list[sa.ColumnElement[bool]] = [model.erased_at.is_(None)]
    if request.submission_id is not None:
        mine.append(model.submission_id == stored_id(request.submission_id))
    rows = page(session, request, [Listing(model.__table__, exact=mine)], sa.select(model))
    shown = [row for (row,) in rows]
    return shown, Pagination.of([row.id for row in shown])


def mail(session: Session, request: rpc.GetMail) -> rpc.MailText:
    """One mail with its content, for the local mail page."""
    row = session.get(MailRow, request.id) if 0 < request.id <= LARGEST_ID else None
    if row is None or row.erased_at is not None:
        raise not_found("Mail")
    files = [MailedFile.model_validate(attachment) for attachment in row.files]
    attachments = [
        rpc.MailAttachment(
            filename=file_name(attachment), media_type=attachment.file.media_type, size=attachment.file.size
        )
        for attachment in files
    ]
    content = {"text": row.text, "html": row.html, "links": row.links, "attachments": attachments}
    return rpc.MailText.model_validate(_mail(row) | content)


def pictures(session: Session, mail_id: int) -> dict[str, dict[str, Any] | None]:
    """The pictures that a mail shows, as BlobRefs, by the names that its HTML has for them."""
    row = session.execute(sa.select(MailRow.logo, MailRow.first_page).where(MailRow.id == mail_id)).first()
    return row._asdict() if row is not None else {}


def erased_with_files(session: Session, now: datetime, limit: int = 500) -> dict[int, bool]:
    """Erased mails that may still have a file in the mail folder: id to whether nobody can be writing it any more."""
    statement = sa.select(MailRow.id, MailRow.leased_until).where(MailRow.erased_at.is_not(None), MailRow.file_kept)
    rows = session.execute(statement.order_by(MailRow.id).limit(limit))
    return {mail_id: leased_until is None or leased_until <= now for mail_id, leased_until in rows}


def _mail(row: MailRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "to": row.to_address,
        "subject": row.subject,
        "state": STATES[row.state],
        "error": row.last_error,
        "submission_id": row.submission_id,
        "attempts": row.attempts,
        "created_at": row.created_at,
        "sent_at": row.finished_at if row.state == "done" else None,
    }


def admins(session: Session) -> list[str] | None:
    """The addresses of the admins, as the gateway said last; None while it has said nothing."""
    known = session.get(KnownAdmins, 1)
    return known.emails if known is not None else None
