"""The wire format, pinned from outside: bare pika against our worker, nameko's own client against our worker, our client
against nameko's own worker. What is asserted here may only grow."""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from contracts.errors import ServiceError
from contracts.rpc import REGISTRY, Rpc
from contracts.runtime.bus import topology
from contracts.runtime.bus.caller import acting_for
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.monitoring import observe
from contracts.runtime.worker.replies import MOST_WAITING, Replies
from deploy.rabbitmq import PrivateBroker
from tests.support.services.specimens import contract
from tests.support.services.specimens.running import Specimen, answers, specimen
from tests.support.services.suite import wait_until


@pytest.fixture(scope="module")
def worker(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Specimen]:
    folder = tmp_path_factory.mktemp("wire")
    with specimen(broker.amqp_url, f"sqlite:///{folder}/specimen.sqlite", folder) as made:
        client = RpcClient(broker.amqp_url, name="wire")
        made.serve(client)
        client.close()
        yield made


@pytest.fixture
def channel(broker: PrivateBroker) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    yield connection.channel()
    connection.close()


def ask(channel: Any, method: str, body: bytes, **properties: Any) -> tuple[Any, dict[str, Any]]:
    """The reply to a request as nameko sends it."""
    reply_to, correlation = str(uuid.uuid4()), str(uuid.uuid4())
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "nameko-rpc", reply_to)
    sent = pika.BasicProperties(
        content_type="application/json",
        content_encoding="utf-8",
        reply_to=reply_to,
        correlation_id=correlation,
        **properties,
    )
    channel.basic_publish("nameko-rpc", f"specimen.{method}", body, sent, mandatory=True)

    def got() -> Any:
        found, answered, reply = channel.basic_get(queue, auto_ack=True)
        return (answered, reply) if found else None

    answered, reply = wait_until(got, what="the reply")
    assert answered.correlation_id == correlation
    return answered, json.loads(reply)


def request(**kwargs: Any) -> bytes:
    return json.dumps({"args": [], "kwargs": kwargs}).encode()


def test_an_answer(worker: Specimen, channel: Any) -> None:
    properties, reply = ask(channel, "echo", request(payload={"ключ": [1, 2.5, None, "ü"]}, unknown="ignored"))
    assert reply == {"result": {"payload": {"ключ": [1, 2.5, None, "ü"]}}, "error": None}
    assert (properties.content_type, properties.content_encoding) == ("application/json", "utf-8")


def test_what_is_answered_before_there_is_a_connection_waits_for_it(broker: PrivateBroker, channel: Any) -> None:
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.exchange_declare(topology.RPC_EXCHANGE, "topic", durable=True)
    channel.queue_bind(queue, topology.RPC_EXCHANGE, queue)
    replies = Replies(broker.amqp_url, name="early")
    for number in range(MOST_WAITING + 1):
        replies.send(queue, f"c-{number}", b"{}")
    replies.start()

    def arrived() -> bool:
        count: int = channel.queue_declare(queue, passive=True).method.message_count
        return count == MOST_WAITING

    wait_until(arrived, what="the last replies")
    _, properties, body = channel.basic_get(queue, auto_ack=True)
    assert (properties.correlation_id, body) == ("c-1", b"{}")
    replies.close()


def test_an_error(worker: Specimen, channel: Any) -> None:
    _, reply = ask(channel, "echo", request(payload="a text"))
    assert reply["result"] is None
    error = reply["error"]
    assert set(error) == {"exc_type", "exc_path", "exc_args", "value"}
    assert (error["exc_type"], error["exc_path"]) == ("ServiceError", "contracts.errors.ServiceError")
    code, message, details = error["exc_args"]
    assert code == "invalid"
    assert message == error["value"]
    assert json.loads(details) == [{"field": "payload", "reason": "must be an Object"}]
    assert "a text" not in json.dumps(reply)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_request"),
        (b"\x80\x02}q\x00.", "bad_request"),
        (b"[]", "bad_request"),
        (b'{"args": []}', "bad_request"),
        (b'{"args": [], "kwargs": []}', "bad_request"),
        (b"[" * 200_000, "bad_request"),
        (request(), "invalid"),
        (request(payload={"deep": ["\x00"]}), "invalid"),
        (request(payload={"deep": ["\ud800"]}), "invalid"),
        (b'{"args": [], "kwargs": {"payload": {"n": NaN}}}', "bad_request"),
    ],
)
def test_whatever_is_sent_is_answered(worker: Specimen, channel: Any, body: bytes, code: str) -> None:
    _, reply = ask(channel, "echo", body)
    assert reply["error"]["exc_args"][0] == code
    if b"deep" in body:
        assert json.loads(reply["error"]["exc_args"][2])[0]["field"] == "payload.deep[0]"


def test_an_unknown_method_is_nameko_s_error(worker: Specimen, channel: Any) -> None:
    _, reply = ask(channel, "no_such_method", request())
    assert reply["error"]["exc_type"] == "MethodNotFound"
    assert reply["error"]["exc_path"] == "nameko.exceptions.MethodNotFound"


