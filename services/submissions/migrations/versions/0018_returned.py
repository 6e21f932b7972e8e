"""Who has sent a submission back for correction."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("submissions", sa.Column("returned", Json))


def downgrade() -> None:
    op.drop_column("submissions", "returned")
