"""What the manifests claim beyond running the processes: who reaches whom, what grows with the load, what is watched. Judges that we did
not write: kubectl of several versions, Kubernetes' own schemas (kubernetes-validate), promtool."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from contracts.runtime.settings import WEB_PORTS, ServiceSettings
from deploy.services import ROOT, SERVICES
from services.notifications.channels.server import Server
from tests.support.judges.operations import metrics
from tests.support.judges.operations.kubectl import (
    COMPLETE,
    KUBERNETES,
    OVERLAYS,
    installed,
    objects_of,
    of_kind,
    rendered,
    version,
)
from tests.support.judges.operations.policy_analyser import analysed
from tests.support.judges.operations.reach import attempts, ours, should_succeed

RELEASES = ("1.25", kubernetes_validate.latest_version())
"""Of Kubernetes: the oldest whose schemas there are, and the newest."""

FOREIGN = {"monitoring.coreos.com/v1"}
"""Kinds that are no part of Kubernetes."""

Way = tuple[str, int]
"""A protocol and a port."""

PUBLIC, ANYWHERE = "public", "anywhere"
PODS, NOT_METADATA = "pods of any namespace", "any address but those of a cloud's metadata"
ELSEWHERE = {PODS, NOT_METADATA}
METADATA = {"169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"}


KUBECTLS = ((1, 27), (1, 32), (1, 37))
"""Their locks name these: deploy/locks/kubectls.txt, and test.txt the newest. The README of the manifests tells of the oldest."""


def test_kubectl_is_there_in_three_versions_of_which_the_readme_names_the_oldest() -> None:
    assert tuple(version(path)[:2] for path in installed()) == KUBECTLS
    assert "kubectl {}.{} or later".format(*KUBECTLS[0]) in (KUBERNETES / "README.md").read_text()


@pytest.mark.parametrize("place", range(len(KUBECTLS)), ids=["{}.{}".format(*known) for known in KUBECTLS])
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_kubectl_makes_the_same_of_an_overlay_and_warns_of_nothing(overlay: str, place: int) -> None:
    assert rendered(overlay, installed()[place]) == (rendered(overlay)[0], "")


@pytest.fixture(scope="module")
def schemas_read_once() -> Iterator[None]:
    """The judge reads a megabyte of definitions anew for each object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubernetes_validate.utils, "schema_contents", cache(kubernetes_validate.utils.schema_contents))
        yield


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.usefixtures("schemas_read_once")
def test_kubernetes_itself_knows_every_key_of_every_object(release: str) -> None:
    """Strictly: a key that is misspelt or in the wrong place is no key of the schema."""
    objects = [*objects_of("try-out"), *objects_of(COMPLETE)]
    judged = [one for one in objects if one["apiVersion"] not in FOREIGN]
    assert {one["kind"] for one in judged} >= {"Deployment", "NetworkPolicy", "HorizontalPodAutoscaler", "Ingress"}
    for one in judged:
        kubernetes_validate.validate(one, release, strict=True)


# Who reaches whom


