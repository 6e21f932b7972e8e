from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from contracts.runtime.data.database import BigId, UtcDateTime, metadata
from contracts.runtime.data.due_work.background import DueRow


class Base(DeclarativeBase):
    metadata = metadata()


class Counter(Base):
    __tablename__ = "counters"
    key: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    total: Mapped[int] = mapped_column(sa.Integer)


class Note(Base):
    """The effect of an event."""

    __tablename__ = "notes"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key: Mapped[str] = mapped_column(sa.Text)
    request_id: Mapped[str | None] = mapped_column(sa.Text)


class Task(DueRow, Base):
    __tablename__ = "tasks"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key: Mapped[str] = mapped_column(sa.Text)
    todo: Mapped[str] = mapped_column(sa.Text)
    lane: Mapped[str | None] = mapped_column(sa.Text)


class Trace(Base):
    """What an attempt did outside: written at once, in a transaction of its own."""

    __tablename__ = "traces"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key: Mapped[str] = mapped_column(sa.Text)
    what: Mapped[str] = mapped_column(sa.Text)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
