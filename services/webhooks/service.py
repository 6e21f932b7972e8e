"""Entrypoints: contract in, one call, contract out. Every public event of the suite ends up here."""

from collections.abc import Callable, Sequence

from contracts.envelope import Envelope
from contracts.errors import invalid
from contracts.events import (
    ADMINS_CHANGED,
    ERASURE_ASKED,
    REGISTRY,
    SUBMISSION_ERASED,
    TEST_MODE_WIPED,
    Admins,
    Erased,
    Event,
    PublicData,
    TestModeWiped,
)
from contracts.rpc import health
from contracts.rpc import webhooks as rpc
from contracts.runtime.bus.told import tells_events
from contracts.runtime.clock import now
from contracts.runtime.data.together import Together
from contracts.runtime.http.outbound import Outbound, OutboundRefused
from contracts.runtime.operations.operating import operated
from contracts.runtime.worker import Context, handles, subscribes
from contracts.types import Page, Webhook
from services.webhooks import commands, queries
from services.webhooks.settings import Settings


@operated
@tells_events
class WebhooksService:
    name = "webhooks"
    context = Context(Settings)
    event_log: Together[Envelope] = Together(lambda envelopes: _log_events(envelopes))

    @handles(rpc.GET)
    def get(self, request: rpc.GetWebhook) -> Webhook:
        return self.context.database.read(queries.webhook, request, now())

    @handles(rpc.LIST)
    def list(self, request: rpc.ListWebhooks) -> Page[Webhook]:
        return self.context.database.read(queries.webhooks, request, now())

    @handles(rpc.CREATE)
    def create(self, request: rpc.CreateWebhook) -> Webhook:
        self._check(request.url)
        return self.context.database.write(commands.create, request, now())

    @handles(rpc.UPDATE)
    def update(self, request: rpc.UpdateWebhook) -> Webhook:
        if request.url is not None:
            self._check(request.url)
        return self.context.database.write(commands.update, request, now())

    @handles(rpc.REMOVE)
    def remove(self, request: rpc.RemoveWebhook) -> rpc.Confirmation:
        return self.context.database.write(commands.remove, request, now())

    @handles(rpc.TEST)
    def test(self, request: rpc.TestWebhook) -> rpc.Confirmation:
        return self.context.database.write(commands.test, request, now(), self.link_secret)

    @handles(rpc.EVENTS)
    def events(self, request: rpc.ListEvents) -> rpc.EventPage:
        return self.context.database.write(queries.events, request, now())

    @handles(rpc.FEED)
    def feed(self, request: rpc.ReadFeed) -> rpc.FeedPage:
        return self.context.database.read(queries.feed, request)

    @handles(rpc.FEED_END)
    def feed_end(self, _request: rpc.ReadFeedEnd) -> rpc.FeedEnd:
        return self.context.database.read(queries.feed_end)

    @handles(rpc.DELIVERIES)
    def deliveries(self, request: rpc.ListDeliveries) -> Page[rpc.Delivery]:
        return self.context.database.read(queries.deliveries, request)

    @handles(rpc.RESEND)
    def resend(self, request: rpc.ResendDelivery) -> rpc.Delivery:
        return self.context.database.write(commands.resend, request, now())

    @handles(rpc.REPLAY)
    def replay(self, request: rpc.ReplayEvents) -> rpc.Replayed:
        return self.context.database.write(commands.replay, request, now(), self.link_secret)

    @handles(rpc.REPLACE_SECRET)
    def replace_secret(self, request: rpc.ReplaceSecret) -> Webhook:
        return self.context.database.write(commands.replace_secret, request, now())

    @handles(rpc.TOLD_OF_PERSON)
    def told_of_person(self, request: rpc.DescribeTold) -> rpc.ToldOfPersons:
        return self.context.database.read(queries.told_of_person, request)

    @handles(health.PING["webhooks"])
    def ping(self, request: health.Ping) -> health.Pong:
        return self.context.pong()

    @subscribes(SUBMISSION_ERASED)
    def on_submission_erased(self, envelope: Envelope, data: Erased) -> None:
        self.context.database.write(commands.erase, envelope, data, now(), self.link_secret)

    @subscribes(ERASURE_ASKED)
    def on_erasure_asked(self, envelope: Envelope, data: Erased) -> None:
        self.context.database.write(commands.erase, envelope, data, now(), self.link_secret)

    @subscribes(TEST_MODE_WIPED)
    def on_test_mode_wiped(self, envelope: Envelope, data: TestModeWiped) -> None:
        self.context.database.write(commands.wipe_test_mode, envelope.id, data)

    @subscribes(ADMINS_CHANGED)
    def on_admins_changed(self, envelope: Envelope, data: Admins) -> None:
        self.context.database.write(commands.keep_admins, envelope.id, data)

    @property
    def link_secret(self) -> str:
        """Signs links to files in what receivers are sent."""
        return self.context.settings.link_secret.get_secret_value()

    def _check(self, url: str) -> None:
        try:
            Outbound.configured(self.context.settings).check(url)
        except OutboundRefused as refused:
            raise invalid(f"url {refused}", "url", str(refused)) from refused


def _log_events(envelopes: Sequence[Envelope]) -> None:
    context = WebhooksService.context
    context.database.write(commands.record_events, envelopes, now(), context.settings.link_secret.get_secret_value())


def _logging(event: Event) -> Callable[[WebhooksService, Envelope, PublicData], None]:
    """The handler of one public event: all are treated alike."""

    def log_event(service: WebhooksService, envelope: Envelope, data: PublicData) -> None:
        service.event_log.write(envelope)

    log_event.__name__ = f"on_{event.type.replace('.', '_')}"
    return subscribes(event)(log_event)


for _event in REGISTRY.values():
    if _event.public and _event is not SUBMISSION_ERASED:
        setattr(WebhooksService, f"on_{_event.type.replace('.', '_')}", _logging(_event))
