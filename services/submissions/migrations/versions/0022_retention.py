"""When a submission is erased, and whether it must not be."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import UtcDateTime

revision = "0022"
down_revision = "0021"

_TO_ERASE = sa.text("erase_at IS NOT NULL")
_HELD = sa.text("legal_hold")


def upgrade() -> None:
    op.add_column("submissions", sa.Column("erase_at", UtcDateTime))
    op.add_column("submissions", sa.Column("legal_hold", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_index(
        "ix_submissions_erase_at",
        "submissions",
        ["erase_at", "id"],
        postgresql_where=_TO_ERASE,
        sqlite_where=_TO_ERASE,
    )
    op.create_index("ix_submissions_held", "submissions", ["id"], postgresql_where=_HELD, sqlite_where=_HELD)


def downgrade() -> None:
    op.drop_index("ix_submissions_held", "submissions")
    op.drop_index("ix_submissions_erase_at", "submissions")
    op.drop_column("submissions", "legal_hold")
    op.drop_column("submissions", "erase_at")
