"""What is known of submissions that were removed for good, and the receipts for that."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json, UtcDateTime

revision = "0024"
down_revision = "0023"

_OPEN = sa.text("signature IS NULL")


def upgrade() -> None:
    op.create_table(
        "erasures",
        sa.Column("submission_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("template_id", sa.BigInteger),
        sa.Column("created_by_id", sa.BigInteger),
        sa.Column("erased_at", UtcDateTime, nullable=False),
        sa.Column("why", Json, nullable=False),
        sa.Column("trail_length", sa.Integer, nullable=False),
        sa.Column("trail_hash", sa.Text, nullable=False),
        sa.Column("documents", Json, nullable=False),
        sa.Column("made_from", Json, nullable=False),
        sa.Column("parts", Json, nullable=False),
        sa.Column("files_gone_at", UtcDateTime),
        sa.Column("asked_at", UtcDateTime, nullable=False),
        sa.Column("receipt", sa.Text),
        sa.Column("signature", sa.Text),
        sa.Column("stamped", sa.Boolean),
        sa.PrimaryKeyConstraint("submission_id", name="pk_erasures"),
    )
    op.create_index("ix_erasures_open", "erasures", ["erased_at"], postgresql_where=_OPEN, sqlite_where=_OPEN)


def downgrade() -> None:
    op.drop_table("erasures")
