"""``countersign move``: take a service's database from SQLite to PostgreSQL, or back, with the service stopped."""
