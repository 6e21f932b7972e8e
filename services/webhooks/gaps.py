"""Closes gaps in the log: what waits for an event that does not come is told when its owner has been asked for it."""

import random
import time
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from prometheus_client import Counter, Gauge

from contracts.errors import ServiceError
from contracts.rpc.events import EVENTS_SINCE, SubjectSince
from contracts.runtime import clock
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import JITTER, Loop
from contracts.runtime.monitoring import observe
from services.webhooks import commands, queries
from services.webhooks.models import Arrival

log = observe.logger(__name__)

WAITING = Gauge("countersign_events_waiting", "Events that wait for an earlier one of their subject")
OLDEST = Gauge("countersign_event_gap_oldest_seconds", "How long the first of them has been waiting")
CLOSED = Counter(
    "countersign_event_gaps_total",
    "Gaps: asked the owner, passed_over (it has no such event), of_another_life (events that were not told)",
    ["how"],
)

PATIENCE = timedelta(seconds=2.5)
"""Before the owner is asked: the bus promises no order, so that events normally overtake each other a little."""

LONGEST_PAUSE = 60.0
TOO_LONG = timedelta(minutes=5)


class Gaps(Loop):
    """Asks the owners of subjects whose events wait, soon and then later and later."""

    def __init__(self, database: Database, bus: RpcClient, link_secret: str) -> None:
        super().__init__("event gaps")
        self._database = database
        self._bus = bus
        self._link_secret = link_secret
        self._failures: dict[str, int] = {}
        self._next: dict[str, float] = {}

    def turn(self) -> float:
        changes = self._database.changes()
        if (pause := self.rests_for(changes)) > 0:
            return pause
        gaps = self._database.read(queries.gaps, now() - PATIENCE + clock.put_back())
        self._failures = {gap.subject: self._failures.get(gap.subject, 0) for gap in gaps}
        self._next = {gap.subject: self._next.get(gap.subject, 0.0) for gap in gaps}
        away: set[str] = set()
        for gap in gaps:
            if gap.owner not in away and time.monotonic() >= self._next[gap.subject] and not self._close(gap):
                away.add(gap.owner)
        count, oldest = self._database.read(queries.waiting_arrivals)
        if not count:
            self.rest(changes)
        WAITING.set(count)
        OLDEST.set(max(0.0, (now() - oldest).total_seconds()) if oldest else 0.0)
        return self.rests_for(changes) or self.poll_seconds

    def first_due(self) -> sa.ScalarSelect[Any]:
        return sa.select(Arrival.arrived_at).limit(1).scalar_subquery()

    def _close(self, gap: queries.Gap) -> bool:
        """False when the owner does not answer."""
        failures = self._failures[gap.subject] = self._failures[gap.subject] + 1
        pause = min(LONGEST_PAUSE, 2.0 ** (failures - 1)) * random.uniform(1 - JITTER, 1 + JITTER)
        self._next[gap.subject] = time.monotonic() + pause
        try:
            history = self._bus.call(EVENTS_SINCE[gap.owner], SubjectSince(subject=gap.subject, sequence=gap.after))
        except ServiceError as error:
            log.warning("gap.owner_away", subject=gap.subject, owner=gap.owner, reason=error.message)
            return False
        caught_up = self._database.write(commands.catch_up, gap, history, now(), self._link_secret)
        CLOSED.labels("asked").inc()
        CLOSED.labels("passed_over").inc(caught_up.passed_over)
        CLOSED.labels("of_another_life").inc(caught_up.of_another_life)
        log.warning(
            "gap.closed",
            subject=gap.subject,
            waited=len(gap.arrivals),
            passed_over=caught_up.passed_over,
            of_another_life=caught_up.of_another_life,
        )
        return True


def problems(database: Database) -> list[str]:
    """Subjects whose events have waited for minutes: their owner does not answer."""
    gaps = database.read(queries.gaps, now() - TOO_LONG)
    return [f"events of {gap.subject} wait for an earlier one since {gap.since:%H:%M:%S} UTC" for gap in gaps[:10]]
