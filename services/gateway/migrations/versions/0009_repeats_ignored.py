"""The keys that a request ignored, kept with the answer under its Idempotency-Key."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("repeats", sa.Column("ignored", sa.LargeBinary))


def downgrade() -> None:
    op.drop_column("repeats", "ignored")
