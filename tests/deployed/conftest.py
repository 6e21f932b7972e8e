"""One deployment for all tests of this folder, which run in the order they are written: `make test-deployed`."""

import fcntl
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import NoReturn

import pytest

from tests.deployed import engine, images
from tests.deployed.cluster import GATEWAY_ADDRESS, STATEFUL, SUBNET, Cluster
from tests.deployed.images import say
from tests.deployed.manifests import render
from tests.deployed.traffic import EXPECTED, Client, Outside, make_template


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say at once why a test failed: pytest's own report comes at the end of a run of minutes."""
    report = yield
    if report.failed:
        say(f"{item.name}, {report.when}: {str(call.excinfo.value)[:1500] if call.excinfo else ''}")
    return report


UPGRADED = ("submissions", "webhooks")
"""Services that begin as they were before their last change."""
MAIL_PORT = 2525
REPLICAS = {"serve": 2, "background": 1}


@dataclass
class Deployment:
    """The suite as it is deployed, and whoever is around it."""

    cluster: Cluster
    outside: Outside
    client: Client
    template_id: int
    key: str

    def new_client(self) -> Client:
        return Client(self.cluster, self.key)


def _cannot(unable: engine.Unable) -> NoReturn:
    pytest.exit(f"The deployed form cannot be tested here: {unable}.", returncode=engine.CANNOT)


@pytest.fixture(scope="session")
def engine_lock() -> Iterator[None]:
    """One run at a time: they share the images, the network and the addresses."""
    try:
        engine.prepare()
    except engine.Unable as unable:
        _cannot(unable)
    with (engine.FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.exit("Another `make test-deployed` runs on this machine.", returncode=1)
        yield


@pytest.fixture(scope="session")
def cluster(engine_lock: None) -> Iterator[Cluster]:
    """The manifests and all images; no pod runs yet."""
    try:
        commits = {service: images.commit_before(service) for service in UPGRADED}
    except engine.Unable as unable:
        _cannot(unable)
    images.provide()
    for service, commit in commits.items():
        say(f"{service} begins as it was in commit {commit[:12]}")
        images.build_commit(service, commit)
    settings = {
        "ALLOWED_PRIVATE_NETWORKS": str(SUBNET),
        "SMTP_URL": f"smtp://{GATEWAY_ADDRESS}:{MAIL_PORT}",
        # The lease of a mail, which it waits for when its sender is killed, is made of these: 110 s instead of 330.
        "SMTP_TIMEOUT": "10",
        "SMTP_ATTEMPT_SECONDS": "30",
    }
    shared = not all(images.has(commit, "contracts/rpc/callers.json") for commit in commits.values())
    running = Cluster(render(shared, **settings))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def deployment(cluster: Cluster) -> Iterator[Deployment]:
    """The pods of the try-out overlay with two of each ``serve``; ``UPGRADED`` services as they were before, on new databases."""
    pods = []
    for name in sorted(cluster.manifests.workloads):
        if name not in STATEFUL:
            service, _, process = name.rpartition("-")
            image = images.image_of(service, images.BEFORE) if service in UPGRADED else None
            pods += [cluster.make(name, image) for _ in range(REPLICAS[process])]
    cluster.start_all(pods)
    outside = Outside(GATEWAY_ADDRESS, MAIL_PORT)
    try:
        key = cluster.manifests.secrets["countersign-gateway"]["ADMIN_API_KEY"]
        client = Client(cluster, key)
        client.api("POST", "/webhooks", {"url": outside.receiver.url, "events": list(EXPECTED)}, status=201)
        yield Deployment(cluster, outside, client, make_template(client), key)
    finally:
        outside.close()


@pytest.fixture(scope="session")
def current(deployment: Deployment) -> Deployment:
    """The deployment with every service as it is now; nothing to do where the tests of upgrades ran before."""
    cluster = deployment.cluster
    for name, pods in cluster.pods.items():
        if any(pod.image != cluster.image_of(name) for pod in pods):
            cluster.roll(name)
    return deployment
