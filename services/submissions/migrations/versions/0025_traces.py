"""Which trace work that is done later belongs to."""

from alembic import op

from contracts.runtime.data import tables

revision = "0025"
down_revision = "0024"

_TABLES = ("reminders", "batches")


def upgrade() -> None:
    tables.add_trace(op, *_TABLES)


def downgrade() -> None:
    tables.drop_trace(op, *_TABLES)
