"""The runtime's own tables, in every service's database: events on their way out and in, answers, heartbeats, leases.

A service's first Alembic migration calls ``upgrade_1(op)``, a later one ``upgrade_2(op)``. When these tables change,
``upgrade_3(op)`` is added here and called by the next migration of each service; the earlier ones stay as they are.
"""

from typing import Any

import sqlalchemy as sa

from contracts.runtime.clock import now, uuid7
from contracts.runtime.data import search
from contracts.runtime.data.database import BigId, UtcDateTime, metadata

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
    sa.Column("subject", sa.Text),
    sa.Column("sequence", sa.Integer),
    sa.Column("epoch", sa.String(36)),
    sa.Column("keep", sa.Boolean, nullable=False, server_default=sa.true()),
    sqlite_autoincrement=True,
)
"""Events that are still to be published. ``body`` is the envelope without its epoch. ``subject`` is NULL where a version wrote
that did not know it; ``keep`` is false when nothing of the event may be kept once it is published."""

told = sa.Table(
    "told",
    runtime_metadata,
    sa.Column("position", BigId, primary_key=True, autoincrement=True),
    sa.Column("event_id", sa.String(36), nullable=False, unique=True),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False, index=True),
    sa.Column("sequence", sa.Integer),
    sa.Column("epoch", sa.String(36)),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("told_at", UtcDateTime, nullable=False, index=True),
    sqlite_autoincrement=True,
)
"""Events that were published, for EVENTS_KEPT_HOURS: who missed one asks for it. One relay at a time writes here, so positions
rise in the order of the commits, and whoever reads on from one skips nothing."""

event_stream = sa.Table(
    "event_stream",
    runtime_metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.String(36), nullable=False),
    sa.Column("begun_at", UtcDateTime, nullable=False),
    sa.Column("kept_since", UtcDateTime, nullable=False),
)
"""One row, id 1: the present life of what this service tells, and since when ``told`` has everything."""

event_cursors = sa.Table(
    "event_cursors",
    runtime_metadata,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("epoch", sa.String(36), nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("event_id", sa.String(36)),
    sa.Column("kinds", sa.Text, nullable=False),
)
"""Cursors: how far this service has walked through what each owner has told (``catching_up.py``). ``event_id`` is what was told
at ``position``: another one there means that the owner's database was restored."""

missing_events = sa.Table(
    "missing_events",
    runtime_metadata,
    sa.Column("event_id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("noticed_at", UtcDateTime, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_at", UtcDateTime),
)
"""Events that were told and not taken here, until they are. ``next_at`` is when they are fetched again, NULL: never."""

inbox = sa.Table(
    "inbox",
    runtime_metadata,
    sa.Column("handler", sa.Text, primary_key=True),
    sa.Column("event_id", sa.String(64), primary_key=True, index=True),
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
"""Leases: the process that alone may do something for a while, such as relaying on SQLite."""


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


def upgrade_2(op: Any) -> None:
    """Keep what was told, give a stream of events an epoch, and let whoever missed something find out what.

    The index comes first: on PostgreSQL it is made outside the migration's transaction, and made again when that fails.
    """
    postgresql = op.get_context().dialect.name == "postgresql"
    if postgresql:
        search.build_index(op, "ix_inbox_event_id", "inbox", "(event_id)")
    else:
        op.create_index("ix_inbox_event_id", "inbox", ["event_id"])
    for column in (
        sa.Column("subject", sa.Text),
        sa.Column("sequence", sa.Integer),
        sa.Column("epoch", sa.String(36)),
        sa.Column("keep", sa.Boolean, nullable=False, server_default=sa.true()),
    ):
        op.add_column("outbox", column)
    op.create_table(
        "told",
        sa.Column("position", BigId, autoincrement=True, nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer),
        sa.Column("epoch", sa.String(36)),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("told_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_told"),
        sa.UniqueConstraint("event_id", name="uq_told_event_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_told_subject", "told", ["subject"])
    op.create_index("ix_told_told_at", "told", ["told_at"])
    stream = op.create_table(
        "event_stream",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("epoch", sa.String(36), nullable=False),
        sa.Column("begun_at", UtcDateTime, nullable=False),
        sa.Column("kept_since", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event_stream"),
    )
    op.bulk_insert(stream, [{"id": 1, "epoch": uuid7(), "begun_at": now(), "kept_since": now()}])
    op.create_table(
        "event_cursors",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("epoch", sa.String(36), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("event_id", sa.String(36)),
        sa.Column("kinds", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_event_cursors"),
    )
    op.create_table(
        "missing_events",
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("noticed_at", UtcDateTime, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
        sa.Column("next_at", UtcDateTime),
        sa.PrimaryKeyConstraint("event_id", name="pk_missing_events"),
    )


def downgrade_2(op: Any) -> None:
    """Drop them again."""
    for table in ("missing_events", "event_cursors", "event_stream", "told"):
        op.drop_table(table)
    with op.batch_alter_table("outbox", table_kwargs={"sqlite_autoincrement": True}) as table:
        for column in ("subject", "sequence", "epoch", "keep"):
            table.drop_column(column)
    op.drop_index("ix_inbox_event_id", "inbox")


def add_trace(op: Any, *names: str) -> None:
    """Add the column of ``background.Traced`` to tables of due work, from a migration."""
    for name in names:
        op.add_column(name, sa.Column("traceparent", sa.String(55)))


def drop_trace(op: Any, *names: str) -> None:
    """Drop it again."""
    for name in names:
        op.drop_column(name, "traceparent")


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
