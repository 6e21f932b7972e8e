"""A node of the broker's cluster of three is killed, and everything goes on without it (threats: F36).

The suite reaches the cluster by one address, as it does in Kubernetes; the queues are those of ``deploy.broker_roles print
--cluster``. The node that is killed leads queues of calls, so that calls stop until another one does. Services do not ask what
they missed: what arrives was delivered by the cluster.
"""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
import requests
from pika.exceptions import AMQPError

from contracts.errors import CannotStart, ServiceError
from contracts.rpc.callers import broker_user
from contracts.rpc.health import PING, Ping
from contracts.runtime.bus import declare
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.bus.declare import ON_ONE_NODE, NodeDown
from contracts.runtime.bus.topology import rpc_queue
from contracts.runtime.operations import parked
from deploy import broker_roles
from deploy.make_secrets import broker_users
from deploy.services import SERVICES
from tests.chaos.harness.told import KINDS, check_all_told, stated, told_by
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, sign
from tests.support.servers.broker_cluster import SIZE, BrokerCluster
from tests.support.servers.receiver import Receiver
from tests.support.services import processes
from tests.support.services.suite import RunningSuite, start_suite, wait_until

pytestmark = pytest.mark.chaos

PASSWORDS = {service: f"of-{service}" for service in SERVICES}
CLASSIC = "classic"
"""A virtual host without the cluster's definitions."""


class Patient:
    """Calls the suite again while it says that it cannot answer now, always with the same body and ``Idempotency-Key``."""

    def __init__(self, suite: RunningSuite) -> None:
        self._suite = suite
        self.var_dir = suite.var_dir

    def api(self, method: str, path: str) -> Any:
        """As ``RunningSuite.api``."""
        return self._answered(lambda: self._suite.call(method, path))

    def page(self, method: str, path: str, json: Any = None) -> Any:
        """As ``RunningSuite.page``."""
        return self._answered(lambda: requests.request(method, f"{self._suite.base_url}{path}", json=json, timeout=60))

    def send(self, template_id: int) -> list[dict[str, Any]]:
        """Send the template to a seller and a buyer; the array of submitters."""
        submitters = [{"role": role, "email": f"{role.lower()}@example.com"} for role in ("Seller", "Buyer")]
        body = {"template_id": template_id, "submitters": submitters, "order": "random"}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        made: list[dict[str, Any]] = self._answered(
            lambda: self._suite.call("POST", "/submissions", body, headers=headers)
        )
        return made

    def _answered(self, call: Callable[[], requests.Response]) -> Any:
        def answer() -> requests.Response | None:
            got = call()
            return None if got.status_code == 503 else got

        answered = wait_until(answer, what="an answer")
        assert answered.status_code == 200, answered.text[:2000]
        return answered.json()


@pytest.fixture(scope="module")
def cluster(workspace: Path) -> Iterator[BrokerCluster]:
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    with_classic_queues = {
        "vhosts": [{"name": CLASSIC}],
        "permissions": [{"user": broker_user("templates"), "vhost": CLASSIC, **everything}],
    }
    definitions = (broker_users("operator", PASSWORDS), broker_roles.definitions(cluster=True), with_classic_queues)
    made = BrokerCluster(workspace / "broker-cluster", "operator", definitions)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def suite(cluster: BrokerCluster, workspace: Path, suites: dict[str, RunningSuite]) -> Iterator[RunningSuite]:
    urls: dict[str, Any] = {
        f"{name.upper()}_AMQP_URL": cluster.url_of(broker_user(name), PASSWORDS[name]) for name in SERVICES
    }
    folder = workspace / "suite-on-cluster"
    running = start_suite(folder, one_worker=True, AMQP_URL=cluster.amqp_url, EVENTS_CHECK_SECONDS="3600", **urls)
    suites["on a cluster"] = running
    yield running
    running.stop()


