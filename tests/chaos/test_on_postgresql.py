"""Faults on PostgreSQL and S3 with two of each process: the invariants I1 to I13 hold."""

from pathlib import Path

import pytest

from tests.chaos.short import short_run

pytestmark = pytest.mark.chaos

SEED = 12
"""The same faults at each run, in the same order; what they hit depends on the machine. Other seeds are for the long runs."""

AS_ON_SQLITE = (
    *("broker-kill", "broker-stop", "broker-alarm", "broker-wipe", "lose", "double"),
    *("mail-away", "receiver-away", "clock", "stop", "kill-all", "restart", "older"),
    "database-cut",
)
"""What the walk on SQLite does, and has nothing to do with where rows are or how many processes there are of each; and what a
database that is killed does to connections, too."""


def test_nothing_is_lost_and_nothing_is_done_twice(workspace: Path) -> None:
    """``python -m tests.chaos --database postgresql --seed ...`` draws others."""
    report = short_run(workspace / "chaos-postgresql", "postgresql", seed=SEED, leave_out=AS_ON_SQLITE)
    assert report.clean, report.text()
    assert report.counts["completed"] > 2, report.text()
    assert report.counts["of these by providers"] > 0, report.text()
