"""Notes when API keys were used, beside the answers: nobody waits for it, and what it does not get done costs no answer.

A key's use is written once in ``PAUSE``, however many requests come with it: the look-up of the key says when that was last.
"""

import threading
import time
from concurrent.futures import Executor
from datetime import datetime, timedelta

from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from services.gateway.accounts.api_keys import key_rows

log = observe.logger(__name__)

PAUSE = timedelta(hours=1)
_TRY_AGAIN = 60.0
"""Seconds until a key that could not be written, or is being written, is tried again."""
_MOST = 1000
"""Keys that wait to be written; of more it is noted with a later request."""


class LastUse:
    """``threads`` write, one key at a time: as long as a database waits, one thread does."""

    def __init__(self, database: Database, threads: Executor) -> None:
        self._database, self._threads = database, threads
        self._due: dict[str, datetime] = {}
        self._tried: dict[str, float] = {}
        self._writing = False
        self._lock = threading.Lock()

    def used(self, key_hash: str, noted: datetime | None, now: datetime) -> None:
        """A request came with the key; ``noted`` is the use that is known. Never raises, never waits."""
        if noted is not None and now - noted < PAUSE:
            return
        with self._lock:
            moment = time.monotonic()
            if moment - self._tried.get(key_hash, -_TRY_AGAIN) < _TRY_AGAIN or len(self._due) >= _MOST:
                return
            if len(self._tried) >= _MOST:
                self._tried = {
                    hash_of_key: tried_at
                    for hash_of_key, tried_at in self._tried.items()
                    if moment - tried_at < _TRY_AGAIN
                }
            self._tried[key_hash], self._due[key_hash] = moment, now
            if self._writing:
                return
            self._writing = True
        try:
            self._threads.submit(self._write)
        except RuntimeError:  # the process ends
            self._writing = False

    def _write(self) -> None:
        while (due := self._next()) is not None:
            key_hash, now = due
            try:
                self._database.write_unsynced(key_rows.note_use, key_hash, now, now - PAUSE)
            except Exception as error:
                log.warning("key.use_not_noted", error=type(error).__name__)

    def _next(self) -> tuple[str, datetime] | None:
        with self._lock:
            if not self._due:
                self._writing = False
                return None
            return self._due.popitem()
