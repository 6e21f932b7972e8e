"""Loops of the background process: mails that are due, files of erased mails."""

from datetime import timedelta
from typing import Any

from contracts.runtime.background import DueWork, Every
from contracts.runtime.blobstore import BlobStore
from contracts.runtime.database import Database
from services.notifications import commands
from services.notifications.channels.folder import FolderChannel
from services.notifications.channels.smtp import SmtpChannel
from services.notifications.models import MailRow
from services.notifications.sending import Sending, channel_of, forget_files
from services.notifications.settings import Settings


class Mails(DueWork):
    """Also closes the connections that the last mails left open."""

    def __init__(self, channel: SmtpChannel | FolderChannel, *plan: Any, **more: Any) -> None:
        super().__init__(*plan, **more)
        self._channel = channel

    def turn(self) -> float:
        self._channel.close_idle()
        return super().turn()

    def finish(self) -> None:
        super().finish()
        self._channel.close()


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    channel = channel_of(settings)
    sending = Sending(channel, blobs, settings.sender)
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
        on_park=commands.failed,
    )
    if settings.var_dir is None:
        return [mails]
    # Also with a mail server: there may be files from before it was set.
    folder = FolderChannel(settings.mail_folder)
    return [mails, Every("files of erased mails", timedelta(seconds=30), lambda: forget_files(database, folder))]
