"""Fixtures of the contract tests."""

from collections.abc import Iterator

import pytest

from tests.support.submissions import Desk


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    """The submissions service's use cases on an empty database of each kind."""
    desk = Desk(database_url)
    yield desk
    desk.database.dispose()
