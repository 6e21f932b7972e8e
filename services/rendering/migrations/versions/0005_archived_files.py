"""Sealed files that stay PAdES B-LTA."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "archived_files",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("seal_id", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("file", Json),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("until", UtcDateTime),
        sa.Column("candidates", Json, nullable=False),
        sa.Column("sweep_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_archived_files"),
        sa.UniqueConstraint("seal_id", "document", name="uq_archived_files_seal_id_document"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_archived_files_submission_id", "archived_files", ["submission_id"])
    op.create_index("ix_archived_files_until", "archived_files", ["until"])
    op.create_index("ix_archived_files_sweep_at", "archived_files", ["sweep_at"])
    op.create_index("ix_archived_files_due", "archived_files", ["state", "next_attempt_at"])


def downgrade() -> None:
    op.drop_table("archived_files")
