"""Statistics of benchmark figures."""

from collections.abc import Sequence


def percentile(figures: Sequence[float], percent: float) -> float:
    """The figure below which ``percent`` of them lie (nearest rank)."""
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, round(len(ordered) * percent / 100))]
