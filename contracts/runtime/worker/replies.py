"""Answers go out on one kept-open channel without confirms: half of nameko's time per call goes into making a producer and
waiting for the confirm of a reply. A lost reply is a time-out at the caller, whose write calls can be repeated.

This connection and the one that requests come by are lost and made again apart from each other. What is answered in between
waits for this one: the caller would wait for its whole time-out otherwise.
"""

from collections import deque
from typing import Any

import pika

from contracts.runtime.bus.broker import Broker, user_of
from contracts.runtime.bus.topology import RPC_EXCHANGE

MOST_WAITING = 500


class Replies:
    def __init__(self, amqp_url: str, *, name: str) -> None:
        self._channel: Any = None
        self._user = user_of(amqp_url)
        self._waiting: deque[tuple[str, str | None, bytes]] = deque(maxlen=MOST_WAITING)
        self._broker = Broker(amqp_url, [self], name=name)

    def start(self) -> None:
        self._broker.start()

    def send(self, reply_to: str, correlation_id: str | None, body: bytes) -> None:
        """Never waits and never fails. Without a connection the last replies are kept until there is one."""
        self._broker.run(lambda: self._publish(reply_to, correlation_id, body))

    def send_to(self, exchange: str, key: str, body: bytes) -> None:
        """By an exchange that exists; lost without a connection."""
        self._broker.run(lambda: self._channel and self._channel.basic_publish(exchange, key, body))

    @property
    def connected(self) -> bool:
        """Is there a connection that takes messages at this moment?"""
        return self._channel is not None and not self._broker.blocked

    def close(self) -> None:
        self._broker.close()

    def opened(self, channel: Any) -> None:
        self._channel = channel
        while self._waiting:
            self._publish(*self._waiting.popleft())

    def lost(self, _reason: str) -> None:
        self._channel = None

    def _publish(self, reply_to: str, correlation_id: str | None, body: bytes) -> None:
        if self._channel is None:
            self._waiting.append((reply_to, correlation_id, body))
            return
        properties = pika.BasicProperties(
            content_type="application/json",
            content_encoding="utf-8",
            correlation_id=correlation_id,
            user_id=self._user,
        )
        self._channel.basic_publish(RPC_EXCHANGE, reply_to, body, properties)
