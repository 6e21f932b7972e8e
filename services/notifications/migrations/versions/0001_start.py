"""The first tables."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    tables.upgrade_1(op)
    op.create_table(
        "submissions",
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("erased_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_submissions"),
    )
    op.create_table(
        "mails",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("submission_id", sa.BigInteger),
        sa.Column("submitter_id", sa.BigInteger),
        sa.Column("invitation_id", sa.Text),
        sa.Column("request_id", sa.Text),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("sender_name", sa.Text, nullable=False),
        sa.Column("to_name", sa.Text, nullable=False),
        sa.Column("to_address", sa.Text, nullable=False),
        sa.Column("reply_to", Json, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("html", sa.Text, nullable=False),
        sa.Column("links", Json, nullable=False),
        sa.Column("files", Json, nullable=False),
        sa.Column("unattached", Json),
        sa.Column("answer", sa.Text),
        sa.Column("file_kept", sa.Boolean, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("erased_at", UtcDateTime),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_mails"),
        sa.UniqueConstraint("key", name="uq_mails_key"),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], name="fk_mails_submission_id"),
        sqlite_autoincrement=True,
    )
    due, erased = sa.text("state = 'due'"), sa.text("erased_at IS NOT NULL AND file_kept")
    op.create_index("ix_mails_due", "mails", ["next_attempt_at"], sqlite_where=due, postgresql_where=due)
    op.create_index("ix_mails_submission", "mails", ["submission_id", "id"])
    op.create_index("ix_mails_erased", "mails", ["id"], sqlite_where=erased, postgresql_where=erased)


def downgrade() -> None:
    for table in ("mails", "submissions"):
        op.drop_table(table)
    tables.downgrade_1(op)
