"""The logo that a mail shows."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("mails", sa.Column("logo", Json))


def downgrade() -> None:
    op.drop_column("mails", "logo")
