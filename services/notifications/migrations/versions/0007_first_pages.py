"""The picture of the first page that a mail shows."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("mails", sa.Column("first_page", Json))


def downgrade() -> None:
    op.drop_column("mails", "first_page")
