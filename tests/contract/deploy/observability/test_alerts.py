"""The alerts fire when they should and are silent when they should, by Prometheus' own promtool; each is in the runbook."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.services import ROOT
from tests.support.judges.operations import metrics

RULES = ROOT / "deploy/observability/alerts.yaml"
RUNBOOK = ROOT / "deploy/RUNBOOK.md"

ALERTS = {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}

Series = dict[str, str]
"""In promtool's notation: ``0+10x20`` is 0, 10, 20 ...; ``_`` no sample, ``stale`` the end of a series. One a minute."""

DAY = 86_400
UNKNOWN, NEVER = " ".join(["NaN"] * 21), " ".join(["Inf"] * 21)
HERE = {"job": "countersign", "instance": "a:9000"}
PROCESS = 'job="countersign",instance="a:9000"'
BUILD = f'countersign_build_info{{{PROCESS},service="webhooks",version="1",revision="a"}}'
OTHER = 'countersign_build_info{job="countersign",instance="b:9000",service="webhooks",version="1",revision="a"}'


@dataclass(frozen=True)
class Case:
    """At ``at`` (promtool's notation) the alert fires for these ``labels`` with one set of series, and not with the other."""

    alert: str
    at: str
    fires: Series
    silent: Series
    labels: dict[str, str] = field(default_factory=dict)


def rising(alert: str, metric: str, names: str, *, first: bool = True, by: str = "", wrong: str = "") -> Case:
    """A counter whose label ``names`` is ``x``. It fires at the first event, and one of hours ago is no alarm."""
    labels = f'{{{PROCESS},{names}="x"{"," + by if by else ""}}}' if names else f"{{{PROCESS}{',' + by if by else ''}}}"
    quiet = {f"{metric}{labels}": "5x400"}
    if wrong:
        quiet[f"{metric}{labels.replace(by, wrong)}"] = "0+1x400"
    return Case(
        alert,
        "300m",
        {f"{metric}{labels}": "_x280 1x40" if first else "0x280 1x40"},
        quiet,
        {names: "x"} if names else {},
    )


