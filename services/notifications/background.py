"""Loops of the background process: mails and messages to phones that are due, files of erased mails."""

from datetime import timedelta
from typing import Any

from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import TURNS_APART, DueWork, Every
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from services.notifications import commands
from services.notifications.channels.folder import FolderChannel
from services.notifications.channels.sms import ATTEMPT_SECONDS
from services.notifications.channels.smtp import SmtpChannel
from services.notifications.models import MailRow, PhoneMessageRow
from services.notifications.sending import phone_messages
from services.notifications.sending.journal import Journal
from services.notifications.sending.mails import Sending, channel_of, forget_files
from services.notifications.sending.phone_messages import PhoneSending
from services.notifications.settings import Settings

TOLD_APART = 0.5
"""Seconds between what is told of mails and messages, at least: nobody waits for it, and submissions notes several at once."""


class Mails(DueWork):
    """Also closes the connections that the last mails left open."""

    def __init__(self, channel: SmtpChannel | FolderChannel, *plan: Any, **more: Any) -> None:
        super().__init__(*plan, **more)
        self._channel = channel

    def turn(self) -> float:
        left_open = self._channel.close_idle()
        pause = super().turn()
        return min(pause, self.poll_seconds) if left_open else pause

    def finish(self) -> None:
        super().finish()
        self._channel.close()


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    channel = channel_of(settings)
    # A mail in the folder is replaced by a repeat, and what is kept here is sent to nobody.
    journal = Journal(settings.sent_folder) if settings.sent_folder is not None else None
    sending = Sending(channel, blobs, settings.sender, None if channel.keeps_mails else journal, settings.dkim)
    mails = Mails(
        channel,
        "mails",
        database,
        MailRow,
        sending.attempt,
        schedule=settings.schedule,
        # Connecting and sending are bounded one after the other.
        lease=timedelta(seconds=2 * settings.smtp_attempt_seconds + 2 * settings.smtp_timeout + 30),
        concurrency=settings.mail_concurrency,
        apart=TURNS_APART,
        on_park=commands.mark_failed,
    )
    outbound = Outbound.configured(settings)
    to_phones = PhoneSending(
        phone_messages.channel_of(settings, outbound),
        outbound,
        settings.link_secret.get_secret_value(),
        keeps=settings.keeps_sms,
        journal=journal,
    )
    phones = DueWork(
        "phone-messages",
        database,
        PhoneMessageRow,
        to_phones.attempt,
        schedule=settings.sms_schedule,
        lease=timedelta(seconds=2 * ATTEMPT_SECONDS + 30),
        concurrency=settings.sms_concurrency,
        on_park=phone_messages.mark_failed,
    )
    work: list[DueWork | Every] = [mails, phones]
    if journal is not None:
        work.append(Every("journal", timedelta(hours=1), journal.clean_up))
    if settings.var_dir is not None:
        # Also with a mail server: there may be files from before it was set.
        folder = FolderChannel(settings.mail_folder)
        work.append(Every("files of erased mails", timedelta(seconds=30), lambda: forget_files(database, folder)))
    return work
