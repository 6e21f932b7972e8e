"""Links of signers that are no longer valid, and what the sender had put into a signer's fields."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("submitters", sa.Column("given", Json))
    op.create_table(
        "replaced_links",
        sa.Column("slug", sa.Text, nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("slug", name="pk_replaced_links"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_replaced_links_submission_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_replaced_links_submission_id", "replaced_links", ["submission_id"])


def downgrade() -> None:
    op.drop_table("replaced_links")
    with op.batch_alter_table("submitters") as table:
        table.drop_column("given")
