"""Why settings of a certsign provider are not tried again by themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("certsign_trials", sa.Column("problem", sa.Text))


def downgrade() -> None:
    with op.batch_alter_table("certsign_trials") as table:
        table.drop_column("problem")
