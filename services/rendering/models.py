"""Tables of the rendering service: seal jobs, what was sealed, answers that can be given again."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from contracts.runtime.data.background import DueRow
from contracts.runtime.data.database import BigId, Json, UtcDateTime, metadata


class Base(DeclarativeBase):
    metadata = metadata()


class SealJob(DueRow, Base):
    """One attempt of a submission to get its documents sealed, named by ``seal_id``: one job, one result.

    ``request`` (a SealRequest) is there until the job has ended; it holds values and addresses of people. ``files`` is how
    many files an attempt writes. ``pades_level`` and ``sealed_attempt`` say what came out. ``swept``: nothing is left of
    attempts that were interrupted.
    """

    __tablename__ = "seal_jobs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    seal_id: Mapped[str] = mapped_column(sa.Text, unique=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    request: Mapped[dict[str, Any] | None] = mapped_column(Json)
    files: Mapped[int] = mapped_column(sa.Integer)
    sealed_attempt: Mapped[int | None] = mapped_column(sa.Integer)
    pades_level: Mapped[str | None] = mapped_column(sa.Text)
    swept: Mapped[bool] = mapped_column(sa.Boolean)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """None: submissions was told, and ``POST /submissions/:id/seal`` asks anew, with a new ``seal_id``."""
        return sa.false()

    __table_args__ = (
        sa.Index("ix_seal_jobs_due", "state", "next_attempt_at"),
        sa.Index("ix_seal_jobs_swept", "swept", "finished_at"),
        {"sqlite_autoincrement": True},
    )


class SealedFile(Base):
    """SHA-256 of every file that was sealed here, so that it is recognised when somebody asks about it."""

    __tablename__ = "sealed_files"

    sha256: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    submission_id: Mapped[int | None] = mapped_column(sa.BigInteger, index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class StatementRow(DueRow, Base):
    """A statement of a completion (contracts.evidence.statements), named by the SHA-256 of its bytes: to be signed, then kept.

    None is ever replaced: a second one of the same completion stands beside the first. ``parts`` are there until the submission
    is sealed. ``signed`` (a SignedStatement) says where it is kept. ``erased_at``: the submission was erased; what an attempt
    still writes is removed, then the row.
    """

    __tablename__ = "statements"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    sha256: Mapped[str] = mapped_column(sa.String(64), unique=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    submitter_id: Mapped[int] = mapped_column(sa.BigInteger)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    statement: Mapped[dict[str, Any] | None] = mapped_column(Json)
    parts: Mapped[dict[str, Any] | None] = mapped_column(Json)
    signed: Mapped[dict[str, Any] | None] = mapped_column(Json)
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Not those of erased submissions."""
        return cls.erased_at.is_(None)

    __table_args__ = (sa.Index("ix_statements_due", "state", "next_attempt_at"), {"sqlite_autoincrement": True})


class StatementsSince(Base):
    """The moment from which on completions are confirmed: when this table was made. One row."""

    __tablename__ = "statements_since"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class Result(Base):
    """An answer that costs work and is asked for again: a page's picture (``page``), a laid-out HTML text (``html``).

    ``digest`` says of what; ``answer`` is what the call answered; ``keys`` are the blobs in it, which are ours.
    """

    __tablename__ = "results"

    kind: Mapped[str] = mapped_column(sa.String(10), primary_key=True)
    digest: Mapped[str] = mapped_column(sa.String(100), primary_key=True)
    answer: Mapped[dict[str, Any]] = mapped_column(Json)
    keys: Mapped[list[str]] = mapped_column(Json)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class ResultSource(Base):
    """Which file a result was made from: when a submission is erased, what was made from its files goes too."""

    __tablename__ = "result_sources"

    sha256: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(sa.String(10), primary_key=True)
    digest: Mapped[str] = mapped_column(sa.String(100), primary_key=True)

    __table_args__ = (
        sa.ForeignKeyConstraint(
            ["kind", "digest"], ["results.kind", "results.digest"], name="fk_result_sources_result", ondelete="CASCADE"
        ),
        sa.Index("ix_result_sources_result", "kind", "digest"),
    )
