"""The runtime's own tables, in every service's database: outbox, inbox, answers, heartbeats, leases.

A service's first Alembic migration calls ``upgrade_1(op)``. When these tables change, ``upgrade_2(op)`` is added here and
called by the next migration of each service; ``upgrade_1`` stays as it is.
"""

from typing import Any

import sqlalchemy as sa

from contracts.runtime.database import BigId, UtcDateTime, metadata

runtime_metadata = metadata()

outbox = sa.Table(
    "outbox",
    runtime_metadata,
    sa.Column("seq", BigId, primary_key=True, autoincrement=True),
    sa.Column("event_id", sa.String(36), nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("retry_at", UtcDateTime),
    sa.Column("error", sa.Text),
    sqlite_autoincrement=True,
)
"""Events that are still to be published. ``body`` is the envelope, byte for byte as it is sent on every try."""

inbox = sa.Table(
    "inbox",
    runtime_metadata,
    sa.Column("handler", sa.Text, primary_key=True),
    sa.Column("event_id", sa.String(64), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False, index=True),
)
"""Events whose effect is in this database."""

answers = sa.Table(
    "answers",
    runtime_metadata,
    sa.Column("method", sa.Text, primary_key=True),
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("answer", sa.Text),
    sa.Column("at", UtcDateTime, nullable=False, index=True),
)
"""Answers of write RPCs, so that a repeated request gets the first one's answer."""

heartbeats = sa.Table(
    "heartbeats",
    runtime_metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
)
"""When the background process was last seen."""

leases = sa.Table(
    "leases",
    runtime_metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("until", UtcDateTime, nullable=False),
)
"""Who alone may do something for a while, such as relaying on SQLite."""


def upgrade_1(op: Any) -> None:
    """Create the runtime's tables, from a service's first migration."""
    op.create_table(
        "outbox",
        sa.Column("seq", BigId, autoincrement=True, nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("retry_at", UtcDateTime),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("seq", name="pk_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "inbox",
        sa.Column("handler", sa.Text, nullable=False),
        sa.Column("event_id", sa.String(64), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("handler", "event_id", name="pk_inbox"),
    )
    op.create_index("ix_inbox_at", "inbox", ["at"])
    op.create_table(
        "answers",
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("method", "request_id", name="pk_answers"),
    )
    op.create_index("ix_answers_at", "answers", ["at"])
    op.create_table(
        "heartbeats",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_heartbeats"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )


def downgrade_1(op: Any) -> None:
    """Drop them again."""
    for table in ("leases", "heartbeats", "answers", "inbox", "outbox"):
        op.drop_table(table)


def due_columns() -> list[sa.Column[Any]]:
    """The columns of ``background.DueRow``, for a migration: ``op.create_table("mails", ..., *tables.due_columns())``."""
    return [
        sa.Column("state", sa.String(10), nullable=False, server_default="due"),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", UtcDateTime, nullable=False),
        sa.Column("leased_until", UtcDateTime),
        sa.Column("leased_by", sa.Text),
        sa.Column("last_error", sa.Text),
        sa.Column("finished_at", UtcDateTime),
    ]
