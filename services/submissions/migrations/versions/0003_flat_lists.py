"""Indexes that keep lists and searches as fast with a million submissions as with a thousand."""

from alembic import op

from contracts.runtime.data import search

revision = "0003"
down_revision = "0002"

# name, table, columns, condition
_INDEXES = (
    ("ix_submissions_template_status", "submissions", "template_id, status, id", ""),
    ("ix_submissions_active", "submissions", "id", "WHERE archived_at IS NULL"),
    ("ix_templates_author", "templates", "author_id, id", ""),
)
_GROUPS = "ix_submitters_completion_groups"
_SEARCHED = ("submissions", "submitters")


def upgrade() -> None:
    search.require_trigrams(op.get_bind())  # first: where it is missing, nothing is changed
    for name, table, columns, condition in _INDEXES:
        if op.get_context().dialect.name == "postgresql":
            search.build_index(op, name, table, f"({columns}) {condition}")
        else:
            op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({columns}) {condition}")
    if op.get_context().dialect.name == "postgresql":
        search.build_index(op, _GROUPS, "submitters", "((id / 4096), completed_at)")
    for table in _SEARCHED:
        search.upgrade(op, table, "search")


def downgrade() -> None:
    for table in _SEARCHED:
        search.downgrade(op, table, "search")
    if op.get_context().dialect.name == "postgresql":
        search.drop_index(op, _GROUPS)
    for name, *_rest in _INDEXES:
        if op.get_context().dialect.name == "postgresql":
            search.drop_index(op, name)
        else:
            op.execute(f"DROP INDEX IF EXISTS {name}")
