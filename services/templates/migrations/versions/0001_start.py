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
        "folders",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_folders"),
        sa.UniqueConstraint("name", name="uq_folders_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "templates",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("slug", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_lower", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("folder_id", BigId, nullable=False),
        sa.Column("shared_link", sa.Boolean, nullable=False),
        sa.Column("parties", Json, nullable=False),
        sa.Column("fields", Json, nullable=False),
        sa.Column("preferences", Json, nullable=False),
        sa.Column("report", Json, nullable=False),
        sa.Column("author_id", sa.BigInteger, nullable=False),
        sa.Column("author", Json, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("archived_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_templates"),
        sa.UniqueConstraint("slug", name="uq_templates_slug"),
        sa.UniqueConstraint("external_id", name="uq_templates_external_id"),
        sa.ForeignKeyConstraint(["folder_id"], ["folders.id"], name="fk_templates_folder_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_templates_folder_id", "templates", ["folder_id"])
    op.create_index("ix_templates_author_id", "templates", ["author_id"])
    archived = sa.text("archived_at IS NOT NULL")
    op.create_index("ix_templates_archived", "templates", ["id"], sqlite_where=archived, postgresql_where=archived)
    op.create_table(
        "documents",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("template_id", BigId, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("file", Json, nullable=False),
        sa.Column("original", Json, nullable=False),
        sa.Column("pages", Json, nullable=False),
        sa.Column("signed", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.UniqueConstraint("uuid", name="uq_documents_uuid"),
        sa.ForeignKeyConstraint(["template_id"], ["templates.id"], name="fk_documents_template_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_documents_template_id", "documents", ["template_id"])


def downgrade() -> None:
    for table in ("documents", "templates", "folders"):
        op.drop_table(table)
    tables.downgrade_1(op)
