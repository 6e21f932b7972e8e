"""Hypothesis drives signers, a sender, an editor and a viewer on a suite of its own, for as long as wanted.

python -m tests.evidence                                          SQLite, 10 minutes
python -m tests.evidence --database postgresql --seconds 1800     PostgreSQL, half an hour
python -m tests.evidence --seed 7                                 the same calls as another run of seed 7

It ends with 1 when something does not hold, with the calls that led to it.
"""

import argparse
import collections
import secrets
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from deploy.services import SERVICES
from tests.evidence.machine import machine_of
from tests.evidence.world import World
from tests.support.servers.postgres import PrivatePostgres

AT_ONCE = 10
"""Runs with one seed."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.evidence")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--go-on", action="store_true", help="after what does not hold, with the next seed")
    options = parser.parse_args(arguments)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # what was started is stopped; Hypothesis keeps SystemExit
    folder = Path(tempfile.mkdtemp(prefix="countersign-evidence-"))
    folder.chmod(0o755)
    print(f"seed {options.seed}; the suite is in {folder}", flush=True)
    cluster = PrivatePostgres(folder / "postgres") if options.database == "postgresql" else None
    found = 0
    try:
        if cluster:
            cluster.start()
        databases = {f"{one.upper()}_DATABASE_URL": cluster.new_database() for one in SERVICES} if cluster else {}
        with World(folder / "suite", **databases) as world:
            counts: collections.Counter[str] = collections.Counter()
            number, until = options.seed, time.monotonic() + options.seconds
            while time.monotonic() < until and (options.go_on or not found):
                found += not _hold(world, number, options.steps, counts)
                print(f"seed {number}: {dict(sorted(counts.items()))}", flush=True)
                number += 1
    finally:
        if cluster:
            cluster.stop()
    return 1 if found else 0


def _hold(world: World, number: int, steps: int, counts: collections.Counter[str]) -> bool:
    """Runs with one seed; False, with what was found, when something does not hold."""
    machine = machine_of(world)
    try:
        run_state_machine_as_test(seed(number)(machine), settings=chosen(AT_ONCE, steps))
    except Exception:
        traceback.print_exc()
        return False
    finally:
        counts.update(machine.counts)
    return True


def chosen(examples: int, steps: int) -> settings:
    """No shrinking: each try is a submission that is sealed, and the calls that led to a failure are printed."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
