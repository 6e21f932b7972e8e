"""What comes next for a receiver is found by index, and so is what is under way."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_DUE = sa.text("state = 'due'")
_LEASED = sa.text("leased_by IS NOT NULL")


def upgrade() -> None:
    lane = ["webhook_id", "next_attempt_at", "id"]
    op.create_index("ix_deliveries_lane", "deliveries", lane, sqlite_where=_DUE, postgresql_where=_DUE)
    op.create_index(
        "ix_deliveries_leased", "deliveries", ["webhook_id"], sqlite_where=_LEASED, postgresql_where=_LEASED
    )


def downgrade() -> None:
    op.drop_index("ix_deliveries_leased", "deliveries")
    op.drop_index("ix_deliveries_lane", "deliveries")
