"""Answers that cost work and are asked for again: kept for a while, with their files, and forgotten together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from services.rendering import commands, queries

log = observe.logger(__name__)


@dataclass(frozen=True)
class FreshResult:
    """A fresh answer (plain JSON) and the ``keys`` of the files that were written for it and are nobody else's."""

    answer: dict[str, Any]
    keys: list[str] = field(default_factory=list)


class Results:
    def __init__(self, database: Database, blobs: BlobStore, retention: timedelta) -> None:
        self._database, self._blobs, self._kept = database, blobs, retention

    def get(
        self,
        kind: str,
        digest: str,
        make: Callable[[], FreshResult],
        *,
        sources: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The kept answer, or that of ``make``, which is then kept. ``sources`` (SHA-256) say with what it must be forgotten.
        When two make the same at once, the first one's is kept and the other's files are removed."""
        stored = self._database.read(queries.result, kind, digest)
        if stored is not None:
            return stored
        fresh = make()
        answer = self._database.write(
            commands.remember_result,
            kind,
            digest,
            answer=fresh.answer,
            keys=fresh.keys,
            sources=sources,
            expires_at=now() + self._kept,
        )
        if answer != fresh.answer:
            remove(self._blobs, fresh.keys)
        return answer


def expire(database: Database, blobs: BlobStore) -> None:
    """Remove what was kept long enough. The row goes first: a file without a row is only a little waste, a row without a
    file is an answer that cannot be fetched."""
    while keys := database.write(commands.expire_results, now()):
        remove(blobs, keys)


def remove(blobs: BlobStore, keys: Sequence[str]) -> None:
    """Delete files; one that cannot be deleted now is logged and left."""
    for key in keys:
        try:
            blobs.delete(key)
        except ServiceError as error:
            log.warning("results.left_behind", key=key, reason=error.message)
