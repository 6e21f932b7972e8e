"""A trigram index for ``q``, and indexes that give the lists of a folder and of an author in order."""

from alembic import op

from contracts.runtime.data import search

revision = "0002"
down_revision = "0001"

_INDEXES = (
    ("ix_templates_folder", "folder_id, id", ""),
    ("ix_templates_author", "author_id, id", ""),
    ("ix_templates_shared", "id", "WHERE shared_link"),
)


def upgrade() -> None:
    search.require_trigrams(op.get_bind())  # first: where it is missing, nothing is changed
    for name, columns, condition in _INDEXES:
        if op.get_context().dialect.name == "postgresql":
            search.build_index(op, name, "templates", f"({columns}) {condition}")
        else:
            op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON templates ({columns}) {condition}")
    search.upgrade(op, "templates", "name_lower")


def downgrade() -> None:
    search.downgrade(op, "templates", "name_lower")
    for name, *_rest in _INDEXES:
        if op.get_context().dialect.name == "postgresql":
            search.drop_index(op, name)
        else:
            op.execute(f"DROP INDEX IF EXISTS {name}")
