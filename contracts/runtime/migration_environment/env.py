"""Alembic's environment for every service; ``contracts.runtime.migrations`` hands over an open connection."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    # SQLite cannot alter most things in place: Alembic copies the table.
    render_as_batch=connection.dialect.name == "sqlite",
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
