"""Without a mail server: each mail is a file that mail programs open, and the local mail page shows it."""

import contextlib
import os
from pathlib import Path

from services.notifications.channels.outcome import NotSent


class FolderChannel:
    """``<folder>/<mail id>.eml``, readable by nobody else: the files hold signing links."""

    keeps_mails = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, mail_id: int, recipient: str, message: bytes) -> str:
        """Whole or not there; a repeat replaces the file."""
        path = self.path(mail_id)
        temporary = path.with_suffix(".new")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(message)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except OSError as error:
            raise NotSent(f"The mail folder cannot be written: {error.strerror}") from error
        return f"kept as {path.name}"

    def remove(self, mail_id: int) -> None:
        """Forget the mail, sent or half written."""
        for path in (self.path(mail_id), self.path(mail_id).with_suffix(".new")):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def path(self, mail_id: int) -> Path:
        return self._folder / f"{mail_id:08d}.eml"

    def close_idle(self) -> bool:
        """Nothing is open."""
        return False

    def close(self) -> None:
        """Nothing is open."""
