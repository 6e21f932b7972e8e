"""What the idle suite of ``make up`` with its broker takes: proportional memory of every process (shared pages are counted once), its
share of a processor, and how often its threads wake up. The last is a count, which is the same on a machine that is busy with
something else. Without the providers that are there to be tried.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.processes.forked import ForkServers
from deploy.suite import Suite
from tests.load.targets import judged

SETTLED_AFTER = 60.0
"""Services ask others less and less often while nothing happens."""
MEASURED_FOR = 60.0


@dataclass(frozen=True)
class Use:
    """What a process, or several, have used since they were started: seconds of processors, and voluntary context switches
    of all threads."""

    seconds: float
    switches: int


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for start in ("first", "second"):
            began = time.perf_counter()
            servers = ForkServers.of_this_process()
            servers.begin()
            suite = Suite(Path(folder), start_process=servers.start)
            try:
                suite.start()
                ready = time.perf_counter() - began
                print(f"{start} start: ready after {ready:.1f} s")
                if start == "second":
                    print(f"  {judged('start', ready)}")
                    _measure(suite, servers)
            finally:
                suite.stop()
                servers.close()


def _measure(suite: Suite, servers: ForkServers) -> None:
    time.sleep(SETTLED_AFTER)
    assert suite.broker is not None
    roots = {name: program.process.pid for name, program in suite.programs.items() if program.process}
    roots["broker"] = suite.broker.pid
    families = {name: list(_family(pid)) for name, pid in roots.items()}
    families["fork servers"] = servers.pids
    weights = {name: weight(family) for name, family in families.items()}
    before = {name: used(family) for name, family in families.items()}
    began = time.perf_counter()
    time.sleep(MEASURED_FOR)
    passed = time.perf_counter() - began
    after = {name: used(family) for name, family in families.items()}
    print(f"  {'':<14} {'memory':>9} {'processor':>10} {'wake-ups a second':>18}")
    shares = {name: (after[name].seconds - before[name].seconds) / passed for name in families}
    wakes = {name: (after[name].switches - before[name].switches) / passed for name in families}
    for name in families:
        print(f"  {name:<14} {weights[name]:6.0f} MB {shares[name]:10.2%} {wakes[name]:18.1f}")
    together = sum(weights.values()), sum(shares.values()), sum(wakes.values())
    print(f"  {'together':<14} {together[0]:6.0f} MB {together[1]:10.2%} {together[2]:18.1f}")
    print(f"  memory {judged('memory', together[0])}; processor {judged('idle', 100 * together[1])}")


def weight(family: Sequence[int]) -> float:
    """Megabytes of these processes."""
    return sum(_own_weight(process) for process in family)


def used(family: Sequence[int]) -> Use:
    """What these processes have used."""
    threads = [thread for process in family for thread in Path(f"/proc/{process}/task").iterdir()]
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
