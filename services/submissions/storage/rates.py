"""How often something may be done, counted in the database: all replicas of the service count together.

Within the transaction that does it: what is refused or fails afterwards was not done and does not count.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.runtime.data.database import for_update, insert_into
from services.submissions.models import RateRow

KEPT = timedelta(days=2)
"""Longer than any ``within``: what is not touched for so long limits nothing any more."""


CLOCKS_DIFFER = timedelta(minutes=1)
"""Largest clock skew between our machines."""


@dataclass(frozen=True)
class Rate:
    """At most ``most`` times in ``within``, and ``pause`` between two."""

    most: int
    within: timedelta
    pause: timedelta = timedelta(0)


def wait(session: Session, key: str, rate: Rate, now: datetime) -> timedelta:
    """Return how long until it may be done again; zero when it may be done now. Only reads."""
    row = session.get(RateRow, key)
    return timedelta(0) if row is None else _wait(row, rate, now)


def count(session: Session, key: str, rate: Rate, now: datetime, *, refusal: str) -> None:
    """It is being done. Others who want to do it wait for this transaction.

    ServiceError ``rate_limited`` with the sentence ``refusal`` when it is too early; ``retry_after`` in the details says how
    many seconds.
    """
    row = _locked(session, key, now)
    if remaining := _wait(row, rate, now):
        raise too_early(refusal, remaining, *_limit(row, rate, now))
    if not _time_left(row.began_at, rate.within, now):
        row.began_at, row.count = now, 0
    row.count += 1
    row.last_at = now
    session.flush()


def too_early(refusal: str, remaining: timedelta, quota: int, window: timedelta) -> ServiceError:
    seconds = max(1, ceil(remaining.total_seconds()))
    reason = f"may be asked for again in {seconds} second{'' if seconds == 1 else 's'}"
    limit = {"quota": quota, "window": int(window.total_seconds())}
    return ServiceError(
        "rate_limited", refusal, [{"field": "request", "reason": reason, "retry_after": seconds, **limit}]
    )


def network(ip: str | None) -> str:
    """Return who counts as one: an address, or of the many that a household or office has the network that they are in."""
    try:
        address = ipaddress.ip_address(ip or "")
    except ValueError:
        return "nowhere"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def forget(session: Session, now: datetime) -> None:
    """Drop the counters that nobody needs any more."""
    session.execute(sa.delete(RateRow).where(RateRow.last_at < now - KEPT))


def _wait(row: RateRow, rate: Rate, now: datetime) -> timedelta:
    remaining = timedelta(0)
    if row.last_at is not None:
        remaining = _time_left(row.last_at, rate.pause, now)
    if row.count >= rate.most:
        remaining = max(remaining, _time_left(row.began_at, rate.within, now))
    return remaining


def _limit(row: RateRow, rate: Rate, now: datetime) -> tuple[int, timedelta]:
    """Return how often in which time, of the limit that keeps somebody waiting for longest."""
    paused = timedelta(0) if row.last_at is None else _time_left(row.last_at, rate.pause, now)
    is_used_up = row.count >= rate.most and _time_left(row.began_at, rate.within, now) >= paused
    return (rate.most, rate.within) if is_used_up else (1, rate.pause)


def _time_left(since: datetime, period: timedelta, now: datetime) -> timedelta:
    """Return how much is left of the period that began then. One that has yet to begin was counted by a clock that has been put
    back, and nobody waits for that; a little ahead is another machine's clock."""
    remaining = since + period - now
    return timedelta(0) if remaining > period + CLOCKS_DIFFER else max(timedelta(0), min(remaining, period))


def _locked(session: Session, key: str, now: datetime) -> RateRow:
    fresh = insert_into(session, RateRow).values(key=key, began_at=now, last_at=None, count=0)
    session.execute(fresh.on_conflict_do_nothing())
    query = for_update(sa.select(RateRow).where(RateRow.key == key))
    row: RateRow | None = session.scalar(query.execution_options(populate_existing=True))
    if row is None:  # forgotten between the two statements
        raise ServiceError("unavailable", "The database is busy. Try again.")
    return row
