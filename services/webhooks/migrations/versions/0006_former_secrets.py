"""Signing secrets that were replaced sign for a while, too."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("former_secrets", Json, server_default=sa.text("'[]'"), nullable=False))


def downgrade() -> None:
    with op.batch_alter_table("webhooks") as table:
        table.drop_column("former_secrets")
