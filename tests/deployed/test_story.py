"""The deployed form, from its start through what happens to it: one story on one deployment, in this order."""

import base64
import json
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contracts.runtime.monitoring.build import version
from deploy.services import SERVICES
from tests.deployed import images
from tests.deployed.cluster import STATEFUL, Pod, wait_until
from tests.deployed.conftest import Deployment
from tests.deployed.engine import podman
from tests.deployed.images import say
from tests.deployed.traffic import (
    READS,
    Agreement,
    Client,
    Load,
    agree,
    begin,
    build_of,
    check_every_pod_works,
    check_nothing_lost,
    finish,
    is_ours,
    make_template,
)
from tests.support.files.docx_files import docx, paragraph, table
from tests.support.material.outcomes import pdf_text
from tests.support.rendering.sealing import pdfsig


def processes_of(pod: Pod) -> list[Path]:
    """The folders in /proc of all processes of a container."""
    namespace = Path(f"/proc/{pod.pid}/ns/pid").readlink()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "ns/pid").readlink() == namespace:
                found.append(process)
        except OSError:
            continue  # it ended meanwhile
    return found


def check_after(deployment: Deployment, load: Load) -> None:
    """What holds after each trouble, when the load has ended."""
    say(f"{len(load.journal)} agreements; answers {dict(load.client.answered)}, broken connections {load.client.broken}, "
        f"slowest answer {load.client.slowest:.1f} s")  # fmt: skip
    assert load.client.failures == []
    assert load.given_up == []
    deployment.cluster.wait_ready()
    check_every_pod_works(deployment.cluster, deployment.client, deployment.template_id)
    check_nothing_lost(deployment.client, deployment.outside, load.journal)
    unclean = [stopped for stopped in deployment.cluster.stopped if stopped.exit_code != 0]
    assert unclean == [], "pods that did not stop by themselves within their grace period"


