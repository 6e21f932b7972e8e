"""``python -m deploy.reconcile``: compare the services with each other and with the file store, after a restore."""

import importlib

from contracts.runtime.database import Database
from deploy.manifest import Places


def highest_known(places: Places) -> dict[str, dict[str, int]]:
    """The highest id of each table that any other service has heard of, by service and table."""
    found: dict[str, dict[str, int]] = {}
    for service, url in places.databases.items():
        database = Database(url)
        try:
            for name, ids in database.read(importlib.import_module(f"services.{service}.reconcile").known).items():
                owner, _, table = name.partition(".")
                tables = found.setdefault(owner, {})
                tables[table] = max(tables.get(table, 0), *ids, 0)
        finally:
            database.dispose()
    return found
