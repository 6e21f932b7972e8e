"""What a document asks for that is filled anew for each submission."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import Json

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("documents", sa.Column("docx", Json, nullable=True))


def downgrade() -> None:
    op.drop_column("documents", "docx")
