"""Several API keys of a user, with scopes and an end. The key that each active user has becomes the first one."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId, UtcDateTime

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("first_hash", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("expires_at", UtcDateTime),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("key_hash", name="uq_api_keys_key_hash"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_api_keys_user_id"),
    )
    op.create_index("ix_api_keys_user_id", "api_keys", ["user_id"])
    op.execute(
        "INSERT INTO api_keys (id, key_hash, user_id, first_hash, name, scopes) "
        "SELECT substr(api_key_hash, 1, 16), api_key_hash, id, api_key_hash, 'First key', "
        "'read send templates webhooks admin' FROM users WHERE archived_at IS NULL"
    )


def downgrade() -> None:
    """First keys stay what they are; all others find nobody any more."""
    op.drop_table("api_keys")
