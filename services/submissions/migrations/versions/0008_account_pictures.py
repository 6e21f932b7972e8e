"""Whether any submission shows a picture of the account, found at once. SQLite looks through the rows: it is asked rarely."""

from alembic import op

from contracts.runtime.data import search

revision = "0008"
down_revision = "0007"

_PICTURES = ("logo", "stamp")


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    for picture in _PICTURES:
        key = f"(account #>> '{{{picture},key}}'::text[])"
        search.build_index(op, f"ix_snapshots_account_{picture}", "snapshots", f"({key}) WHERE {key} IS NOT NULL")


def downgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    for picture in _PICTURES:
        search.drop_index(op, f"ix_snapshots_account_{picture}")
