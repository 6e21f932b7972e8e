"""Material for the tests of due work: rows that are due, in tables of the tests' own on a real database."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from contracts.runtime.clock import now
from contracts.runtime.data.database import BigId, Database, metadata
from contracts.runtime.data.due_work.background import DueRow


class Base(DeclarativeBase):
    """Of all tables that tests of due work have."""

    metadata = metadata()


class Job(DueRow, Base):
    """Something to be done, in a lane or in none."""

    __tablename__ = "jobs"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    lane: Mapped[str | None] = mapped_column(sa.Text)


def with_tables(database_url: str, *more: sa.MetaData) -> Iterator[Database]:
    """A database with these tables, for a fixture."""
    made = Database(database_url)
    for known in (Base.metadata, *more):
        known.create_all(made.engine.execution_options(countersign_write=True))
    yield made
    made.dispose()


def add(session: Session, /, lane: Any = None, **more: Any) -> int:
    """Leave a job that is due, and return its number."""
    job = Job(lane=lane, **{"next_attempt_at": now(), **more})
    session.add(job)
    session.flush()
    return job.id
