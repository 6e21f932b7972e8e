"""One deployment for all tests of this folder, which run in the order they are written: `make test-deployed`."""

import fcntl
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NoReturn

import pytest

from tests.deployed import engine, images
from tests.deployed.cluster import GATEWAY_ADDRESS, STATEFUL, SUBNET, Cluster, Pod
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


MAIL_PORT = 2525
REPLICAS = {"serve": 2, "background": 1}
REPLICAS_BEFORE = {"serve": 1, "background": 1}
"""Enough for an upgrade: what is new is ready beside it before it goes."""


@dataclass
class Deployment:
    """The suite as it is deployed, and whoever is around it."""

    cluster: Cluster
    client: Client
    key: str
    ends: ExitStack
    """What is closed at the end."""
    outside: Outside = field(init=False)
    template_id: int = 0

    def new_client(self) -> Client:
        return Client(self.cluster, self.key)

    def prepare(self) -> None:
        """Listen on the pods' network, which is there as soon as they run, subscribe to the events and make the template; once."""
        if not self.template_id:
            self.outside = Outside(GATEWAY_ADDRESS, MAIL_PORT)
            self.ends.callback(self.outside.close)
            body = {"url": self.outside.receiver.url, "events": list(EXPECTED)}
            self.client.api("POST", "/webhooks", body, status=201)
            self.template_id = make_template(self.client)


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
def commit_before(engine_lock: None) -> str:
    """The commit of the release before."""
    try:
        return images.commit_before()
    except engine.Unable as unable:
        _cannot(unable)


@pytest.fixture(scope="session")
def cluster(commit_before: str) -> Iterator[Cluster]:
    """The manifests and all images; no pod runs yet."""
    images.provide()
    settings = {
        "ALLOWED_PRIVATE_NETWORKS": str(SUBNET),
        "SMTP_URL": f"smtp://{GATEWAY_ADDRESS}:{MAIL_PORT}",
        # The lease of a mail, which it waits for when its sender is killed, is made of these: 110 s instead of 330.
        "SMTP_TIMEOUT": "10",
        "SMTP_ATTEMPT_SECONDS": "30",
    }
    running = Cluster(render(not images.has(commit_before, "contracts/rpc/callers.json"), **settings))
    try:
        yield running
    finally:
        running.close()


def _pods(cluster: Cluster, tag: str, replicas: dict[str, int]) -> list[Pod]:
    """The pods of our services, not started yet."""
    made = []
    for name in sorted(cluster.manifests.workloads):
        if name not in STATEFUL:
            service, _, process = name.rpartition("-")
            made += [cluster.make(name, images.image_of(service, tag)) for _ in range(replicas[process])]
    return made


@pytest.fixture(scope="session")
def empty(cluster: Cluster) -> Iterator[Deployment]:
    """The deployment, of which no pod runs yet."""
    key = cluster.manifests.secrets["countersign-gateway"]["ADMIN_API_KEY"]
    with ExitStack() as ends:
        yield Deployment(cluster, Client(cluster, key), key, ends)


@pytest.fixture(scope="session")
def before(empty: Deployment, commit_before: str) -> Deployment:
    """All pods as they were in the release before, on new databases."""
    images.provide_before(commit_before)
    say(f"every service begins as it was in commit {commit_before[:12]}")
    empty.cluster.start_all(_pods(empty.cluster, images.BEFORE, REPLICAS_BEFORE), broker_last=False)
    empty.prepare()
    return empty


@pytest.fixture(scope="session")
def deployment(empty: Deployment) -> Deployment:
    """All pods as they are now. What ran before, as the tests of upgrades leave it, is stopped, and its data taken over."""
    if empty.cluster.all():
        empty.cluster.stop_all()
    empty.cluster.start_all(_pods(empty.cluster, images.CURRENT, REPLICAS))
    empty.prepare()
    return empty
