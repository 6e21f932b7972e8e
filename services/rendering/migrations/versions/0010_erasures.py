"""What was deleted of submissions that were removed for good, and receipts for that to be signed."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0010"
down_revision = "0009"

_UNTOLD = sa.text("told_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "erasures",
        sa.Column("submission_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("erased_at", UtcDateTime, nullable=False),
        sa.Column("deleted", Json, nullable=False),
        sa.Column("removal", sa.Text),
        sa.Column("ready_at", UtcDateTime, nullable=False),
        sa.Column("told_at", UtcDateTime),
        sa.PrimaryKeyConstraint("submission_id", name="pk_erasures"),
    )
    op.create_index("ix_erasures_untold", "erasures", ["ready_at"], sqlite_where=_UNTOLD, postgresql_where=_UNTOLD)
    op.create_table(
        "erasure_receipts",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_erasure_receipts"),
        sa.UniqueConstraint("sha256", name="uq_erasure_receipts_sha256"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_erasure_receipts_due", "erasure_receipts", ["state", "next_attempt_at"])


def downgrade() -> None:
    op.drop_table("erasure_receipts")
    op.drop_table("erasures")
