"""Answers go out on one kept-open channel without confirms: half of nameko's time per call goes into making a producer and
waiting for the confirm of a reply. A lost reply is a time-out at the caller, whose write calls can be repeated.
"""

from typing import Any

import pika

from contracts.runtime import observe
from contracts.runtime.broker import Broker
from contracts.runtime.topology import RPC_EXCHANGE

log = observe.logger(__name__)


class Replies:
    def __init__(self, amqp_url: str, *, name: str) -> None:
        self._channel: Any = None
        self._broker = Broker(amqp_url, [self], name=name)

    def start(self) -> None:
        self._broker.start()

    def send(self, reply_to: str, correlation_id: str | None, body: bytes) -> None:
        """Never waits and never fails; without a connection the reply is lost."""

        def publish() -> None:
            if self._channel is None:
                log.warning("rpc.reply_lost", reason="no connection")
                return
            properties = pika.BasicProperties(
                content_type="application/json", content_encoding="utf-8", correlation_id=correlation_id
            )
            self._channel.basic_publish(RPC_EXCHANGE, reply_to, body, properties)

        self._broker.run(publish)

    def close(self) -> None:
        self._broker.close()

    def opened(self, channel: Any) -> None:
        self._channel = channel

    def lost(self, _reason: str) -> None:
        self._channel = None
