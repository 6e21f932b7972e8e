"""Answers that rendering keeps: made once, agreed upon, and gone in time, or with the documents that they were made from."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import Erased
from contracts.runtime import clock
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import inbox
from services.rendering import commands, queries, results
from services.rendering.models import Result, ResultSource
from services.rendering.results import FreshResult, Results
from tests.support.rendering.seal_jobs import NOW, blobs, count, database
from tests.support.services.suite import wait_until

__all__ = ["blobs", "database"]

DOCUMENT, OTHER = "d" * 64, "e" * 64


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


# --- with the documents ----------------------------------------------------------------------------------------------------


def drawn(blobs: BlobStore, made: list[str] | None = None, *, sources: Sequence[str] = ()) -> FreshResult:
    """As an entrypoint makes it: the file is there before the row."""
    file = blobs.put(b"picture", "image/png", "rendering/")
    if made is not None:
        made.append(file.key)
    return FreshResult({"key": file.key}, [file.key], sources)


def erased(*documents: str, submission_id: int = 7) -> tuple[Envelope, Erased]:
    data = Erased(submission_id=submission_id, documents=list(documents))
    envelope = Envelope(
        id=clock.uuid7(),
        type="submission.erased",
        source="submissions",
        subject=f"submission:{submission_id}",
        occurred_at=NOW,
        data=data.model_dump(mode="json"),
    )
    return envelope, data


def erase(database: Database, blobs: BlobStore, *documents: str) -> None:
    """As the event does it."""
    database.write(commands.erase, *erased(*documents), clock.now())
    results.clear(database, blobs)


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


def _rows(session: Session, query: sa.TextClause) -> Sequence[Any]:
    return session.execute(query).all()


def anywhere(database: Database, text: str) -> list[str]:
    """The tables in which a text is found."""
    names = sa.inspect(database.engine).get_table_names()
    tables = {name: sa.text(f"SELECT * FROM {name}") for name in names}
    rows = {name: database.read(_rows, table) for name, table in tables.items()}
    return [name for name, found in rows.items() if any(text in str(tuple(row)) for row in found)]


def test_what_was_made_from_an_erased_document_goes_with_it(
    database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    kept = Results(database, blobs, timedelta(hours=1))
    for kind in ("page", "light_page", "thumbnail", "text"):
        kept.get(kind, f"{DOCUMENT}:1", lambda: drawn(blobs), sources=[DOCUMENT])
    kept.get("html", "a digest of a text", lambda: drawn(blobs, sources=[DOCUMENT]))
    other = kept.get("page", f"{OTHER}:1", lambda: drawn(blobs), sources=[OTHER])
    event = erased(DOCUMENT)
    for _ in range(2):  # the broker gives it twice
        database.write(commands.erase, *event, clock.now())
        results.clear(database, blobs)
    assert files_in(tmp_path / "blobs") == [Path(other["key"]).name]
    assert anywhere(database, DOCUMENT) == []
    assert kept.get("page", f"{OTHER}:1", lambda: drawn(blobs), sources=[OTHER]) == other
    erase(database, blobs)  # as an older version tells it
    assert blobs.exists(other["key"])


def test_for_who_still_has_the_document_it_is_made_anew(database: Database, blobs: BlobStore) -> None:
    kept = Results(database, blobs, timedelta(hours=1))
    made: list[Any] = []
    kept.get("page", DOCUMENT, lambda: drawn(blobs, made), sources=[DOCUMENT])
    erase(database, blobs, DOCUMENT)
    answers = [kept.get("page", DOCUMENT, lambda: drawn(blobs, made), sources=[DOCUMENT]) for _ in range(2)]
    laid_out = [kept.get("html", "text", lambda: drawn(blobs, sources=[DOCUMENT])) for _ in range(2)]
    assert answers == [{"key": made[1]}] * 2
    assert laid_out[0] == laid_out[1]
    assert [blobs.exists(key) for key in made] == [False, True]


def test_nothing_is_kept_of_a_document_that_is_erased_while_it_is_drawn(
    database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    kept = Results(database, blobs, timedelta(hours=1))

    def slow() -> FreshResult:
        erase(database, blobs, DOCUMENT)
        return drawn(blobs)

    with pytest.raises(commands.SourceForgotten) as refused:
        kept.get("page", DOCUMENT, slow, sources=[DOCUMENT])
    assert refused.value.code == "unavailable", "who still has the document asks again"
    assert (count(database, Result), count(database, ResultSource), files_in(tmp_path / "blobs")) == (0, 0, [])
    assert anywhere(database, DOCUMENT) == []


def test_erased_again_while_it_is_drawn_anew(database: Database, blobs: BlobStore, tmp_path: Path) -> None:
    """The mark of the first time says nothing about the second."""
    kept = Results(database, blobs, timedelta(hours=1))
    erase(database, blobs, DOCUMENT)

    def slow() -> FreshResult:
        erase(database, blobs, DOCUMENT)
        return drawn(blobs)

    with pytest.raises(commands.SourceForgotten):
        kept.get("page", DOCUMENT, slow, sources=[DOCUMENT])
    assert files_in(tmp_path / "blobs") == []


def test_who_forgets_waits_for_who_is_just_keeping(database: Database, blobs: BlobStore, tmp_path: Path) -> None:
    """One transaction has looked at the marks and has written, the other one comes before it is committed."""
    written, may_commit = threading.Event(), threading.Event()

    def keep(session: Session) -> None:
        row: dict[str, Any] = {
            "answer": {},
            "keys": [],
            "sources": [DOCUMENT],
            "marks": {},
            "expires_at": NOW + timedelta(days=1),
        }
        commands.remember_result(session, "page", DOCUMENT, **row)
        session.flush()
        written.set()
        assert may_commit.wait(240)

    with ThreadPoolExecutor(2) as threads:
        keeping = threads.submit(database.write, keep)
        assert written.wait(240)
        forgetting = threads.submit(erase, database, blobs, DOCUMENT)
        if not database.sqlite:
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            wait_until(lambda: database.read(lambda s: s.scalar(sa.text(waiting))), what="that it waits")
        may_commit.set()
        keeping.result(240)
        forgetting.result(240)
    assert (count(database, Result), count(database, ResultSource)) == (0, 0)


def test_what_was_to_be_removed_is_removed_by_the_next_who_comes(
    database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    """Killed between the commit and the removal; the store does not answer."""

    class Broken(BlobStore):
        def delete(self, key: str) -> None:
            raise ServiceError("unavailable", "no store")

    kept = Results(database, blobs, timedelta(hours=1))
    key = kept.get("page", DOCUMENT, lambda: drawn(blobs), sources=[DOCUMENT])["key"]
    database.write(commands.erase, *erased(DOCUMENT), clock.now())
    assert blobs.exists(key)
    broken = Broken.from_url(f"file://{tmp_path}/blobs")
    results.expire(database, broken)
    assert blobs.exists(key)
    results.expire(database, blobs)
    assert not blobs.exists(key)
    assert count(database, Result) == 0


def test_text_that_was_laid_out_goes_with_the_file_it_was_merged_into(database: Database, blobs: BlobStore) -> None:
    parts, whole, again = [f"{number}" * 64 for number in (1, 2, 3)], "a" * 64, "b" * 64
    kept = Results(database, blobs, timedelta(hours=1))
    laid_out = [kept.get("html", part, partial(drawn, blobs, sources=[part]))["key"] for part in parts[:2]]
    picture = kept.get("page", parts[0], lambda: drawn(blobs), sources=[parts[0]])["key"]
    for of, file in ((parts[::2], whole), (parts, again), (parts, again)):
        assert database.read(queries.laid_out, of)
        database.write(commands.pass_on_sources, of, file)
    assert database.read(queries.laid_out, [parts[2]]) == []
    erase(database, blobs, whole)
    assert [blobs.exists(key) for key in (*laid_out, picture)] == [False, True, True]
    erase(database, blobs, again)
    assert [blobs.exists(key) for key in (*laid_out, picture)] == [False, False, True]


def test_marks_are_forgotten_when_nobody_can_be_at_it_any_more(database: Database, blobs: BlobStore) -> None:
    def marks() -> int:
        noted = sa.select(sa.func.count()).where(inbox.c.handler == queries.FORGOTTEN)
        return int(database.read(lambda session: session.scalar(noted)) or 0)

    erase(database, blobs, DOCUMENT, OTHER)
    results.expire(database, blobs)
    assert marks() == 2
    database.write(commands.forget_marks, clock.now() + timedelta(hours=2))
    assert marks() == 0