def test_a_node_is_killed_and_everything_goes_on_without_it(cluster: BrokerCluster, suite: RunningSuite) -> None:
    assert {queue.replicas for queue in cluster.queues().values() if queue.kind == "quorum"} == {SIZE}
    caller = Patient(suite)
    template_id = suite.template(agreement_pdf(), name="Agreement")["id"]
    with Receiver() as receiver:
        suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
        for _ in range(2):
            seller, buyer = caller.send(template_id)
            sign(caller, seller["slug"], SELLER_VALUES)
            lost = cluster.most_leading("rpc-")
            lost.kill()
            sign(caller, buyer["slug"], BUYER_VALUES)
            others = caller.send(template_id)
            for submitter, values in zip(others, (SELLER_VALUES, BUYER_VALUES), strict=True):
                sign(caller, submitter["slug"], values)
            sent = [buyer["submission_id"], others[0]["submission_id"]]
            check_all_told(caller, receiver, sent)
            for number in sent:
                assert list(told_by(receiver, number).values()) == [
                    kind for kind in stated(caller, number) if kind in KINDS
                ]
            lost.start()
        delivered = [request.message_id for request in receiver.requests]
        assert len(delivered) == len(set(delivered))
    waiting = cluster.nodes[0].messages()
    assert {queue: count for queue, count in waiting.items() if queue.endswith(".parked") and count} == {}


def test_a_request_that_a_channel_has_lost_is_followed_by_others_that_are_answered(
    cluster: BrokerCluster, suite: RunningSuite
) -> None:
    """The leader dies between the question who is there and the request. RabbitMQ 3.10 drops this request, and all that the
    channel sends to that queue until the node is back."""
    leading = cluster.most_leading("rpc-submissions")
    elsewhere = next(node for node in cluster.nodes if node is not leading)
    client = RpcClient(elsewhere.url_of(broker_user("gateway"), PASSWORDS["gateway"]), name="test")
    try:
        wait_until(lambda: client.connected, what="a connection")
        client._met.add("submissions")  # it has been asked for
        leading.kill()
        wait_until(lambda: answers(client), what="an answer of submissions")
    finally:
        client.close()
        leading.start()


def test_check_says_that_a_queue_without_replicas_is_on_a_node_that_is_down(
    cluster: BrokerCluster, tmp_path: Path
) -> None:
    user, password = broker_user("templates"), PASSWORDS["templates"]
    connection = pika.BlockingConnection(pika.URLParameters(in_classic(cluster.url_of(user, password))))
    connection.channel().queue_declare("rpc-templates", durable=True)
    connection.close()
    holding = cluster.most_leading("rpc-templates", CLASSIC)  # RabbitMQ 4 balances classic queues, too
    elsewhere = next(node for node in cluster.nodes if node is not holding)
    holding.kill()
    try:
        amqp_url = in_classic(elsewhere.url_of(user, password))
        settings = processes.environment("templates", amqp_url, f"sqlite:///{tmp_path}/t.sqlite", tmp_path)
        wait_until(lambda: is_said_to_be_on_one_node(amqp_url), what="the other nodes to notice")
        assert f"queues: rpc-templates {ON_ONE_NODE}" in processes.run("templates", "check", settings).stdout
        asking = pika.BlockingConnection(pika.URLParameters(amqp_url))
        with pytest.raises(NodeDown):
            parked.counted(asking, ["rpc-templates"])
        asking.close()
    finally:
        holding.start()


def is_said_to_be_on_one_node(amqp_url: str) -> bool:
    try:
        declare._declare(amqp_url, [rpc_queue("templates")])
    except NodeDown as down:
        return "rpc-templates is on one node" in str(down)
    except (AMQPError, CannotStart):  # they have not noticed yet
        return False
    return False


def in_classic(amqp_url: str) -> str:
    return amqp_url.removesuffix("%2F") + CLASSIC


def answers(client: RpcClient) -> bool:
    try:
        client.call(PING["submissions"], Ping())
    except ServiceError:
        return False
    return True
