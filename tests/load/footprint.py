"""What the idle suite with its broker weighs: proportional memory of every process (shared pages are counted once)."""

import re
import tempfile
import time
from pathlib import Path

from tests.support.services.suite import start_suite

SETTLED_AFTER = 15.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        suite = start_suite(Path(folder))
        try:
            print(f"ready after {time.perf_counter() - began:.1f} s")
            time.sleep(SETTLED_AFTER)
            assert suite.broker is not None
            roots = {name: program.process.pid for name, program in suite.programs.items() if program.process}
            weights = {name: weight(pid) for name, pid in {**roots, "broker": suite.broker.pid}.items()}
        finally:
            suite.stop()
    for name, megabytes in weights.items():
        print(f"  {name:<14} {megabytes:6.0f} MB")
    print(f"  {'together':<14} {sum(weights.values()):6.0f} MB (target 1000)")


def weight(pid: int) -> float:
    """Megabytes of a process and its children."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    own = re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(own[1]) / 1024 if own else 0.0) + sum(weight(int(child)) for child in children)


if __name__ == "__main__":
    main()