CASES = [
    Case(
        "CountersignServiceGone",
        "40m",
        {BUILD: "1x10 stale", BUILD.replace("webhooks", "templates"): "1x60"},
        {BUILD: "1x10 stale", OTHER: "1x60"},
        {"service": "webhooks"},
    ),
    Case(
        "CountersignProcessDown",
        "40m",
        {f"up{{{PROCESS}}}": "1x10 0x60", BUILD: "1x10 stale"},
        {f"up{{{PROCESS}}}": "1x60", BUILD: "1x60", 'up{job="node",instance="c:9100"}': "0x60"},
        HERE,
    ),
    Case(
        "CountersignRestarts",
        "40m",
        {f"process_start_time_seconds{{{PROCESS}}}": "1x20 2x5 3x5 4x30", BUILD: "1x60"},
        {
            f"process_start_time_seconds{{{PROCESS}}}": "1x30 2x30",
            BUILD: "1x60",
            'process_start_time_seconds{job="node",instance="c:9100"}': "1+1x60",
        },
        HERE,
    ),
    Case(
        "CountersignVersionsDiffer",
        "90m",
        {BUILD: "1x100", OTHER.replace('version="1"', 'version="2"'): "1x100"},
        {BUILD: "1x100", OTHER: "1x100", OTHER.replace('revision="a"', 'revision="b"'): "_x60 1x40"},
        {"service": "webhooks"},
    ),
    Case(
        "CountersignEventLoopLate",
        "20m",
        {f"countersign_event_loop_late_seconds{{{PROCESS}}}": "1.5x20"},
        {f"countersign_event_loop_late_seconds{{{PROCESS}}}": "1.5x15 0.9 1.5x10"},
        HERE,
    ),
    Case(
        "CountersignDescriptorsRunOut",
        "20m",
        {f"process_open_fds{{{PROCESS}}}": "900x20", f"process_max_fds{{{PROCESS}}}": "1000x20", BUILD: "1x20"},
        {
            f"process_open_fds{{{PROCESS}}}": "700x20",
            f"process_max_fds{{{PROCESS}}}": "1000x20",
            BUILD: "1x20",
            'process_open_fds{job="node",instance="c:9100"}': "9x20",
            'process_max_fds{job="node",instance="c:9100"}': "10x20",
        },
        HERE,
    ),
    Case(
        "CountersignCallsNotMade",
        "60m",
        {f"countersign_outbound_not_called_total{{{PROCESS}}}": "0x30 1x30"},
        {f"countersign_outbound_not_called_total{{{PROCESS}}}": "7x60"},
        HERE,
    ),
    Case(
        "CountersignLogLinesDropped",
        "60m",
        {f"countersign_log_lines_dropped{{{PROCESS}}}": "0x30 12x30"},
        {f"countersign_log_lines_dropped{{{PROCESS}}}": "12x60"},
        HERE,
    ),
    Case(
        "CountersignBrokerAway",
        "10m",
        {
            f'countersign_broker_connected{{{PROCESS},connection="relay"}}': "1x3 0x10",
            f'countersign_broker_connected{{{PROCESS},connection="client"}}': "1x20",
        },
        {f'countersign_broker_connected{{{PROCESS},connection="relay"}}': "1x8 0 1x10"},
        {"job": "countersign"},
    ),
    Case(
        "CountersignBrokerBlocked",
        "10m",
        {f'countersign_broker_blocked{{{PROCESS},connection="relay"}}': "0x3 1x10"},
        {f'countersign_broker_blocked{{{PROCESS},connection="relay"}}': "1x3 0x10"},
        {"job": "countersign"},
    ),
    Case(
        "CountersignOutboxOld",
        "20m",
        {f'countersign_outbox_oldest_seconds{{{PROCESS},service="templates"}}': "0x5 60+60x20"},
        {f'countersign_outbox_oldest_seconds{{{PROCESS},service="templates"}}': "59x14 90 59x10"},
        {"service": "templates"},
    ),
    Case(
        "CountersignOutboxUnroutable",
        "20m",
        {f'countersign_outbox_unroutable{{{PROCESS},service="templates"}}': "2x20"},
        {f'countersign_outbox_unroutable{{{PROCESS},service="templates"}}': "2x16 0x10"},
        {"service": "templates"},
    ),
    Case(
        "CountersignEventsMissing",
        "30m",
        {f'countersign_events_missing_oldest_seconds{{{PROCESS},service="webhooks"}}': "0+60x30"},
        {f'countersign_events_missing_oldest_seconds{{{PROCESS},service="webhooks"}}': "0+10x30"},
        {"service": "webhooks"},
    ),
    Case(
        "CountersignEventGap",
        "30m",
        {f"countersign_event_gap_oldest_seconds{{{PROCESS}}}": "0+60x30"},
        {f"countersign_event_gap_oldest_seconds{{{PROCESS}}}": "0+10x30"},
    ),
    rising(
        "CountersignEventsParked",
        "countersign_events_total",
        "queue",
        by='outcome="parked"',
        wrong='outcome="retry"',
    ),
    Case(
        "CountersignEventsWaiting",
        "30m",
        {f'countersign_events_total{{{PROCESS},queue="x",outcome="waiting"}}': "0+4x30"},
        {
            f'countersign_events_total{{{PROCESS},queue="x",outcome="waiting"}}': "0+4x20 80x10",
            f'countersign_events_total{{{PROCESS},queue="x",outcome="ok"}}': "0+4x30",
        },
        {"queue": "x"},
    ),
    Case(
        "CountersignCallsUnanswered",
        "30m",
        {f'countersign_rpc_client_failures_total{{{PROCESS},call="a.b",reason="quiet"}}': "0+2x30"},
        {f'countersign_rpc_client_failures_total{{{PROCESS},call="a.b",reason="quiet"}}': "0+0.5x30"},
        {"call": "a.b", "reason": "quiet"},
    ),
    Case(
        "CountersignDueWorkOld",
        "20m",
        {f'countersign_due_work_oldest_seconds{{{PROCESS},work="mails"}}': "0+60x20"},
        {f'countersign_due_work_oldest_seconds{{{PROCESS},work="mails"}}': "299x20"},
        {"work": "mails"},
    ),
    Case(
        "CountersignDueWorkParked",
        "120m",
        {
            f'countersign_due_work_parked{{{PROCESS},work="mails"}}': "3x100 4x40",
            f'countersign_due_work_parked{{{PROCESS},work="deliver"}}': "3x100 2x40",
        },
        {
            f'countersign_due_work_parked{{{PROCESS},work="mails"}}': "4x100 3x10 stale",
            'countersign_due_work_parked{job="countersign",instance="b:9000",work="mails"}': "_x110 3x40",
        },
        {"work": "mails"},
    ),
    Case(
        "CountersignDueWorkUnwritten",
        "20m",
        {f'countersign_due_work_unwritten{{{PROCESS},work="mails"}}': "1x20"},
        {f'countersign_due_work_unwritten{{{PROCESS},work="mails"}}': "1x16 0x10"},
        {"work": "mails"},
    ),
    Case(
        "CountersignMessagesNotTaken",
        "36m",
        {
            f'countersign_due_work_total{{{PROCESS},work="mails",outcome="retry"}}': "0+1x60",
            f'countersign_due_work_total{{{PROCESS},work="mails",outcome="done"}}': "1x60",
            f'countersign_due_work_total{{{PROCESS},work="phone-messages",outcome="retry"}}': "0+1x60",
            f'countersign_due_work_total{{{PROCESS},work="phone-messages",outcome="done"}}': "0+1x60",
        },
        {
            # Nothing but one mail is sent, at its times of MAIL_RETRY_SECONDS, to a mailbox that is full; of many messages to
            # telephones some are not taken; a receiver of webhooks is dead.
            f'countersign_due_work_total{{{PROCESS},work="mails",outcome="retry"}}': "0x10 3 4 5 5 5 5 5 5 6x9 7x40",
            f'countersign_due_work_total{{{PROCESS},work="phone-messages",outcome="retry"}}': "0+1x60",
            f'countersign_due_work_total{{{PROCESS},work="phone-messages",outcome="done"}}': "0+1x60",
            f'countersign_due_work_total{{{PROCESS},work="deliver",outcome="retry"}}': "0+1x60",
        },
        {"work": "mails"},
    ),
    Case(
        "CountersignSealingOld",
        "20m",
        {
            f"countersign_sealing_oldest_seconds{{{PROCESS}}}": "0+60x20",
            f"rendering_certsign_oldest_pending_seconds{{{PROCESS}}}": "0x20",
        },
        {
            f"countersign_sealing_oldest_seconds{{{PROCESS}}}": "0+60x20",
            f"rendering_certsign_oldest_pending_seconds{{{PROCESS}}}": "0+59x20",
        },
    ),
    Case(
        "CountersignSealingFailed",
        "20m",
        {f"countersign_sealing_failed{{{PROCESS}}}": "1x20"},
        {f"countersign_sealing_failed{{{PROCESS}}}": "1x18 0x10"},
    ),
    Case(
        "CountersignRetentionBehind",
        "70m",
        {f"countersign_retention_due{{{PROCESS}}}": "3x70"},
        {f"countersign_retention_due{{{PROCESS}}}": "3x50 0x20"},
    ),
    Case(
        "CountersignBatchRowsStuck",
        "30m",
        {
            f"countersign_batch_rows_oldest_seconds{{{PROCESS}}}": "0+60x30",
            f"countersign_batch_rows_pending{{{PROCESS}}}": "7x30",
        },
        {
            f"countersign_batch_rows_oldest_seconds{{{PROCESS}}}": "0+60x10 0+60x10 0+60x10",
            f"countersign_batch_rows_pending{{{PROCESS}}}": "7x30",
        },
    ),
    Case(
        "CountersignErasureUnconfirmed",
        "3h",
        {f"countersign_erasure_oldest_seconds{{{PROCESS}}}": "0+60x180"},
        {f"countersign_erasure_oldest_seconds{{{PROCESS}}}": "0+60x100 0x80"},
    ),
    rising("CountersignSealsDiffer", "rendering_seals_differing_total", "", first=False),
    Case(
        "CountersignUnavailable",
        "20m",
        {
            f'countersign_http_seconds_count{{{PROCESS},operation="a",status="200"}}': "0+90x20",
            f'countersign_http_seconds_count{{{PROCESS},operation="a",status="503"}}': "0+10x20",
        },
        {
            f'countersign_http_seconds_count{{{PROCESS},operation="a",status="200"}}': "0+98x20",
            f'countersign_http_seconds_count{{{PROCESS},operation="a",status="503"}}': "0+2x20",
            f'countersign_http_seconds_count{{{PROCESS},operation="a",status="422"}}': "0+50x20",
        },
    ),
    rising(
        "CountersignServerErrors",
        "countersign_http_seconds_count",
        "operation",
        by='status="500"',
        wrong='status="503"',
    ),
    rising("CountersignAnswersNotAsPromised", "countersign_answers_not_as_promised_total", "operation"),
    rising("CountersignStoredValuesOdd", "countersign_stored_values_odd_total", "model"),
    rising("CountersignStoredRowsUnreadable", "countersign_stored_rows_unreadable_total", "model"),
    rising("CountersignPhoneCodesRefused", "countersign_phone_codes_refused_total", "cap"),
    Case(
        "CountersignHeavyCallsRefused",
        "30m",
        {f"gateway_heavy_calls_refused_total{{{PROCESS}}}": "0+3x30"},
        {f"gateway_heavy_calls_refused_total{{{PROCESS}}}": "0+1x30"},
    ),
    Case(
        "CountersignRenderingBusy",
        "30m",
        {f'rendering_jobs_not_begun_total{{{PROCESS},reason="busy"}}': "0+1x30"},
        {f'rendering_jobs_not_begun_total{{{PROCESS},reason="busy"}}': "0+0.2x30"},
        {"reason": "busy"},
    ),
    Case(
        "CountersignChildrenKilled",
        "30m",
        {f'rendering_child_kills_total{{{PROCESS},reason="memory"}}': "0+3x30"},
        {f'rendering_child_kills_total{{{PROCESS},reason="memory"}}': "0+1x30"},
        {"reason": "memory"},
    ),
    Case(
        "CountersignCertificateEndsSoon",
        "20m",
        {f"rendering_certificate_expires_seconds{{{PROCESS}}}": f"{29 * DAY}x20"},
        {
            f"rendering_certificate_expires_seconds{{{PROCESS}}}": f"{31 * DAY}x20",
            'rendering_certificate_expires_seconds{job="countersign",instance="b:9000"}': UNKNOWN,
        },
    ),
    Case(
        "CountersignCertificateEnds",
        "20m",
        {f"rendering_certificate_expires_seconds{{{PROCESS}}}": "-5x20"},
        {
            f"rendering_certificate_expires_seconds{{{PROCESS}}}": f"{4 * DAY}x20",
            'rendering_certificate_expires_seconds{job="countersign",instance="b:9000"}': UNKNOWN,
        },
    ),
    Case(
        "CountersignArchiveEndsSoon",
        "20m",
        {
            f"countersign_archive_expires_seconds{{{PROCESS}}}": f"{29 * DAY}x20",
            'countersign_archive_expires_seconds{job="countersign",instance="b:9000"}': UNKNOWN,
        },
        {
            f"countersign_archive_expires_seconds{{{PROCESS}}}": NEVER,
            'countersign_archive_expires_seconds{job="countersign",instance="b:9000"}': UNKNOWN,
        },
    ),
    Case(
        "CountersignCertsignPending",
        "80m",
        {f"rendering_certsign_oldest_pending_seconds{{{PROCESS}}}": "0+60x80"},
        {f"rendering_certsign_oldest_pending_seconds{{{PROCESS}}}": "3600x80"},
    ),
    Case(
        "CountersignCertsignAway",
        "60m",
        {
            f'certsign_calls_total{{{PROCESS},provider="p",operation="sign",outcome="unreachable"}}': "0+1x60",
            f'certsign_calls_total{{{PROCESS},provider="q",operation="sign",outcome="ok"}}': "0+1x60",
        },
        {
            f'certsign_calls_total{{{PROCESS},provider="p",operation="sign",outcome="unreachable"}}': "0+1x60",
            f'certsign_calls_total{{{PROCESS},provider="p",operation="sign",outcome="ok"}}': "0+1x60",
            f'certsign_calls_total{{{PROCESS},provider="q",operation="sign",outcome="wrong_code"}}': "0+1x60",
        },
        {"provider": "p"},
    ),
    Case(
        "CountersignCertsignRefused",
        "300m",
        {f'certsign_calls_total{{{PROCESS},provider="p",operation="sign",outcome="wrong_pin"}}': "_x280 1x40"},
        {
            f'certsign_calls_total{{{PROCESS},provider="p",operation="sign",outcome="wrong_pin"}}': "1x400",
            f'certsign_calls_total{{{PROCESS},provider="p",operation="sign",outcome="wrong_code"}}': "0+1x400",
        },
        {"provider": "p", "outcome": "wrong_pin"},
    ),
    Case(
        "CountersignStampsAway",
        "60m",
        {f'dutystamp_calls_total{{{PROCESS},provider="p",operation="buy",outcome="unavailable"}}': "0+1x60"},
        {
            f'dutystamp_calls_total{{{PROCESS},provider="p",operation="buy",outcome="unavailable"}}': "0+1x60",
            f'dutystamp_calls_total{{{PROCESS},provider="p",operation="list",outcome="done"}}': "0+1x60",
        },
        {"provider": "p"},
    ),
    Case(
        "CountersignStampsLow",
        "20m",
        {f'dutystamp_balance_low{{{PROCESS},provider="p"}}': "1x20"},
        {
            f'dutystamp_balance_low{{{PROCESS},provider="p"}}': "0x20",
            f'dutystamp_balance{{{PROCESS},provider="p"}}': "0x20",
        },
        {"provider": "p"},
    ),
    Case(
        "CountersignStampsDiffer",
        "20m",
        {
            f'dutystamp_differing{{{PROCESS},provider="p"}}': "2x20",
            f'dutystamp_strangers{{{PROCESS},provider="p"}}': "0x20",
        },
        {
            f'dutystamp_{kind}{{{PROCESS},provider="p"}}': "0x20"
            for kind in ("strangers", "missing", "differing", "held")
        },
        {"provider": "p"},
    ),
]


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_prometheus_reads_the_rules() -> None:
    said = promtool("check", "rules", RULES)
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{len(ALERTS)} rules found" in said.stdout


