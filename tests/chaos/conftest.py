"""A suite of one process for each service, for all tests that treat one badly and have it whole again afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.services.suite import RunningSuite, start_suite


@pytest.fixture(scope="session")
def suite(workspace: Path, suites: dict[str, RunningSuite]) -> Iterator[RunningSuite]:
    running = start_suite(workspace / "suite-mistreated", EVENTS_CHECK_SECONDS="1", SIGNING_KEY_TYPE="ec-p256")
    suites["mistreated"] = running
    yield running
    running.stop()
