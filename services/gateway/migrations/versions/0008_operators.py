"""Keys of operators, their sessions at the page ``/ops``, and what they did there."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, UtcDateTime

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("operator", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "operator_sessions",
        sa.Column("token_hash", sa.Text, nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False),
        sa.Column("begun_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_operator_sessions"),
    )
    op.create_table(
        "operator_acts",
        sa.Column("id", BigId, nullable=False, autoincrement=True),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("key_name", sa.Text, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("address", sa.Text),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_operator_acts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_operator_acts_at", "operator_acts", ["at"])


def downgrade() -> None:
    """Operators' keys stay, as keys like others."""
    op.drop_table("operator_acts")
    op.drop_table("operator_sessions")
    op.drop_column("api_keys", "operator")
