"""A search index that knows pairs of characters and where along the ids a row is."""

from alembic import op

from contracts.runtime.data import search

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    search.upgrade_to_parts(op, "templates", "name_lower")


def downgrade() -> None:
    search.downgrade_from_parts(op, "templates", "name_lower")
