"""Webhooks and event polling (specification 4.6, 6)."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.types import Actor, EventRecord, Moment, Page, PageRequest, Pagination, Tolerant, Webhook, WebhookPayload


class GetWebhook(Tolerant):
    actor: Actor
    id: int


class ListWebhooks(PageRequest):
    actor: Actor


class CreateWebhook(Tolerant):
    """``events`` empty or None: all ``form.*``. ``secret`` holds at most one HTTP header. ``payload`` None: ``full``."""

    request_id: str
    actor: Actor
    url: str
    events: list[str] | None = None
    secret: dict[str, str] | None = None
    payload: WebhookPayload | None = None
    file_link_minutes: int | None = None


class UpdateWebhook(Tolerant):
    """Only what is set changes; a new ``url`` or ``events`` enables a disabled webhook again."""

    request_id: str
    actor: Actor
    id: int
    url: str | None = None
    events: list[str] | None = None
    secret: dict[str, str] | None = None
    payload: WebhookPayload | None = None
    file_link_minutes: int | None = None
    expected_state: str | None = None


class ReplaceSecret(Tolerant):
    """Give a webhook another signing secret; deliveries are signed with the present one, too, for ``overlap_hours``."""

    request_id: str
    actor: Actor
    id: int
    overlap_hours: float = 24


class ReplayEvents(Tolerant):
    """Deliver what was logged from ``since`` to ``until`` (None: now) once more, in order: of ``kinds``, or of those that the
    webhook is told of. ``after``: only what has a higher position in the log."""

    request_id: str
    actor: Actor
    id: int
    since: Moment
    until: Moment | None = None
    kinds: list[str] | None = None
    after: int | None = None


class Replayed(Tolerant):
    """``queued`` deliveries; ``next`` goes into another request as ``after``, None when nothing is left."""

    queued: int
    next: int | None = None


class RemoveWebhook(Tolerant):
    request_id: str
    actor: Actor
    id: int
    expected_state: str | None = None


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


class ReadFeed(Tolerant):
    """``after``: only events with a higher ``sequence``. ``kinds``: only of these; of all when it is None or empty."""

    actor: Actor
    limit: int = 10
    after: int | None = None
    kinds: list[str] | None = None


class FeedEvent(EventRecord):
    """An event with its place in the log: whatever is logged later has a higher ``sequence``."""

    sequence: int


class FeedPage(Tolerant):
    """Ascending by ``sequence``, which the cursors in ``pagination`` are. ``end`` is the ``sequence`` of the last event of the
    whole log, 0 when there is none; None from a service of an older version."""

    data: list[FeedEvent]
    pagination: Pagination
    end: int | None = None


class ReadFeedEnd(Tolerant):
    """For who waits for events: whether there are new ones, whoever may see them."""


class FeedEnd(Tolerant):
    """``sequence`` of the last event of the log; 0 when there is none."""

    sequence: int


class DeliveryAttempt(Tolerant):
    attempted_at: Moment
    status: int | None = None
    error: str | None = None
    response: str | None = None
    duration_ms: int


class Delivery(Tolerant):
    """One event for one webhook; ``state`` is ``pending``, ``delivered``, ``exhausted`` or ``cancelled``. ``message_id`` is
    the header ``webhook-id``. ``test``: it was asked for to try the webhook."""

    id: int
    webhook_id: int
    event_id: str
    message_id: str = ""
    test: bool = False
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


class DescribeTold(Tolerant):
    """Which events about these submissions name a person, and whom they were told."""

    email: str
    submission_ids: list[int] = Field(max_length=200)


class ToldReceiver(Tolerant):
    """``state`` as of Delivery."""

    webhook_id: int
    url: str
    state: str


class ToldOfPerson(Tolerant):
    """An event that names the person, with those who were, or are to be, told by a webhook."""

    submission_id: int
    event_id: str
    event_type: str
    timestamp: Moment
    receivers: list[ToldReceiver]


class ToldOfPersons(Tolerant):
    """In the order in which they happened."""

    data: list[ToldOfPerson]


GET = Rpc("webhooks", "get", GetWebhook, Webhook)
LIST = Rpc("webhooks", "list", ListWebhooks, Page[Webhook])
CREATE = Rpc("webhooks", "create", CreateWebhook, Webhook)
UPDATE = Rpc("webhooks", "update", UpdateWebhook, Webhook)
REMOVE = Rpc("webhooks", "remove", RemoveWebhook, Confirmation)
TEST = Rpc("webhooks", "test", TestWebhook, Confirmation)
EVENTS = Rpc("webhooks", "events", ListEvents, EventPage)
FEED = Rpc("webhooks", "feed", ReadFeed, FeedPage)
FEED_END = Rpc("webhooks", "feed_end", ReadFeedEnd, FeedEnd)
DELIVERIES = Rpc("webhooks", "deliveries", ListDeliveries, Page[Delivery])
REPLACE_SECRET = Rpc("webhooks", "replace_secret", ReplaceSecret, Webhook)
REPLAY = Rpc("webhooks", "replay", ReplayEvents, Replayed)
RESEND = Rpc("webhooks", "resend", ResendDelivery, Delivery)
TOLD_OF_PERSON = Rpc("webhooks", "told_of_person", DescribeTold, ToldOfPersons, timeout=30)
