"""Each kind of fault once, on SQLite with one process each: the invariants I1 to I13 hold."""

from pathlib import Path

import pytest

from tests.chaos.short import short_run

pytestmark = pytest.mark.chaos

SEED = 635929
"""The same faults at each run, in the same order; what they hit depends on the machine. Other seeds are for the long runs."""


def test_nothing_is_lost_and_nothing_is_done_twice(workspace: Path) -> None:
    """``python -m tests.chaos --database sqlite --seed ...`` draws others."""
    report = short_run(workspace / "chaos-sqlite", "sqlite", seed=SEED)
    assert report.clean, report.text()
    assert report.counts["completed"] > 2, report.text()
    assert report.counts["of these by providers"] > 0, report.text()
