"""Whether a webhook is told whole records, or which ones they are."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("payload", sa.Text, nullable=False, server_default="full"))


def downgrade() -> None:
    op.drop_column("webhooks", "payload")
