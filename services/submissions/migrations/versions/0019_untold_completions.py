"""Whose completion is told with the sealed documents."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("submissions", sa.Column("untold_completion", sa.BigInteger))


def downgrade() -> None:
    op.drop_column("submissions", "untold_completion")
