"""Signatures that a provider makes, and the files that were prepared for them; sealed files that wait for duty stamps."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import Json, UtcDateTime

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "certsign_jobs",
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("seal_id", sa.Text, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("order", Json),
        sa.Column("prepared_for", Json),
        sa.Column("assurance", Json),
        sa.Column("preparation", sa.Integer, nullable=False),
        sa.Column("documents", sa.Integer, nullable=False),
        sa.Column("authorization", sa.Integer, nullable=False),
        sa.Column("grant", sa.Text),
        sa.Column("grant_until", UtcDateTime),
        sa.Column("session", sa.Text),
        sa.Column("session_until", UtcDateTime),
        sa.Column("faults", sa.Integer, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("away", sa.Boolean, nullable=False),
        sa.Column("counted", sa.Boolean, nullable=False),
        sa.Column("settings_mark", sa.String(64)),
        sa.Column("waived_by", sa.Text),
        sa.Column("waived_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_certsign_jobs"),
    )
    op.create_index("ix_certsign_jobs_submission_id", "certsign_jobs", ["submission_id"])
    op.create_index("ix_certsign_jobs_due", "certsign_jobs", ["state", "next_attempt_at"])
    op.create_table(
        "certsign_signings",
        sa.Column("job_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("prepared", Json, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("drawn", Json, nullable=False),
        sa.Column("conformance", Json),
        sa.Column("mechanism", sa.Text, nullable=False),
        sa.Column("certificate_sha256", sa.String(64), nullable=False),
        sa.Column("attributes", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary),
        sa.Column("signed_at", UtcDateTime),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_certsign_signings"),
    )
    op.create_table(
        "stamped_seals",
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("seal_id", sa.Text, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("order", Json),
        sa.Column("parts", Json),
        sa.Column("files", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("wait_until", UtcDateTime),
        sa.Column("told_at", UtcDateTime),
        sa.Column("stamped_attempt", sa.Integer),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_stamped_seals"),
    )
    op.create_index("ix_stamped_seals_submission_id", "stamped_seals", ["submission_id"])
    op.create_index("ix_stamped_seals_due", "stamped_seals", ["state", "next_attempt_at"])


def downgrade() -> None:
    op.drop_table("stamped_seals")
    op.drop_table("certsign_signings")
    op.drop_table("certsign_jobs")
