"""Mails that are of no use after some time: one-time codes."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.database import UtcDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("mails", sa.Column("expires_at", UtcDateTime))


def downgrade() -> None:
    with op.batch_alter_table("mails") as table:
        table.drop_column("expires_at")