def test_every_alert_has_its_case() -> None:
    assert sorted(case.alert for case in CASES) == sorted(ALERTS)


def asked(case: Case, series: Series, expected: Sequence[dict[str, str]]) -> dict[str, Any]:
    """One test in promtool's file: which alerts of the case's name fire."""
    pairs = [",".join(f'{name}="{value}"' for name, value in labels.items()) for labels in expected]
    samples = [{"labels": f"ALERTS{{{each}}}", "value": 1} for each in pairs]
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}',
                "eval_time": case.at,
                "exp_samples": samples,
            }
        ],
    }


def tried(folder: Path, alert: str, *tests: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """What promtool says of tests of one alert. It is given no other: it would evaluate all of them at each minute."""
    rules, file = folder / "rules.yaml", folder / "tests.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "countersign", "rules": [ALERTS[alert]]}]}))
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": list(tests)}))
    return promtool("test", "rules", file)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_it_fires_when_it_should_and_is_silent_when_it_should(case: Case, tmp_path: Path) -> None:
    labels = {
        "alertname": case.alert,
        "alertstate": "firing",
        "severity": ALERTS[case.alert]["labels"]["severity"],
        **case.labels,
    }
    said = tried(tmp_path, case.alert, asked(case, case.fires, [labels]), asked(case, case.silent, []))
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_sentences_name_what_it_is_about(tmp_path: Path) -> None:
    """One of them as Prometheus fills it in."""
    alert = {
        "exp_labels": {"severity": "critical", "service": "templates"},
        "exp_annotations": {
            "summary": "Events of templates are not published.",
            "description": "The oldest has waited for 10m 0s.",
            "runbook": "deploy/RUNBOOK.md#countersignoutboxold",
        },
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": 'countersign_outbox_oldest_seconds{service="templates"}', "values": "600x20"}],
        "alert_rule_test": [{"eval_time": "10m", "alertname": "CountersignOutboxOld", "exp_alerts": [alert]}],
    }
    said = tried(tmp_path, "CountersignOutboxOld", test)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_about_what_there_is_and_says_what_to_do(name: str) -> None:
    rule = ALERTS[name]
    assert metrics.faults(rule["expr"]) == []
    assert rule["labels"] in ({"severity": "critical"}, {"severity": "warning"})
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    (case,) = [case for case in CASES if case.alert == name]
    told = {label for text in rule["annotations"].values() for label in re.findall(r"\$labels\.(\w+)", text)}
    assert told <= set(case.labels), "labels that the alert has"
    file, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (ROOT / file, anchor) == (RUNBOOK, name.lower())
    assert re.findall(rf"^## {name}$", RUNBOOK.read_text(), re.MULTILINE) == [f"## {name}"]


def test_the_runbook_has_no_alert_that_is_gone() -> None:
    assert set(re.findall(r"^## (Countersign\w+)$", RUNBOOK.read_text(), re.MULTILINE)) == set(ALERTS)


def test_what_no_metric_has_is_noticed() -> None:
    assert metrics.faults("sum by (work) (countersign_due_work_old) > 0") == [
        "nothing has countersign_due_work_old",
        "no series in it has the label work",
    ]
    assert (
        metrics.faults('rate(countersign_http_seconds{status="200"}[5m])')[0] == "nothing has countersign_http_seconds"
    )
    assert metrics.faults('countersign_outbox_waiting{work="x"}') == ["no series in it has the label work"]
