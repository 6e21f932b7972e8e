"""Which trace work that is done later belongs to."""

from alembic import op

from contracts.runtime.data import tables

revision = "0009"
down_revision = "0008"

_TABLES = ("mails", "phone_messages")


def upgrade() -> None:
    tables.add_trace(op, *_TABLES)


def downgrade() -> None:
    tables.drop_trace(op, *_TABLES)
