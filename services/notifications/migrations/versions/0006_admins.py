"""Who the admins are, as the gateway says."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "admins",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("emails", Json, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_admins"),
    )


def downgrade() -> None:
    op.drop_table("admins")
