"""The first tables."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    tables.upgrade_1(op)
    op.create_table(
        "users",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("email_key", sa.Text, nullable=False),
        sa.Column("first_name", sa.Text, nullable=False),
        sa.Column("last_name", sa.Text),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("password_hash", sa.Text, nullable=False),
        sa.Column("api_key_hash", sa.Text, nullable=False),
        sa.Column("api_key_sealed", sa.LargeBinary, nullable=False),
        sa.Column("archived_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.CheckConstraint("role IN ('admin', 'editor', 'viewer')", name="ck_users_role"),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("email_key", name="uq_users_email_key"),
        sa.UniqueConstraint("api_key_hash", name="uq_users_api_key_hash"),
        sqlite_autoincrement=True,
    )
    account = op.create_table(
        "account",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("changes", Json, nullable=False),
        sa.Column("first_admin", sa.Text),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_account"),
    )
    op.bulk_insert(account, [{"id": 1, "changes": {}, "updated_at": datetime.fromtimestamp(0, UTC)}])


def downgrade() -> None:
    for table in ("account", "users"):
        op.drop_table(table)
    tables.downgrade_1(op)
