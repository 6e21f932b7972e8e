"""Each service's user at a real RabbitMQ: what it may not do the broker refuses, and what the broker cannot, the services do."""

import base64
import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ProbableAuthenticationError

from contracts import events
from contracts.errors import ServiceError
from contracts.rpc import REGISTRY, health
from contracts.rpc import templates as rpc
from contracts.rpc.callers import CALLERS, broker_user, may_call
from contracts.runtime.bus import topology
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.operations import parked
from deploy import broker_roles
from deploy.make_secrets import broker_users
from deploy.rabbitmq import PrivateBroker
from deploy.services import DEFINITIONS, SERVICES
from tests.support.services import processes
from tests.support.services.suite import wait_until

LADDER = broker_roles.default_ladder()
PASSWORDS = {service: f"of-{service}" for service in SERVICES}
RECORDED: dict[str, Any] = json.loads(DEFINITIONS.read_text())
QUEUES = [queue["name"] for queue in RECORDED["queues"]]
EXCHANGES = [exchange["name"] for exchange in RECORDED["exchanges"]]
EVENTS = [event for event in vars(events).values() if isinstance(event, events.Event)]


@pytest.fixture(scope="module")
def node(workspace: Path) -> Iterator[PrivateBroker]:
    """A broker as the deployments have it."""
    made = PrivateBroker(workspace / "broker-roles", "operator", (broker_users("operator", PASSWORDS), RECORDED))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def operator(node: PrivateBroker) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(node.amqp_url))
    yield connection.channel()
    connection.close()


def url(node: PrivateBroker, service: str) -> str:
    return node.url_of(broker_user(service), PASSWORDS[service])


class Credential:
    """A service's user and password in somebody else's hands."""

    def __init__(self, node: PrivateBroker, service: str) -> None:
        self.service = service
        self.user = broker_user(service)
        self._connection = pika.BlockingConnection(pika.URLParameters(url(node, service)))

    def refused(self, attempt: Callable[[Any], object], *, publishes: bool = False) -> bool:
        """Whether the broker says that this user may not. What is published is waited for: all else is answered."""
        channel = self._connection.channel()
        if publishes:
            channel.confirm_delivery()
        try:
            attempt(channel)
        except ChannelClosedByBroker as closed:
            return bool(closed.reply_code == 403)
        channel.close()
        return False

    def done(self, attempt: Callable[[Any], Any]) -> Any:
        channel = self._connection.channel()
        channel.confirm_delivery()
        return attempt(channel)

    def own_queue(self, channel: Any, **arguments: Any) -> str:
        name = topology.exclusive_queue_name("reply", self.user)
        channel.queue_declare(name, exclusive=True, arguments=arguments)
        return name

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(params=SERVICES)
def stolen(request: pytest.FixtureRequest, node: PrivateBroker) -> Iterator[Credential]:
    made = Credential(node, request.param)
    yield made
    made.close()


def is_of(queue: str, service: str) -> bool:
    return queue == f"rpc-{service}" or f"--{service}" in queue or queue.startswith(f"{service}.")


def one_of_each_kind() -> list[str]:
    """Of each service the first queue for calls, for events, for what is parked, and for what waits for another try."""
    found: dict[tuple[str, str], str] = {}
    for queue in QUEUES:
        service = next(one for one in SERVICES if is_of(queue, one))
        kind = next(one for one in ("rpc-", "parked", "retry-", "evt-") if one in queue)
        found.setdefault((service, kind), queue)
    return list(found.values())


def test_what_is_recorded_is_what_the_code_says() -> None:
    """`python -m deploy.broker_roles record` writes it."""
    assert broker_roles.definitions() == RECORDED
    assert broker_roles.callers() == CALLERS


def test_no_pattern_is_longer_than_a_broker_takes() -> None:
    rights = [*RECORDED["permissions"], *RECORDED["topic_permissions"]]
    patterns = [one[kind] for one in rights for kind in ("configure", "write", "read") if kind in one]
    assert max(map(len, patterns)) <= broker_roles.LONGEST


def test_a_call_that_nobody_serves_is_answered_to_no_service() -> None:
    """Who asks for most of a service's calls may publish with any key but those of the others."""
    for service in SERVICES:
        assert not may_call(broker_user(service), "submissions.unheard_of")


