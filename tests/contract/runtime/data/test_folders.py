"""The condition that a folder is within those of a key: both databases and Python say the same of whatever names there are."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contracts.formats.folders import is_within
from contracts.runtime.data.folders import within

# What LIKE, collations and case would take for something else, and how folders are written within folders.
PARTS = ["A", "a", "B", "Ä", "ä", "ß", "%", "_", "\\", "'", "/", " ", " / ", "\u0301", "\U00010000", "\u200b"]
NAMES = st.lists(st.sampled_from(PARTS), max_size=6).map("".join)


@pytest.fixture
def connection(database_url: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine(database_url)
    with engine.connect() as connected:
        yield connected
    engine.dispose()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example("leases / x", ["Leases"])
@example("Leases2", ["Leases"])
@example("Leases / Berlin", ["Leases"])
@example("", [])
@given(NAMES, st.lists(NAMES, max_size=3))
def test_the_database_finds_what_is_within(connection: sa.Connection, name: str, folders: list[str]) -> None:
    told = connection.scalar(sa.select(sa.case((within(sa.literal(name, sa.Text()), folders), 1), else_=0)))
    assert bool(told) is is_within(name, folders)


def test_without_folders_there_is_no_condition_and_what_is_in_none_is_not_within(connection: sa.Connection) -> None:
    null = sa.cast(sa.null(), sa.Text())
    assert connection.scalar(sa.select(sa.case((within(null, None), 1), else_=0))) == 1
    for folders in ([], ["A"], [""]):
        assert connection.scalar(sa.select(sa.case((within(null, folders), 1), else_=0))) == 0
