"""Faults at random for two minutes, on PostgreSQL and S3 with two of each process: the invariants I1 to I12 hold."""

import secrets
from pathlib import Path

import pytest

from tests.chaos.short import short_run

pytestmark = pytest.mark.chaos


@pytest.mark.timeout(720)
def test_nothing_is_lost_and_nothing_is_done_twice(workspace: Path) -> None:
    """The seed is in the message: ``python -m tests.chaos --database postgresql --seed ...`` draws the same faults again."""
    report = short_run(workspace / "chaos-postgresql", "postgresql", seed=secrets.randbelow(10**6))
    assert report.clean, report.text()
    assert report.counts["completed"] > 5, report.text()
