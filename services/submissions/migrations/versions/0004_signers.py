"""Consent and branding of submitters, parties that others invite, reminders."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    # With defaults in the database: processes of the version before still insert rows while this one is deployed.
    op.add_column("submissions", sa.Column("invitees", Json, nullable=False, server_default=sa.text("'[]'")))
    op.add_column("submitters", sa.Column("consent", Json))
    op.add_column("submitters", sa.Column("branding", Json, nullable=False, server_default=sa.text("'{}'")))
    op.create_table(
        "reminders",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("submitter_id", BigId, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_reminders"),
        sa.UniqueConstraint("submitter_id", "number", name="uq_reminders_submitter_id_number"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_reminders_submission_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submitter_id"], ["submitters.id"], name="fk_reminders_submitter_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reminders_submission", "reminders", ["submission_id"])
    op.create_index("ix_reminders_due", "reminders", ["state", "next_attempt_at"])


def downgrade() -> None:
    op.drop_table("reminders")
    for table, columns in (("submitters", ("branding", "consent")), ("submissions", ("invitees",))):
        for column in columns:
            op.drop_column(table, column)
