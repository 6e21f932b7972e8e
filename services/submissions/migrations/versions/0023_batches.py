"""Batches: files of rows, each of which becomes a submission."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, Json, UtcDateTime
from contracts.runtime.data.tables import due_columns

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "batches",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("template_id", sa.BigInteger, nullable=False),
        sa.Column("created_by_id", sa.BigInteger),
        sa.Column("actor", Json),
        sa.Column("settings", Json),
        sa.Column("rate", sa.Integer, nullable=False),
        sa.Column("warnings", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("progressed_at", UtcDateTime, nullable=False),
        sa.Column("cancelled_at", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("expires_at", UtcDateTime),
        *due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_batches_due", "batches", ["state", "next_attempt_at"])
    op.create_index("ix_batches_expires_at", "batches", ["expires_at"])
    op.create_table(
        "batch_lines",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("batch_id", BigId, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("input", Json),
        sa.Column("submission_id", sa.BigInteger),
        sa.Column("error", Json),
        sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_batch_lines"),
        sa.CheckConstraint("status IN ('pending', 'created', 'failed', 'cancelled')", name="ck_batch_lines_status"),
        sa.UniqueConstraint("batch_id", "number", name="uq_batch_lines_batch_id_number"),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name="fk_batch_lines_batch_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_batch_lines_status", "batch_lines", ["batch_id", "status", "id"])
    op.create_index("ix_batch_lines_next", "batch_lines", ["batch_id", "status", "tries", "id"])
    op.create_index("ix_batch_lines_submission_id", "batch_lines", ["submission_id"])


def downgrade() -> None:
    op.drop_table("batch_lines")
    op.drop_table("batches")
