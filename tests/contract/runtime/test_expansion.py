"""Migrations only expand: the version before goes on with what each of them leaves, so that an upgrade has a way back."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.runtime import migrations
from deploy.services import SERVICES


def columns(url: str) -> dict[str, dict[str, Any]]:
    """The columns of each table, by name."""
    engine = sa.create_engine(url)
    try:
        seen = sa.inspect(engine)
        return {table: {one["name"]: one for one in seen.get_columns(table)} for table in seen.get_table_names()}
    finally:
        engine.dispose()


def may_be_left_out(column: dict[str, Any]) -> bool:
    """Whether a row can be written without it."""
    return bool(column["nullable"] or column["default"] is not None)


@pytest.mark.parametrize("service", SERVICES)
def test_the_version_before_can_read_and_write_what_a_migration_leaves(service: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'rows.sqlite'}"
    before: dict[str, dict[str, Any]] = {}
    for revision in migrations.revisions(service):
        migrations.upgrade(service, url, revision)
        after = columns(url)
        for table, known in before.items():
            assert after.get(table, {}).keys() >= known.keys(), f"{revision} of {service} takes something from {table}"
            for name, column in after[table].items():
                if name not in known:
                    assert may_be_left_out(column), f"{revision}: who does not know {table}.{name} can write no row"
                else:
                    still = column["nullable"] or not known[name]["nullable"]
                    assert still, f"{revision}: who may have written NULL as {table}.{name} may not now"
                    still = may_be_left_out(column) or not may_be_left_out(known[name])
                    assert still, f"{revision}: who may have written no {table}.{name} must now"
        before = after
