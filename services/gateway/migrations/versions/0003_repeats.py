"""Requests with an Idempotency-Key."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import UtcDateTime

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "repeats",
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("answer", sa.LargeBinary),
        sa.Column("claimed_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("caller", "key_hash", name="pk_repeats"),
    )
    op.create_index("ix_repeats_claimed_at", "repeats", ["claimed_at"])


def downgrade() -> None:
    op.drop_table("repeats")
