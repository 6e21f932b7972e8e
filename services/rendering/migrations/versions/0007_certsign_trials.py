"""Which settings of certsign providers are being tried, by whichever process, and which are known to work."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import UtcDateTime

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "certsign_trials",
        sa.Column("settings_mark", sa.String(64), nullable=False),
        sa.Column("works", sa.Boolean, nullable=False),
        sa.Column("tried_by", sa.String(36)),
        sa.Column("tried_until", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("settings_mark", name="pk_certsign_trials"),
    )
    op.create_index("ix_certsign_trials_tried_until", "certsign_trials", ["tried_until"])


def downgrade() -> None:
    op.drop_table("certsign_trials")
