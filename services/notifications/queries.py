"""Reads, straight to contract models."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import invalid, not_found
from contracts.events import MailedFile
from contracts.formats.mentions import LIKE_ESCAPE, like_pattern, mailbox
from contracts.rpc import notifications as rpc
from contracts.runtime.data.lists.listing import Listing
from contracts.runtime.data.lists.page import LARGEST_ID, page, stored_id
from contracts.types import Page, Pagination
from services.notifications.messages.composing import file_name
from services.notifications.models import KnownAdmins, MailRow, PhoneMessageRow

_AT_ONCE = 200
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
    mine += _of_mode(model, request)
    rows = page(session, request, [Listing(model.__table__, exact=mine)], sa.select(model))
    shown = [row for (row,) in rows]
    return shown, Pagination.of([row.id for row in shown])


def recipient(session: Session, request: rpc.FindRecipient) -> rpc.FoundRecipient:
    """List the submissions about which somebody was written to at this address."""
    found, after, wanted = list[int](), request.after, mailbox(request.email)
    while len(found) < request.limit:
        candidates = sa.select(MailRow.submission_id).where(MailRow.submission_id > after, *_to(request)).distinct()
        of_some = session.scalars(candidates.order_by(MailRow.submission_id).limit(_AT_ONCE))
        numbers = [number for number in of_some if number is not None]
        addresses = sa.select(MailRow.submission_id, MailRow.to_address).where(MailRow.submission_id.in_(numbers))
        rows = session.execute(addresses.where(*_to(request)))
        written_to = {number for number, address in rows if mailbox(address) == wanted}
        found += [number for number in numbers if number in written_to]
        if len(numbers) < _AT_ONCE:
            break
        after = numbers[-1]
    return rpc.FoundRecipient(ids=found[: request.limit])


def written(session: Session, request: rpc.DescribeRecipient) -> rpc.WrittenMessages:
    """What was written to a person about submissions, and the latest of what is about none."""
    to_them = sa.select(MailRow).where(*_to(request))
    mails_found = list(session.scalars(to_them.where(MailRow.submission_id.in_(request.submission_ids))))
    if request.others:
        latest = to_them.where(MailRow.submission_id.is_(None)).order_by(MailRow.id.desc())
        mails_found += session.scalars(latest.limit(rpc.MOST_OTHERS))
    phones = sa.select(PhoneMessageRow).where(
        PhoneMessageRow.erased_at.is_(None),
        PhoneMessageRow.submission_id.in_(request.submission_ids),
        PhoneMessageRow.submitter_id.in_(request.submitter_ids),
        *_of_mode(PhoneMessageRow, request),
    )
    wanted = mailbox(request.email)
    messages = [
        _written("email", row, row.to_address, row.subject) for row in mails_found if mailbox(row.to_address) == wanted
    ]
    messages += [_written("sms", row, row.to_phone) for row in session.scalars(phones)]
    return rpc.WrittenMessages(data=sorted(messages, key=lambda message: message.created_at))


def _to(request: rpc.FindRecipient | rpc.DescribeRecipient) -> tuple[sa.ColumnElement[bool], ...]:
    """Say which mails may be to this address: what its case makes of letters beyond ASCII is compared afterwards."""
    to_them = MailRow.to_address.ilike(like_pattern(request.email), escape=LIKE_ESCAPE)
    return MailRow.erased_at.is_(None), to_them, *_of_mode(MailRow, request)


def _of_mode(model: Any, request: Any) -> tuple[sa.ColumnElement[bool], ...]:
    """The condition that a message is of the mode that is asked for, if one is."""
    return () if request.test is None else (model.test.is_(request.test),)


def _written(channel: str, row: MailRow | PhoneMessageRow, to: str, subject: str | None = None) -> rpc.WrittenMessage:
    return rpc.WrittenMessage(
        channel=channel,
        kind=row.kind,
        to=to,
        subject=subject,
        state=STATES[row.state],
        submission_id=row.submission_id,
        created_at=row.created_at,
        sent_at=row.finished_at if row.state == "done" else None,
    )


def mail(session: Session, request: rpc.GetMail) -> rpc.MailText:
    """One mail with its content, for the local mail page."""
    row = session.get(MailRow, request.id) if 0 < request.id <= LARGEST_ID else None
    if row is None or row.erased_at is not None or (request.test is not None and row.test != request.test):
        raise not_found("Mail")
    return _with_content(row)


def mails_of_tests(session: Session, request: rpc.ListMails) -> Page[rpc.MailText]:
    """A page of the mails of test mode with their content, ids ascending."""
    rows, pagination = _page(session, MailRow, request.model_copy(update={"test": True}))
    return Page(data=[_with_content(row) for row in rows], pagination=pagination)


def _with_content(row: MailRow) -> rpc.MailText:
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
