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
class Made:
    """A fresh answer (plain JSON) and the ``keys`` of the files that were written for it and are nobody else's."""

    answer: dict[str, Any]
    keys: list[str] = field(default_factory=list)


class Results:
    def __init__(self, database: Database, blobs: BlobStore, kept: timedelta) -> None:
        self._database, self._blobs, self._kept = database, blobs, kept

    def get(
        self,
        kind: str,
        digest: str,
        make: Callable[[], Made],
        *,
        sources: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The kept answer, or that of ``make``, which is then kept. ``sources`` (SHA-256) say with what it must be forgotten.
        When two make the same at once, the first one's is kept and the other's files are removed."""
        found = self._database.read(queries.result, kind, digest)
        if found is not None:
            return found
        made = make()
        kept = self._database.write(
            commands.remember_result,
            kind,
            digest,
            answer=made.answer,
            keys=made.keys,
            sources=sources,
            expires_at=now() + self._kept,
        )
        if kept != made.answer:
            remove(self._blobs, made.keys)
        return kept


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
