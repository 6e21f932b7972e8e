"""Rules of webhooks: which events there are, when a delivery is tried again, when a webhook is given up. No I/O, no clock."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from contracts.events import FORM_COMPLETED, FORM_DECLINED, FORM_STARTED, FORM_VIEWED, REGISTRY
from contracts.types import FormerSecret

EVENTS = tuple(event.type for event in REGISTRY.values() if event.public)

FORM_EVENTS = tuple(event.type for event in (FORM_VIEWED, FORM_STARTED, FORM_COMPLETED, FORM_DECLINED))
"""The events that a webhook gets if it names none (specification 6.1). What we tell beyond the specification, it has to
name."""

SCHEDULE = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
"""Waits after the first attempt, which is made at once (Standard Webhooks 1.0.0)."""

LONGEST_RETRY_AFTER = timedelta(hours=24)

CLOCKS_DIFFER = timedelta(minutes=1)
"""Largest clock skew between our machines."""

LONGEST_OVERLAP_HOURS = 7 * 24
"""So long may a signing secret that was replaced be in use at most."""

MOST_FORMER_SECRETS = 4
"""A signature for each is a header of some 250 bytes."""

LONGEST_FILE_LINKS = 7 * 24 * 60
"""Minutes. So long may links in events be good without a key at most."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")  # RFC 9110, 5.6.2
_RESERVED = {
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
}
_RESERVED_PREFIXES = ("content-", "webhook-", "accept")
_MAX_HEADER_VALUE = 4096
_IDENTITY = ("id", "submission_id", "erased")


class Refused(Exception):
    """A webhook cannot be made like that; ``field`` is the key of the body, the text says why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


def thin(data: dict[str, Any]) -> dict[str, Any]:
    """What a thin event has of a record: which one it is. The rest can be asked for, by who has a key."""
    return {key: data[key] for key in _IDENTITY if key in data}


def subscribed(events: list[str] | None) -> list[str]:
    """The kinds a webhook gets: those it names, all four ``form.*`` when it names none. Refused for an unknown kind."""
    return _known("events", events) if events else list(FORM_EVENTS)


def kinds_of(named: list[str] | None) -> list[str]:
    """The kinds that are named, each once; none when none is. Refused for an unknown kind."""
    return _known("kinds", named or [])


def checked_secret(secret: dict[str, str] | None) -> dict[str, str]:
    """The one header sent with each delivery, or none. Refused when it would break or override the request's own headers."""
    if not secret:
        return {}
    if len(secret) > 1:
        raise Refused("secret", "must not have more than one header")
    ((name, value),) = secret.items()
    if not _TOKEN.fullmatch(name):
        raise Refused("secret", f"must have a valid header name, not '{name}'")
    if name.lower() in _RESERVED or name.lower().startswith(_RESERVED_PREFIXES):
        raise Refused("secret", f"must not name the header '{name}', which every delivery has already")
    if len(value) > _MAX_HEADER_VALUE or not value.isascii() or not value.isprintable() or value != value.strip():
        raise Refused(f"secret.{name}", "must be printable ASCII of at most 4,096 characters, without blanks around it")
    return {name: value}


def checked_minutes(minutes: int | None) -> int | None:
    """How long links in events are good without a key. Refused when that is too short or too long."""
    if minutes is not None and not 1 <= minutes <= LONGEST_FILE_LINKS:
        raise Refused("file_link_minutes", f"must be from 1 to {LONGEST_FILE_LINKS}")
    return minutes


def still_valid(former: Iterable[FormerSecret], now: datetime) -> list[FormerSecret]:
    """Those of the secrets that were replaced with which deliveries are still signed."""
    return [each for each in former if each.valid_until > now]


def with_former(former: Iterable[FormerSecret], secret: str, hours: float, now: datetime) -> list[FormerSecret]:
    """The former secrets when ``secret`` is replaced now and signs for some ``hours``. Refused when these are too many, or
    would be valid for too long."""
    if not 0 <= hours <= LONGEST_OVERLAP_HOURS:
        raise Refused("overlap_hours", f"must be from 0 to {LONGEST_OVERLAP_HOURS}")
    kept = still_valid(former, now)
    if not hours:
        return kept
    if len(kept) == MOST_FORMER_SECRETS:
        raise Refused("overlap_hours", f"must be 0: {MOST_FORMER_SECRETS} former secrets are still valid")
    return [FormerSecret(secret=secret, valid_until=now + timedelta(hours=hours)), *kept]


@dataclass(frozen=True)
class Verdict:
    """The meaning of a receiver's answer. ``wait`` overrides the schedule; ``gone`` disables the webhook."""

    delivered: bool
    gone: bool = False
    wait: timedelta | None = None


def judge(status: int, retry_after: str | None, now: datetime) -> Verdict:
    """2xx is delivered, 410 means never again, anything else is tried again (redirects are failures, too)."""
    if 200 <= status < 300:
        return Verdict(delivered=True)
    if status == 410:
        return Verdict(delivered=False, gone=True)
    return Verdict(delivered=False, wait=_wait(retry_after, now))


def hopeless(failing_since: datetime | None, now: datetime, give_up_after: timedelta) -> bool:
    """True when a webhook has done nothing but fail for that long."""
    return failing_since is not None and now - failing_since >= give_up_after


def _known(field: str, kinds: list[str]) -> list[str]:
    for index, kind in enumerate(kinds):
        if kind not in EVENTS:
            raise Refused(f"{field}[{index}]", f"must be one of {', '.join(sorted(EVENTS))}")
    return list(dict.fromkeys(kinds))


def _wait(retry_after: str | None, now: datetime) -> timedelta | None:
    """``Retry-After`` (RFC 9110, 10.2.3) as a duration, clamped to a day; None when absent or senseless."""
    if not retry_after:
        return None
    if re.fullmatch(r"\s*[0-9]+\s*", retry_after):
        seconds = float(retry_after.strip()[:9])
    else:
        try:
            seconds = (parsedate_to_datetime(retry_after) - now).total_seconds()
        except (ArithmeticError, ValueError, TypeError):
            return None
    if seconds <= 0:
        return None
    return min(timedelta(seconds=seconds), LONGEST_RETRY_AFTER)
