"""Read requests and events from the bus, for a worker process, on one connection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from contracts.runtime.bus.broker import Broker, user_of
from contracts.runtime.bus.declare import declare_exchange, declare_on, may_declare
from contracts.runtime.bus.topology import QueuePlan, exclusive_queue_name
from contracts.runtime.monitoring import observe

log = observe.logger(__name__)


@dataclass
class Delivery:
    """A message that was taken from a queue and is not acknowledged yet."""

    channel: Any
    run: Callable[[Callable[[], None]], None]
    tag: int
    routing_key: str
    redelivered: bool
    properties: Any
    body: bytes
    _settled: bool = False

    @property
    def headers(self) -> dict[str, Any]:
        return self.properties.headers or {}

    @property
    def is_held(self) -> bool:
        """False when it was acknowledged or given back, and when the connection was lost: then the broker has taken it back."""
        return not self._settled and bool(self.channel.is_open)

    def ack(self) -> None:
        """It is dealt with. When the connection is gone the broker has taken it back already, and delivers it again."""
        self._settled = True
        self.run(lambda: self.channel.basic_ack(self.tag) if self.channel.is_open else None)

    def give_back(self) -> None:
        """To the queue again, soon."""
        self._settled = True
        self.run(lambda: self.channel.basic_nack(self.tag, requeue=True) if self.channel.is_open else None)


class Reader(Protocol):
    """Takes the messages of one queue; at most ``prefetch`` of them are under way at once."""

    plan: QueuePlan
    prefetch: int

    def take(self, delivery: Delivery) -> None: ...


class Consumption:
    """Consumes for every reader, again after each reconnection, until stopped."""

    def __init__(self, amqp_url: str, plans: list[QueuePlan], own_exchange: str, *, name: str) -> None:
        self._plans = plans
        self._own_exchange = own_exchange
        self._user = user_of(amqp_url)
        self._readers: list[Reader] = []
        self._tags: list[str] = []
        self._channel: Any = None
        self._stopped = False
        self._listener: Callable[..., None] | None = None
        self.own_queue: str | None = None
        """The name of a queue that this process alone reads, and its routing key at the service's own exchange; None while
        it is not connected."""
        self._broker = Broker(amqp_url, [self], name=name)

    def add(self, reader: Reader) -> None:
        self._readers.append(reader)

    def listen(self, listener: Callable[..., None]) -> None:
        """Called with each message of ``own_queue``, on the I/O thread."""
        self._listener = listener

    def start(self) -> None:
        self._broker.start()

    @property
    def consuming(self) -> bool:
        return self._channel is not None

    def stop_taking(self, done: Callable[[], None]) -> None:
        """Take nothing new; ``done`` is called when the broker sends nothing more."""
        self._broker.run(lambda: self._cancel(done))

    def close(self) -> None:
        self._broker.close()

    # From here on: the I/O thread.

    def _cancel(self, done: Callable[[], None]) -> None:
        self._stopped = True
        if self._channel is None or not self._channel.is_open:
            done()
            return
        for tag in self._tags:
            self._channel.basic_cancel(tag)
        # Answered after everything that was asked before.
        self._channel.basic_qos(prefetch_count=1, callback=lambda _frame: done())

    def opened(self, channel: Any) -> None:
        if self._stopped:
            return

        own_queue = exclusive_queue_name("echo", self._user)

        def ready(_frame: Any) -> None:
            self._channel, self.own_queue = channel, own_queue
            log.info("worker.consuming", queues=len(self._readers))

        if may_declare(self._user):
            for plan in self._plans:
                declare_on(channel, plan)
            declare_exchange(channel, self._own_exchange)
        self._tags = []
        for reader in self._readers:
            channel.basic_qos(prefetch_count=reader.prefetch)
            self._tags.append(channel.basic_consume(reader.plan.name, _taker(reader, self._broker.run)))
        if self._listener is not None:
            channel.queue_declare(own_queue, exclusive=True, auto_delete=True)
            channel.queue_bind(own_queue, self._own_exchange, own_queue)
            channel.basic_consume(own_queue, self._listener, auto_ack=True)
        channel.basic_qos(prefetch_count=1, callback=ready)

    def lost(self, _reason: str) -> None:
        self._channel = self.own_queue = None


def _taker(reader: Reader, run: Callable[[Callable[[], None]], None]) -> Callable[..., None]:
    def take(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        tag, key, again = method.delivery_tag, method.routing_key, method.redelivered
        reader.take(Delivery(channel, run, tag, key, again, properties, body))

    return take
