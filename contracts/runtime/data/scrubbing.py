"""Remove what was erased from the files of a SQLite database, too: its tables are not all that holds it.

A row that is deleted or changed is overwritten where it is (``secure_delete``, see ``database``). Left are copies of it in the
unused part of pages that its row was moved away from (measured: after one in ten erasures among changing rows), earlier
versions of its pages in the write-ahead log, and its terms in the index for searches, which only notes that a row is gone. So
whoever erases asks for a scrub, in that transaction, and the background process merges the index, has SQLite write the file
anew (VACUUM) and empties the log: within a minute. An erasure that is interrupted anywhere is scrubbed by the next process.

Others who write wait while the file is written anew: that of a large database is not, see ``writes_anew``. PostgreSQL has no
such thing; see "Erasing for good" in deploy/RUNBOOK.md.
"""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data.database import SQLITE_BUSY_SECONDS, Database, dialect_of, insert_into
from contracts.runtime.data.tables import heartbeats, outbox
from contracts.runtime.monitoring import observe

EVERY = timedelta(seconds=15)
"""Erasures meanwhile are scrubbed together."""

MOST_BYTES = 256 * 2**20
"""Written anew in a second or two; nobody waits for a write for longer than 10."""

_ASKED = "scrub"
"""The name, among the heartbeats, of when it was last asked for; there is none when nothing is to be scrubbed."""

_PAGES = 500
"""Of the index that are merged in one transaction, which holds the write lock."""

_PATIENCE_SECONDS = 1
"""For those who still read: others who write wait meanwhile."""

_FIND_INDEXES = sa.text("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%'")
_SIZE = sa.text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
_UNKEPT = sa.select(sa.exists().where(outbox.c.keep.is_(False)))

log = observe.logger(__name__)


def ask(session: Session) -> None:
    """Something is erased in this transaction."""
    if dialect_of(session) == "sqlite":
        row = {"name": _ASKED, "at": now()}
        statement = insert_into(session, heartbeats).values(row)
        session.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"at": row["at"]}))


def writes_anew(session: Session) -> bool:
    """Will a scrub leave nothing in the file of this database? Not in one above 256 MB: there, copies in the unused part of
    pages stay until the operator vacuums it or the room is used again. Never on PostgreSQL."""
    return dialect_of(session) == "sqlite" and (session.scalar(_SIZE) or 0) <= MOST_BYTES


def scrub(database: Database) -> None:
    """Scrub if it was asked for. Harmless at any time, and when done twice at once; what cannot be done now is tried again with
    the next call."""
    if not database.sqlite or (asked_at := database.read(_asked_at)) is None:
        return
    for index in database.read(lambda session: list(session.scalars(_FIND_INDEXES))):
        more = database.write(_merge, index, -_PAGES)  # a negative number: all of it, also what need not be merged yet
        while more:
            more = database.write(_merge, index, _PAGES)
    anew = database.read(writes_anew)
    if not anew:
        log.warning("scrub.without_vacuum", reason="the database is too large to be written anew while others wait")
    if not _written_anew(database, vacuum=anew):
        log.info("scrub.again", reason="somebody was reading")
    elif database.read(lambda session: session.scalar(_UNKEPT)):
        log.info("scrub.again", reason="events are still to be told")
    else:
        database.write(_done, asked_at)
        log.info("scrub.done", asked_at=asked_at)


def _asked_at(session: Session) -> datetime | None:
    return session.scalar(sa.select(heartbeats.c.at).where(heartbeats.c.name == _ASKED))


def _merge(session: Session, index: str, pages: int) -> bool:
    """Merge some of the index; True while there is more (https://www.sqlite.org/fts5.html, 6.8)."""
    connection: Any = session.connection().connection.driver_connection
    before = connection.total_changes
    connection.execute(f'INSERT INTO "{index}"("{index}", rank) VALUES (\'merge\', ?)', (pages,))  # noqa: S608 - ours
    return bool(connection.total_changes - before >= 2)


def _written_anew(database: Database, *, vacuum: bool) -> bool:
    """The file, if ``vacuum``, and an empty log; False when somebody still reads what it was before."""
    assert database.url.database is not None
    path, patience = database.url.database, SQLITE_BUSY_SECONDS
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as connection:
        if vacuum:
            connection.execute("VACUUM")
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_SECONDS * 1000}")
        busy, _pages, _moved = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _done(session: Session, asked_at: datetime) -> None:
    """Unless it was asked for again meanwhile."""
    session.execute(heartbeats.delete().where(heartbeats.c.name == _ASKED, heartbeats.c.at == asked_at))
