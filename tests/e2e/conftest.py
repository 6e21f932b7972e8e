"""The whole suite for the stories: each story is told twice, on SQLite and on PostgreSQL."""

import pytest

from tests.support.suite import RunningSuite


@pytest.fixture(params=["sqlite", "postgresql"])
def suite(request: pytest.FixtureRequest) -> RunningSuite:
    running: RunningSuite = request.getfixturevalue(f"{request.param}_suite")
    return running
