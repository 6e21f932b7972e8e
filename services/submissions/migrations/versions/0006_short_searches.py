"""A search index that knows pairs of characters and where along the ids a row is."""

from alembic import op

from contracts.runtime.data import search

revision = "0006"
down_revision = "0005"

_SEARCHED = ("submissions", "submitters")


def upgrade() -> None:
    for table in _SEARCHED:
        search.upgrade_to_parts(op, table, "search")


def downgrade() -> None:
    for table in _SEARCHED:
        search.downgrade_from_parts(op, table, "search")
