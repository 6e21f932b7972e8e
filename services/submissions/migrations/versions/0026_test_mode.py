"""What was made in test mode, and the wipings of that."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, UtcDateTime

revision = "0026"
down_revision = "0025"

_TABLES = ("templates", "submissions", "submitters", "batches", "erasures")
_LISTED = ("submissions", "submitters")
_TEST = sa.text("test")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("test", sa.Boolean, nullable=False, server_default=sa.false()))
    for table in _LISTED:
        op.create_index(f"ix_{table}_test", table, ["id"], postgresql_where=_TEST, sqlite_where=_TEST)
    op.create_table(
        "test_wipes",
        sa.Column("id", BigId, nullable=False),
        sa.Column("last_submission_id", sa.BigInteger, nullable=False),
        sa.Column("last_batch_id", sa.BigInteger, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_test_wipes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_test_wipes_due", "test_wipes", ["state", "next_attempt_at"])


def downgrade() -> None:
    op.drop_table("test_wipes")
    for table in _LISTED:
        op.drop_index(f"ix_{table}_test", table)
    for table in reversed(_TABLES):
        op.drop_column(table, "test")
