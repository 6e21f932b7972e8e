"""Which events happened in test mode, and which webhooks are told of these."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_TEST = sa.text("test")


def upgrade() -> None:
    for table in ("webhooks", "events"):
        op.add_column(table, sa.Column("test", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_index("ix_events_test", "events", ["position"], postgresql_where=_TEST, sqlite_where=_TEST)


def downgrade() -> None:
    op.drop_index("ix_events_test", "events")
    for table in ("events", "webhooks"):
        op.drop_column(table, "test")
