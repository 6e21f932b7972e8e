"""A suite that runs, as whoever operates it sees it: by ``countersign``, with no settings but its folder, and by its metrics."""

import json
import os
import re
import subprocess
import uuid
from pathlib import Path

import pytest
import requests
import yaml

from contracts.runtime.monitoring import build
from deploy.command.environment import REQUIRED
from deploy.observability import make_dashboard
from deploy.services import ROOT, SERVICES
from tests.support.judges.operations import metrics
from tests.support.judges.operations.kubectl import COMPLETE, objects_of, of_kind
from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import completed
from tests.support.services.forking import completed as completed_command
from tests.support.services.suite import RunningSuite


def countersign(suite: RunningSuite, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """From the suite's folder and from nowhere else it knows where everything is."""
    environment = {name: value for name, value in os.environ.items() if name not in REQUIRED}
    own = {"VAR_DIR": str(suite.var_dir), "PYTHONPATH": str(ROOT)}
    return completed_command("deploy.command", *map(str, arguments), environment={**environment, **own}, timeout=600)


def done(suite: RunningSuite, *arguments: str | Path) -> str:
    """What it prints, after its status was looked at."""
    ended = countersign(suite, *arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_with_all_walls_nothing_is_said(suite: RunningSuite) -> None:
    """What is said of a kernel that has not all that holds strangers' files back: test_kernel.py."""
    assert "notes" not in requests.get(f"{suite.base_url}/readyz", timeout=120).json()


def test_the_doctor_finds_nothing_wrong_with_a_suite_that_runs(suite: RunningSuite) -> None:
    ended = countersign(suite, "doctor")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"The settings are those of the suite in {suite.var_dir}." in ended.stderr
    assert not [line for line in ended.stdout.splitlines() if line.startswith("wrong")]


def test_databases_queues_and_what_was_given_up_are_seen_to(suite: RunningSuite) -> None:
    assert "schema: ok" in done(suite, "check", "webhooks")
    done(suite, "migrate", "webhooks", "templates")
    done(suite, "parked", "list")
    listed = done(suite, "retry")
    assert [line.removesuffix(":") for line in listed.splitlines() if line.endswith(":")] == list(SERVICES)
    assert re.search(r"^mails: \d+ parked$", done(suite, "retry", "notifications"), re.MULTILINE)
    unknown = countersign(suite, "retry", "notifications", "letters")
    assert (unknown.returncode, "notifications has work in: " in unknown.stderr) == (2, True)


def test_an_admin_s_new_key_works_at_once(suite: RunningSuite) -> None:
    address = f"{uuid.uuid4().hex}@example.com"
    made = suite.api("POST", "/users", {"email": address, "role": "admin"}, status=201)
    key = done(suite, "keys", address).strip()
    assert suite.api("GET", "/user", key=key)["email"] == address
    suite.api("GET", "/user", key=made["api_key"], status=401)


def test_a_backup_is_made_and_what_was_sealed_is_verified_and_counted(suite: RunningSuite, tmp_path: Path) -> None:
    folder = f"Room {uuid.uuid4()}"
    template = int(suite.template(agreement_pdf(), name="Agreement", folder_name=folder)["id"])
    people = [{"role": role, "email": f"{role}@example.com", "completed": True} for role in ("Seller", "Buyer")]
    made = suite.api("POST", "/submissions/init", {"template_id": template, "submitters": people, "send_email": False})
    number = completed(suite, made["id"])["id"]
    (document,) = suite.api("GET", f"/submissions/{number}/documents")["documents"]
    sealed = tmp_path / "agreement.pdf"
    sealed.write_bytes(requests.get(document["url"], timeout=60).content)
    assert done(suite, "verify", sealed).startswith("The signatures hold.")
    evidence = tmp_path / "evidence.zip"
    evidence.write_bytes(suite.call("GET", f"/submissions/{number}/evidence").content)
    assert done(suite, "verify", evidence).endswith("Everything that was checked holds.\n")
    evidence.write_bytes(evidence.read_bytes().replace(b"complete", b"compLete", 1))
    changed = countersign(suite, "verify", evidence)
    assert (changed.returncode, " was changed: " in changed.stdout) == (2, True)
    done(suite, "backup", tmp_path / "backup")
    manifest = json.loads((tmp_path / "backup" / "manifest.json").read_text())
    assert set(manifest["databases"]) == set(SERVICES)
    counted = json.loads(done(suite, "storage", "--json"))
    (of_template,) = [part for part in counted["services"]["templates"] if part["folder"] == folder]
    (of_submission,) = [part for part in counted["services"]["submissions"] if part["folder"] == folder]
    trail = requests.get(suite.api("GET", f"/submissions/{number}")["audit_log_url"], timeout=60).content
    assert (of_template["age"], of_submission["age"], of_submission["files"] >= 2) == ("30 days", "30 days", True)
    assert of_submission["bytes"] >= len(sealed.read_bytes()) + len(trail)
    assert sum(part["bytes"] for part in counted["store"]) >= of_template["bytes"] + of_submission["bytes"]


# --- metrics


def scraped(suite: RunningSuite) -> dict[str, str]:
    """What each process answers at ``/metrics``, by its name."""
    return {
        name: requests.get(f"http://127.0.0.1:{program.health_port}/metrics", timeout=120).text
        for name, program in suite.programs.items()
    }


@pytest.mark.parametrize("suite", ["sqlite", "postgresql"], indirect=True)
def test_every_process_says_what_it_is(suite: RunningSuite) -> None:
    """Those with one process for several services say so of each."""
    found = {
        name: re.findall(r"^countersign_build_info\{(.+)\} 1\.0$", text, re.MULTILINE)
        for name, text in scraped(suite).items()
    }
    workers = {name: SERVICES[:-1] for name in found if name == "worker"}
    expected = {name: [name] for name in found} | workers | {"background": SERVICES}
    for name, services in expected.items():
        told = [f'revision="unknown",service="{service}",version="{build.version()}"' for service in services]
        assert sorted(found[name]) == sorted(told)


def test_what_alerts_and_dashboard_ask_for_is_what_the_processes_tell(suite: RunningSuite) -> None:
    """Under the names, with the kinds, that the code is read to have."""
    told = dict(re.findall(r"^# TYPE (\S+) (\S+)$", "\n".join(scraped(suite).values()), re.MULTILINE))
    told.setdefault("countersign_trace_spans_total", "counter")  # of who records traces: test_traces.py
    for metric in metrics.of_the_code().values():
        assert told[metric.name] == metric.kind.lower(), metric
    rules = yaml.safe_load((ROOT / "deploy/observability/alerts.yaml").read_text())["groups"]
    queries = [rule["expr"] for group in rules for rule in group["rules"]] + make_dashboard.queries()
    known = (
        set().union(*(metric.series for metric in metrics.of_the_code().values())) | metrics.OF_PROMETHEUS | set(told)
    )
    assert {name for query in queries for name in metrics.named(query)} <= known


def test_what_the_autoscalers_ask_for_is_what_the_processes_tell(suite: RunningSuite) -> None:
    """Each with a number: what is NaN scales nothing."""
    series = dict(re.findall(r"^(\w+\{[^}]*\}) (\S+)$", "\n".join(scraped(suite).values()), re.MULTILINE))
    specs = [one["spec"] for one in of_kind(objects_of(COMPLETE), "HorizontalPodAutoscaler").values()]
    asked = [metric["external"]["metric"] for spec in specs for metric in spec["metrics"] if "external" in metric]
    assert len(asked) == 4
    for metric in asked:
        (label,) = metric["selector"]["matchLabels"].items()
        assert float(series[f'{metric["name"]}{{{label[0]}="{label[1]}"}}']) >= 0
