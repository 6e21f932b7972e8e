"""One deployment for all tests of this folder, which run in the order they are written: `make test-deployed`."""

import fcntl
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.deployed import engine, images
from tests.deployed.cluster import GATEWAY_ADDRESS, STATEFUL, SUBNET, Cluster
from tests.deployed.images import say
from tests.deployed.manifests import render
from tests.deployed.traffic import Client, Outside, make_template

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


@pytest.fixture(scope="session")
def engine_lock() -> Iterator[None]:
    """One run at a time: they share the images, the network and the addresses."""
    try:
        engine.prepare()
    except engine.Unable as unable:
        pytest.exit(f"The deployed form cannot be tested here: {unable}.", returncode=1)
    with (engine.FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.exit("Another `make test-deployed` runs on this machine.", returncode=1)
        yield


@pytest.fixture(scope="session")
def cluster(engine_lock: None) -> Iterator[Cluster]:
    """The pods of the try-out overlay with two of each ``serve``. The broker and the database are started last."""
    images.provide()
    running = Cluster(render(ALLOWED_PRIVATE_NETWORKS=str(SUBNET), SMTP_URL=f"smtp://{GATEWAY_ADDRESS}:{MAIL_PORT}"))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def deployment(cluster: Cluster) -> Iterator[Deployment]:
    names = [
        name
        for name, workload in sorted(cluster.manifests.workloads.items())
        if name not in STATEFUL
        for _ in range(REPLICAS[workload.container["name"]])
    ]
    cluster.start_all(names)
    outside = Outside(GATEWAY_ADDRESS, MAIL_PORT)
    try:
        key = cluster.manifests.secrets["countersign-gateway"]["ADMIN_API_KEY"]
        client = Client(cluster, key)
        client.api("POST", "/webhooks", {"url": outside.receiver.url, "events": EVENTS}, status=201)
        yield Deployment(cluster, outside, client, make_template(client), key)
    finally:
        say(f"answers of all clients that were counted: {dict(client.answered)}")
        outside.close()


EVENTS = ["submission.created", "form.viewed", "form.started", "form.completed", "submission.completed"]
