"""The real gateway in a process of its own, and services that answer what a test says, for what only the wire can show."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pytest
import requests

from contracts.errors import ServiceError
from deploy.rabbitmq import PrivateBroker, free_port
from tests.support.services import processes
from tests.support.services.suite import wait_until

ADMIN_KEY = "the key of the first admin"


class RunningGateway:
    """``serve`` on a free port with a migrated database; ``call`` sends a request with the admin's key."""

    def __init__(self, amqp_url: str, database_url: str, folder: Path, **more: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self.health_port = free_port(), free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "gateway.log"
        own = {
            "PORT": str(self.port),
            "HEALTH_PORT": str(self.health_port),
            "BASE_URL": self.base_url,
            "ADMIN_EMAIL": "admin@example.com",
            "ADMIN_API_KEY": ADMIN_KEY,
            "LOG_LEVEL": "INFO",
            "ALLOWED_PRIVATE_NETWORKS": "",
        }
        self.settings = processes.environment("gateway", amqp_url, database_url, folder, **{**own, **more})

    def start(self) -> None:
        processes.migrate("gateway", self.settings)
        with self.log.open("ab") as log:
            self.process = processes.start("gateway", "serve", self.settings, log)
        wait_until(self._lives, what="the gateway answers")

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(120)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def call(self, method: str, path: str, *, key: str | None = ADMIN_KEY, **more: Any) -> requests.Response:
        headers = {**({"X-Auth-Token": key} if key is not None else {}), **more.pop("headers", {})}
        return requests.request(method, self.base_url + path, headers=headers, timeout=120, **more)

    def uploads(self) -> set[Path]:
        """The files in the blob store that were uploaded."""
        found = Path(self.settings["BLOB_URL"].removeprefix("file://")) / "incoming"
        return set(found.glob("*"))

    def _lives(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return requests.get(f"{self.base_url}/healthz", timeout=5).ok
        except requests.ConnectionError:
            return False


def whole(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            received += piece
    return received


@contextmanager
def running_gateway(amqp_url: str, database_url: str, folder: Path, **more: str) -> Iterator[RunningGateway]:
    gateway = RunningGateway(amqp_url, database_url, folder, **more)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.kill()


class Services:
    """Takes the calls of some services from the broker. ``answers`` maps a call such as ``templates.get`` to what is
    answered: a value, a ServiceError to refuse with, a function of the request, or ``SILENCE``."""

    SILENCE = object()

    def __init__(self, amqp_url: str, *services: str) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self._connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        channel = self._connection.channel()
        channel.exchange_declare("nameko-rpc", "topic", durable=True)
        for service in services:
            channel.queue_delete(f"rpc-{service}")  # a test of the service itself leaves its own behind
            channel.queue_declare(f"rpc-{service}", exclusive=True)
            channel.queue_bind(f"rpc-{service}", "nameko-rpc", f"{service}.*")
            channel.basic_consume(f"rpc-{service}", self._on_request, auto_ack=True)
        self._channel = channel
        self._thread = threading.Thread(target=channel.start_consuming, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._connection.add_callback_threadsafe(self._channel.stop_consuming)
        self._thread.join(120)
        self._connection.close()

    def asked(self, call: str) -> dict[str, Any]:
        """The arguments of the latest such call."""
        return next(arguments for name, arguments, _ in reversed(self.requests) if name == call)

    def _on_request(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        call, arguments = method.routing_key, json.loads(body)["kwargs"]
        self.requests.append((call, arguments, properties.headers))
        answer = self.answers.get(call, ServiceError("internal", "the test answers nothing"))
        if isinstance(answer, Callable):  # type: ignore[arg-type]
            answer = answer(arguments)
        if answer is self.SILENCE:
            return
        reply: dict[str, Any] = {"result": answer, "error": None}
        if isinstance(answer, ServiceError):
            error = {"exc_type": "ServiceError", "exc_path": "contracts.errors.ServiceError", "value": answer.message}
            reply = {"result": None, "error": {**error, "exc_args": list(answer.args)}}
        answered = pika.BasicProperties(correlation_id=properties.correlation_id, content_type="application/json")
        channel.basic_publish("nameko-rpc", properties.reply_to, json.dumps(reply), answered)


@contextmanager
def answering(amqp_url: str, *services: str) -> Iterator[Services]:
    made = Services(amqp_url, *services)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def gateway(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    limits = {"MAX_FILE_SIZE": "20000", "MAX_REQUEST_SIZE": "100000", "BODY_TIMEOUT": "1"}
    with running_gateway(broker.amqp_url, f"sqlite:///{folder}/gateway.sqlite", folder, **limits) as running:
        yield running


@pytest.fixture
def services(broker: PrivateBroker, gateway: RunningGateway) -> Iterator[Services]:
    with answering(broker.amqp_url, "templates", "submissions", "rendering", "webhooks") as made:
        yield made