def pods(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, str]]:
    """The labels of the services' pods, by service and process."""
    found = of_kind(objects, "Deployment")
    processes = [(service, process) for service in SERVICES for process in ("serve", "background")]
    return {(s, p): found[f"{s}-{p}"]["spec"]["template"]["metadata"]["labels"] for s, p in processes}


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a label selector means a pod with these labels."""
    expressions = selector.get("matchExpressions", [])
    assert all(one["operator"] == "In" for one in expressions)
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(one["key"]) in one["values"] for one in expressions
    )


def let(objects: list[dict[str, Any]], labels: dict[str, str], direction: str) -> dict[Way, set[str]]:
    """The ways that policies leave open for a pod, in ("Ingress") or out ("Egress"), with whom each leads to. Fails where no policy
    closes the others."""
    policies = [one["spec"] for one in of_kind(objects, "NetworkPolicy").values()]
    policies = [one for one in policies if selects(one["podSelector"], labels) and direction in one["policyTypes"]]
    assert policies, "where no policy selects a pod, everything is open"
    found: dict[Way, set[str]] = defaultdict(set)
    for rule in [rule for one in policies for rule in one.get(direction.lower(), ())]:
        peers = {_peer(one) for one in rule.get("from", rule.get("to", ()))} or {ANYWHERE}
        for port in rule["ports"]:
            found[port["protocol"], port["port"]] |= peers
    return found


def _peer(peer: dict[str, Any]) -> str:
    if "ipBlock" in peer:
        assert peer["ipBlock"]["cidr"] in ("0.0.0.0/0", "::/0")
        return NOT_METADATA if set(peer["ipBlock"]["except"]) <= METADATA else PUBLIC
    if peer == {"namespaceSelector": {}}:
        return PODS
    return str(peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"])


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_called_by_the_ingress_and_prometheus_alone(service: str) -> None:
    objects = objects_of("production")
    for process in ("serve", "background"):
        http = {("TCP", 8000): {"ingress-nginx"}} if (service, process) == ("gateway", "serve") else {}
        assert let(objects, pods(objects)[service, process], "Ingress") == {("TCP", 9000): {"monitoring"}, **http}


CALLS = {"contracts.runtime.http.outbound": "web", "smtplib": "mail"}
"""Modules through which a service calls others than those that all services have, and what for."""

OTHER_CALLS = {"http.client", "urllib.request", "urllib3", "requests", "httpx", "aiohttp", "ftplib", "imaplib", "boto3"}
"""With these, a service would call somebody of whom this test knows nothing."""

_IMPORT = re.compile(r"^\s*(?:from|import) +(?P<module>[\w.]+)(?: +import +(?P<names>\([^)]*\)|.*))?$", re.MULTILINE)


def imported(service: str) -> set[str]:
    """The modules that a service's code imports, each with those above it."""
    found = set()
    for path in (ROOT / "services" / service).rglob("*.py"):
        for line in _IMPORT.finditer(path.read_text()):
            module, names = line["module"], re.split(r"[\s,()]+", line["names"] or "")
            found |= {module, *(f"{module}.{name}" for name in names)}
    return found


def needs(service: str) -> dict[Way, set[str]]:
    """Whom a service's code calls: what its settings name, and what it imports to call others with."""
    settings = ServiceSettings.model_fields
    assert {"amqp_url", "database_url", "blob_url"} <= set(settings), "what all services have"
    found: dict[Way, set[str]] = defaultdict(set)
    for way in (("UDP", 53), ("TCP", 53)):
        found[way].add(ANYWHERE)
    for way in (("TCP", 5671), ("TCP", 5672), ("TCP", 5432), ("TCP", 443)):
        found[way] |= ELSEWHERE
    modules = imported(service)
    assert not modules & OTHER_CALLS, service
    purposes = {purpose for module, purpose in CALLS.items() if module in modules}
    if "web" in purposes:
        assert settings["outbound_ports"].default == WEB_PORTS
        for one in WEB_PORTS.split(","):
            found["TCP", int(one)].add(PUBLIC)
    if "mail" in purposes:
        for port in (25, *(Server.from_url(f"{scheme}://mail.example.com").port for scheme in ("smtp", "smtps"))):
            found["TCP", port].add(ANYWHERE)
    return found


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_calls_whom_its_code_calls_and_nobody_else(service: str) -> None:
    objects = objects_of("production")
    for process in ("serve", "background"):
        assert let(objects, pods(objects)[service, process], "Egress") == needs(service)


def test_what_is_told_apart_is_told_apart() -> None:
    """Templates calls nobody's server, and only notifications sends mails: else the comparison above would compare nothing."""
    assert ("TCP", 8443) not in needs("templates")
    assert [service for service in SERVICES if ("TCP", 465) in needs(service)] == ["notifications"]


