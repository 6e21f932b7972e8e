"""The short form of the harness, for ``make test``: nearly every kind of fault once, in haste."""

from pathlib import Path

from tests.chaos.harness.run import Plan, Report, run
from tests.chaos.harness.world import OwnWorld

SECONDS = 110.0


def short_run(folder: Path, kind: str, *, seed: int) -> Report:
    """One run on a suite of its own."""
    plan = Plan(seconds=SECONDS, seed=seed, signers=2, pause=1.0, haste=3)
    with OwnWorld(folder, kind) as world:
        report = run(world, plan, folder, print)
    print(report.text())
    return report
