"""How far a signer is with their own signature at a provider."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("submitters", sa.Column("confirmation", Json))


def downgrade() -> None:
    op.drop_column("submitters", "confirmation")
