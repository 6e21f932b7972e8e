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
        "webhooks",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("events", Json, nullable=False),
        sa.Column("secret", Json, nullable=False),
        sa.Column("signing_secret", sa.Text, nullable=False),
        sa.Column("owner_email", sa.Text, nullable=False),
        sa.Column("failing_since", UtcDateTime),
        sa.Column("disabled_at", UtcDateTime),
        sa.Column("disabled_reason", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
        sqlite_autoincrement=True,
    )
    head = op.create_table(
        "log_head",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("last_recorded_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_log_head"),
    )
    op.bulk_insert(head, [{"id": 1, "last_recorded_at": datetime.fromtimestamp(0, UTC)}])
    op.create_table(
        "subject_heads",
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("last_sequence", sa.Integer, nullable=False),
        sa.Column("erased", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("subject", name="pk_subject_heads"),
    )
    op.create_table(
        "arrivals",
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("envelope", Json, nullable=False),
        sa.Column("arrived_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_arrivals"),
        sa.UniqueConstraint("subject", "sequence", name="uq_arrivals_subject_sequence"),
    )
    op.create_table(
        "events",
        sa.Column("position", BigId, autoincrement=True, nullable=False),
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("recorded_at", UtcDateTime, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("author_id", sa.BigInteger),
        sa.Column("template_id", sa.BigInteger),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_events"),
        sa.UniqueConstraint("event_id", name="uq_events_event_id"),
        sa.UniqueConstraint("subject", "sequence", name="uq_events_subject_sequence"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_type_time", "events", ["event_type", "recorded_at", "position"])
    op.create_table(
        "deliveries",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("webhook_id", BigId, nullable=False),
        sa.Column("position", BigId, nullable=False),
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("body", sa.Text),
        sa.Column("test", sa.Boolean, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.CheckConstraint("outcome IN ('delivered', 'exhausted', 'cancelled')", name="ck_deliveries_outcome"),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name="fk_deliveries_webhook_id_webhooks", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("message_id", name="uq_deliveries_message_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_deliveries_stream", "deliveries", ["stream", "position"])
    op.create_index("ix_deliveries_webhook", "deliveries", ["webhook_id", "id"])
    op.create_index("ix_deliveries_due", "deliveries", ["state", "next_attempt_at"])
    op.create_table(
        "attempts",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("delivery_id", BigId, nullable=False),
        sa.Column("attempted_at", UtcDateTime, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("error", sa.Text),
        sa.Column("response", sa.Text),
        sa.Column("duration_ms", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["deliveries.id"], name="fk_attempts_delivery_id_deliveries", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_attempts_delivery_id", "attempts", ["delivery_id"])


def downgrade() -> None:
    for table in ("attempts", "deliveries", "events", "arrivals", "subject_heads", "log_head", "webhooks"):
        op.drop_table(table)
    tables.downgrade_1(op)
