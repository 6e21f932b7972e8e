"""Headers of messages are what whoever is on the bus wrote there: none of them keeps a message from being dealt with."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.events import REGISTRY
from contracts.rpc import health
from contracts.runtime.bus import topology
from contracts.runtime.bus.publisher import CONFIRMED, Message
from contracts.runtime.bus.suspects import Suspects
from contracts.runtime.bus.topology import CALLER_HEADER, DEADLINE_HEADER, REQUEST_ID_HEADER, TIMEOUT_HEADER
from contracts.runtime.data.database import Database
from contracts.runtime.data.tables import runtime_metadata
from contracts.runtime.worker import requests
from contracts.runtime.worker.consuming import Delivery
from contracts.runtime.worker.subscription import Subscription

ODD: list[Any] = ["many", None, -5, 2.5, b"\xff", [], {}, True, 10**30]


class Broker:
    """A channel and a publisher that note what becomes of a message."""

    is_open = True

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.published: list[Message] = []

    def basic_ack(self, tag: int) -> None:
        self.acknowledged.append(tag)

    def publish(self, messages: list[Message]) -> dict[str, str]:
        self.published += messages
        return {one.id: CONFIRMED for one in messages}


class Slots:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def delivery(broker: Broker, body: bytes, headers: dict[str, Any]) -> Delivery:
    properties = SimpleNamespace(
        headers=headers, message_id="m", correlation_id=None, content_type=None, delivery_mode=2
    )
    return Delivery(broker, lambda work: work(), 7, "key", False, properties, body)


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("header", [topology.FAILURES_HEADER, topology.SUSPECT_HEADER, "x-delivery-count"])
def test_an_event_with_an_odd_header_is_parked_or_tried_again(header: str, odd: Any, tmp_path: Path) -> None:
    broker = Broker()
    database = Database(f"sqlite:///{tmp_path}/test.sqlite")
    runtime_metadata.create_all(database.engine.execution_options(countersign_write=True))
    subscription = Subscription(
        REGISTRY["mail.sent"],
        "submissions",
        (0.1, 0.2),
        broker,  # type: ignore[arg-type]
        Slots(),
        Suspects(lambda: database),
        lambda: False,
    )
    subscription.handle(lambda _envelope, _data: None, delivery(broker, b"no JSON", {header: odd}))
    assert broker.acknowledged == [7]
    assert len(broker.published) == 1


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_call_with_odd_headers_is_answered(odd: Any) -> None:
    names = (REQUEST_ID_HEADER, CALLER_HEADER, TIMEOUT_HEADER)
    message = delivery(Broker(), b'{"args": [], "kwargs": {}}', dict.fromkeys(names, odd))
    assert b'"error":null' in requests.answer(
        health.PING["submissions"], lambda _: health.Pong(ready=True), message, 0.0
    )
    reason = requests.is_late(delivery(Broker(), b"", {DEADLINE_HEADER: odd}), 0.0)
    assert reason is None or "clocks" in reason