def test_the_broker_has_understood_it(node: PrivateBroker) -> None:
    lines = listed(node, "list_permissions", "user", "configure", "write", "read")
    wanted = {(one["user"], one["configure"], one["write"], one["read"]) for one in RECORDED["permissions"]}
    assert {*lines} == wanted
    topics = listed(node, "list_topic_permissions", "user", "exchange", "write", "read")
    known = {(one["user"], one["exchange"], one["write"], one["read"]) for one in RECORDED["topic_permissions"]}
    assert {*topics} == known
    tags = dict(line.split("\t") for line in node.ctl("list_users").splitlines()[1:])
    assert tags == {"countersign": "[administrator]", **{broker_user(service): "[]" for service in SERVICES}}


def listed(node: PrivateBroker, kind: str, *keys: str) -> list[tuple[str, ...]]:
    """The rights that the node knows, as ``rabbitmqctl`` of this name asks it, which starts a node of its own: a second of a
    processor. In base64, as Erlang would write some letters otherwise."""
    answer = node.evaluate(
        f"base64:encode_to_string(iolist_to_binary([[[proplists:get_value(Key, One), 0] || Key <- [{', '.join(keys)}]]"
        f" || One <- rabbit_auth_backend_internal:{kind}()]))."
    )
    encoded = "".join(re.findall(r'"([^"]*)"', answer))
    words = base64.b64decode(encoded).decode().split("\0")[:-1]
    return list(zip(*[iter(words)] * len(keys), strict=True))


def test_a_user_needs_its_password(node: PrivateBroker) -> None:
    with pytest.raises(ProbableAuthenticationError):
        pika.BlockingConnection(pika.URLParameters(node.url_of(broker_user("notifications"), PASSWORDS["webhooks"])))


def test_nobody_publishes_the_events_of_another(stolen: Credential) -> None:
    """The case of the issue is one of them: notifications and `documents.sealed`."""
    assert "documents.sealed" in {event.type for event in EVENTS}
    for event in EVENTS:
        exchange = topology.event_exchange(event.source)
        refused = stolen.refused(lambda c: c.basic_publish(exchange, event.type, b"{}"), publishes=True)  # noqa: B023
        assert refused == (event.source != stolen.service), (stolen.service, event.type)
        if event.source != stolen.service:
            own = topology.event_exchange(stolen.service)
            assert stolen.refused(lambda c: c.basic_publish(own, event.type, b"{}"), publishes=True)  # noqa: B023


