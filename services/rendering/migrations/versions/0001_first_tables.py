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
        "seal_jobs",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("seal_id", sa.Text, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("request", Json),
        sa.Column("files", sa.Integer, nullable=False),
        sa.Column("sealed_attempt", sa.Integer),
        sa.Column("pades_level", sa.Text),
        sa.Column("swept", sa.Boolean, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_seal_jobs"),
        sa.UniqueConstraint("seal_id", name="uq_seal_jobs_seal_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_seal_jobs_submission_id", "seal_jobs", ["submission_id"])
    op.create_index("ix_seal_jobs_due", "seal_jobs", ["state", "next_attempt_at"])
    op.create_index("ix_seal_jobs_swept", "seal_jobs", ["swept", "finished_at"])
    op.create_table(
        "sealed_files",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("submission_id", sa.BigInteger),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_sealed_files"),
    )
    op.create_index("ix_sealed_files_submission_id", "sealed_files", ["submission_id"])
    op.create_table(
        "results",
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("digest", sa.String(100), nullable=False),
        sa.Column("answer", Json, nullable=False),
        sa.Column("keys", Json, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("kind", "digest", name="pk_results"),
    )
    op.create_index("ix_results_expires_at", "results", ["expires_at"])
    op.create_table(
        "result_sources",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("digest", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("sha256", "kind", "digest", name="pk_result_sources"),
        sa.ForeignKeyConstraint(
            ["kind", "digest"], ["results.kind", "results.digest"], name="fk_result_sources_result", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_result_sources_result", "result_sources", ["kind", "digest"])


def downgrade() -> None:
    for table in ("result_sources", "results", "sealed_files", "seal_jobs"):
        op.drop_table(table)
    tables.downgrade_1(op)
