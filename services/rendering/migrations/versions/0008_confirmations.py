"""Signers' confirmations at providers, and the files that were prepared for them."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import Json, UtcDateTime

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "confirmations",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("submitter_id", sa.BigInteger, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("order", Json),
        sa.Column("after", Json, nullable=False),
        sa.Column("stated", Json, nullable=False),
        sa.Column("stage", sa.String(12), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("ask", sa.Integer, nullable=False),
        sa.Column("asked", sa.Text),
        sa.Column("asked_until", UtcDateTime),
        sa.Column("answers", sa.Text),
        sa.Column("login", sa.Text),
        sa.Column("session", sa.Text),
        sa.Column("session_step", sa.String(12)),
        sa.Column("session_until", UtcDateTime),
        sa.Column("prepared_for", Json),
        sa.Column("assurance", Json),
        sa.Column("preparation", sa.Integer, nullable=False),
        sa.Column("documents", sa.Integer, nullable=False),
        sa.Column("authorization", sa.Integer, nullable=False),
        sa.Column("grant", sa.Text),
        sa.Column("grant_until", UtcDateTime),
        sa.Column("faults", sa.Integer, nullable=False),
        sa.Column("problem", sa.String(20)),
        sa.Column("counted", sa.Boolean, nullable=False),
        sa.Column("settings_mark", sa.String(64)),
        sa.Column("signer", Json),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_confirmations"),
    )
    op.create_index("ix_confirmations_submission_id", "confirmations", ["submission_id"])
    op.create_index("ix_confirmations_due", "confirmations", ["state", "next_attempt_at"])
    op.create_index("ix_confirmations_stage", "confirmations", ["stage", "finished_at"])
    op.create_table(
        "confirmation_signings",
        sa.Column("confirmation_id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("prepared", Json, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("drawn", Json, nullable=False),
        sa.Column("fields", Json, nullable=False),
        sa.Column("pages", sa.Integer, nullable=False),
        sa.Column("conformance", Json),
        sa.Column("mechanism", sa.Text, nullable=False),
        sa.Column("certificate_sha256", sa.String(64), nullable=False),
        sa.Column("attributes", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary),
        sa.Column("signed_at", UtcDateTime),
        sa.Column("signed", Json),
        sa.Column("level", sa.String(10)),
        sa.PrimaryKeyConstraint("confirmation_id", "number", name="pk_confirmation_signings"),
    )


def downgrade() -> None:
    op.drop_table("confirmation_signings")
    op.drop_table("confirmations")