def test_nobody_puts_a_message_into_a_queue_of_another(stolen: Credential, operator: Any) -> None:
    for queue in one_of_each_kind():  # the broker asks for the permission of the default exchange, whatever the queue
        assert stolen.refused(lambda c: c.basic_publish("", queue, b"{}"), publishes=True), queue  # noqa: B023
    for exchange in EXCHANGES:
        own = {topology.own_exchange(stolen.service), topology.event_exchange(stolen.service)}
        if exchange not in own | {topology.RPC_EXCHANGE, topology.HINT_EXCHANGE}:
            assert stolen.refused(lambda c: c.basic_publish(exchange, "#", b"{}"), publishes=True), exchange  # noqa: B023
    # Neither by what the broker moves: a queue that dies into somebody's queue, by the default exchange or another's.
    for exchange in ["", *(name for name in EXCHANGES if name.endswith((".queues", ".again", ".events")))]:
        if not exchange.startswith(f"{stolen.service}."):
            arguments = {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": QUEUES[0]}
            assert stolen.refused(lambda c: stolen.own_queue(c, **arguments)), exchange  # noqa: B023
            assert stolen.refused(lambda c: c.exchange_bind(exchange or "amq.default", "amq.topic", "#"))  # noqa: B023
    # By its own exchange it reaches its own queues alone.
    own_exchange = topology.own_exchange(stolen.service)
    for queue in QUEUES:
        key = topology.retry_key(1, queue)
        if not is_of(queue, stolen.service):
            assert stolen.refused(lambda c: c.basic_publish(own_exchange, queue, b"{}"), publishes=True), queue  # noqa: B023
            assert stolen.refused(lambda c: c.basic_publish(own_exchange, key, b"{}"), publishes=True), queue  # noqa: B023
    bound = {
        one["destination"] for one in RECORDED["bindings"] if one["source"] in (own_exchange, f"{stolen.service}.again")
    }
    assert all(is_of(queue, stolen.service) for queue in bound)


def test_nobody_reads_or_touches_a_queue_of_another(stolen: Credential) -> None:
    for queue in QUEUES:
        if not is_of(queue, stolen.service):
            assert stolen.refused(lambda c: c.basic_get(queue)), queue  # noqa: B023
            assert stolen.refused(lambda c: c.queue_bind(queue, topology.RPC_EXCHANGE, "x")), queue  # noqa: B023
        assert stolen.refused(lambda c: c.queue_delete(queue)), queue  # noqa: B023
    # These want the same permissions of a queue's name as those: to read it, to write it, to configure it.
    for queue in one_of_each_kind():
        if not is_of(queue, stolen.service):
            assert stolen.refused(lambda c: c.basic_consume(queue, lambda *_: None)), queue  # noqa: B023
            assert stolen.refused(lambda c: c.queue_purge(queue)), queue  # noqa: B023
            assert stolen.refused(lambda c: c.queue_unbind(queue, topology.RPC_EXCHANGE, "x")), queue  # noqa: B023
        assert stolen.refused(lambda c: c.queue_declare(queue, durable=True)), queue  # noqa: B023
    for service in (name for name in SERVICES if name not in (stolen.service, "gateway")):
        binding = f"rpc-{service}", topology.RPC_EXCHANGE, f"{service}.*"
        assert binding in [(one["destination"], one["source"], one["routing_key"]) for one in RECORDED["bindings"]]
        assert stolen.refused(lambda c: c.queue_unbind(*binding)), binding  # noqa: B023
    for exchange in EXCHANGES:
        assert stolen.refused(lambda c: c.exchange_declare(exchange, "topic", durable=True)), exchange  # noqa: B023
        assert stolen.refused(lambda c: c.exchange_delete(exchange)), exchange  # noqa: B023
    assert stolen.refused(lambda c: c.queue_declare("another", durable=True))
    assert stolen.refused(lambda c: c.exchange_declare("another", "fanout"))


def test_nobody_listens_to_what_is_meant_for_another(stolen: Credential) -> None:
    others = [service for service in SERVICES if service != stolen.service]
    keys = ["#", "*", "reply.#", f"reply.{broker_user(others[0])}.*", f"reply.{broker_user(others[0])}.{uuid.uuid4()}"]
    for key in keys + [f"{service}.*" for service in SERVICES]:
        bind = lambda c: c.queue_bind(stolen.own_queue(c), topology.RPC_EXCHANGE, key)  # noqa: B023, E731
        assert stolen.refused(bind), key
    for event in EVENTS:
        exchange = topology.event_exchange(event.source)
        assert stolen.refused(lambda c: c.queue_bind(stolen.own_queue(c), exchange, event.type))  # noqa: B023
        assert stolen.refused(lambda c: c.queue_bind(stolen.own_queue(c), exchange, "#"))  # noqa: B023
    for service in others:
        exchange = topology.own_exchange(service)
        assert stolen.refused(lambda c: c.queue_bind(stolen.own_queue(c), exchange, "#"))  # noqa: B023
        assert stolen.refused(lambda c: c.queue_bind(stolen.own_queue(c), topology.HINT_EXCHANGE, service))  # noqa: B023


def test_a_service_asks_only_for_what_its_code_asks_for(stolen: Credential) -> None:
    served = {f"{one.service}.{one.method}" for one in REGISTRY.values() if one.service in health.SERVICES}
    allowed = {call for call, callers in CALLERS.items() if stolen.service in callers}
    for call in served & CALLERS.keys():
        refused = stolen.refused(lambda c: c.basic_publish(topology.RPC_EXCHANGE, call, b"{}"), publishes=True)  # noqa: B023
        assert refused == (call not in allowed), call
    assert len(allowed) < len(CALLERS)


def test_nobody_speaks_in_the_name_of_another(stolen: Credential) -> None:
    other = next(service for service in SERVICES if service != stolen.service)
    named = pika.BasicProperties(user_id=broker_user(other))
    (call, *_) = [call for call, callers in CALLERS.items() if stolen.service in callers]
    with pytest.raises(ChannelClosedByBroker, match="user_id property set to"):
        stolen.done(lambda c: c.basic_publish(topology.RPC_EXCHANGE, call, b"{}", named))


# --- what the broker cannot refuse


@pytest.fixture(scope="module")
def templates(node: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A worker of templates with its own user; the file of its log."""
    folder = tmp_path_factory.mktemp("templates")
    settings = processes.environment("templates", url(node, "templates"), f"sqlite:///{folder}/t.sqlite", folder)
    processes.migrate("templates", settings)
    with (folder / "log").open("wb") as log:
        process = processes.start("templates", "serve", settings, log)
        with pika.BlockingConnection(pika.URLParameters(node.amqp_url)) as connection:
            channel = connection.channel()
            wait_until(
                lambda: channel.queue_declare("rpc-templates", passive=True).method.consumer_count, what="the worker"
            )
        yield folder / "log"
        process.terminate()
        process.wait()


def forged(user: str) -> tuple[bytes, pika.BasicProperties]:
    """A request to remove a template, as the gateway would send it."""
    actor = {"id": 1, "email": "a@example.com", "role": "admin"}
    body = {"args": [], "kwargs": {"actor": actor, "id": 1, "permanently": True, "request_id": str(uuid.uuid4())}}
    return json.dumps(body).encode(), pika.BasicProperties(
        reply_to=topology.exclusive_queue_name("reply", user), correlation_id="1", user_id=user
    )


def by_a_copy(stolen: Credential, channel: Any, body: bytes, sent: pika.BasicProperties) -> None:
    sent.headers = {"CC": ["templates.remove"]}
    channel.basic_publish(topology.RPC_EXCHANGE, "submissions.events_told", body, sent)


def by_a_dead_letter(stolen: Credential, channel: Any, body: bytes, sent: pika.BasicProperties) -> None:
    dead = {"x-dead-letter-exchange": topology.RPC_EXCHANGE, "x-dead-letter-routing-key": "templates.remove"}
    key = topology.exclusive_queue_name("echo", stolen.user)
    channel.queue_declare(key, exclusive=True, arguments={"x-message-ttl": 0, **dead})
    channel.queue_bind(key, topology.own_exchange(stolen.service), key)
    channel.basic_publish(topology.own_exchange(stolen.service), key, body, sent)


def by_a_binding(stolen: Credential, channel: Any, body: bytes, sent: pika.BasicProperties) -> None:
    """Webhooks may bind the queue of those whom it asks, with keys of its own."""
    own, key = topology.own_exchange(stolen.service), topology.exclusive_queue_name("echo", stolen.user)
    channel.queue_bind("rpc-templates", own, key)
    channel.basic_publish(own, key, body, sent)


def by_an_exchange(stolen: Credential, channel: Any, body: bytes, sent: pika.BasicProperties) -> None:
    exchange = topology.exclusive_queue_name("echo", stolen.user)
    channel.exchange_declare(exchange, "fanout", auto_delete=True)
    channel.exchange_bind(topology.RPC_EXCHANGE, exchange, "")
    channel.basic_publish(exchange, "templates.remove", body, sent)


def without_a_name(stolen: Credential, channel: Any, body: bytes, sent: pika.BasicProperties) -> None:
    sent.user_id = None
    by_an_exchange(stolen, channel, body, sent)


def to_another(stolen: Credential, channel: Any, body: bytes, sent: pika.BasicProperties) -> None:
    """What webhooks may ask for, with the answer to go where the worker may not write, which would close its channel."""
    sent.reply_to = "submissions.complete_form"
    channel.basic_publish(topology.RPC_EXCHANGE, "templates.events_told", body, sent)


@pytest.mark.parametrize("way", [by_a_copy, by_a_dead_letter, by_a_binding, by_an_exchange, without_a_name, to_another])
def test_a_forged_request_gets_to_the_worker_and_is_not_answered(
    node: PrivateBroker, templates: Path, operator: Any, way: Callable[..., None]
) -> None:
    """The broker's topic permissions look at the routing key that is published with, and at nothing else."""
    stolen = Credential(node, "webhooks")
    body, sent = forged(stolen.user)
    before = len(dropped(templates))

    def attempt(channel: Any) -> None:
        way(stolen, channel, body, sent)
        wait_until(lambda: len(dropped(templates)) > before, what="the worker to have dropped it")

    stolen.done(attempt)
    stolen.close()
    (line,) = dropped(templates)[before:]
    assert f"the broker's user {None if way is without_a_name else stolen.user} may not " in line["reason"]
    lines = [json.loads(one) for one in processes.log_of(templates).splitlines() if one.startswith("{")]
    assert not [one for one in lines if one["event"] in ("rpc.handled", "broker.channel_closed")]


def dropped(log: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in processes.log_of(log).splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "rpc.dropped"]


def test_a_reply_of_another_is_not_believed(node: PrivateBroker, operator: Any) -> None:
    """Notifications answers for submissions: it needs the name of the caller's queue, which it knows from its own callers."""
    client = RpcClient(url(node, "webhooks"))
    stolen = Credential(node, "notifications")
    try:
        wait_until(lambda: client.connected, what="the connection")
        queue = wait_until(lambda: reply_queue(node, "webhooks"), what="the reply queue")
        told = events_told(client)
        number = "submissions.0"
        body = b'{"result":{"epoch":"e","events":[],"position":7,"event_id":null,"more":false},"error":null}'
        for user in (stolen.user, None):
            sent = pika.BasicProperties(correlation_id=number, user_id=user)
            stolen.done(lambda c: c.basic_publish(topology.RPC_EXCHANGE, queue, body, sent, mandatory=True))  # noqa: B023
        with pytest.raises(ServiceError, match="submissions"):
            told.result(120)
    finally:
        stolen.close()
        client.close()


def reply_queue(node: PrivateBroker, service: str) -> str | None:
    return next((name for name in node.messages() if name.startswith(f"reply.{broker_user(service)}.")), None)


def events_told(client: RpcClient) -> Any:
    """A call to submissions, which nobody serves here: its request waits in the queue until the caller gives up."""
    from concurrent.futures import ThreadPoolExecutor

    from contracts.rpc.events import EVENTS_TOLD, WalkEvents

    pool = ThreadPoolExecutor(1)
    future = pool.submit(client.call, EVENTS_TOLD["submissions"], WalkEvents(kinds=[]))
    pool.shutdown(wait=False)
    return future


# --- what they must be able to do


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_a_right_to_each_queue_that_it_looks_at(service: str) -> None:
    """RabbitMQ 4.3 tells about a queue only who may configure, write or read it. The one of the tests tells everybody."""
    (rights,) = [one for one in RECORDED["permissions"] if one["user"] == broker_user(service)]
    asked = {call.partition(".")[0] for call, callers in CALLERS.items() if service in callers}
    looked_at = {topology.rpc_queue(other).name for other in asked} | {q for q in QUEUES if is_of(q, service)}
    for queue in looked_at:
        assert any(re.search(rights[kind], queue) for kind in ("configure", "write", "read")), queue


def test_a_call_is_answered_to_those_who_may_ask(node: PrivateBroker, templates: Path) -> None:
    for user in (url(node, "gateway"), node.amqp_url):
        client = RpcClient(user)
        assert client.call(health.PING["templates"], health.Ping()).ready is False  # it has no background process here
        client.close()
    client = RpcClient(url(node, "submissions"))
    with pytest.raises(ServiceError, match="not found") as refused:
        client.call(rpc.SHARED, rpc.GetSharedLink(slug="nobodys"))
    assert refused.value.code == "not_found"
    client.close()


@pytest.mark.parametrize("service", SERVICES)
def test_migrate_and_check_find_all_they_need(node: PrivateBroker, tmp_path: Path, service: str) -> None:
    settings = processes.environment(service, url(node, service), f"sqlite:///{tmp_path}/{service}.sqlite", tmp_path)
    if service == "gateway":
        settings |= {"ADMIN_EMAIL": "admin@example.com", "ADMIN_API_KEY": "k" * 32}
    migrated = processes.run(service, "migrate", settings)
    assert migrated.returncode == 0, migrated.stdout + migrated.stderr
    checked = processes.run(service, "check", settings)
    for trial in ("broker", "queues", "clock of the broker"):
        assert re.search(rf"^  {trial}: ok", checked.stdout, re.MULTILINE), checked.stdout


def test_what_waits_for_another_try_comes_back(node: PrivateBroker, operator: Any) -> None:
    own = Credential(node, "rendering")
    (event,) = [one for one in EVENTS if one.type == "sealing.due"]
    queue = topology.event_queue_name(event, "rendering")
    key = topology.retry_key(1, queue)
    operator.queue_purge(queue)
    own.done(lambda c: c.basic_publish(topology.own_exchange("rendering"), key, b"again", mandatory=True))
    assert operator.queue_declare(queue, passive=True).method.message_count == 0
    message = wait_until(lambda: operator.basic_get(queue, auto_ack=True)[2], what="the message to come back")
    assert message == b"again"
    parked = topology.parked_queue_name(queue)
    own.done(lambda c: c.basic_publish(topology.own_exchange("rendering"), parked, b"given up", mandatory=True))
    assert wait_until(lambda: operator.basic_get(parked, auto_ack=True)[2], what="the message parked") == b"given up"
    own.close()


def test_every_queue_of_a_cluster_has_replicas_and_all_else_is_as_on_one_node(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert broker_roles.main(["print", "--cluster"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {queue["arguments"].pop("x-queue-type") for queue in printed["queues"]} == {"quorum"}
    plain = broker_roles.definitions()
    of_calls = [queue["name"] for queue in plain["queues"] if queue["arguments"].pop("x-queue-type", None) is None]
    assert of_calls == [topology.rpc_queue(service).name for service in SERVICES if service != "gateway"]
    assert printed == plain


def test_a_broker_that_was_wiped_comes_back_with_all_of_it(node: PrivateBroker) -> None:
    node.kill()
    shutil.rmtree(node.folder / "mnesia")
    node.start()
    assert set(node.messages()) >= set(QUEUES)
    client = RpcClient(url(node, "gateway"))
    wait_until(lambda: client.connected, what="the gateway's connection")
    client.close()


def test_migrate_says_which_queue_the_broker_does_not_have(node: PrivateBroker, operator: Any, tmp_path: Path) -> None:
    """Its definitions are of an older version, or of other waits between the tries."""
    settings = processes.environment("templates", url(node, "templates"), f"sqlite:///{tmp_path}/t.sqlite", tmp_path)
    settings["EVENT_RETRY_SECONDS"] = "7"
    migrated = processes.run("templates", "migrate", settings)
    assert migrated.returncode == 2
    assert "templates.retry-7s is missing: the broker's definitions are not those of this version" in migrated.stderr
    assert (
        "templates.retry-7s is missing: the broker's definitions"
        in processes.run("templates", "check", settings).stdout
    )
    (tmp_path / "definitions.json").write_text(json.dumps(broker_roles.definitions(retry_seconds=f"{LADDER},7")))
    node.ctl("import_definitions", str(tmp_path / "definitions.json"))
    assert processes.run("templates", "migrate", settings).returncode == 0
    operator.queue_delete("templates.retry-7s")


def test_a_service_hands_back_what_is_parked_of_its_own_and_of_no_other(node: PrivateBroker, operator: Any) -> None:
    """As ``/ops`` asks it to."""
    queue = topology.event_queue_name(events.INVITATION_DUE, "notifications")
    parking = topology.parked_queue_name(queue)
    operator.queue_purge(queue)
    operator.basic_publish("", parking, b'{"id": "one"}', pika.BasicProperties(delivery_mode=2))
    wait_until(lambda: node.messages()[parking] == 1, what="the event is parked")
    for service, exchange in (("webhooks", topology.own_exchange("webhooks")), ("webhooks", ""), ("notifications", "")):
        connection = pika.BlockingConnection(pika.URLParameters(url(node, service)))
        with pytest.raises(ChannelClosedByBroker) as refused:
            parked.moved(connection, parking, again=True, exchange=exchange)
        assert refused.value.reply_code == 403
        connection.close()
    connection = pika.BlockingConnection(pika.URLParameters(url(node, "notifications")))
    wait_until(
        lambda: parked.counted(connection, [parking]) == {parking: 1}, what="the event back from who was refused"
    )
    assert [event.event_id for event in parked.read(connection, parking)] == ["one"]
    own = topology.own_exchange("notifications")
    assert parked.moved(connection, parking, again=True, event_id="one", exchange=own) == 1
    assert parked.counted(connection, [parking]) == {}
    connection.close()
    assert operator.basic_get(queue, auto_ack=True)[2] == b'{"id": "one"}'
