"""One-time codes, and how often they are sent and guessed."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, UtcDateTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "one_time_codes",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("submission_id", BigId),
        sa.Column("address_digest", sa.Text, nullable=False),
        sa.Column("code_digest", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("passed_at", UtcDateTime),
        sa.Column("passed_request", sa.Text),
        sa.Column("failed_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_one_time_codes"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_one_time_codes_submission_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_one_time_codes_subject", "one_time_codes", ["subject", "id"])
    op.create_index("ix_one_time_codes_submission_id", "one_time_codes", ["submission_id"])
    op.create_index("ix_one_time_codes_created_at", "one_time_codes", ["created_at"])
    op.create_table(
        "rates",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("began_at", UtcDateTime, nullable=False),
        sa.Column("last_at", UtcDateTime),
        sa.Column("count", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_rates"),
    )
    op.create_index("ix_rates_last_at", "rates", ["last_at"])


def downgrade() -> None:
    op.drop_table("rates")
    op.drop_table("one_time_codes")
