"""The reasons for signing that a party has chosen, by field uuid."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # With a default in the database: processes of the version before still insert rows while this one is deployed.
    op.add_column("submitters", sa.Column("reasons", Json, nullable=False, server_default=sa.text("'{}'")))


def downgrade() -> None:
    with op.batch_alter_table("submitters") as table:
        table.drop_column("reasons")
