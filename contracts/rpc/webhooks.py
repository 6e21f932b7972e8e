"""Webhooks and event polling (specification 4.6, 6)."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.types import Actor, EventRecord, Moment, Page, PageRequest, Pagination, Tolerant, Webhook


class GetWebhook(Tolerant):
    actor: Actor
    id: int


class ListWebhooks(PageRequest):
    actor: Actor


class CreateWebhook(Tolerant):
    """``events`` empty or None: all ``form.*``. ``secret`` holds at most one HTTP header."""

    request_id: str
    actor: Actor
    url: str
    events: list[str] | None = None
    secret: dict[str, str] | None = None


class UpdateWebhook(Tolerant):
    """Only what is set changes; a new ``url`` or ``events`` enables a disabled webhook again."""

    request_id: str
    actor: Actor
    id: int
    url: str | None = None
    events: list[str] | None = None
    secret: dict[str, str] | None = None


class RemoveWebhook(Tolerant):
    request_id: str
    actor: Actor
    id: int


class TestWebhook(Tolerant):
    """Queues a ``form.completed`` delivery made from the most recently completed submitter."""

    __test__ = False
    request_id: str
    actor: Actor
    id: int


class Confirmation(Tolerant):
    message: str


class ListEvents(Tolerant):
    """``after`` and ``before`` are Unix seconds; ``event_type`` is one kind, such as ``form.completed``."""

    actor: Actor
    event_type: str
    limit: int = 10
    after: float | None = None
    before: float | None = None


class EventPage(Tolerant):
    """Ascending by time; the cursors in ``pagination`` are Unix seconds."""

    data: list[EventRecord]
    pagination: Pagination


class DeliveryAttempt(Tolerant):
    attempted_at: Moment
    status: int | None = None
    error: str | None = None
    response: str | None = None
    duration_ms: int


class Delivery(Tolerant):
    """One event for one webhook; ``state`` is ``pending``, ``delivered``, ``exhausted`` or ``cancelled``."""

    id: int
    webhook_id: int
    event_id: str
    event_type: str
    state: str
    attempts: list[DeliveryAttempt] = Field(default_factory=list)
    next_attempt_at: Moment | None = None
    created_at: Moment


class ListDeliveries(PageRequest):
    actor: Actor
    webhook_id: int


class ResendDelivery(Tolerant):
    request_id: str
    actor: Actor
    webhook_id: int
    id: int


GET = Rpc("webhooks", "get", GetWebhook, Webhook)
LIST = Rpc("webhooks", "list", ListWebhooks, Page[Webhook])
CREATE = Rpc("webhooks", "create", CreateWebhook, Webhook)
UPDATE = Rpc("webhooks", "update", UpdateWebhook, Webhook)
REMOVE = Rpc("webhooks", "remove", RemoveWebhook, Confirmation)
TEST = Rpc("webhooks", "test", TestWebhook, Confirmation)
EVENTS = Rpc("webhooks", "events", ListEvents, EventPage)
DELIVERIES = Rpc("webhooks", "deliveries", ListDeliveries, Page[Delivery])
RESEND = Rpc("webhooks", "resend", ResendDelivery, Delivery)
