"""First and last name of who made a submission, as the user has them. Older rows have the whole name alone."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_NAMES = ("created_by_first_name", "created_by_last_name")


def upgrade() -> None:
    for name in _NAMES:
        op.add_column("submissions", sa.Column(name, sa.Text))


def downgrade() -> None:
    with op.batch_alter_table("submissions") as table:
        for name in _NAMES:
            table.drop_column(name)
