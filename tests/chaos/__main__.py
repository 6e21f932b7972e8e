"""Chaos: load and faults at random, then the invariants I1 to I13. Ends with 1 when one does not hold.

python -m tests.chaos                                   a suite of its own, SQLite, one process each, 3 minutes
python -m tests.chaos --database postgresql             PostgreSQL and S3, two of each process
python -m tests.chaos --seconds 1800 --seed 7           the same faults in the same order as another run of seed 7
python -m tests.chaos --faults kill,broker-wipe         only these; --list names all
python -m tests.chaos --attach --commands faults.toml   the suite that the environment tells of, and its operator's faults
"""

import argparse
import os
import secrets
import signal
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.chaos.harness import commands, world
from tests.chaos.harness.faults import FAULTS, named
from tests.chaos.harness.run import SETTLE_WITHIN, Plan, Report, run


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    if options.list:
        for name, each in FAULTS.items():
            print(f"{name:20} {(each.happening.__doc__ or '').strip()}")
        return 0
    plan = Plan(
        seconds=options.seconds,
        seed=options.seed,
        faults=options.faults.split(",") if options.faults else None,
        signers=options.signers,
        pause=options.pause,
        settle_within=options.settle,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    folder = Path(options.folder or tempfile.mkdtemp(prefix="countersign-chaos-"))
    print(f"seed {plan.seed}; journal, logs and report are in {folder}", flush=True)
    try:
        if options.commands:
            plan.commands = commands.read(Path(options.commands))
        there = world.attached(os.environ) if options.attach else None
        named(plan.faults)
    except (ValueError, KeyError, TypeError, OSError, tomllib.TOMLDecodeError) as error:
        print(f"That cannot be begun: {error!r}", file=sys.stderr)
        return 2
    report = _attached(plan, folder, there) if there else _own(plan, folder, options)
    print(report.text())
    return 0 if report.clean else 1


def _own(plan: Plan, folder: Path, options: argparse.Namespace) -> Report:
    with world.OwnWorld(
        folder, options.database, replicas=options.replicas, previous=options.previous, disk_mb=options.disk
    ) as own:
        return run(own, plan, folder, _say)


def _attached(plan: Plan, folder: Path, there: world.World) -> Report:
    try:
        return run(there, plan, folder, _say)
    finally:
        if there.mails:
            there.mails.stop()


def _say(line: str) -> None:
    print(line, flush=True)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--database", choices=["sqlite", "postgresql"], default="sqlite")
    add("--replicas", type=int, help="of each process; by default 1 with SQLite, 2 with PostgreSQL")
    add("--seconds", type=float, default=180, help="how long faults go on")
    add("--seed", type=int, default=secrets.randbelow(10**6))
    add("--faults", help="names, with commas")
    add("--signers", type=int, default=3, help="clients that make agreements side by side")
    add("--pause", type=float, default=0.3, help="seconds between two agreements of a client")
    add("--settle", type=float, default=SETTLE_WITHIN, help="seconds until nothing may be left to do")
    add("--previous", help="the revision of the older process; by default the commit before")
    add("--disk", type=int, default=2048, help="megabytes of each file system that is filled (needs root)")
    add("--folder", help="where journal, logs and report go")
    add("--list", action="store_true", help="name the faults")
    add("--attach", action="store_true", help="BASE_URL, ADMIN_API_KEY; see tests/chaos/README.md")
    add("--commands", help="a TOML file with the faults of the attached suite")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
