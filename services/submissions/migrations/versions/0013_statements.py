"""Statements of completions, and what a sealing found to differ from them."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("submissions", sa.Column("sealing_differences", Json))
    op.create_table(
        "statements",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("submitter_id", BigId, nullable=False),
        sa.Column("receipt", sa.Text, nullable=False),
        sa.Column("statement", Json, nullable=False),
        sa.Column("parts", Json, nullable=False),
        sa.Column("signed", Json),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_statements"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_statements_submission_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submitter_id"], ["submitters.id"], name="fk_statements_submitter_id", ondelete="CASCADE"
        ),
    )
    for column in ("submission_id", "submitter_id", "receipt"):
        op.create_index(f"ix_statements_{column}", "statements", [column])


def downgrade() -> None:
    op.drop_table("statements")
    op.drop_column("submissions", "sealing_differences")
