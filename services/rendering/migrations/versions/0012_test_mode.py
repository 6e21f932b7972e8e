"""Which statements and receipts are of test mode, and get no time-stamp."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_TABLES = ("statements", "erasure_receipts")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("test", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, "test")
