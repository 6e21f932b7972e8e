"""The id of a delivery is that of its event, which several webhooks are told of; and how long links in what a webhook is told
are good without a key."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import search

revision = "0011"
down_revision = "0010"

_INDEX, _COLUMNS = "ix_deliveries_message", ["webhook_id", "message_id"]
_OUTCOME = sa.CheckConstraint("outcome IN ('delivered', 'exhausted', 'cancelled')", name="ck_deliveries_outcome")
"""Alembic's copy of a table in SQLite would be without it."""


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("file_link_minutes", sa.Integer))
    if op.get_context().dialect.name == "postgresql":
        search.build_index(op, _INDEX, "deliveries", f"({', '.join(_COLUMNS)})", unique=True)
        op.drop_constraint("uq_deliveries_message_id", "deliveries", type_="unique")
        return
    with _copied() as table:
        table.drop_constraint("uq_deliveries_message_id", type_="unique")
    op.create_index(_INDEX, "deliveries", _COLUMNS, unique=True)


def downgrade() -> None:
    """What has the id of its event gets one that no other webhook's delivery has."""
    op.execute(
        "UPDATE deliveries SET message_id = event_id || '.' || webhook_id WHERE message_id = event_id AND NOT test"
    )
    if op.get_context().dialect.name == "postgresql":
        op.create_unique_constraint("uq_deliveries_message_id", "deliveries", ["message_id"])
        op.drop_index(_INDEX, "deliveries")
    else:
        op.drop_index(_INDEX, "deliveries")
        with _copied() as table:
            table.create_unique_constraint("uq_deliveries_message_id", ["message_id"])
    with op.batch_alter_table("webhooks", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_column("file_link_minutes")


def _copied() -> Any:
    return op.batch_alter_table("deliveries", table_args=(_OUTCOME,), table_kwargs={"sqlite_autoincrement": True})
