"""What a submission asks of providers, and how far they are."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0014"
down_revision = "0013"

_COLUMNS = [(table, name) for table in ("submissions", "snapshots") for name in ("certsign", "dutystamp")]


def upgrade() -> None:
    for table, name in _COLUMNS:
        op.add_column(table, sa.Column(name, Json))


def downgrade() -> None:
    for table, name in reversed(_COLUMNS):
        op.drop_column(table, name)
