"""Devices that are handed from one party to the next, to sign in person."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, UtcDateTime

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "handovers",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("from_id", BigId, nullable=False),
        sa.Column("to_id", BigId, nullable=False),
        sa.Column("token_digest", sa.Text, nullable=False),
        sa.Column("device_digest", sa.Text, nullable=False),
        sa.Column("slug_digest", sa.Text, nullable=False),
        sa.Column("link_digest", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("taken_at", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_handovers"),
        sa.UniqueConstraint("token_digest", name="uq_handovers_token_digest"),
        sa.UniqueConstraint("link_digest", name="uq_handovers_link_digest"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_handovers_submission_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["from_id"], ["submitters.id"], name="fk_handovers_from_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["to_id"], ["submitters.id"], name="fk_handovers_to_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    for column in ("submission_id", "from_id", "to_id", "created_at"):
        op.create_index(f"ix_handovers_{column}", "handovers", [column])


def downgrade() -> None:
    op.drop_table("handovers")
