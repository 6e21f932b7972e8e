"""Events are seen as their template is shared now, and by who created the submission."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("events", sa.Column("created_by_id", sa.BigInteger))
    op.create_table(
        "templates",
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("author_id", sa.BigInteger),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_templates"),
    )
    # What the log says of them last.
    op.execute(
        "INSERT INTO templates (id, author_id, shared) SELECT template_id, author_id, shared FROM events WHERE position IN"
        " (SELECT max(position) FROM events WHERE event_type LIKE 'template.%' AND template_id IS NOT NULL"
        " GROUP BY template_id)"
    )


def downgrade() -> None:
    op.drop_table("templates")
    with op.batch_alter_table("events") as table:
        table.drop_column("created_by_id")
