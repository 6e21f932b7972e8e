"""The runtime's second set of tables."""

from alembic import op

from contracts.runtime.data import tables

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    tables.upgrade_2(op)


def downgrade() -> None:
    tables.downgrade_2(op)