def test_web_calls_do_not_reach_private_networks() -> None:
    """Whatever a webhook's or a file's URL resolves to, besides what the code refuses (contracts/runtime/http/outbound.py)."""
    (rule,) = of_kind(objects_of("production"), "NetworkPolicy")["countersign-to-web"]["spec"]["egress"]
    left_out = {cidr for one in rule["to"] for cidr in one["ipBlock"]["except"]}
    assert left_out >= {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"}


def test_who_may_be_anywhere_is_at_no_address_of_metadata() -> None:
    for name in ("broker", "database", "files"):
        (rule,) = of_kind(objects_of("production"), "NetworkPolicy")[f"countersign-to-{name}"]["spec"]["egress"]
        assert {cidr for one in rule["to"] for cidr in one.get("ipBlock", {}).get("except", ())} == METADATA


def test_a_judge_that_we_did_not_write_says_who_reaches_whom_as_we_mean_it() -> None:
    """Everybody calls everybody, at each port that means something (``attempts``)."""
    objects = objects_of("production")
    tried = list(attempts(ours(objects)))
    analysis = analysed(objects)
    assert [str(one) for one in tried if analysis.says(one) != should_succeed(one)] == []
    assert len({should_succeed(one) for one in tried}) == 2


CLOSED = "countersign-closed"
"""It says again what others say by the way: that of everything else nothing is open. Who takes those away has it still."""


@pytest.mark.parametrize("left_out", sorted(set(of_kind(objects_of("production"), "NetworkPolicy")) - {CLOSED}))
def test_no_policy_can_be_left_out(left_out: str) -> None:
    """Without any of them, the judge says something else of somebody."""
    objects = [one for one in objects_of("production") if one["metadata"]["name"] != left_out]
    analysis = analysed(objects)
    assert any(analysis.says(one) != should_succeed(one) for one in attempts(ours(objects)))


def test_an_overlay_lets_files_be_at_another_port() -> None:
    """The README's patch: nothing but the port is changed."""
    before, after = (
        let(objects_of(one), pods(objects_of(one))["templates", "serve"], "Egress") for one in ("production", COMPLETE)
    )
    assert {**before, ("TCP", 9000): ELSEWHERE} == {**after, ("TCP", 443): ELSEWHERE}
    assert ("TCP", 443) not in after


# Where replicas are, and how many


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_replicas_of_a_process_are_spread_and_not_evicted_together(overlay: str) -> None:
    objects = objects_of(overlay)
    budgets = [one["spec"] for one in of_kind(objects, "PodDisruptionBudget").values()]
    for (service, process), labels in pods(objects).items():
        spec = of_kind(objects, "Deployment")[f"{service}-{process}"]["spec"]["template"]["spec"]
        spread = {one["topologyKey"]: one for one in spec["topologySpreadConstraints"]}
        assert set(spread) == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
        for one in spread.values():
            assert one["whenUnsatisfiable"] == "ScheduleAnyway", "one node must do"
            meant = [key for key, others in pods(objects).items() if selects(one["labelSelector"], others)]
            assert meant == [(service, process)]
        of_this = [one for one in budgets if selects(one["selector"], labels)]
        assert [one["maxUnavailable"] for one in of_this] == ([] if overlay == "try-out" else [1])


def autoscalers() -> dict[str, dict[str, Any]]:
    return {one: found["spec"] for one, found in of_kind(objects_of(COMPLETE), "HorizontalPodAutoscaler").items()}


def test_what_is_scaled_is_there_and_has_no_number_of_its_own() -> None:
    """An apply would set the number back to that of the manifest."""
    found = of_kind(objects_of(COMPLETE), "Deployment")
    assert {name for name, one in found.items() if "replicas" not in one["spec"]} == set(autoscalers())
    for name, one in autoscalers().items():
        assert one["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        assert one["minReplicas"] == (2 if name.endswith("-serve") else 1)


def test_the_readme_says_how_many_connections_all_of_it_takes() -> None:
    """A PostgreSQL that takes fewer refuses some of them just when there is most to do."""
    most = {name: one["spec"].get("replicas") for name, one in of_kind(objects_of(COMPLETE), "Deployment").items()}
    most |= {name: one["maxReplicas"] for name, one in autoscalers().items()}
    needed = 2 * ServiceSettings.model_fields["database_pool_size"].default * sum(most.values())
    assert f"take up to {needed} connections" in " ".join((KUBERNETES / "README.md").read_text().split())


def test_the_readme_names_every_component() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", (KUBERNETES / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(folder.name for folder in (KUBERNETES / "components").iterdir())


def test_a_busy_interpreter_gets_a_replica_beside_it() -> None:
    """A process without children never uses more than one processor: above that nothing would ever be scaled."""
    serving = {name: one for name, one in autoscalers().items() if name.endswith("-serve")}
    assert {"gateway-serve", "submissions-serve", "rendering-serve"} <= set(serving)
    for name, one in serving.items():
        (metric,) = one["metrics"]
        target = metric["resource"]["target"]
        assert target["type"] == "AverageValue", "a share of what is requested, a twentieth, would always be exceeded"
        most = 2 if name == "rendering-serve" else 1
        assert Decimal("0.5") <= Decimal(target["averageValue"].removesuffix("m")) / 1000 < most


def works(service: str) -> set[str]:
    """The names of due work in a service's code: the text that stands before the database where the work is made."""
    files = (ROOT / "services" / service).rglob("*.py")
    return {name for path in files for name in re.findall(r'"([\w -]+)",\s+database,', path.read_text())}


def test_background_is_scaled_by_work_that_it_does() -> None:
    metric = metrics.of_the_code()["countersign_due_work_oldest_seconds"]
    background = {name: one for name, one in autoscalers().items() if name.endswith("-background")}
    for name, one in background.items():
        service = name.removesuffix("-background")
        for external in [each["external"]["metric"] for each in one["metrics"]]:
            assert external["name"] == metric.name
            assert set(external["selector"]["matchLabels"]) <= metric.labels
            assert external["selector"]["matchLabels"]["work"] in works(service)
    asked = {
        each["external"]["metric"]["selector"]["matchLabels"]["work"]
        for one in background.values()
        for each in one["metrics"]
    }
    assert asked == {"seal", "mails", "phone-messages", "deliver"}


def test_the_adapters_query_is_what_the_longest_waiting_row_has_waited(tmp_path: Path) -> None:
    """The rule's template filled in as prometheus-adapter does for an autoscaler, run by promtool on what two replicas say."""
    values = yaml.safe_load((KUBERNETES / "components/autoscaling/prometheus-adapter.yaml").read_text())
    (rule,) = values["rules"]["external"]
    asked = {
        one["external"]["metric"]["name"]
        for each in autoscalers().values()
        for one in each["metrics"]
        if "external" in one
    }
    assert asked == {rule["name"]["as"]}
    series = rule["name"]["as"]
    query = rule["metricsQuery"].replace("<<.Series>>", series).replace("<<.GroupBy>>", "")
    query = query.replace("<<.LabelMatchers>>", 'work="seal",namespace="countersign"')
    assert "<<" not in query

    def said(pod: str, work: str, values: str, namespace: str = "countersign") -> dict[str, str]:
        return {"series": f'{series}{{namespace="{namespace}",pod="{pod}",work="{work}"}}', "values": values}

    cases = {
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    said("a", "seal", "NaN 0 40 90"),
                    said("b", "seal", "0 NaN 38 91"),
                    said("a", "confirm at providers", "900x4"),
                    said("other", "seal", "900x4", "elsewhere"),
                ],
                "promql_expr_test": [
                    {"expr": query, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": value}]}
                    for minute, value in enumerate((0, 0, 40, 91))
                ],
            },
            {
                "interval": "1m",
                "input_series": [said("a", "seal", "NaN NaN")],
                "promql_expr_test": [{"expr": query, "eval_time": "1m", "exp_samples": []}],
            },
        ]
    }
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump(cases))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_pod_is_watched_at_the_port_that_it_has() -> None:
    objects = objects_of(COMPLETE)
    (monitor,) = of_kind(objects, "PodMonitor").values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["path"] == "/metrics"
    for (service, process), labels in pods(objects).items():
        assert selects(monitor["spec"]["selector"], labels)
        assert set(monitor["spec"]["podTargetLabels"]) <= set(labels)
        (main,) = of_kind(objects, "Deployment")[f"{service}-{process}"]["spec"]["template"]["spec"]["containers"]
        assert endpoint["port"] in {one["name"] for one in main["ports"]}


def test_with_secret_files_no_secret_is_in_an_environment() -> None:
    for name, one in of_kind(objects_of(COMPLETE), "Deployment").items():
        pod = one["spec"]["template"]["spec"]
        for container in pod["initContainers"] + pod["containers"]:
            assert not [source for source in container["envFrom"] if "secretRef" in source], name
