"""Which templates were made in test mode, and which files came there."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import UtcDateTime

revision = "0007"
down_revision = "0006"

_TEST = sa.text("test")


def upgrade() -> None:
    op.add_column("templates", sa.Column("test", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_index("ix_templates_test", "templates", ["id"], postgresql_where=_TEST, sqlite_where=_TEST)
    op.create_table(
        "test_files",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("wiped_at", UtcDateTime),
        sa.PrimaryKeyConstraint("key", name="pk_test_files"),
    )


def downgrade() -> None:
    op.drop_table("test_files")
    op.drop_index("ix_templates_test", "templates")
    op.drop_column("templates", "test")
