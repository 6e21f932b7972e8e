"""RPC round trip: a call to a worker beside the same call to a bare pika service, with the same client, in the same run.

    python -m tests.load.rpc_round_trip

The bare service is as little as there can be: it reads JSON from its queue and publishes it back on a channel without
confirms. Calls go one after the other, in turns of both services; then 20 at a time. Prints p50, p99, calls per second and
the ratios.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pika

from contracts.errors import ServiceError
from contracts.rpc import REGISTRY, Rpc
from contracts.runtime.bus.client import RpcClient
from deploy.rabbitmq import PrivateBroker
from tests.load.figures import percentile
from tests.load.targets import judged
from tests.support.services.specimens.contract import ECHO, Echo
from tests.support.services.specimens.processes import environment, migrated, running
from tests.support.services.suite import wait_until

ROUNDS, CALLS, AT_ONCE = 20, 100, 20
BARE = Rpc("bare", "echo", Echo, Echo)
del REGISTRY["bare.echo"]
REQUEST = Echo(payload={"id": 4711, "name": "Agreement", "roles": ["Seller", "Buyer"], "archived": False})


def bare_service(amqp_url: str) -> None:
    """Echo without any framework."""
    channel = pika.BlockingConnection(pika.URLParameters(amqp_url)).channel()
    channel.queue_declare("rpc-bare", exclusive=True)
    channel.queue_bind("rpc-bare", "nameko-rpc", "bare.*")
    channel.basic_qos(prefetch_count=20)

    def on_request(_channel: object, method: object, properties: pika.BasicProperties, body: bytes) -> None:
        reply = json.dumps({"result": json.loads(body)["kwargs"], "error": None})
        answered = pika.BasicProperties(
            correlation_id=properties.correlation_id, content_type="application/json", content_encoding="utf-8"
        )
        channel.basic_publish("nameko-rpc", properties.reply_to or "", reply.encode(), answered)
        channel.basic_ack(method.delivery_tag)  # type: ignore[attr-defined]

    channel.basic_consume("rpc-bare", on_request)
    channel.start_consuming()


@contextmanager
def both_services(broker: PrivateBroker, folder: Path) -> Iterator[RpcClient]:
    settings = environment(broker.amqp_url, f"sqlite:///{folder}/specimen.sqlite", folder, LOG_LEVEL="INFO")
    migrated(settings)
    bare = subprocess.Popen([sys.executable, "-m", "tests.load.rpc_round_trip", "bare", broker.amqp_url])
    client = RpcClient(broker.amqp_url, name="benchmark")
    try:
        with running("serve", settings, folder / "serve.log"):
            for call in (ECHO, BARE):
                wait_until(lambda call=call: answers(client, call), what=f"{call.service} answers")
            yield client
    finally:
        client.close()
        bare.kill()
        bare.wait()


def answers(client: RpcClient, call: Rpc[Echo, Echo]) -> bool:
    try:
        return client.call(call, REQUEST) == REQUEST
    except ServiceError:
        return False


def one_after_the_other(client: RpcClient, call: Rpc[Echo, Echo]) -> list[float]:
    """Seconds of each of CALLS calls."""
    figures = []
    for _ in range(CALLS):
        began = time.perf_counter()
        client.call_json(call, REQUEST)
        figures.append(time.perf_counter() - began)
    return figures


def many_at_once(client: RpcClient, call: Rpc[Echo, Echo], pool: ThreadPoolExecutor) -> float:
    """Calls per second with AT_ONCE callers."""
    began = time.perf_counter()
    list(pool.map(lambda _: client.call_json(call, REQUEST), range(CALLS * 5)))
    return CALLS * 5 / (time.perf_counter() - began)


def main(rounds: int = ROUNDS) -> None:
    with tempfile.TemporaryDirectory(prefix="countersign-") as name:
        broker = PrivateBroker(Path(name) / "rabbitmq", "benchmark")
        broker.start()
        try:
            with both_services(broker, Path(name)) as client:
                report(client, rounds)
        finally:
            broker.stop()


def report(client: RpcClient, rounds: int) -> None:
    seconds: dict[str, list[float]] = {"worker": [], "bare pika": []}
    speeds: dict[str, list[float]] = {"worker": [], "bare pika": []}
    calls = {"worker": ECHO, "bare pika": BARE}
    for call in calls.values():
        one_after_the_other(client, call)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number in range(rounds):
            order = list(calls) if number % 2 else list(reversed(calls))
            for name in order:
                seconds[name] += one_after_the_other(client, calls[name])
            for name in order:
                speeds[name].append(many_at_once(client, calls[name], pool))
    print("RPC round trip, the same client for both:")
    for name, figures in seconds.items():
        print(
            f"  {name:10} p50 {percentile(figures, 50) * 1000:6.2f} ms   p99 {percentile(figures, 99) * 1000:6.2f} ms"
            f"   {statistics.median(speeds[name]):6.0f} calls/s with {AT_ONCE} at once"
        )
    ratio = percentile(seconds["worker"], 50) / percentile(seconds["bare pika"], 50)
    speed = statistics.median(speeds["bare pika"]) / statistics.median(speeds["worker"])
    print(f"  ratio of p50 {ratio:.2f} ({judged('rpc', ratio)}), of calls per second {speed:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["bare"]:
        bare_service(sys.argv[2])
    else:
        main()
