"""When the latest news of each kind about a submission was told."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import UtcDateTime

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "news",
        sa.Column("submission_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("submission_id", "event", name="pk_news"),
    )
    op.create_index("ix_news_at", "news", ["at"])


def downgrade() -> None:
    op.drop_table("news")
