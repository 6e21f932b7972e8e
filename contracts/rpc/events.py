"""The events that a service has told: asked by the background processes of its subscribers, to find out what they missed.

Each service that serves calls answers these three for its own events (``contracts.runtime.bus.told``).
"""

from pydantic import Field

from contracts.envelope import Envelope
from contracts.rpc import Rpc
from contracts.rpc.health import SERVICES
from contracts.types import Moment, Tolerant


class WalkEvents(Tolerant):
    """List the events that were told after ``position``, of these ``kinds``; ``limit`` events of all kinds are looked through.

    ``epoch`` and ``event_id`` are those of the last page: where the owner finds another event at ``position``, its database was
    restored, and it begins another epoch. Of another epoch than the present one, the walk begins anew. What was told less than
    ``settled_seconds`` ago is left out: it is on its way.
    """

    epoch: str | None = None
    position: int = 0
    event_id: str | None = None
    kinds: list[str]
    settled_seconds: float = 5.0
    limit: int = Field(default=1000, ge=1, le=5000)


class ToldEvent(Tolerant):
    event_id: str
    type: str


class ToldPage(Tolerant):
    """``position`` and ``event_id`` of the last event that was looked at, whatever its kind; ``more`` may follow at once."""

    epoch: str
    events: list[ToldEvent]
    position: int
    event_id: str | None
    more: bool


class FetchEvents(Tolerant):
    ids: list[str] = Field(max_length=100)


class FetchedEvents(Tolerant):
    """Those that are still kept."""

    events: list[Envelope]


class SubjectSince(Tolerant):
    """The public events of ``subject`` (``submission:31``) with a number above ``sequence``."""

    subject: str
    sequence: int = 0


class SubjectEvents(Tolerant):
    """By number, also those that are not published yet. What was told before ``kept_since`` may be missing; what was told later
    and is not here was never stated in this life of the database (``epoch``), or was erased."""

    epoch: str
    kept_since: Moment
    events: list[Envelope]


EVENTS_TOLD = {service: Rpc(service, "events_told", WalkEvents, ToldPage) for service in SERVICES}
EVENTS_BY_ID = {service: Rpc(service, "events_by_id", FetchEvents, FetchedEvents) for service in SERVICES}
EVENTS_SINCE = {service: Rpc(service, "events_since", SubjectSince, SubjectEvents) for service in SERVICES}
