"""What was last found out about the account's providers."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("account", sa.Column("providers_known", Json))


def downgrade() -> None:
    with op.batch_alter_table("account") as table:
        table.drop_column("providers_known")
