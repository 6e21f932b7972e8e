"""What Kubernetes' controller makes of a HorizontalPodAutoscaler (autoscaling/v2), by the algorithm that its documentation gives
("Horizontal Pod Autoscaling", "Algorithm details" and "Configurable scaling behavior"). No pod is started."""

import math
from decimal import Decimal
from typing import Any

TOLERANCE = 0.1
"""A ratio that is nearer to 1 changes nothing (--horizontal-pod-autoscaler-tolerance)."""

Readings = dict[str, float | None]
"""What each metric says, by the value of its label ``work``, or ``cpu`` (processors, of all pods together); None without an answer."""


def wanted(spec: dict[str, Any], current: int, readings: Readings) -> int:
    """How many replicas the metrics ask for, within the bounds."""
    asked = [_asked(metric, current, readings) for metric in spec["metrics"]]
    known = [one for one in asked if one is not None]
    if not known or (len(known) < len(asked) and max(known) < current):
        return current  # of what cannot be read nothing follows, least of all that there are too many
    return int(min(max(max(known), spec["minReplicas"]), spec["maxReplicas"]))


def _asked(metric: dict[str, Any], current: int, readings: Readings) -> int | None:
    if metric["type"] == "Resource":
        target = metric["resource"]["target"]
        reading, ratio_of = readings[metric["resource"]["name"]], current * _number(target["averageValue"])
        assert target["type"] == "AverageValue"
    else:
        target = metric["external"]["target"]
        reading, ratio_of = (
            readings[metric["external"]["metric"]["selector"]["matchLabels"]["work"]],
            _number(target["value"]),
        )
        assert (metric["type"], target["type"]) == ("External", "Value")
    if reading is None:
        return None
    ratio = reading / ratio_of
    return current if abs(ratio - 1) <= TOLERANCE else math.ceil(round(current * ratio, 9))


def _number(quantity: str) -> float:
    return float(Decimal(quantity.removesuffix("m")) / 1000 if quantity.endswith("m") else Decimal(quantity))


class Controller:
    """The controller's loop. ``step`` is called once for each period of 15 seconds and returns the replicas from then on."""

    PERIOD = 15

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self.replicas: int = spec["minReplicas"]
        self._now = 0
        self._asked: list[tuple[int, int]] = []
        self._changes: list[tuple[int, int]] = []

    def step(self, readings: Readings) -> int:
        """Look at the metrics and scale."""
        self._now += self.PERIOD
        self._asked.append((self._now, wanted(self._spec, self.replicas, readings)))
        up, down = self._spec["behavior"]["scaleUp"], self._spec["behavior"]["scaleDown"]
        lowest = min(self._since(up["stabilizationWindowSeconds"]))
        highest = max(self._since(down["stabilizationWindowSeconds"]))
        after = self.replicas
        if lowest > after:
            after = min(lowest, after + self._may(up, 1))
        elif highest < after:
            after = max(highest, after - self._may(down, -1))
        if after != self.replicas:
            self._changes.append((self._now, after - self.replicas))
            self.replicas = after
        return after

    def _since(self, seconds: int) -> list[int]:
        """What was asked for within the window."""
        return [asked for at, asked in self._asked if at > self._now - seconds] or [self._asked[-1][1]]

    def _may(self, rules: dict[str, Any], sign: int) -> int:
        """By how many the number may still change now."""
        (policy,) = rules["policies"]
        assert policy["type"] == "Pods"
        done = sum(sign * by for at, by in self._changes if at > self._now - policy["periodSeconds"] and sign * by > 0)
        return max(0, int(policy["value"]) - done)
