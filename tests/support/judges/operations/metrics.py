"""Which metrics the code has, and which of them an expression of PromQL names."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from deploy.services import ROOT

KINDS = {"Gauge", "Counter", "Histogram"}
OF_PYTHON = {"process_open_fds", "process_max_fds", "process_start_time_seconds", "process_cpu_seconds_total"} | {
    "process_resident_memory_bytes"
}
"""Those that the library has of each process."""

OF_PROMETHEUS = {"up", "ALERTS"}
ALWAYS = {"job", "instance"}
"""Labels that Prometheus gives to whatever it scrapes."""
OF_ALERTS = {"alertname", "alertstate"}

_NAME = re.compile(r"\b(?:up|ALERTS|(?:countersign|rendering|certsign|dutystamp|gateway|process)_[a-z_]+)\b")
_TEXT = re.compile(r'"[^"]*"')
_GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_MATCHERS = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class Metric:
    """``kind`` is the class that makes it."""

    name: str
    kind: str
    labels: frozenset[str]

    @property
    def series(self) -> set[str]:
        """The names under which Prometheus keeps it."""
        if self.kind == "Histogram":
            return {f"{self.name}_{part}" for part in ("bucket", "count", "sum")}
        return {self.name}


@cache
def of_the_code() -> dict[str, Metric]:
    """Every metric that contracts and services declare, by its name."""
    found = {}
    for folder in ("contracts", "services"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if "prometheus_client" in text:
                found.update({metric.name: metric for metric in _declared(ast.parse(text))})
    return found


def _declared(tree: ast.Module) -> Iterator[Metric]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS and node.args:
            name, *rest = [ast.literal_eval(argument) for argument in node.args]
            yield Metric(name, node.func.id, frozenset(rest[1] if len(rest) > 1 else ()))


def named(expression: str) -> set[str]:
    """The names of series in an expression."""
    bare = _GROUPING.sub("", _MATCHERS.sub("", _TEXT.sub("", expression)))
    return set(_NAME.findall(bare))


def labels(expression: str) -> set[str]:
    """The labels that an expression matches or groups by."""
    texts = [_TEXT.sub("", part) for part in _GROUPING.findall(expression) + _MATCHERS.findall(expression)]
    return {label for text in texts for label in re.findall(r"[a-z_]+", text)}


def faults(expression: str) -> list[str]:
    """What is wrong with an expression: series that nothing has, labels that none of its series has."""
    known = {series: metric for metric in of_the_code().values() for series in metric.series}
    of_processes = OF_PYTHON | OF_PROMETHEUS
    names = named(expression)
    faults = [f"nothing has {name}" for name in sorted(names - known.keys() - of_processes)]
    there = ALWAYS.union(
        {"le"}, OF_ALERTS if "ALERTS" in names else (), *(known[name].labels for name in names & known.keys())
    )
    return faults + [f"no series in it has the label {label}" for label in sorted(labels(expression) - there)]
