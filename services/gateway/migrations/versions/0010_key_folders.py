"""Keys that are limited to folders of templates."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("folders", Json))


def downgrade() -> None:
    """Keys with folders may do nothing afterwards: their scopes are words that the version before does not know."""
    op.drop_column("api_keys", "folders")
