"""The whole suite for the stories: once on SQLite, once on PostgreSQL, each started when the first story asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.suite import SERVICES
from tests.support.postgres import PrivatePostgres
from tests.support.suite import RunningSuite, start_suite


def database_settings(kind: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Where each service's database is: nothing said means SQLite."""
    if kind == "sqlite":
        return {}
    cluster: PrivatePostgres = request.getfixturevalue("postgres")
    return {f"{service.upper()}_DATABASE_URL": cluster.new_database() for service in SERVICES}


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def suite(request: pytest.FixtureRequest, workspace: Path) -> Iterator[RunningSuite]:
    running = start_suite(workspace / f"suite-{request.param}", **database_settings(request.param, request))
    yield running
    running.stop()
