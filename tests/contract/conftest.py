"""Fixtures of the contract tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.runtime.data.database import Database
from deploy.manifest import Places
from deploy.services import SERVICES
from tests.support.material.submissions import Desk
from tests.support.services.migrated import migrated


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    """The submissions service's use cases on an empty database of each kind."""
    desk = Desk(database_url)
    yield desk
    desk.database.dispose()


def on(kind: str) -> pytest.MarkDecorator:
    """For a test of ``database_url`` about what comes before or after its statements, such as being killed, or long walks: its
    neighbours run these statements on both databases."""
    return pytest.mark.parametrize("database_url", [kind], indirect=True)


ON_SQLITE = pytest.mark.parametrize("places", ["sqlite"], indirect=True)
"""For a test of ``places`` about files, or about what others found with statements that its neighbours run on both databases."""


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """The databases of the six services, migrated, and a folder of files."""
    if request.param == "sqlite":
        databases = {service: f"sqlite:///{tmp_path}/databases/{service}.sqlite" for service in SERVICES}
    else:
        cluster = request.getfixturevalue("postgres")
        databases = {service: cluster.new_database() for service in SERVICES}
    for service, url in databases.items():
        migrated(service, url)
        opened = Database(url)  # as a service does: SQLite with its log
        opened.ping()
        opened.dispose()
    return Places(databases, f"file://{tmp_path}/blobs")
