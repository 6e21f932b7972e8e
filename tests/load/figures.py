"""Statistics of benchmark figures."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence


def percentile(figures: Sequence[float], percent: float) -> float:
    """The figure below which ``percent`` of them lie (nearest rank)."""
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, round(len(ordered) * percent / 100))]


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds that each way took in each round, after three rounds to warm up. They take turns in going first, so that whatever
    else the machine does hits all alike. What there is before is not collected again, as in the service's own processes."""
    names = list(ways)
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names * 3:
        ways[name]()
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            gc.collect()
            started = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - started)
    gc.unfreeze()
    return times
