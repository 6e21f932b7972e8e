"""nameko's own stock client calls every service, each of its calls, and gets the answers that our client gets."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc import REGISTRY, Rpc, health, notifications, rendering, templates, webhooks
from contracts.rpc import events as event_calls  # noqa: F401 - they register
from contracts.rpc.submissions import api
from contracts.runtime.bus.client import RpcClient
from deploy.rabbitmq import PrivateBroker
from tests.support.material.submissions import ADMIN
from tests.support.services import processes
from tests.support.services.suite import wait_until

STOCK = """
import eventlet; eventlet.monkey_patch()
import json, sys
from nameko.standalone.rpc import ClusterRpcProxy
answers = []
with ClusterRpcProxy({"AMQP_URI": sys.argv[1]}, timeout=120) as cluster:
    for service, method, arguments in json.load(sys.stdin):
        try:
            answers.append(["answer", getattr(getattr(cluster, service), method)(**arguments)])
        except Exception as error:
            answers.append([type(error).__name__, str(error)])
print(json.dumps(answers))
"""

READS: tuple[tuple[Rpc[Any, Any], Any], ...] = (
    (templates.LIST, templates.ListTemplates(actor=ADMIN)),
    (api.LIST, api.ListSubmissions(actor=ADMIN)),
    (rendering.ROOT, rendering.GetRoot()),
    (notifications.LIST, notifications.ListMails()),
    (webhooks.LIST, webhooks.ListWebhooks(actor=ADMIN)),
)
REFUSED: tuple[tuple[Rpc[Any, Any], Any], ...] = (
    (templates.GET, templates.GetTemplate(actor=ADMIN, id=404)),
    (webhooks.GET, webhooks.GetWebhook(actor=ADMIN, id=404)),
)


@pytest.fixture(scope="module")
def url(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The broker's URL while one process serves them all. All share a user of the broker: nameko does not say who asks."""
    folder = tmp_path_factory.mktemp("stock")
    settings: dict[str, str] = {}
    for service in health.SERVICES:
        database = f"sqlite:///{folder}/{service}.sqlite"
        settings |= processes.environment(service, broker.amqp_url, database, folder)
        processes.migrate(service, settings)
    arguments = [sys.executable, "-m", "contracts.runtime.main", "serve", *health.SERVICES]
    with (folder / "serve.log").open("ab") as log:
        process = processes.logged(arguments, settings, log)
        client = RpcClient(broker.amqp_url, name="test")
        try:
            wait_until(lambda: all(answers(client, service) for service in health.SERVICES), what="all services answer")
            yield broker.amqp_url
        finally:
            client.close()
            process.kill()
            process.wait()
            print((folder / "serve.log").read_text()[-5000:])


def answers(client: RpcClient, service: str) -> bool:
    try:
        client.call(health.PING[service], health.Ping())
    except ServiceError:
        return False
    return True


def stock(url: str, calls: list[tuple[str, str, Any]]) -> list[tuple[str, Any]]:
    program = [sys.executable, "-W", "ignore", "-c", STOCK, url]
    ran = subprocess.run(program, input=json.dumps(calls), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [(kind, said) for kind, said in json.loads(ran.stdout.splitlines()[-1])]


def test_it_gets_the_answers_that_we_get(url: str) -> None:
    calls = [(rpc.service, rpc.method, request.model_dump(mode="json")) for rpc, request in (*READS, *REFUSED)]
    assert {service for service, _, _ in calls} == set(health.SERVICES)
    client = RpcClient(url, name="test")

    def ours() -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = [("answer", client.call_json(rpc, request)) for rpc, request in READS]
        for rpc, request in REFUSED:
            with pytest.raises(ServiceError) as refused:
                client.call_json(rpc, request)
            found.append(("RemoteError", f"ServiceError {refused.value.message}"))
        return found

    # Events of other tests come over the same broker, and may change in between what there is to tell.
    wait_until(lambda: stock(url, calls) == ours(), what="the same answers")
    client.close()


def test_it_reaches_every_call(url: str) -> None:
    """Without arguments: most say which one is missing, and none is unknown or breaks."""
    calls: list[tuple[str, str, dict[str, Any]]] = sorted(
        (rpc.service, rpc.method, {}) for rpc in REGISTRY.values() if rpc.service in health.SERVICES
    )
    assert len(calls) > 100
    odd = [
        (service, method, said)
        for (service, method, _), (kind, said) in zip(calls, stock(url, calls), strict=True)
        if not (
            kind == "answer" or (kind == "RemoteError" and said.startswith("ServiceError ") and "Internal" not in said)
        )
    ]
    assert odd == []
