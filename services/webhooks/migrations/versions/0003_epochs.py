"""What was told is kept, and streams of events have an epoch: nobody waits for ever for an event. The numbers of a subject's
events may come again in another life of their owner's database, so what is unique is their id alone."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data import search, tables

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        search.build_index(op, "ix_events_subject", "events", "(subject)")
    else:
        op.create_index("ix_events_subject", "events", ["subject"])
    tables.upgrade_2(op)
    op.add_column("subject_heads", sa.Column("epoch", sa.Text, nullable=False, server_default=""))
    with op.batch_alter_table("arrivals") as table:
        table.add_column(sa.Column("epoch", sa.Text, nullable=False, server_default=""))
        table.drop_constraint("uq_arrivals_subject_sequence", type_="unique")
        table.create_index("ix_arrivals_subject", ["subject"])
    with op.batch_alter_table("events", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_constraint("uq_events_subject_sequence", type_="unique")


def downgrade() -> None:
    with op.batch_alter_table("events", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.create_unique_constraint("uq_events_subject_sequence", ["subject", "sequence"])
    with op.batch_alter_table("arrivals") as table:
        table.drop_index("ix_arrivals_subject")
        table.create_unique_constraint("uq_arrivals_subject_sequence", ["subject", "sequence"])
        table.drop_column("epoch")
    with op.batch_alter_table("subject_heads") as table:
        table.drop_column("epoch")
    tables.downgrade_2(op)
    op.drop_index("ix_events_subject", "events")
