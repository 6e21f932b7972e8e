"""One attempt to send one mail, and the forgetting of files of erased mails."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from sqlalchemy.orm import Session

from contracts.events import MailedFile
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobMissing, BlobStore
from contracts.runtime.monitoring import observe, tracing
from services.notifications import addresses, commands, domain, queries, replaced_links
from services.notifications.channels.dkim_keys import DkimKey, signed
from services.notifications.channels.folder import FolderChannel
from services.notifications.channels.outcome import NotSent, Refused
from services.notifications.channels.smtp import SmtpChannel
from services.notifications.messages.composing import file_name
from services.notifications.models import MailRow
from services.notifications.sending import inline_pictures, mime
from services.notifications.sending.journal import Journal, Sent
from services.notifications.settings import Settings

log = observe.logger(__name__)

LEASES_AT_MOST = timedelta(hours=1)
"""No attempt has a longer one, whatever the settings."""


class Channel(Protocol):
    """A way out for mails. ``keeps_mails``: they stay here and are shown on the local mail page."""

    keeps_mails: bool

    def send(self, mail_id: int, recipient: str, message: bytes) -> str: ...


def channel_of(settings: Settings) -> SmtpChannel | FolderChannel:
    """The mail server, or the folder when there is none."""
    if (server := settings.server) is not None:
        return SmtpChannel(
            server, settings.sender, timeout=settings.smtp_timeout, attempt_seconds=settings.smtp_attempt_seconds
        )
    return FolderChannel(settings.mail_folder)


class Sending:
    """``attempt(row)`` for DueWork. Without ``journal`` only the ``Message-ID`` tells a mail that is sent again because the
    process was killed before the database knew of it. ``keys`` sign what is sent."""

    def __init__(
        self,
        channel: Channel,
        blobs: BlobStore,
        sender: str,
        journal: Journal | None = None,
        keys: Sequence[DkimKey] = (),
    ) -> None:
        self._channel = channel
        self._blobs = blobs
        self._sender = sender
        self._journal = journal
        self._keys = list(keys)

    def attempt(self, row: MailRow) -> Outcome:
        if self._journal is not None and (sent := self._journal.find(row.message_id)) is not None:
            log.warning("mail.already_sent", mail=row.id)
            return self._done(row, sent)
        if not addresses.valid(row.to_address):
            return Park("Not an e-mail address")
        if row.expires_at is not None and row.expires_at <= now():
            return Park(replaced_links.why_expired(row))
        if row.test and not self._channel.keeps_mails:
            return self._done(row, Sent("kept: test mode", now()))
        try:
            message = self._message(row)
            # Nothing of it in the mail: whoever reads that has no part in our traces.
            with tracing.span(
                "send mail", tracing.CLIENT, {"countersign.mail": row.id, "countersign.mail.kind": row.kind}
            ):
                answer = self._channel.send(row.id, row.to_address, message)
        except NotSent as error:
            return Retry(_without(row.to_address, error))
        except Refused as error:
            reason = _without(row.to_address, error)
            if error.too_large and row.files:
                return Retry(reason, record=lambda _session, row: commands.send_without_files(row))
            return Park(reason)
        except BlobMissing:
            return Retry("A file to be attached is not there")

        return self._done(row, Sent(answer, now()))

    def _done(self, row: MailRow, sent: Sent) -> Done:
        def record(session: Session, row: MailRow) -> None:
            commands.mark_sent(session, row, sent.answer, sent.at, keep_content=self._channel.keeps_mails)

        return Done(record, self._journal.note(row.message_id, sent) if self._journal is not None else None)

    def _message(self, row: MailRow) -> bytes:
        files = [MailedFile.model_validate(attachment) for attachment in row.files]
        pictures = inline_pictures.data(
            self._blobs, {inline_pictures.LOGO: row.logo, inline_pictures.FIRST_PAGE: row.first_page}
        )
        message = mime.build(
            mime.Envelope(
                sender_name=row.sender_name,
                sender=self._sender,
                to_name=row.to_name,
                to=row.to_address,
                reply_to=row.reply_to,
                subject=row.subject,
                message_id=row.message_id,
                date=now(),
                thread=domain.thread_id(row.kind, row.submission_id, self._sender),
                request_id=row.request_id,
            ),
            row.text,
            inline_pictures.shown(row.html, pictures),
            [
                mime.Attachment(file_name(attachment), attachment.file.media_type, self._blobs.get(attachment.file))
                for attachment in files
            ],
            pictures,
        )
        return signed(message, self._keys)


def _without(address: str, error: Exception) -> str:
    """Servers like to repeat the address in their answer; ours go into logs."""
    return re.sub(re.escape(address), "(recipient)", str(error), flags=re.IGNORECASE)


def forget_files(database: Database, channel: FolderChannel) -> None:
    """Remove the files of erased mails. One that was being written during the erasure is looked at again later."""
    mails = database.read(queries.erased_with_files, without_leaps(LEASES_AT_MOST))
    for mail in mails:
        channel.remove(mail)
    if settled := [mail for mail, nobody_writes in mails.items() if nobody_writes]:
        database.write(commands.file_is_gone, settled, now())
