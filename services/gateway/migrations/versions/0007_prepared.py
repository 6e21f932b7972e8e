"""Submissions that agents have prepared for a person to send."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "prepared",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("agent", Json, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("confirmed_at", UtcDateTime),
        sa.Column("sender", sa.LargeBinary),
        sa.Column("submission_id", BigId),
        sa.Column("ended", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_prepared"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_prepared_user_id"),
    )
    op.create_index("ix_prepared_user_id", "prepared", ["user_id"])
    op.create_index("ix_prepared_expires_at", "prepared", ["expires_at"])


def downgrade() -> None:
    """What nobody has confirmed yet has to be prepared again."""
    op.drop_table("prepared")
