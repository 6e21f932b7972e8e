"""Which messages are of test mode, and are kept instead of being sent."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_TABLES = ("mails", "phone_messages")
_TEST = sa.text("test")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("test", sa.Boolean, nullable=False, server_default=sa.false()))
        op.create_index(f"ix_{table}_test", table, ["id"], postgresql_where=_TEST, sqlite_where=_TEST)


def downgrade() -> None:
    for table in _TABLES:
        op.drop_index(f"ix_{table}_test", table)
        op.drop_column(table, "test")
