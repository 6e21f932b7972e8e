"""Rules of ``countersign listen``: which event is forwarded next, with which bytes and headers, and what comes of the answer.
No I/O, no clock."""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any

USER_AGENT = "Countersign-Webhooks/1"

PAUSES = (1.0, 2.0, 5.0, 10.0, 15.0)
"""Seconds until a receiver is asked again after so many failures; the last one from then on. A webhook's schedule is for
receivers that nobody watches, this one for somebody who is mending theirs."""
LONGEST_PAUSE = 24 * 3600.0

_PERIOD = re.compile(r"([0-9]{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Event:
    """An event of the feed, with the body that a webhook is sent of it: the very bytes."""

    sequence: int
    id: str
    kind: str
    timestamp: str
    about: str
    body: bytes


def event_of(row: Mapping[str, Any]) -> Event:
    """Read an event of ``GET /events``. Raises KeyError, TypeError or ValueError where it is none."""
    body = {"event_type": row["event_type"], "timestamp": row["timestamp"], "data": row["data"]}
    data, resource = row["data"], str(row["event_type"]).partition(".")[0]
    number = data.get("id") if resource == "template" else data.get("submission_id", data.get("id"))
    return Event(
        sequence=int(row["sequence"]),
        id=str(row["id"]),
        kind=str(row["event_type"]),
        timestamp=str(row["timestamp"]),
        about=f"{'template' if resource == 'template' else 'submission'} {number}",
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
    )


@dataclass(frozen=True)
class Verdict:
    """The meaning of an answer: the event was taken, is sent again after ``pause`` seconds, or (``gone``) nobody wants any."""

    is_accepted: bool = False
    pause: float = 0.0
    gone: bool = False


class Forwarding:
    """The order of things. ``cursor`` is the sequence of the last event that was taken: what is kept of it, and nothing else,
    says where another process goes on.

    An event is forwarded when all before it were taken. So none is left out, whenever the process ends; and only the one whose
    answer came, and whose cursor was not kept any more, is forwarded a second time, under the same ``webhook-id``.
    """

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor
        self.attempts = 0
        self._waiting: deque[Event] = deque()

    @property
    def due(self) -> Event | None:
        """The event to forward now; None: read on after ``cursor``."""
        return self._waiting[0] if self._waiting else None

    def read(self, events: Iterable[Event]) -> None:
        """Take a page of the feed. What was taken already, or waits, is passed over."""
        last = self._waiting[-1].sequence if self._waiting else self.cursor
        for event in events:
            if event.sequence > last:
                self._waiting.append(event)
                last = event.sequence

    def answered(self, status: int | None, retry_after: str | None, now: datetime) -> Verdict:
        """Take the answer to the event that was due; None: there was none. What webhooks are answered holds here too."""
        if status is not None and 200 <= status < 300:
            self.cursor = self._waiting.popleft().sequence
            self.attempts = 0
            return Verdict(is_accepted=True)
        self.attempts += 1
        if status == 410:
            return Verdict(gone=True)
        pause = PAUSES[min(self.attempts, len(PAUSES)) - 1]
        return Verdict(pause=_wish(retry_after, now) or pause)


def _wish(retry_after: str | None, now: datetime) -> float | None:
    """Seconds of ``Retry-After`` (RFC 9110, 10.2.3), a day at most; None when it is absent or senseless."""
    text = (retry_after or "").strip()
    if re.fullmatch(r"[0-9]+", text):
        seconds = float(text[:9])
    else:
        try:
            moment = parsedate_to_datetime(text)
            seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
        except (ArithmeticError, ValueError, TypeError, IndexError):
            return None
    return min(seconds, LONGEST_PAUSE) if seconds > 0 else None


# --- the signature (github.com/standard-webhooks/standard-webhooks)


def key_of(secret: str) -> bytes:
    """The bytes of a signing secret. Raises ValueError unless it is base64, with or without ``whsec_`` before it."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a signing secret is base64, as whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    return key


def headers_of(event: Event, secret: str, more: Mapping[str, str], moment: datetime) -> dict[str, str]:
    """The headers of an attempt that is made now, as a webhook's delivery has them."""
    at = str(int(moment.timestamp()))
    digest = hmac.digest(key_of(secret), f"{event.id}.{at}.".encode() + event.body, hashlib.sha256)
    return {
        **more,
        "User-Agent": USER_AGENT,
        "Content-Type": "application/json",
        "webhook-id": event.id,
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def header_of(text: str) -> tuple[str, str]:
    """Name and value of ``NAME: VALUE``. Raises ValueError where it is none, or one that a delivery has already."""
    name, colon, value = text.partition(":")
    value = value.strip()
    if (
        not colon
        or not re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name)
        or not (value.isascii() and value.isprintable())
    ):
        raise ValueError("a header is NAME: VALUE")
    if name.lower().startswith(("webhook-", "content-")) or name.lower() in ("user-agent", "host", "transfer-encoding"):
        raise ValueError(f"the header {name} is set by the listener itself")
    return name, value


# --- where to begin


def beginning(
    text: str, now: datetime, local: Callable[[datetime], datetime] = datetime.astimezone
) -> int | datetime | None:
    """Return what FROM of ``--replay`` means: the cursor before a sequence, a moment, or None for the end of the log (``now``).

    A moment without a zone is the machine's local time, which ``local`` knows. Raises ValueError.
    """
    text = text.strip()
    if text == "now":
        return None
    if re.fullmatch(r"#?[0-9]{1,19}", text):
        return min(max(0, int(text.removeprefix("#")) - 1), _LARGEST)
    try:
        if period := _PERIOD.fullmatch(text):
            return now - timedelta(**{_UNITS[period[2]]: int(period[1])})
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else local(moment)).astimezone(UTC)
    except (ArithmeticError, ValueError):
        raise ValueError(
            "FROM is a sequence, a time such as 2026-03-04T05:06, a span such as 90s, 15m, 2h or 3d, or now"
        ) from None


def cursor_before(moment: datetime, end: int, first_after: Callable[[int], tuple[int, datetime] | None]) -> int:
    """The cursor after which the first event of this moment or later comes, in a log that ends at ``end`` and whose times never
    fall. ``first_after`` tells sequence and time of the first event after a cursor; it is asked log2(end) + 1 times at most."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        first_event = first_after(middle)
        if first_event is None or first_event[1] >= moment:
            high = middle
        else:
            low = first_event[0]
    return low


def ascending(events: Sequence[Event]) -> bool:
    """Tell whether a page is in the order that the feed promises."""
    return all(before.sequence < after.sequence for before, after in pairwise(events))
