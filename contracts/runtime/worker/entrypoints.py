"""nameko's entrypoints for our two marks. nameko brings the container: worker pool, life cycle, injection, clean stop."""

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from eventlet.event import Event as GreenEvent
from eventlet.semaphore import Semaphore
from nameko.exceptions import ContainerBeingKilled
from nameko.extensions import Entrypoint, SharedExtension, register_entrypoint

from contracts.errors import ServiceError
from contracts.events import Event
from contracts.rpc import Rpc
from contracts.rpc.callers import may_call, service_of
from contracts.runtime.bus import declare, topology
from contracts.runtime.bus.broker import user_of
from contracts.runtime.bus.marks import calls_of, subscriptions_of
from contracts.runtime.bus.publisher import Publisher
from contracts.runtime.bus.suspects import Suspects
from contracts.runtime.monitoring import liveness, observe
from contracts.runtime.settings import ServiceSettings
from contracts.runtime.worker.consuming import Consumption, Delivery
from contracts.runtime.worker.echo import Echo
from contracts.runtime.worker.replies import Replies
from contracts.runtime.worker.requests import HANDLED, answer, error_reply, is_late, unknown_method_reply
from contracts.runtime.worker.subscription import LONGEST_PAUSE_SECONDS, Subscription

log = observe.logger(__name__)

_one_setup = Semaphore()
_UUID = re.compile("[0-9a-f-]{36}")


def served(service: type, settings: ServiceSettings) -> type:
    """A subclass of ``service`` whose marked methods are nameko entrypoints that take a Delivery."""
    namespace: dict[str, Any] = {"settings_of_worker": settings}
    for name, rpc in calls_of(service).items():
        namespace[name] = _call_method(service, name, rpc)
    for name, event in subscriptions_of(service).items():
        namespace[name] = _event_method(service, name, event)
    return type(service.__name__, (service,), namespace)


def _call_method(service: type, name: str, rpc: Rpc[Any, Any]) -> Callable[..., bytes]:
    method = getattr(service, name)

    def call(self: Any, delivery: Delivery, taken_at: float) -> bytes:
        with liveness.under_way(f"the call {rpc.service}.{rpc.method}"):
            return answer(rpc, partial(method, self), delivery, taken_at)

    register_entrypoint(call, Call(rpc.method))
    return call


def _event_method(service: type, name: str, event: Event) -> Callable[..., None]:
    method = getattr(service, name)

    def take(self: Any, subscription: Subscription, delivery: Delivery) -> None:
        if delivery.headers.get(topology.DROPPED_HEADER):
            subscription.drop(self.context.database, delivery)
        else:
            subscription.handle(partial(method, self), delivery)

    register_entrypoint(take, EventEntrypoint(event))
    return take


class Bus(SharedExtension):  # type: ignore[misc]  # nameko has no types
    """The worker's connection for reading and the one for answering, shared by the entrypoints of a service."""

    def setup(self) -> None:
        # nameko sets the entrypoints up side by side, and each asks for it; opening a socket lets the next one in.
        with _one_setup:
            if not hasattr(self, "consumption"):
                self._set_up()

    def _set_up(self) -> None:
        name, settings = self.container.service_name, self.container.service_cls.settings_of_worker
        self.settings = settings
        plans = declare.plans(self.container.service_cls.__mro__[1], name, settings.retry_ladder)
        self.replies = Replies(settings.amqp_url, name=f"{name}-replies")
        self.publisher = Publisher(settings.amqp_url, name=f"{name}-moves")
        own_exchange = topology.own_exchange(name)
        self.consumption = Consumption(settings.amqp_url, plans, own_exchange, name=f"{name}-worker")
        self.event_slots = Semaphore(settings.events_at_once)
        self.suspects = Suspects(lambda: self.container.service_cls.context.database)
        self.requests = Requests(self.container, self.replies, settings.max_workers)
        self.consumption.add(self.requests)
        self.echo = Echo(name, self.consumption, self.replies, self.publisher)
        self._stopped: GreenEvent | None = None
        self._started = False

    def start(self) -> None:
        if not self._started:
            self._started = True
            self.replies.start()
            self.publisher.start()
            self.consumption.start()
            self.echo.start()

    @property
    def stopping(self) -> bool:
        return self._stopped is not None

    def stop_taking(self) -> None:
        """Take nothing new. Every entrypoint asks; the first one does it, the others wait for it."""
        if self._stopped is None:
            self._stopped = stopped = GreenEvent()
            self.echo.stop()
            self.consumption.stop_taking(lambda: stopped.send(None))
        self._stopped.wait()

    def stop(self) -> None:
        self.echo.stop()
        self.consumption.close()
        self.publisher.close()
        self.replies.close()

    kill = stop


