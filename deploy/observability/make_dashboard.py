"""``python -m deploy.observability.make_dashboard``: write ``dashboard.json``, for Grafana 10 or later.

The same program writes the same bytes. What stands in the file is made here and nowhere else; whoever wants another dashboard
saves a copy in Grafana, or changes this. ``tests/contract/deploy/observability/test_dashboard.py`` has promtool read every
query.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("dashboard.json")

COLUMNS = 24
"""Of Grafana's grid."""

HEIGHT = 8
SCHEMA = 39
"""Of Grafana 10.4."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
OURS = 'job=~"$job"'
"""Matches the series of the jobs that are chosen at the top."""

RATE = "$__rate_interval"
SECONDS, REQUESTS, PER_SECOND, BYTES, SHARE, NUMBER = "s", "reqps", "ops", "bytes", "percentunit", "short"
"""Units, by Grafana's names."""


COLUMNS_OF_TABLES = {
    "id": "organize",
    "options": {
        "excludeByName": {"Time": True},
        "indexByName": {"service": 0, "version": 1, "revision": 2, "Value": 3},
        "renameByName": {"Value": "processes"},
    },
}
"""The time at which Prometheus was asked is none that anybody looks for."""


@dataclass(frozen=True)
class Query:
    """A query of PromQL, and what its lines are called: ``{{label}}`` is filled in. One whose ``unit`` is another than the
    panel's has its axis on the right."""

    expression: str
    legend: str
    unit: str | None = None


@dataclass(frozen=True)
class Panel:
    """``kind`` is Grafana's: a ``timeseries``, a ``stat`` (one number) or a ``table``. A number is red from ``red_from`` on.
    ``quiet`` is what a panel says that has nothing to show, where that is as it should be: Prometheus has no series of what
    never happened. ``sorted``: a line is named on the right, with its last value, the largest first: for more lines than can
    be told apart."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    width: int = 8
    red_from: float | None = None
    quiet: str | None = None
    sorted: bool = False


def rate(metric: str, by: str, matching: str = "") -> str:
    """The rate of a counter, by labels."""
    return f"sum by ({by}) (rate({metric}{{{OURS}{matching}}}[{RATE}]))"


def quantile(share: float, histogram: str, by: str = "") -> str:
    """Return what that share of the observations was below."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', labels)})"


def slowest(histogram: str, by: str) -> str:
    """Return the eight slowest, of those that have been observed of late: without any there is no number."""
    return f"topk(8, {quantile(0.95, histogram, by)} >= 0)"


