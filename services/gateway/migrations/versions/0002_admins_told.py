"""Which admins the other services were told of last."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("account", sa.Column("admins_told", Json))
    op.add_column("account", sa.Column("admins_revision", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    with op.batch_alter_table("account") as table:
        table.drop_column("admins_revision")
        table.drop_column("admins_told")
