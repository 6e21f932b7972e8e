"""What the idle suite with its broker takes: proportional memory of every process (shared pages are counted once), its share of a
processor, and how often its threads wake up. The last is a count, which is the same on a machine that is busy with something else.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.services.suite import start_suite

SETTLED_AFTER = 60.0
"""Services ask others less and less often while nothing happens."""
MEASURED_FOR = 60.0


@dataclass(frozen=True)
class Use:
    """What a process and its children have used since they were started: seconds of processors, and voluntary context switches
    of all threads."""

    seconds: float
    switches: int


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        suite = start_suite(Path(folder))
        try:
            print(f"ready after {time.perf_counter() - began:.1f} s")
            time.sleep(SETTLED_AFTER)
            assert suite.broker is not None
            roots = {name: program.process.pid for name, program in suite.programs.items() if program.process}
            roots["broker"] = suite.broker.pid
            weights = {name: weight(pid) for name, pid in roots.items()}
            before = {name: used(pid) for name, pid in roots.items()}
            began = time.perf_counter()
            time.sleep(MEASURED_FOR)
            passed = time.perf_counter() - began
            after = {name: used(pid) for name, pid in roots.items()}
        finally:
            suite.stop()
    print(f"  {'':<14} {'memory':>9} {'processor':>10} {'wake-ups a second':>18}")
    shares = {name: (after[name].seconds - before[name].seconds) / passed for name in roots}
    wakes = {name: (after[name].switches - before[name].switches) / passed for name in roots}
    for name in roots:
        print(f"  {name:<14} {weights[name]:6.0f} MB {shares[name]:10.2%} {wakes[name]:18.1f}")
    together = sum(weights.values()), sum(shares.values()), sum(wakes.values())
    print(f"  {'together':<14} {together[0]:6.0f} MB {together[1]:10.2%} {together[2]:18.1f}")
    print(f"  {'target':<14} {500:6.0f} MB {0.01:10.2%}")


def weight(pid: int) -> float:
    """Megabytes of a process and its children."""
    return sum(_own_weight(process) for process in _family(pid))


def used(pid: int) -> Use:
    """What a process and its children have used."""
    threads = [thread for process in _family(pid) for thread in Path(f"/proc/{process}/task").iterdir()]
    seconds = sum(_read(thread / "schedstat", lambda text: int(text.split()[0])) for thread in threads) / 1e9
    return Use(seconds, round(sum(_read(thread / "status", _switches) for thread in threads)))


def _own_weight(pid: int) -> float:
    own = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(own[1]) / 1024 if own else 0.0


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _family(int(child))


def _switches(status: str) -> int:
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0


def _read(path: Path, figure: Callable[[str], int]) -> int:
    """0 of a thread that has ended meanwhile."""
    try:
        return figure(path.read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0


if __name__ == "__main__":
    main()