def latest(metric: str, by: str = "", of: str = "max") -> str:
    """A gauge that every process of a service has, in one line for each of the labels."""
    grouping = f" by ({by}) " if by else ""
    return f"{of}{grouping}({metric}{{{OURS}}})"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "At a glance",
        (
            Panel(
                "Alerts",
                "Those of alerts.yaml that fire, where Prometheus has these rules. deploy/RUNBOOK.md says what to do.",
                NUMBER,
                (Query('count(ALERTS{alertname=~"Countersign.+",alertstate="firing"}) or vector(0)', "firing"),),
                kind="stat",
                width=3,
                red_from=1,
            ),
            Panel(
                "Processes",
                "Those that answer on their health port.",
                NUMBER,
                (Query(f"count(count by (instance) (countersign_build_info{{{OURS}}}))", "processes"),),
                kind="stat",
                width=3,
            ),
            Panel(
                "Longest overdue",
                "For how long the work has been due that nobody does for longest: sealings, mails, deliveries and the like.",
                SECONDS,
                (Query(latest("countersign_due_work_oldest_seconds"), "seconds"),),
                kind="stat",
                width=3,
                red_from=300,
            ),
            Panel(
                "Work given up",
                "Rows that wait for an operator: countersign retry lists them.",
                NUMBER,
                (Query(f"sum({latest('countersign_due_work_parked', 'work')})", "parked"),),
                kind="stat",
                width=3,
                red_from=1,
            ),
            Panel(
                "Longest sealing",
                "For how long the agreement has waited that waits longest for its seal.",
                SECONDS,
                (Query(latest("countersign_sealing_oldest_seconds"), "seconds"),),
                kind="stat",
                width=3,
                red_from=300,
            ),
            Panel(
                "Failed sealings",
                "Submissions that wait until somebody has them sealed again.",
                NUMBER,
                (Query(latest("countersign_sealing_failed"), "failed"),),
                kind="stat",
                width=3,
                red_from=1,
            ),
            Panel(
                "Broker faults",
                "Connections to the broker that are closed or in an alarm.",
                NUMBER,
                (
                    Query(
                        f"sum(1 - countersign_broker_connected{{{OURS}}}) + sum(countersign_broker_blocked{{{OURS}}})",
                        "faulty",
                    ),
                ),
                kind="stat",
                width=3,
                red_from=1,
            ),
            Panel(
                "Answers with 5xx",
                "The share of all answers of the gateway.",
                SHARE,
                (
                    Query(
                        f'(sum(rate(countersign_http_seconds_count{{{OURS},status=~"5.."}}[{RATE}])) or vector(0))'
                        f" / sum(rate(countersign_http_seconds_count{{{OURS}}}[{RATE}]))",
                        "share",
                    ),
                ),
                kind="stat",
                width=3,
                red_from=0.05,
            ),
            Panel(
                "What runs",
                "Version and commit of each service, and how many of its processes have them.",
                NUMBER,
                (Query(f"count by (service, version, revision) (countersign_build_info{{{OURS}}})", ""),),
                kind="table",
                width=12,
            ),
            Panel(
                "Starts",
                "When a process was started anew within the hour before, how often.",
                NUMBER,
                (
                    Query(
                        f"changes(process_start_time_seconds{{{OURS}}}[1h])"
                        f" and on (job, instance) countersign_build_info{{{OURS}}}",
                        "{{instance}}",
                    ),
                ),
                width=12,
            ),
        ),
    ),
    (
        "HTTP",
        (
            Panel(
                "Requests by status",
                "All that the gateway answers, pages and API.",
                REQUESTS,
                (Query(rate("countersign_http_seconds_count", "status"), "{{status}}"),),
            ),
            Panel(
                "Time to an answer",
                "Half, 95 % and 99 % of the requests were answered within this time.",
                SECONDS,
                tuple(
                    Query(quantile(share, "countersign_http_seconds"), f"{share:.0%}") for share in (0.5, 0.95, 0.99)
                ),
            ),
            Panel(
                "Slowest operations",
                "95 % of an operation's requests were answered within this time.",
                SECONDS,
                (Query(slowest("countersign_http_seconds", "operation"), "{{operation}}"),),
            ),
            Panel(
                "Bodies in memory",
                "Bytes of request bodies that are being received or handled.",
                BYTES,
                (Query(latest("countersign_http_body_bytes", "instance"), "{{instance}}"),),
            ),
            Panel(
                "Refused for their number",
                "Calls of users who sent too many documents at once.",
                REQUESTS,
                (Query(f"sum(rate(gateway_heavy_calls_refused_total{{{OURS}}}[{RATE}]))", "refused"),),
            ),
            Panel(
                "Event loops",
                "How late the loop of a process was at most within a minute.",
                SECONDS,
                (Query(latest("countersign_event_loop_late_seconds", "instance"), "{{instance}}"),),
            ),
        ),
    ),
    (
        "Bus",
        (
            Panel(
                "Calls to services",
                "As the service sees them, by outcome.",
                REQUESTS,
                (Query(rate("countersign_rpc_handled_total", "outcome"), "{{outcome}}"),),
            ),
            Panel(
                "Slowest calls",
                "95 % were answered within this time, as the caller sees them.",
                SECONDS,
                (Query(slowest("countersign_rpc_client_seconds", "call"), "{{call}}"),),
            ),
            Panel(
                "Calls without an answer",
                "By reason.",
                REQUESTS,
                (Query(rate("countersign_rpc_client_failures_total", "reason"), "{{reason}}"),),
                quiet="Every call was answered",
            ),
            Panel(
                "Outbox",
                "Events that wait to be published, and the age of the oldest.",
                NUMBER,
                (
                    Query(latest("countersign_outbox_waiting", "service"), "{{service}}"),
                    Query(latest("countersign_outbox_oldest_seconds"), "age of the oldest", SECONDS),
                ),
            ),
            Panel(
                "Events",
                "Deliveries by outcome.",
                PER_SECOND,
                (Query(rate("countersign_events_total", "outcome"), "{{outcome}}"),),
            ),
            Panel(
                "Events that are missing",
                "Told and not taken, and the age of the oldest.",
                NUMBER,
                (
                    Query(latest("countersign_events_missing", "service"), "{{service}}"),
                    Query(latest("countersign_events_missing_oldest_seconds"), "age of the oldest", SECONDS),
                    Query(latest("countersign_event_gap_oldest_seconds"), "webhooks' wait for an earlier one", SECONDS),
                ),
            ),
        ),
    ),
    (
        "Work that can fail outside",
        (
            Panel(
                "Overdue",
                "For how long the oldest row of each work has been due.",
                SECONDS,
                (Query(latest("countersign_due_work_oldest_seconds", "work"), "{{work}}"),),
                width=12,
                sorted=True,
            ),
            Panel(
                "Given up",
                "Rows by work that wait for an operator, and outcomes that a database does not take.",
                NUMBER,
                (
                    Query(latest("countersign_due_work_parked", "work"), "{{work}}"),
                    Query(latest("countersign_due_work_unwritten", "work", "sum"), "{{work}}: unwritten"),
                ),
                width=12,
                sorted=True,
            ),
            Panel(
                "Attempts",
                "By work and outcome.",
                PER_SECOND,
                (Query(rate("countersign_due_work_total", "work, outcome"), "{{work}}: {{outcome}}"),),
                width=24,
                sorted=True,
            ),
        ),
    ),
    (
        "Documents and seals",
        (
            Panel(
                "Seals",
                "Files that were sealed, by level.",
                PER_SECOND,
                (Query(rate("rendering_seals_total", "level"), "{{level}}"),),
            ),
            Panel(
                "Time of a seal",
                "Half and 95 % of the attempts took this long.",
                SECONDS,
                tuple(Query(quantile(share, "rendering_seal_job_seconds"), f"{share:.0%}") for share in (0.5, 0.95)),
            ),
            Panel(
                "Sealings under way",
                "How long the longest has been waited for; how many were given up.",
                NUMBER,
                (
                    Query(latest("countersign_sealing_oldest_seconds"), "age of the oldest", SECONDS),
                    Query(latest("countersign_sealing_failed"), "failed"),
                ),
            ),
            Panel(
                "Batches",
                "Rows that are still to become submissions; how long nothing has become of those that have waited longest.",
                NUMBER,
                (
                    Query(latest("countersign_batch_rows_pending"), "rows"),
                    Query(latest("countersign_batch_rows_oldest_seconds"), "wait of the oldest", SECONDS),
                ),
            ),
            Panel(
                "Kept",
                "Submissions that should have been deleted by now; those on legal hold.",
                NUMBER,
                (
                    Query(latest("countersign_retention_due"), "to be deleted"),
                    Query(latest("countersign_retention_held"), "held"),
                    Query(latest("countersign_erasures_open"), "deleted, without a receipt yet"),
                    Query(latest("countersign_erasure_oldest_seconds"), "the oldest of these: age", SECONDS),
                ),
            ),
            Panel(
                "Children",
                "Processes that open files, and jobs that wait for one.",
                NUMBER,
                (
                    Query(latest("rendering_children", "instance"), "{{instance}}: children"),
                    Query(latest("rendering_jobs_waiting", "instance"), "{{instance}}: waiting"),
                ),
            ),
            Panel(
                "Slowest jobs",
                "95 % of a task's jobs took this long in a child.",
                SECONDS,
                (Query(slowest("rendering_job_seconds", "task"), "{{task}}"),),
            ),
            Panel(
                "Jobs that came to nothing",
                "Not begun because all children were taken, or ended with their child.",
                PER_SECOND,
                (
                    Query(rate("rendering_jobs_not_begun_total", "reason"), "not begun: {{reason}}"),
                    Query(rate("rendering_child_kills_total", "reason"), "killed: {{reason}}"),
                ),
                quiet="Every job was done",
            ),
            Panel(
                "What runs out",
                "The seal's certificate, and the first archive time-stamp where there are any.",
                SECONDS,
                (
                    Query(latest("rendering_certificate_expires_seconds", of="min"), "certificate"),
                    Query(f"{latest('countersign_archive_expires_seconds', of='min')} < Inf", "archive time-stamp"),
                ),
            ),
        ),
    ),
    (
        "Providers",
        (
            Panel(
                "Certificates: calls",
                "By outcome; docs/certsign.md has the words.",
                REQUESTS,
                (Query(rate("certsign_calls_total", "provider, outcome"), "{{provider}}: {{outcome}}"),),
                quiet="No provider was called",
            ),
            Panel(
                "Certificates: the longest wait",
                "For how long a submission has waited for its provider.",
                SECONDS,
                (Query(latest("rendering_certsign_oldest_pending_seconds"), "oldest"),),
            ),
            Panel(
                "Duty stamps: calls",
                "By outcome.",
                REQUESTS,
                (Query(rate("dutystamp_calls_total", "provider, outcome"), "{{provider}}: {{outcome}}"),),
                quiet="No provider was called",
            ),
            Panel(
                "Duty stamps: balance",
                "How many can still be bought.",
                NUMBER,
                (Query(latest("dutystamp_balance", "provider", "min"), "{{provider}}"),),
                quiet="No provider was asked",
            ),
            Panel(
                "Duty stamps: differences",
                "Between our books and the provider's list.",
                NUMBER,
                tuple(
                    Query(latest(f"dutystamp_{kind}", "provider"), f"{{{{provider}}}}: {kind}")
                    for kind in ("strangers", "missing", "differing", "held")
                ),
                quiet="Nothing was compared",
            ),
        ),
    ),
    (
        "Processes",
        (
            Panel(
                "Processors",
                "How many each process uses, without rendering's children.",
                NUMBER,
                (
                    Query(
                        f"rate(process_cpu_seconds_total{{{OURS}}}[{RATE}])"
                        f" and on (job, instance) countersign_build_info{{{OURS}}}",
                        "{{instance}}",
                    ),
                ),
            ),
            Panel(
                "Memory",
                "Resident, without rendering's children.",
                BYTES,
                (
                    Query(
                        f"process_resident_memory_bytes{{{OURS}}}"
                        f" and on (job, instance) countersign_build_info{{{OURS}}}",
                        "{{instance}}",
                    ),
                ),
            ),
            Panel(
                "File descriptors",
                "The share that is taken.",
                SHARE,
                (
                    Query(
                        f"process_open_fds{{{OURS}}} / process_max_fds{{{OURS}}}"
                        f" and on (job, instance) countersign_build_info{{{OURS}}}",
                        "{{instance}}",
                    ),
                ),
            ),
            Panel(
                "Bugs of ours",
                "Answers, stored values and rows that are not as they should be.",
                PER_SECOND,
                (
                    Query(rate("countersign_answers_not_as_promised_total", "operation"), "answer: {{operation}}"),
                    Query(rate("countersign_stored_values_odd_total", "model"), "odd: {{model}}"),
                    Query(rate("countersign_stored_rows_unreadable_total", "model"), "unreadable: {{model}}"),
                ),
                quiet="None was seen",
                width=12,
            ),
            Panel(
                "Lines of logs that were dropped",
                "Since the process began.",
                NUMBER,
                (Query(latest("countersign_log_lines_dropped", "instance"), "{{instance}}"),),
                width=12,
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard in Grafana's JSON model."""
    return {
        "uid": "countersign",
        "title": "Countersign",
        "description": "Made by python -m deploy.observability.make_dashboard. Alerts and what they mean: deploy/RUNBOOK.md.",
        "tags": ["countersign"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": _variables()},
        "panels": _panels(),
    }


def queries() -> list[str]:
    """Every query of the dashboard, with Grafana's variables in it."""
    return [query.expression for _, panels in ROWS for panel in panels for query in panel.queries]


def _variables() -> list[dict[str, Any]]:
    query = "label_values(countersign_build_info, job)"
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0},
        {
            "name": "job",
            "label": "Job",
            "type": "query",
            "datasource": DATASOURCE,
            "definition": query,
            "query": {"query": query, "refId": "job"},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".+",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
            "hide": 0,
        },
    ]


def _panels() -> list[dict[str, Any]]:
    """Rows from the top, each with its panels from the left; what does not fit begins another line."""
    panels_made: list[dict[str, Any]] = []
    top = 0
    for title, panels in ROWS:
        panels_made.append(_row(len(panels_made) + 1, title, top))
        top, left = top + 1, 0
        for number, panel in enumerate(panels):
            if left + panel.width > COLUMNS:
                top, left = top + _height(panels[number - 1]), 0
            panels_made.append(_panel(len(panels_made) + 1, panel, left, top))
            left += panel.width
        top += _height(panels[-1])
    return panels_made


def _height(panel: Panel) -> int:
    return HEIGHT // 2 if panel.kind == "stat" else HEIGHT


def _row(number: int, title: str, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place}


def _panel(number: int, panel: Panel, left: int, top: int) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red_from is not None:
        steps.append({"color": "red", "value": panel.red_from})
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": left, "y": top, "w": panel.width, "h": _height(panel)},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "thresholds": {"mode": "absolute", "steps": steps},
                **({"noValue": panel.quiet} if panel.quiet else {}),
            },
            "overrides": [_other_unit(_name(at), query.unit) for at, query in enumerate(panel.queries) if query.unit],
        },
        "options": _options(panel),
        "transformations": [COLUMNS_OF_TABLES] if panel.kind == "table" else [],
        "targets": [_target(position, query, panel.kind) for position, query in enumerate(panel.queries)],
    }


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        return {"colorMode": "background", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}
    if panel.kind == "table":
        return {"showHeader": True, "cellHeight": "sm"}
    by_value = {
        "displayMode": "table",
        "placement": "right",
        "calcs": ["lastNotNull"],
        "sortBy": "Last *",
        "sortDesc": True,
    }
    return {
        "legend": {
            "displayMode": "list",
            "placement": "bottom",
            **(by_value if panel.sorted else {}),
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _target(position: int, query: Query, kind: str) -> dict[str, Any]:
    shape = {"instant": True, "format": "table"} if kind == "table" else {"range": True, "format": "time_series"}
    return {
        "refId": _name(position),
        "datasource": DATASOURCE,
        "expr": query.expression,
        "legendFormat": query.legend,
        **shape,
    }


def _name(position: int) -> str:
    return chr(ord("A") + position)


def _other_unit(query: str, unit: str) -> dict[str, Any]:
    properties = [{"id": "unit", "value": unit}, {"id": "custom.axisPlacement", "value": "right"}]
    return {"matcher": {"id": "byFrameRefID", "options": query}, "properties": properties}


def text() -> str:
    """The file's content."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
