"""Statements of completions, and from when on there are any."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.clock import now
from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "statements",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("submitter_id", sa.BigInteger, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("statement", Json),
        sa.Column("parts", Json),
        sa.Column("signed", Json),
        sa.Column("erased_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_statements"),
        sa.UniqueConstraint("sha256", name="uq_statements_sha256"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_statements_submission_id", "statements", ["submission_id"])
    op.create_index("ix_statements_erased_at", "statements", ["erased_at"])
    op.create_index("ix_statements_due", "statements", ["state", "next_attempt_at"])
    since = op.create_table(
        "statements_since",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_statements_since"),
    )
    op.bulk_insert(since, [{"id": 1, "at": now()}])


def downgrade() -> None:
    op.drop_table("statements_since")
    op.drop_table("statements")
