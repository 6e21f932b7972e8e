"""The short form of the harness, for ``make test``: kinds of faults once each, in haste.

It is over when each has happened and work has got through after each: on a slow machine it takes longer and does the same.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.chaos.harness.faults import FAULTS
from tests.chaos.harness.run import Plan, Report, run
from tests.chaos.harness.world import OwnWorld

SETTLE_WITHIN = 600.0


def short_run(folder: Path, kind: str, *, seed: int, leave_out: Sequence[str] = ()) -> Report:
    """One run on a suite of its own, with every fault that is possible but those that are left out."""
    kinds = [name for name in FAULTS if name not in leave_out]
    plan = Plan(seconds=None, seed=seed, faults=kinds, signers=2, pause=3.0, haste=3, settle_within=SETTLE_WITHIN)
    with OwnWorld(folder, kind) as world:
        report = run(world, plan, folder, print)
        possible = {name for name in kinds if FAULTS[name].possible(world)}
    print(report.text())
    assert {each.split()[1] for each in report.done} == possible, report.text()
    assert "double" not in possible or report.counts["messages doubled"], report.text()
    return report
