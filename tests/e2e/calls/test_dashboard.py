"""A real Prometheus watches a suite that works, and answers every query of the dashboard."""

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from deploy.observability import make_dashboard
from deploy.services import ROOT
from docs.programs.dashboard.answers import answers_of
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed
from tests.support.servers.prometheus import PrometheusServer
from tests.support.services.suite import RunningSuite, wait_until

PANELS: dict[str, dict[str, Any]] = {
    str(panel["id"]): panel for panel in make_dashboard.dashboard()["panels"] if panel["type"] != "row"
}

MAY_BE_EMPTY = {
    ("Calls without an answer", "A"): "every call is answered",
    ("Given up", "B"): "each outcome was written at once",
    ("Jobs that came to nothing", "A"): "a child was free for each job",
    ("Jobs that came to nothing", "B"): "no child was killed",
    ("What runs out", "B"): "nothing was sealed with an archive time-stamp",
    ("Bugs of ours", "A"): "answers are as they were promised",
    ("Bugs of ours", "B"): "stored values are as they should be",
    ("Bugs of ours", "C"): "stored rows can be read",
    ("Certificates: calls", "A"): "no provider was called",
    ("Duty stamps: calls", "A"): "no provider was called",
    ("Duty stamps: balance", "A"): "no provider was asked",
    **{("Duty stamps: differences", query): "there is no provider to compare with" for query in "ABCD"},
}
"""Queries without an answer where nothing is wrong and no provider is set up, by panel and query, with the reason."""

ALERTS = ROOT / "deploy/observability/alerts.yaml"
EVERY = 1


@pytest.fixture(scope="module")
def prometheus(sqlite_suite: RunningSuite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    folder = tmp_path_factory.mktemp("watched") / "prometheus"
    with PrometheusServer(folder, sqlite_suite, every=EVERY, rules=[ALERTS]) as server:
        wait_until(lambda: len(server.ask("up == 1")) == len(server.processes), what="a scrape of each process")
        yield server


def without_an_answer(answers: dict[str, Any]) -> set[tuple[str, str]]:
    """The panels and queries that got no number at all."""
    return {
        (PANELS[number]["title"], target["refId"])
        for number, found in answers["panels"].items()
        if number in PANELS
        for target, series in zip(PANELS[number]["targets"], found, strict=True)
        if not any(map(numbers, series))
    }


def numbers(series: dict[str, Any]) -> list[float]:
    read = [float(value) for _, value in series.get("values") or [series["value"]]]
    return [value for value in read if not math.isnan(value)]


def test_each_query_of_the_dashboard_has_an_answer(sqlite_suite: RunningSuite, prometheus: PrometheusServer) -> None:
    """Agreements are made until there is one: a histogram has a quantile only while something is observed."""
    template = sqlite_suite.copy_of_template(agreement_pdf(), name="Agreement")["id"]
    began = time.time()

    def answered() -> dict[str, Any]:
        seller, buyer = send(sqlite_suite, template)
        sign(sqlite_suite, seller["slug"], SELLER_VALUES)
        sign(sqlite_suite, buyer["slug"], BUYER_VALUES)
        completed(sqlite_suite, seller["submission_id"])
        answers = answers_of(prometheus, began, time.time(), EVERY)
        missing.append(without_an_answer(answers) - set(MAY_BE_EMPTY))
        return {} if missing[-1] else answers

    missing: list[set[tuple[str, str]]] = []
    try:
        answers = wait_until(answered)
    except AssertionError:
        raise AssertionError(f"without an answer: {sorted(missing[-1])}") from None
    for number, panel in PANELS.items():
        for target, series in zip(panel["targets"], answers["panels"][number], strict=True):
            names = [one["name"] for one in series]
            assert len(set(names)) == len(names), f"{panel['title']}: lines of the same name: {names}"
            assert all(name.strip(" :") == name for name in names), f"{panel['title']} {target['refId']}: {names}"


def test_a_panel_that_may_have_nothing_to_show_says_so() -> None:
    """Instead of “No data”, which somebody who looks for a fault would take for one."""
    silent = {
        panel["title"]
        for panel in PANELS.values()
        if {(panel["title"], target["refId"]) for target in panel["targets"]} <= set(MAY_BE_EMPTY)
    }
    assert silent == {panel["title"] for panel in PANELS.values() if "noValue" in panel["fieldConfig"]["defaults"]}


def test_prometheus_evaluates_each_alert_without_an_error(prometheus: PrometheusServer) -> None:
    """What promtool reads may still fail over series as they are: where labels do not match one to one."""
    named = yaml.safe_load(ALERTS.read_text())["groups"]
    wait_until(
        lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()), what="an evaluation of each rule"
    )
    found = prometheus.rules()
    assert {rule["name"] for rule in found} == {rule["alert"] for group in named for rule in group["rules"]}
    assert [(rule["name"], rule.get("lastError")) for rule in found if rule["health"] != "ok"] == []
