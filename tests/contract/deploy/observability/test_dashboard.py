"""The dashboard is what its program makes, Prometheus reads each of its queries, and each asks for what there is."""

import json
import re
import subprocess
import textwrap
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.observability import make_dashboard
from deploy.services import ROOT
from docs.programs.dashboard.drawing import FOLDER, file_of
from tests.support.judges.operations import metrics

PANELS: list[dict[str, Any]] = make_dashboard.dashboard()["panels"]
VARIABLES = {"$__rate_interval": "5m", "$job": ".+"}


def filled_in(expression: str) -> str:
    """A query as Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_it_is_what_the_program_makes() -> None:
    assert make_dashboard.FILE.read_text(encoding="utf-8") == make_dashboard.text(), (
        "run python -m deploy.observability.make_dashboard"
    )


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    """As the rules of a file, which promtool parses."""
    queries = [filled_in(one) for one in make_dashboard.queries()]
    assert not [one for one in queries if "$" in one], "a variable of Grafana's that is not filled in"
    rules = [{"record": f"query:{number}", "expr": one} for number, one in enumerate(queries)]
    file = tmp_path / "rules.yaml"

    def check() -> subprocess.CompletedProcess[str]:
        file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
        return subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)

    said = check()
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{len(queries)} rules found" in said.stdout
    rules[0]["expr"] += ")"
    assert check().returncode == 1


@pytest.mark.parametrize("query", make_dashboard.queries())
def test_a_query_asks_for_what_there_is(query: str) -> None:
    assert metrics.named(query)
    assert metrics.faults(filled_in(query)) == []


def test_what_an_operator_acts_on_is_on_it() -> None:
    """Every metric that an alert goes by, but for those that are no more than a sign of a bug or an abuse."""
    rules = Path(make_dashboard.FILE).with_name("alerts.yaml").read_text()
    alerted = {
        name
        for group in yaml.safe_load(rules)["groups"]
        for rule in group["rules"]
        for name in metrics.named(rule["expr"])
    }
    shown = {name for query in make_dashboard.queries() for name in metrics.named(query)}
    left_out = {
        "up",
        "countersign_outbound_not_called_total",
        "countersign_outbox_unroutable",
        "dutystamp_balance_low",
    } | {
        "countersign_phone_codes_refused_total",
        "rendering_seals_differing_total",
    }
    assert alerted - shown == left_out


def test_what_a_line_is_called_by_is_a_label_of_it() -> None:
    for panel in PANELS:
        for target in panel.get("targets", ()):
            named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert named <= metrics.labels(target["expr"]) | metrics.ALWAYS, panel["title"]


def test_panels_have_their_own_ids_and_places() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for panel in PANELS:
        assert 0 <= panel["gridPos"]["x"] <= make_dashboard.COLUMNS - panel["gridPos"]["w"]
    for one, other in combinations([panel["gridPos"] for panel in PANELS], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)
    for panel in PANELS:
        targets = panel.get("targets", [])
        assert len({target["refId"] for target in targets}) == len(targets)
        assert (panel["type"] == "row") == (not targets)


def test_it_is_json_without_what_json_has_not() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(make_dashboard.FILE.read_text(encoding="utf-8"), parse_constant=refuse)


PAGE = ROOT / "docs/dashboard.md"


def test_the_page_has_a_picture_of_each_row() -> None:
    """In the order of the rows, all of them together no larger than a photograph."""
    rows = [panel["title"] for panel in PANELS if panel["type"] == "row"]
    shown = re.findall(r"^!\[(.+)\]\(pictures/(dashboard-.+)\)$", PAGE.read_text(), re.MULTILINE)
    assert shown == [(row, file_of(row)) for row in rows]
    assert re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)[1:] == rows
    assert sum((FOLDER / file).stat().st_size for _, file in shown) < 300_000


def test_a_panel_that_the_page_names_is_there() -> None:
    _, told = PAGE.read_text().split("## At a glance")
    named = set(re.findall(r"\*\*(.+?)\*\*", told))
    assert named
    assert named <= {panel["title"] for panel in PANELS}


def test_prometheus_reads_what_the_page_has_it_scrape(tmp_path: Path) -> None:
    """The example, which also names the port of the manifests."""
    (example,) = re.findall(r"```yaml\n(.+?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "alerts.yaml").write_text(make_dashboard.FILE.with_name("alerts.yaml").read_text())
    file = tmp_path / "prometheus.yaml"
    file.write_text(textwrap.dedent(f"   {example}"))
    command = ["promtool", "check", "config", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "rules found" in said.stdout
