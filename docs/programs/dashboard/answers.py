"""What Prometheus answers to the queries of the dashboard's panels, asked as Grafana asks them."""

import re
from typing import Any, Protocol

from deploy.observability import make_dashboard

Series = dict[str, Any]
"""As Prometheus' API has it: ``metric`` has the labels, ``values`` pairs of time and text (``value`` one of them)."""


class Prometheus(Protocol):
    """Whatever answers queries of PromQL."""

    def ask(self, expression: str, at: float | None = None) -> list[Series]: ...

    def ask_range(self, expression: str, start: float, end: float, step: float) -> list[Series]: ...


def filled_in(expression: str, every: int) -> str:
    """Return a query as Grafana sends it for all jobs, with the interval for rates that it chooses where this many seconds lie
    between two scrapes."""
    return expression.replace("$__rate_interval", f"{4 * every}s").replace("$job", ".+")


def answers_of(prometheus: Prometheus, start: float, end: float, every: int) -> dict[str, Any]:
    """Return the answers to each query of each panel, by the panel's id: in the order of its queries, each series with its
    ``name``."""
    panels = {}
    for panel in make_dashboard.dashboard()["panels"]:
        answers = []
        for target in panel.get("targets", ()):
            expression = filled_in(target["expr"], every)
            if target.get("instant"):
                series = prometheus.ask(expression, end)
            else:
                series = prometheus.ask_range(expression, start, end, every)
            answers.append([{**line, "name": line_name(line["metric"], target["legendFormat"])} for line in series])
        panels[str(panel["id"])] = answers
    return {"start": start, "end": end, "panels": panels}


def line_name(labels: dict[str, str], legend: str) -> str:
    """Return what a line is called: its legend with the labels filled in, or without one its labels."""
    if not legend:
        return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"
    return re.sub(r"{{\s*(\w+)\s*}}", lambda match: labels.get(match[1], ""), legend)
