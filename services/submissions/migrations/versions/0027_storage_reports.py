"""How many files the records name, as it was counted last."""

from alembic import op

from contracts.runtime.data.files import stored_files

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.create_table("storage_reports", *stored_files.columns())


def downgrade() -> None:
    op.drop_table("storage_reports")
