"""Links on which a telephone delivers one drawing for a form that is open elsewhere."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, UtcDateTime

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "phone_drawings",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("submitter_id", BigId, nullable=False),
        sa.Column("field_uuid", sa.Text, nullable=False),
        sa.Column("token_digest", sa.Text, nullable=False),
        sa.Column("device_digest", sa.Text),
        sa.Column("attachment_uuid", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("cancelled_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_phone_drawings"),
        sa.UniqueConstraint("token_digest", name="uq_phone_drawings_token_digest"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_phone_drawings_submission_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submitter_id"], ["submitters.id"], name="fk_phone_drawings_submitter_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    for column in ("submission_id", "submitter_id", "created_at"):
        op.create_index(f"ix_phone_drawings_{column}", "phone_drawings", [column])


def downgrade() -> None:
    op.drop_table("phone_drawings")