def test_what_our_client_sends(broker: PrivateBroker, channel: Any) -> None:
    """Read by a bare service, which answers as nameko does."""
    queue = channel.queue_declare("rpc-bare", exclusive=True).method.queue
    channel.queue_bind(queue, "nameko-rpc", "bare.*")
    call: Rpc[contract.Echo, contract.Echo] = Rpc("bare", "echo", contract.Echo, contract.Echo, timeout=7)
    del REGISTRY["bare.echo"]
    client = RpcClient(broker.amqp_url, name="wire")
    seen: list[Any] = []

    def on_request(_channel: Any, method: Any, properties: pika.BasicProperties, body: bytes) -> None:
        seen.append((method.routing_key, properties, json.loads(body)))
        reply = json.dumps({"result": {"payload": {"from": "bare"}}, "error": None})
        answered = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("nameko-rpc", properties.reply_to or "", reply.encode(), answered)

    channel.basic_consume(queue, on_request, auto_ack=True)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, observe.request("request-9"), acting_for("user/9"):
        import contextvars

        context = contextvars.copy_context()
        answer = pool.submit(context.run, client.call, call, contract.Echo(payload={"to": "bare"}))
        while not answer.done():
            channel.connection.process_data_events(0.1)
    assert answer.result().payload == {"from": "bare"}
    ((key, properties, body),) = seen
    assert key == "bare.echo"
    assert body == {"args": [], "kwargs": {"payload": {"to": "bare"}}}
    assert (properties.content_type, properties.content_encoding) == ("application/json", "utf-8")
    assert properties.expiration == "7000"
    assert properties.headers[topology.REQUEST_ID_HEADER] == "request-9"
    assert properties.headers[topology.CALLER_HEADER] == "user/9"
    assert properties.headers[topology.TIMEOUT_HEADER] == "7"
    assert 0 < float(properties.headers[topology.DEADLINE_HEADER]) - time.time() <= 7
    client.close()


NAMEKO_CALLER = """
import eventlet; eventlet.monkey_patch()
import json, sys
from nameko.standalone.rpc import ClusterRpcProxy
with ClusterRpcProxy({"AMQP_URI": sys.argv[1]}, timeout=20) as cluster:
    found = cluster.specimen.echo(payload={"from": "nameko"})
    try:
        cluster.specimen.echo(payload=1)
    except Exception as error:
        refused = [type(error).__name__, str(error)]
    try:
        cluster.specimen.nothing()
    except Exception as error:
        missing = type(error).__name__
print(json.dumps([found, refused, missing]))
"""


def test_nameko_s_own_client_calls_our_worker(worker: Specimen, broker: PrivateBroker) -> None:
    called = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NAMEKO_CALLER, broker.amqp_url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert called.returncode == 0, called.stderr
    found, refused, missing = json.loads(called.stdout.splitlines()[-1])
    assert found == {"payload": {"from": "nameko"}}
    assert refused == ["RemoteError", "ServiceError payload must be an Object"]
    assert missing == "MethodNotFound"


NAMEKO_SERVICE = """
import eventlet; eventlet.monkey_patch()
import sys
from nameko.rpc import rpc
from nameko.events import event_handler
from nameko.runners import ServiceRunner
class Stock:
    name = "stock"
    @rpc
    def echo(self, payload): return {"payload": {"seen": payload}}
    @rpc
    def break_down(self, payload): raise ValueError(payload)
runner = ServiceRunner({"AMQP_URI": sys.argv[1]})
runner.add_service(Stock)
runner.start()
runner.wait()
"""


def test_our_client_calls_a_stock_nameko_service(broker: PrivateBroker, tmp_path: Path) -> None:
    calls: list[Rpc[Any, Any]] = [
        Rpc("stock", method, contract.Echo, contract.Echo) for method in ("echo", "break_down", "nothing")
    ]
    for call in calls:
        del REGISTRY[f"stock.{call.method}"]
    echo, broken, missing = calls
    client = RpcClient(broker.amqp_url, name="wire")
    with (tmp_path / "stock.log").open("wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", NAMEKO_SERVICE, broker.amqp_url], stdout=log, stderr=log
        )
    try:

        def up() -> bool:
            try:
                return bool(client.call(echo, contract.Echo(payload={})))
            except ServiceError:
                return False

        wait_until(up, what="the stock service")
        assert client.call(echo, contract.Echo(payload={"a": 1})).payload == {"seen": {"a": 1}}
        for call, code in ((broken, "internal"), (missing, "unavailable")):
            with pytest.raises(ServiceError) as refused:
                client.call(call, contract.Echo(payload={"canary": 1}))
            assert refused.value.code == code
            assert "canary" not in str(refused.value)
    finally:
        service.kill()
        service.wait()
        client.close()


def test_a_bare_client_needs_no_reply(worker: Specimen, broker: PrivateBroker, channel: Any) -> None:
    channel.basic_publish("nameko-rpc", "specimen.count", request(request_id="silent", key="silent"))
    wait_until(lambda: worker.rows("SELECT total FROM counters WHERE key = 'silent'"), what="the effect")
    client = RpcClient(broker.amqp_url, name="wire")
    assert answers(client)
    client.close()
