"""What was told is kept, and streams of events have an epoch: nobody waits for ever for an event."""

from alembic import op

from contracts.runtime.data import tables

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    tables.upgrade_2(op)


def downgrade() -> None:
    tables.downgrade_2(op)
