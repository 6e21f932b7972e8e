"""Signing links that are no longer valid: what waits with one of them is not sent."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for table in ("mails", "phone_messages"):
        op.add_column(table, sa.Column("link_digest", sa.Text))
    op.create_table(
        "replaced_links",
        sa.Column("link_digest", sa.Text, nullable=False),
        sa.Column("submission_id", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("link_digest", name="pk_replaced_links"),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], name="fk_replaced_links_submission_id"),
    )
    op.create_index("ix_replaced_links_submission_id", "replaced_links", ["submission_id"])


def downgrade() -> None:
    op.drop_table("replaced_links")
    for table in ("mails", "phone_messages"):
        with op.batch_alter_table(table) as changed:
            changed.drop_column("link_digest")
