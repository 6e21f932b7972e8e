"""Whose a signing link was that is no longer valid, and whom the form was handed over to."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("replaced_links", sa.Column("submitter_id", sa.BigInteger))
    op.add_column("replaced_links", sa.Column("handed_to", sa.Text))


def downgrade() -> None:
    op.drop_column("replaced_links", "handed_to")
    op.drop_column("replaced_links", "submitter_id")
