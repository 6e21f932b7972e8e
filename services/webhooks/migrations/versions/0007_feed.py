"""The log is read by positions, also those of some kinds of events alone."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_index("ix_events_type", "events", ["event_type", "position"])


def downgrade() -> None:
    op.drop_index("ix_events_type", "events")
