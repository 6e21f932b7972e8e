"""Why a connection to the broker failed or was lost, in words, from real failures."""

import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pytest

from contracts.runtime.bus import broker as connections
from contracts.runtime.bus.broker import Broker, reason_of
from contracts.runtime.operations import checking
from deploy.rabbitmq import PrivateBroker, free_port


class Listener:
    """A role that hears why."""

    def __init__(self) -> None:
        self.reasons: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.open = threading.Event()

    def opened(self, _channel: Any) -> None:
        self.open.set()

    def lost(self, reason: str) -> None:
        self.reasons.put(reason)


@contextmanager
def listening(amqp_url: str) -> Iterator[Listener]:
    role = Listener()
    opened = Broker(amqp_url, [role], name="reasons").start()
    try:
        yield role
    finally:
        opened.close()


def both(amqp_url: str) -> set[str]:
    """What the connection that is kept open says, and what ``check`` says."""
    with pytest.raises(Exception) as failed:
        checking._broker("webhooks", amqp_url)
    with listening(amqp_url) as role:
        return {role.reasons.get(timeout=120), reason_of(failed.value)}


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_nobody_listens() -> None:
    assert both(f"amqp://a:b@127.0.0.1:{free_port()}/") == {"connection refused"}


def test_a_name_that_does_not_exist() -> None:
    (words,) = both("amqp://a:b@no-such-host.invalid/")
    assert words.startswith("the host's name cannot be resolved (")


def test_a_wrong_password(broker: PrivateBroker) -> None:
    (words,) = both(broker.amqp_url.replace(":for-tests@", ":other@"))
    assert words.startswith("authentication failed (ACCESS_REFUSED")


def test_a_virtual_host_that_does_not_exist(broker: PrivateBroker) -> None:
    (words,) = both(broker.amqp_url.rpartition("/")[0] + "/elsewhere")
    assert words == "access to the virtual host was refused (NOT_ALLOWED - vhost elsewhere not found)"


def test_a_broker_that_says_nothing(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = connections.parameters

    def impatient(amqp_url: str, name: str) -> pika.URLParameters:
        chosen = real(amqp_url, name)
        chosen.stack_timeout = 1
        return chosen

    monkeypatch.setattr(connections, "parameters", impatient)
    assert both(f"amqp://a:b@127.0.0.1:{silent}/") == {"no answer in time"}


def test_tls_that_the_broker_does_not_speak(broker: PrivateBroker) -> None:
    for words in both(broker.amqp_url.replace("amqp://", "amqps://")):
        assert words.startswith("TLS failed: ")


def test_a_connection_that_the_operator_closes(broker: PrivateBroker) -> None:
    with listening(broker.amqp_url) as role:
        assert role.open.wait(120)
        broker.ctl("close_all_connections", "for maintenance")
        words = role.reasons.get(timeout=120)
    assert "for maintenance" in words
    assert words.endswith("(320)")
