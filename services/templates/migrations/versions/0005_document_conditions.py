"""When a document is shown and sealed."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("documents", sa.Column("conditions", Json, nullable=True))


def downgrade() -> None:
    op.drop_column("documents", "conditions")
