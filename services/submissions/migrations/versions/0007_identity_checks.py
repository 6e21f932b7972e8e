"""Attempts of signers to prove their identity."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "identity_checks",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("submitter_id", BigId, nullable=False),
        sa.Column("field_uuid", sa.Text, nullable=False),
        sa.Column("method", sa.Text),
        sa.Column("issuer", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("state_digest", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("claimed_at", UtcDateTime),
        sa.Column("finished_at", UtcDateTime),
        sa.Column("problem", sa.Text),
        sa.Column("proof", Json),
        sa.PrimaryKeyConstraint("id", name="pk_identity_checks"),
        sa.UniqueConstraint("state_digest", name="uq_identity_checks_state_digest"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_identity_checks_submission_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submitter_id"], ["submitters.id"], name="fk_identity_checks_submitter_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_identity_checks_submission_id", "identity_checks", ["submission_id"])
    op.create_index("ix_identity_checks_submitter_id", "identity_checks", ["submitter_id"])
    op.create_index("ix_identity_checks_created_at", "identity_checks", ["created_at"])


def downgrade() -> None:
    op.drop_table("identity_checks")
