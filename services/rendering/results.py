"""Answers that cost work and are asked for again: kept for a while, with their files, and forgotten together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.rendering import commands, queries
from services.rendering.storage import erasures

log = observe.logger(__name__)


@dataclass(frozen=True)
class FreshResult:
    """A fresh answer (plain JSON), the ``keys`` of the files that were written for it and are nobody else's, and further
    ``sources`` (SHA-256), where it is known only now with what it must be forgotten."""

    answer: dict[str, Any]
    keys: list[str] = field(default_factory=list)
    sources: Sequence[str] = ()


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
        When two make the same at once, the first one's is kept and the other's files are removed. Raises SourceForgotten,
        and keeps nothing, when one of the sources was to be forgotten meanwhile."""
        stored, marks = self._database.read(queries.result_and_marks, kind, digest, sources)
        if stored is not None:
            return stored
        fresh = make()
        try:
            answer = self._database.write(
                commands.remember_result,
                kind,
                digest,
                answer=fresh.answer,
                keys=fresh.keys,
                sources=sources,
                marks=marks,
                further_sources=fresh.sources,
                expires_at=now() + self._kept,
            )
        except commands.SourceForgotten:
            remove(self._blobs, fresh.keys)
            raise
        if answer != fresh.answer:
            remove(self._blobs, fresh.keys)
        return answer


def expire(database: Database, blobs: BlobStore) -> None:
    """Remove what was kept long enough, and what nobody came to remove."""
    while database.write(commands.expire_results, now()):
        pass
    database.write(commands.forget_marks, now())
    clear(database, blobs)


def clear(database: Database, blobs: BlobStore) -> None:
    """Remove the files of what was forgotten. The answer's row is gone by then, because an answer without its file cannot be
    fetched; what says that the files must go is there until they are gone. Harmless when done twice at once."""
    while removals := database.read(queries.removals):
        removed = [removal.digest for removal in removals if remove(blobs, removal.keys)]
        for digest in removed:
            database.write(commands.finish_removal, digest)
        if len(removed) < len(removals):
            return


def tell_erasures(database: Database) -> None:
    """Say of which removed submissions nothing is left, their files included. Harmless when done twice at once."""
    for number in database.read(erasures.to_tell, now()):
        database.write(erasures.tell, number, now())


def remove(blobs: BlobStore, keys: Sequence[str]) -> bool:
    """Delete files; one that cannot be deleted now is logged and left. Returns whether all are gone."""
    left = False
    for key in keys:
        try:
            blobs.delete(key)
        except ServiceError as error:
            log.warning("results.left_behind", key=key, reason=error.message)
            left = True
    return not left
