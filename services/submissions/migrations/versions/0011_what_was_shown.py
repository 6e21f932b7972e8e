"""What a signer was shown last, so that what has changed since can be named."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("submitters", sa.Column("seen", Json, nullable=False, server_default=sa.text("'{}'")))


def downgrade() -> None:
    with op.batch_alter_table("submitters") as table:
        table.drop_column("seen")
