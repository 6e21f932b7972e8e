"""Answers that rendering keeps: made once, agreed upon, and gone in time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import sqlalchemy as sa

from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from services.rendering import results
from services.rendering.models import Result, ResultSource
from services.rendering.results import FreshResult, Results
from tests.support.rendering.seal_jobs import NOW, blobs, count, database

__all__ = ["blobs", "database"]


def test_an_answer_is_made_once(database: Database, blobs: BlobStore) -> None:
    kept, made = Results(database, blobs, timedelta(hours=1)), []

    def make() -> FreshResult:
        made.append(blobs.put(b"picture", "image/png", "rendering/"))
        return FreshResult({"key": made[-1].key}, [made[-1].key])

    answers = [kept.get("page", "digest", make) for _ in range(3)]
    assert len(made) == 1
    assert answers == [{"key": made[0].key}] * 3


def test_two_at_once_agree_and_the_other_s_file_goes(database: Database, blobs: BlobStore) -> None:
    kept, made = Results(database, blobs, timedelta(hours=1)), []
    together = threading.Barrier(4, timeout=120)

    def make() -> FreshResult:
        file = blobs.put(b"picture", "image/png", "rendering/")
        made.append(file.key)
        together.wait()
        return FreshResult({"key": file.key}, [file.key])

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: kept.get("page", "digest", make)["key"], range(4)))
    assert len(set(answers)) == 1
    assert [key for key in made if blobs.exists(key)] == [answers[0]]


def test_what_was_kept_long_enough_goes(database: Database, blobs: BlobStore) -> None:
    kept = Results(database, blobs, timedelta(hours=1))
    file = blobs.put(b"picture", "image/png", "rendering/")
    kept.get("page", "digest", lambda: FreshResult({"key": file.key}, [file.key]), sources=["a" * 64])
    results.expire(database, blobs)
    assert blobs.exists(file.key)
    database.write(lambda session: session.execute(sa.update(Result).values(expires_at=NOW - timedelta(seconds=1))))
    results.expire(database, blobs)
    assert not blobs.exists(file.key)
    assert count(database, ResultSource) == 0
