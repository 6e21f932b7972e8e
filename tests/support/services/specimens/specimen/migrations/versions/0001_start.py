"""The specimen's tables."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    tables.upgrade_1(op)
    op.create_table(
        "counters",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_counters"),
    )
    op.create_table(
        "notes",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_notes"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tasks",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("todo", sa.Text, nullable=False),
        sa.Column("lane", sa.Text),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "traces",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_traces"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    for table in ("traces", "tasks", "notes", "counters"):
        op.drop_table(table)
    tables.downgrade_1(op)
