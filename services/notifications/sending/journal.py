"""The journal of what was sent and may not be in the database yet: a small file for each message that a mail server or provider
has taken.

Between the server's answer and the row that says so the database may be locked, full or away, and the process may be killed.
The next attempt asks here first, and does not send what has been sent.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from contracts.runtime.clock import now, without_leaps
from contracts.runtime.monitoring import observe
from contracts.types import iso

log = observe.logger(__name__)

KEPT = timedelta(days=30)
"""Above what any schedule takes. Only a process that was killed between its commit and the removal leaves a note behind."""


@dataclass(frozen=True)
class Sent:
    """A note of a message that was sent: the server's answer, and when it came."""

    answer: str
    at: datetime


@dataclass(frozen=True)
class SentNote:
    """The note of one message, for ``Done``."""

    path: Path

    def sync(self) -> None:
        """Put it on the disk: the database did not take the outcome at once."""
        for place, flags in ((self.path, os.O_RDONLY), (self.path.parent, os.O_RDONLY | os.O_DIRECTORY)):
            with suppress(FileNotFoundError):  # it could not be written
                descriptor = os.open(place, flags)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def remove(self) -> None:
        """The outcome is in the database."""
        self.path.unlink(missing_ok=True)


class Journal:
    """Notes in ``folder``, which processes of one machine may share. A message is known by what never names another one, also
    not after a restore of the database. The names of the files are digests, their mode is 600."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            log.warning("journal.no_folder", folder=str(folder), reason=error.strerror)

    def of(self, message: str) -> SentNote:
        return SentNote(self._folder / hashlib.sha256(message.encode()).hexdigest())

    def find(self, message: str) -> Sent | None:
        """Return what was noted of the message. Raises OSError when nobody can tell."""
        try:
            text = self.of(message).path.read_text()
        except FileNotFoundError:
            return None
        try:
            note = json.loads(text)
            return Sent(str(note["answer"]), datetime.fromisoformat(note["at"]))
        except (ValueError, KeyError, TypeError):
            # The disk was full, or the power went, while it was written: that there is a note says enough.
            return Sent("taken", now())

    def note(self, message: str, sent: Sent) -> SentNote:
        """Note it, without waiting for the disk: a killed process loses nothing by that, and a sync takes its time (measured:
        0.5 ms instead of 0.1). Where it cannot be written, the outcome is in memory alone until the database has it."""
        note = self.of(message)
        try:
            descriptor = os.open(note.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(json.dumps({"answer": sent.answer, "at": iso(sent.at)}))
        except OSError as error:
            log.warning("journal.not_written", reason=error.strerror)
        return note

    def clean_up(self) -> None:
        """Remove notes that nobody can ask for any more."""
        before = (without_leaps(KEPT) - KEPT).timestamp()
        for path in self._folder.glob("*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    path.unlink()
