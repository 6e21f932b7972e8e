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
        "blob_removals",
        sa.Column("id", BigId, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_blob_removals"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_blob_removals_submission_id", "blob_removals", ["submission_id"], unique=False)
    op.create_index("ix_blob_removals_due", "blob_removals", ["state", "next_attempt_at"], unique=False)
    op.create_table(
        "templates",
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("folder_name", sa.Text, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("author_id", sa.BigInteger, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_templates"),
    )
    op.create_index("ix_templates_folder_name", "templates", ["folder_name"], unique=False)
    op.create_table(
        "trail",
        sa.Column("id", BigId, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("submitter_id", sa.BigInteger),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("occurred_at", UtcDateTime, nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_trail"),
        sa.UniqueConstraint("submission_id", "position", name="uq_trail_submission_id_position"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "submissions",
        sa.Column("id", BigId, nullable=False),
        sa.Column("slug", sa.Text, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("template_id", sa.BigInteger),
        sa.Column("created_by_id", sa.BigInteger),
        sa.Column("created_by_email", sa.Text),
        sa.Column("created_by_name", sa.Text),
        sa.Column("signing_order", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("unfinished", sa.Boolean, nullable=False),
        sa.Column("sealing_status", sa.Text),
        sa.Column("seal_id", sa.Text),
        sa.Column("sealing_error", sa.Text),
        sa.Column("sealing_since", UtcDateTime),
        sa.Column("sealing_asked_at", UtcDateTime),
        sa.Column("pades_level", sa.Text),
        sa.Column("expire_at", UtcDateTime),
        sa.Column("archived_at", UtcDateTime),
        sa.Column("signed_at", UtcDateTime),
        sa.Column("completed_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("preferences", Json, nullable=False),
        sa.Column("details", Json, nullable=False),
        sa.Column("variables", Json, nullable=False),
        sa.Column("results", Json),
        sa.Column("drafts", Json),
        sa.Column("values_version", sa.Integer, nullable=False),
        sa.Column("event_sequence", sa.Integer, nullable=False),
        sa.Column("trail_length", sa.Integer, nullable=False),
        sa.Column("trail_hash", sa.Text, nullable=False),
        sa.Column("trail_at", UtcDateTime, nullable=False),
        sa.Column("search", sa.Text, nullable=False),
        sa.CheckConstraint("sealing_status IN ('sealing', 'sealed', 'failed')", name="ck_submissions_sealing_status"),
        sa.CheckConstraint("signing_order IN ('preserved', 'random')", name="ck_submissions_signing_order"),
        sa.CheckConstraint("status <> 'completed' OR results IS NOT NULL", name="ck_submissions_completed_has_results"),
        sa.CheckConstraint("status IN ('pending', 'completed', 'declined', 'expired')", name="ck_submissions_status"),
        sa.ForeignKeyConstraint(["template_id"], ["templates.id"], name="fk_submissions_template_id"),
        sa.PrimaryKeyConstraint("id", name="pk_submissions"),
        sa.UniqueConstraint("slug", name="uq_submissions_slug"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_submissions_archived",
        "submissions",
        ["id"],
        unique=False,
        postgresql_where=sa.text("archived_at IS NOT NULL"),
        sqlite_where=sa.text("archived_at IS NOT NULL"),
    )
    op.create_index("ix_submissions_created_by", "submissions", ["created_by_id", "id"], unique=False)
    op.create_index(
        "ix_submissions_expiring",
        "submissions",
        ["expire_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending' AND expire_at IS NOT NULL"),
        sqlite_where=sa.text("status = 'pending' AND expire_at IS NOT NULL"),
    )
    op.create_index(
        "ix_submissions_sealing",
        "submissions",
        ["sealing_asked_at"],
        unique=False,
        postgresql_where=sa.text("sealing_status = 'sealing'"),
        sqlite_where=sa.text("sealing_status = 'sealing'"),
    )
    op.create_index("ix_submissions_status", "submissions", ["status", "id"], unique=False)
    op.create_index("ix_submissions_template", "submissions", ["template_id", "id"], unique=False)
    op.create_table(
        "snapshots",
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("template_name", sa.Text),
        sa.Column("documents", Json, nullable=False),
        sa.Column("fields", Json, nullable=False),
        sa.Column("parties", Json, nullable=False),
        sa.Column("account", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_snapshots_submission_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("submission_id", name="pk_snapshots"),
    )
    op.create_table(
        "submitters",
        sa.Column("id", BigId, nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("party_uuid", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("email", sa.Text),
        sa.Column("name", sa.Text),
        sa.Column("phone", sa.Text),
        sa.Column("external_id", sa.Text),
        sa.Column("slug", sa.Text, nullable=False),
        sa.Column("signing_group", sa.Integer, nullable=False),
        sa.Column("viewer", sa.Boolean, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("field_values", Json, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("preferences", Json, nullable=False),
        sa.Column("message", Json),
        sa.Column("visit", Json, nullable=False),
        sa.Column("decline_reason", sa.Text),
        sa.Column("completed_by_api", sa.Text),
        sa.Column("invited_at", UtcDateTime),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("opened_at", UtcDateTime),
        sa.Column("started_at", UtcDateTime),
        sa.Column("completed_at", UtcDateTime),
        sa.Column("declined_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("search", sa.Text, nullable=False),
        sa.CheckConstraint("status IN ('pending', 'completed', 'declined')", name="ck_submitters_status"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_submitters_submission_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_submitters"),
        sa.UniqueConstraint("slug", name="uq_submitters_slug"),
        sa.UniqueConstraint("submission_id", "position", name="uq_submitters_submission_id_position"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_submitters_completed_at", "submitters", ["completed_at", "id"], unique=False)
    op.create_index("ix_submitters_external_id", "submitters", ["external_id", "id"], unique=False)
    op.create_table(
        "attachments",
        sa.Column("uuid", sa.Text, nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.Column("submitter_id", BigId, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("file", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_attachments_submission_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submitter_id"], ["submitters.id"], name="fk_attachments_submitter_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_attachments"),
    )
    op.create_index("ix_attachments_submission_id", "attachments", ["submission_id"], unique=False)


def downgrade() -> None:
    for table in ("attachments", "submitters", "snapshots", "submissions", "trail", "templates", "blob_removals"):
        op.drop_table(table)
    tables.downgrade_1(op)