def roll_all(
    deployment: Deployment, services: list[str], image: str | None = None, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Rolling updates of several services side by side, `serve` and `background` of each."""
    names = [name for name in deployment.cluster.pods if name.rpartition("-")[0] in services]
    with ThreadPoolExecutor(4) as threads:
        for each in [threads.submit(deployment.cluster.roll, name, image, meanwhile) for name in names]:
            each.result()


def check_sealed(deployment: Deployment, agreement: Agreement, folder: Path) -> None:
    """Document and audit trail have a seal that a program of others finds whole."""
    submission = deployment.client.api("GET", f"/submissions/{agreement.submission_id}")
    for url in (submission["documents"][0]["url"], submission["audit_log_url"]):
        said = pdfsig(deployment.client.download(url), folder)
        assert "Signature is Valid" in said, said
        assert "Total document signed" in said, said


def test_nothing_is_lost_in_an_upgrade_and_back(before: Deployment, tmp_path: Path) -> None:
    """One service after the other is rolled from the release before to what it is now, which migrates its database; then one
    after the other, in the same order, back. So of any two services each has run as it was beside the other as it is now.

    Beside the load, agreements stay open for half of the way: made from a template of one mixture, completed by another.
    """
    now = images.revision()
    assert all(build_of(pod)["revision"] != now for pod in filter(is_ours, before.cluster.all()))
    with Load(before.new_client(), before.template_id) as load:
        load.go_on(2)
        client, finished = load.client, []
        begun = deque(begin(client, make_template(client)) for _ in SERVICES)
        for tag in (images.CURRENT, images.BEFORE):
            for service in SERVICES:
                roll_all(before, [service], images.image_of(service, tag), lambda: load.go_on(1))
                is_now = {build_of(pod)["revision"] == now for pod in before.cluster.of(service)}
                assert is_now == {tag == images.CURRENT}
                begun.append(begin(client, make_template(client)))
                finished.append(finish(client, begun.popleft()))
                assert (client.failures, load.given_up) == ([], [])
                say(f"{service} is as {'before' if tag == images.BEFORE else 'now'}; {len(load.journal)} agreements")
        finished += [finish(client, one) for one in begun]
    load.journal += finished
    assert load.client.broken == 0
    check_after(before, load)
    for one in finished:
        check_sealed(before, one, tmp_path)


def test_every_pod_becomes_ready_although_broker_and_database_come_last(deployment: Deployment) -> None:
    check_every_pod_works(deployment.cluster, deployment.client, deployment.template_id)


def test_processes_have_no_rights_beyond_what_the_manifests_give(deployment: Deployment) -> None:
    """Read from outside, of the processes as they run: user, capabilities, system call filter, root file system."""
    for pod in deployment.cluster.all():
        user = str(pod.workload.spec["securityContext"]["runAsUser"])
        read_only = pod.workload.container["securityContext"].get("readOnlyRootFilesystem", False)
        processes = processes_of(pod)
        assert processes, pod.name
        for process in processes:
            try:
                said = [(process / name).read_text().splitlines() for name in ("status", "mountinfo")]
            except OSError:  # it ended meanwhile
                assert process.name != str(pod.pid), pod.name
                continue
            status = dict(line.split(":\t", 1) for line in said[0] if ":\t" in line)
            assert status["Uid"].split() == [user] * 4, f"{pod.name}: {status['Name']}"
            assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")} == {0}
            assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), f"{pod.name}: {status['Name']}"
            mounts = [line.split() for line in said[1]]
            (root,) = [mount for mount in mounts if mount[4] == "/"]
            assert ("ro" in root[5].split(",")) == read_only, f"{pod.name}: {root}"


def test_what_containers_write_goes_into_a_pipe(deployment: Deployment) -> None:
    for pod in filter(is_ours, deployment.cluster.all()):
        assert str(Path(f"/proc/{pod.pid}/fd/2").readlink()).startswith("pipe:"), pod.name


def test_every_process_says_of_which_release_it_is(deployment: Deployment) -> None:
    """Its image does, its metrics do, and the API does."""
    expected = {"version": version(), "revision": images.revision()}
    for pod in filter(is_ours, deployment.cluster.all()):
        (image,) = json.loads(podman("image", "inspect", pod.image))
        assert {key: image["Labels"][f"org.opencontainers.image.{key}"] for key in expected} == expected, pod.name
        assert build_of(pod) == {**expected, "service": pod.workload.name.rpartition("-")[0]}, pod.name
    told = deployment.client.api("GET", "/version")
    assert {key: told[key] for key in expected} == expected


def test_an_agreement_is_carried_through(deployment: Deployment, tmp_path: Path) -> None:
    agreement = agree(deployment.client, deployment.template_id)
    check_nothing_lost(deployment.client, deployment.outside, [agreement])
    check_sealed(deployment, agreement, tmp_path)


def test_a_word_document_becomes_a_template(deployment: Deployment) -> None:
    """Of LibreOffice the image holds only what converting takes."""
    file = docx(paragraph("Lease of a flat"), paragraph("{{City;type=text}}"), table(["Room", "Size"], ["Hall", "4.5"]))
    document = {"name": "lease.docx", "file": base64.b64encode(file).decode()}
    template = deployment.client.api("POST", "/templates/docx", {"name": "Lease", "documents": [document]})
    assert [field["name"] for field in template["fields"]] == ["City"]
    assert "Lease of a flat" in pdf_text(deployment.client.download(template["documents"][0]["url"]))


@pytest.mark.parametrize("clients", [8, 16])
def test_no_read_fails_while_many_read(deployment: Deployment, clients: int) -> None:
    """Each call writes lines of the log into pipes, in several processes."""
    watched = [deployment.new_client() for _ in range(clients)]
    until = time.monotonic() + 8

    def read(client: Client, number: int) -> None:
        while time.monotonic() < until:
            client.read_once(READS[number % len(READS)])
            number += 1

    with ThreadPoolExecutor(clients) as threads:
        for each in [threads.submit(read, client, number) for number, client in enumerate(watched)]:
            each.result()
    answered = {status: sum(client.answered[status] for client in watched) for status in (200, 503)}
    say(f"{clients} clients: {answered}, slowest {max(client.slowest for client in watched):.1f} s")
    assert [failure for client in watched for failure in client.failures] == []
    assert answered[503] == 0
    assert answered[200] > 100


def test_nothing_is_lost_when_the_broker_restarts(deployment: Deployment) -> None:
    with Load(deployment.new_client(), deployment.template_id) as load:
        load.go_on(4)
        (broker,) = deployment.cluster.pods["rabbitmq"]
        broker.restart()
        wait_until(broker.exec_ready, within=120, what="the broker to be ready")
        load.go_on(4)
    check_after(deployment, load)


@pytest.mark.parametrize("victim", list(STATEFUL))
def test_nothing_is_lost_when_broker_or_database_is_killed(deployment: Deployment, victim: str) -> None:
    with Load(deployment.new_client(), deployment.template_id) as load:
        load.go_on(4)
        (pod,) = deployment.cluster.pods[victim]
        pod.kill()
        pod.started_again()
        wait_until(pod.exec_ready, within=120, what=f"{victim} to be ready")
        load.go_on(4)
    check_after(deployment, load)


def test_nothing_is_lost_when_a_pod_of_each_service_is_killed(deployment: Deployment) -> None:
    """Each `serve` has another one beside it; each `background` is alone and starts again."""
    with Load(deployment.new_client(), deployment.template_id) as load:
        load.go_on(2)
        for service in SERVICES:
            for process in ("serve", "background"):
                deployment.cluster.pods[f"{service}-{process}"][0].kill()
                load.go_on(1)
        load.go_on(4)
    check_after(deployment, load)


def test_nothing_is_lost_in_a_rolling_restart(deployment: Deployment) -> None:
    with Load(deployment.new_client(), deployment.template_id) as load:
        load.go_on(2)
        roll_all(deployment, list(SERVICES))
        load.go_on(4)
    assert load.client.broken == 0
    check_after(deployment, load)
