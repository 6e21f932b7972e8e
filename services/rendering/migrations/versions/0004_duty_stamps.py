"""Duty stamps: what is wished, what was bought, from whom."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Json, UtcDateTime

revision = "0004"
down_revision = "0003"

_DUE = sa.text("state = 'due'")
_LEASED = sa.text("leased_by IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "duty_stamps",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.Column("seal_id", sa.Text, nullable=False),
        sa.Column("target", sa.String(10), nullable=False),
        sa.Column("document_index", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("binds", sa.String(10), nullable=False),
        sa.Column("code_document", sa.Text, nullable=False),
        sa.Column("box", Json, nullable=False),
        sa.Column("position", Json, nullable=False),
        sa.Column("source", Json),
        sa.Column("stage", sa.String(10), nullable=False),
        sa.Column("serial", sa.Text),
        sa.Column("price", Json),
        sa.Column("asked_at", UtcDateTime),
        sa.Column("sent", sa.Integer, nullable=False, server_default="0"),
        sa.Column("result", Json),
        sa.Column("stamped_at", UtcDateTime),
        sa.Column("problem", sa.Text),
        sa.Column("swept", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("erased", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
        *tables.due_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_duty_stamps"),
        sa.UniqueConstraint("key", name="uq_duty_stamps_key"),
        sa.UniqueConstraint("submission_id", "target", "document_index", "number", name="uq_duty_stamps_submission_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_duty_stamps_lane",
        "duty_stamps",
        ["lane", "next_attempt_at", "id"],
        sqlite_where=_DUE,
        postgresql_where=_DUE,
    )
    op.create_index("ix_duty_stamps_leased", "duty_stamps", ["lane"], sqlite_where=_LEASED, postgresql_where=_LEASED)
    op.create_index("ix_duty_stamps_swept", "duty_stamps", ["swept", "finished_at"])
    op.create_table(
        "stamp_serials",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("number", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("code_document", sa.Text, nullable=False),
        sa.Column("binds", sa.String(10), nullable=False),
        sa.Column("price", Json),
        sa.Column("picture", sa.LargeBinary),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("stamp_id", sa.BigInteger),
        sa.Column("submission_id", sa.BigInteger),
        sa.Column("bought_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_stamp_serials"),
        sa.UniqueConstraint("account", "number", name="uq_stamp_serials_account"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_stamp_serials_state", "stamp_serials", ["account", "state"])
    op.create_table(
        "stamp_accounts",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("balance", sa.Integer),
        sa.Column("strangers", Json, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("checked_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_stamp_accounts"),
    )


def downgrade() -> None:
    op.drop_table("stamp_accounts")
    op.drop_table("stamp_serials")
    op.drop_table("duty_stamps")
