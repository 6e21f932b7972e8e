"""The envelope that every event travels in, whichever it is."""

from typing import Any

from contracts.types import Moment, Tolerant


class Envelope(Tolerant):
    """An event as it travels on the bus. nameko hands a handler only the body, so everything is in it.

    ``id`` is a UUIDv7; ``type`` the routing key; ``subject`` is ``submission:31`` or ``template:7``; ``version`` is the
    major version of the event's schema; ``request_id`` is that of the HTTP request it came from, ``traceparent`` the span of
    what caused it (W3C Trace Context), where traces are on. ``epoch`` names the life of the source's database in which it was
    stated, None where an older version stated it: a database that was restored lives another one, and numbers its events anew.
    Epochs are UUIDv7: the younger life sorts after the older.
    """

    id: str
    type: str
    version: int = 1
    source: str
    subject: str
    sequence: int | None = None
    epoch: str | None = None
    occurred_at: Moment
    request_id: str | None = None
    traceparent: str | None = None
    data: dict[str, Any]
