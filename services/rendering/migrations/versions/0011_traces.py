"""Which trace work that is done later belongs to."""

from alembic import op

from contracts.runtime.data import tables

revision = "0011"
down_revision = "0010"

_TABLES = ("seal_jobs", "certsign_jobs", "confirmations", "stamped_seals", "statements", "duty_stamps")


def upgrade() -> None:
    tables.add_trace(op, *_TABLES)


def downgrade() -> None:
    tables.drop_trace(op, *_TABLES)
