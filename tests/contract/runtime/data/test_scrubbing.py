"""After a scrub nothing of what was erased is in the files of a SQLite database, however its pages came about."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import Database
from contracts.runtime.data.tables import heartbeats, outbox, runtime_metadata

CANARY = "ꙮ\N{EGYPTIAN HIEROGLYPH D058}\N{CUNEIFORM SIGN KASKAL}"
ROWS = 400


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/scrubbed.sqlite")

    def tables(session: Session) -> None:
        runtime_metadata.create_all(session.connection())
        for statement in (
            "CREATE TABLE people (id INTEGER PRIMARY KEY AUTOINCREMENT, slug TEXT UNIQUE, name TEXT, data TEXT)",
            "CREATE INDEX ix_people_name ON people (name)",
            """CREATE VIRTUAL TABLE people_name USING fts5(name, content='people', content_rowid='id',
                tokenize='trigram case_sensitive 1')""",
            """CREATE TRIGGER made AFTER INSERT ON people BEGIN
                INSERT INTO people_name(rowid, name) VALUES (new.id, new.name); END""",
            """CREATE TRIGGER gone AFTER DELETE ON people BEGIN
                INSERT INTO people_name(people_name, rowid, name) VALUES ('delete', old.id, old.name); END""",
        ):
            session.execute(sa.text(statement))

    made.write(tables)
    yield made
    made.dispose()


def files_with(database: Database, text: str) -> list[str]:
    assert database.url.database is not None
    path = Path(database.url.database)
    return [one.name for one in sorted(path.parent.iterdir()) if text.encode() in one.read_bytes()]


def fill(session: Session, seed: int) -> list[int]:
    """People in changing sizes, so that pages are split and filled anew; the ids of those who will be erased."""
    chance = Random(seed)
    erased = chance.sample(range(1, ROWS + 1), 40)
    for number in range(1, ROWS + 1):
        name = f"{CANARY if number in erased else 'Nobody'} {chance.randbytes(6).hex()}"
        row = {"slug": chance.randbytes(8).hex() + name, "name": name, "data": "{}"}
        session.execute(sa.text("INSERT INTO people (slug, name, data) VALUES (:slug, :name, :data)"), row)
    for _ in range(3 * ROWS):
        number = chance.randint(1, ROWS)
        data = (CANARY if number in erased else "nothing") * chance.randint(1, 500)
        session.execute(sa.text("UPDATE people SET data = :data WHERE id = :id"), {"data": data, "id": number})
    return erased


def erase(session: Session, ids: list[int]) -> None:
    for number in ids:
        session.execute(sa.text("DELETE FROM people WHERE id = :id"), {"id": number})
    scrubbing.ask(session)


def asked(database: Database) -> bool:
    return bool(database.read(lambda session: session.scalar(sa.select(sa.exists().select_from(heartbeats)))))


@pytest.mark.parametrize("seed", [0, 6, 7])
def test_nothing_is_left_in_pages_log_and_index(database: Database, seed: int) -> None:
    erased = database.write(fill, seed)
    database.write(erase, erased)
    assert files_with(database, CANARY)
    scrubbing.scrub(database)
    assert files_with(database, CANARY) == []
    assert not asked(database)
    found = sa.text("SELECT count(*) FROM people_name WHERE people_name MATCH :term")
    assert database.read(lambda session: session.scalar(found, {"term": "Nobody"})) == ROWS - len(erased)
    with closing(sqlite3.connect(str(database.url.database))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_while_somebody_reads_what_was_there_it_is_tried_again(database: Database) -> None:
    erased = database.write(fill, 7)
    with closing(sqlite3.connect(str(database.url.database), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM people").fetchone()
        database.write(erase, erased)
        scrubbing.scrub(database)
        assert asked(database)
        assert files_with(database, CANARY)
    scrubbing.scrub(database)
    assert files_with(database, CANARY) == []
    assert not asked(database)


def test_what_is_still_to_be_told_is_waited_for(database: Database) -> None:
    def tell(session: Session) -> None:
        event = {"event_id": "1", "source": "x", "type": "x", "body": CANARY, "created_at": now(), "keep": False}
        session.execute(outbox.insert().values(event))
        scrubbing.ask(session)

    database.write(tell)
    scrubbing.scrub(database)
    assert asked(database)
    database.write(lambda session: session.execute(outbox.delete()))
    scrubbing.scrub(database)
    assert files_with(database, CANARY) == []
    assert not asked(database)


def test_an_erasure_during_a_scrub_is_scrubbed_too(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    erased = database.write(fill, 3)
    database.write(erase, erased[:20])
    write_anew = scrubbing._written_anew

    def another(given: Database, *, vacuum: bool) -> bool:
        done = write_anew(given, vacuum=vacuum)
        given.write(erase, erased[20:])
        return done

    monkeypatch.setattr(scrubbing, "_written_anew", another)
    scrubbing.scrub(database)
    assert asked(database)
    monkeypatch.undo()
    scrubbing.scrub(database)
    assert files_with(database, CANARY) == []
    assert not asked(database)


def test_a_large_database_is_not_written_anew(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    erased = database.write(fill, 0)
    assert database.read(scrubbing.writes_anew)
    size = Path(str(database.url.database)).stat().st_size
    monkeypatch.setattr(scrubbing, "MOST_BYTES", 2**20)
    assert not database.read(scrubbing.writes_anew)
    database.write(erase, erased)
    scrubbing.scrub(database)
    assert not asked(database)
    assert Path(str(database.url.database)).stat().st_size >= size, "its free pages stay"
