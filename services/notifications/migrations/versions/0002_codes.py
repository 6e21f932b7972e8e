"""Mails that are of no use after some time (one-time codes), and messages to phones."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("mails", sa.Column("expires_at", UtcDateTime))
    op.create_table(
        "phone_messages",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("submission_id", sa.BigInteger),
        sa.Column("submitter_id", sa.BigInteger),
        sa.Column("invitation_id", sa.Text),
        sa.Column("request_id", sa.Text),
        sa.Column("to_phone", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("facts", Json, nullable=False),
        sa.Column("webhook", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("expires_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("erased_at", UtcDateTime),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_phone_messages"),
        sa.UniqueConstraint("key", name="uq_phone_messages_key"),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], name="fk_phone_messages_submission_id"),
        sqlite_autoincrement=True,
    )
    due = sa.text("state = 'due'")
    op.create_index(
        "ix_phone_messages_due", "phone_messages", ["next_attempt_at"], sqlite_where=due, postgresql_where=due
    )
    op.create_index("ix_phone_messages_submission", "phone_messages", ["submission_id", "id"])


def downgrade() -> None:
    op.drop_table("phone_messages")
    with op.batch_alter_table("mails") as table:
        table.drop_column("expires_at")