class Requests:
    """Reads the service's request queue and hands each request to the entrypoint that its routing key names."""

    def __init__(self, container: Any, replies: Replies, prefetch: int) -> None:
        self.plan = topology.rpc_queue(container.service_name)
        self.prefetch = prefetch
        self.calls: dict[str, Call] = {}
        self._container = container
        self._replies = replies
        self._user = user_of(container.service_cls.settings_of_worker.amqp_url)

    def take(self, delivery: Delivery) -> None:
        taken_at = time.monotonic()
        method = delivery.routing_key.rpartition(".")[2]
        if (reason := self._refusal(delivery)) is not None:
            self._drop(delivery, method if method in self.calls else "unknown", reason)
            return
        if (call := self.calls.get(method)) is None:
            log.warning("rpc.unknown_method", method=method)
            self._finish(delivery, unknown_method_reply(method))
            return
        if (reason := is_late(delivery, taken_at)) is not None:
            self._drop(delivery, method, reason)
            return
        try:
            self._container.spawn_worker(
                call,
                (delivery, taken_at),
                {},
                context_data={},
                handle_result=lambda _context, body, failure: self._finished(delivery, body, failure),
            )
        except ContainerBeingKilled:
            delivery.give_back()

    def _refusal(self, delivery: Delivery) -> str | None:
        """Return why a service's own user does not deal with a request: its sender does not make this call, or wants the answer
        to go where no replies go, for which the broker would close the channel of all replies. None where all share one user.
        """
        if service_of(self._user) is None:
            return None
        user, key, to = delivery.properties.user_id, delivery.routing_key, delivery.properties.reply_to
        if not key.startswith(f"{self._container.service_name}.") or not may_call(user, key):
            return f"the broker's user {user} may not ask for it"
        prefix = topology.exclusive_prefix("reply", user)
        if to and not (to.startswith(prefix) and _UUID.fullmatch(to.removeprefix(prefix))):
            return f"the broker's user {user} may not have the answer sent to others"
        return None

    def _finished(self, delivery: Delivery, body: bytes | None, failure: Any) -> tuple[Any, Any]:
        # Without a body it failed beside its handler: the caller is told, and the request does not stay here for good.
        self._finish(delivery, body or error_reply(ServiceError("internal", "Internal error")))
        return body, failure

    def _finish(self, delivery: Delivery, body: bytes) -> None:
        """Answer, then acknowledge: a crash in between repeats the call, which is why write calls have a request id."""
        if delivery.properties.reply_to:
            self._replies.send(delivery.properties.reply_to, delivery.properties.correlation_id, body)
        delivery.ack()

    def _drop(self, delivery: Delivery, method: str, reason: str) -> None:
        call = f"{self._container.service_name}.{method}"
        log.warning("rpc.dropped", call=call, reason=reason)
        HANDLED.labels(call, "dropped").inc()
        delivery.ack()


class Call(Entrypoint):  # type: ignore[misc]  # nameko has no types
    """One call of the service."""

    bus = Bus()

    def __init__(self, method: str, **options: Any) -> None:
        super().__init__(**options)
        self.method = method

    def setup(self) -> None:
        self.bus.setup()
        self.bus.requests.calls[self.method] = self

    def stop(self) -> None:
        self.bus.stop_taking()


class EventEntrypoint(Entrypoint):  # type: ignore[misc]  # nameko has no types
    """One subscription of the service."""

    bus = Bus()

    def __init__(self, event: Event, **options: Any) -> None:
        super().__init__(**options)
        self.event = event

    def setup(self) -> None:
        self.bus.setup()
        self.plan = topology.event_queues(self.event, self.container.service_name)[1]
        self.prefetch = self.bus.event_slots.balance
        self._subscription = Subscription(
            self.event,
            self.container.service_name,
            self.bus.settings.retry_ladder,
            self.bus.publisher,
            self.bus.event_slots,
            self.bus.suspects,
            lambda: self.bus.stopping,
        )
        self.bus.consumption.add(self)

    def take(self, delivery: Delivery) -> None:
        try:
            self.container.spawn_worker(
                self,
                (self._subscription, delivery),
                {},
                context_data={},
                handle_result=lambda _context, result, failure: self._finished(delivery, result, failure),
            )
        except ContainerBeingKilled:
            delivery.give_back()

    def _finished(self, delivery: Delivery, result: Any, failure: Any) -> tuple[Any, Any]:
        """Give the message back that nobody is at any more, whatever went wrong beside the handler."""
        if delivery.is_held:
            log.error("event.without_outcome", event_type=self.event.type)
            time.sleep(LONGEST_PAUSE_SECONDS)
            delivery.give_back()
        return result, failure

    def stop(self) -> None:
        self.bus.stop_taking()
