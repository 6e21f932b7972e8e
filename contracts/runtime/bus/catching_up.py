"""Finds out which events this service missed, and has them handled: nobody waits for ever for an event.

The broker delivers what it has; what it lost (a wiped broker, a message that was lost), or what this database lost (it was
restored), nobody would ever deliver. So the background process of each service walks through what the owners of its events have
told, page by page (``contracts.rpc.events``), and looks which ids are not in its inbox. Those become rows of
``missing_events``. Normally they are just on their way, and their rows go when they are in the inbox. What has not come after
a while is fetched from its owner and put into this service's own queue, as if the broker had delivered it: it is handled,
retried and parked as any other event, and one that comes twice changes nothing (``outbox.first_time``). As long as others of
its kind come late but by themselves, it waits longer: of a queue that is behind, everything would else be put in twice, and it
would stay behind.

When nothing is missing this writes nothing but how far the walk has come. Where an owner has told nothing since the last look,
and the broker was there all the time, it is asked less and less often.
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa
from prometheus_client import Counter, Gauge
from sqlalchemy.engine import Row
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import Event
from contracts.rpc import events as rpc
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.bus.publisher import CONFIRMED, Message, Publisher
from contracts.runtime.bus.topology import event_queue_name, own_exchange
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, insert_into
from contracts.runtime.data.due_work.background import JITTER, Loop
from contracts.runtime.data.tables import event_cursors, inbox, missing_events
from contracts.runtime.monitoring import observe

log = observe.logger(__name__)

MISSING = Gauge("countersign_events_missing", "Events that were told and are not taken yet", ["service"])
OLDEST = Gauge("countersign_events_missing_oldest_seconds", "How long the oldest of them has been missing", ["service"])
AGAIN = Counter(
    "countersign_events_missed_total",
    "Missing events: fetched again, or gone (their owner has them no more)",
    ["service", "outcome"],
)

PAUSES = tuple(timedelta(seconds=seconds) for seconds in (60, 600, 3600, 6 * 3600, 24 * 3600))
"""Between fetching an event again and again. An event that waits in a retry queue or is parked there comes twice by that, which
changes nothing; after the last time it is left to whoever looks at what is parked."""

MOST_SOUGHT = 500
"""So many missing events of an owner at once; the walk goes on when they are taken. A service that has more to do than it can
is not given everything twice."""

LONGEST_LATE = timedelta(minutes=1)
"""After that an event is fetched, though others of its kind still come late by themselves: it may be lost all the same."""

FETCHED_AT_ONCE = 50
_A_MOMENT = timedelta(milliseconds=1)
LONGEST_PAUSE = 60.0
LONGEST_QUIET = 6
"""Times the usual pause, between two looks at an owner that tells nothing. A first event that is lost is missed that much
later; with a broker that was started anew, which is how events are lost, it is looked at once."""

TOO_LONG = timedelta(minutes=5)


@dataclass(frozen=True)
class _Quiet:
    """An owner that had told nothing new so many times one after the other is not asked before ``until`` (monotonic)."""

    looks: int = 0
    until: float = 0.0


class CatchingUp(Loop):
    """The walk of one service through what the owners of its events have told."""

    def __init__(
        self,
        service: str,
        database: Database,
        bus: RpcClient,
        publisher: Publisher,
        subscriptions: Iterable[Event],
        every: timedelta,
    ) -> None:
        super().__init__(f"{service} catching up")
        self._service = service
        self._database = database
        self._bus = bus
        self._publisher = publisher
        self._every = every
        self._events = {event.type: event for event in subscriptions}
        self._owners: dict[str, list[str]] = {}
        for event in self._events.values():
            if event.source in rpc.EVENTS_TOLD:
                self._owners.setdefault(event.source, []).append(event.type)
        self._failures: dict[str, int] = {}
        self._next: dict[str, float] = {}
        self._quiet: dict[str, _Quiet] = {}
        self._came_late: set[str] = set()
        """The kinds of events of which, at the last look, one was found taken that had been missing, and was not fetched."""
        self._losses = publisher.losses
        self._none_missing_at: int | None = None

    def turn(self) -> float:
        if self._publisher.losses != self._losses:
            self._losses = self._publisher.losses
            self._quiet.clear()
        for owner, kinds in self._owners.items():
            if time.monotonic() >= self._quiet.get(owner, _Quiet()).until:
                self._ask(owner, partial(self._look_at, owner, sorted(kinds)))
        self._seek()
        return self._every.total_seconds() * random.uniform(1 - JITTER, 1 + JITTER)

    def _ask(self, owner: str, question: Callable[[], None]) -> None:
        """An owner that is away is asked later and later; what there is to find out does not go away."""
        if time.monotonic() < self._next.get(owner, 0.0):
            return
        try:
            question()
        except ServiceError as error:
            failures = self._failures[owner] = self._failures.get(owner, 0) + 1
            pause = min(LONGEST_PAUSE, 2.0**failures) * random.uniform(1 - JITTER, 1 + JITTER)
            self._next[owner] = time.monotonic() + pause
            log.info("events.owner_away", service=self._service, owner=owner, reason=error.message)
        else:
            self._failures.pop(owner, None)

    def _look_at(self, owner: str, kinds: list[str]) -> None:
        if self._walk(owner, kinds):
            self._quiet.pop(owner, None)
            return
        looks = min(self._quiet.get(owner, _Quiet()).looks + 1, LONGEST_QUIET)
        pause = (looks - 1) * self._every.total_seconds() * random.uniform(1 - JITTER, 1 + JITTER)
        self._quiet[owner] = _Quiet(looks, time.monotonic() + pause)

    def _walk(self, owner: str, kinds: list[str]) -> bool:
        """Whether there was anything new, or something is missing."""
        cursor, sought = self._database.read(_cursor, owner)
        more, news = True, sought > 0
        while more and sought < MOST_SOUGHT and not self._stopping.is_set():
            page = self._bus.call(rpc.EVENTS_TOLD[owner], self._next_page(cursor, kinds))
            if cursor is not None and cursor.epoch != page.epoch:
                log.warning("events.another_epoch", service=self._service, owner=owner, epoch=page.epoch)
            if _moved(cursor, page, kinds):
                news = True
                self._database.write_unsynced(_note, owner, page, kinds, now() + self._every)
                cursor, sought = self._database.read(_cursor, owner)
            more = page.more
        return news or sought > 0

    def _next_page(self, cursor: Row[Any] | None, kinds: list[str]) -> rpc.WalkEvents:
        request = rpc.WalkEvents(kinds=kinds, settled_seconds=self._every.total_seconds())
        if cursor is not None:
            request.epoch = cursor.epoch
            if set(kinds) <= set(cursor.kinds.split(",")):  # else it begins anew: of the other kinds all may be missing
                request.position, request.event_id = cursor.position, cursor.event_id
        return request

    def _seek(self) -> None:
        changes = self._database.changes()
        if changes is not None and changes == self._none_missing_at:
            return
        count, oldest = self._database.read(_survey)
        if count:
            came = self._database.write_unsynced(_forget_taken)
            behind, self._came_late = sorted(came | self._came_late), came
            for owner in self._owners:
                self._ask(owner, partial(self._fetch, owner, behind))
            count, oldest = self._database.read(_survey)
        self._none_missing_at = None if count else changes
        MISSING.labels(self._service).set(count)
        OLDEST.labels(self._service).set(max(0.0, (now() - oldest).total_seconds()) if oldest else 0.0)

    def _fetch(self, owner: str, behind: Sequence[str]) -> None:
        moment = now()
        while ids := self._database.write_unsynced(_due, owner, moment, max(self._every, _A_MOMENT), behind):
            envelopes = self._bus.call(rpc.EVENTS_BY_ID[owner], rpc.FetchEvents(ids=ids)).events
            if missing := set(ids) - {envelope.id for envelope in envelopes}:
                self._database.write(_forget, missing)
                AGAIN.labels(self._service, "gone").inc(len(missing))
                log.warning("events.gone", service=self._service, owner=owner, events=sorted(missing))
            outcomes = self._publisher.publish([self._message(envelope) for envelope in envelopes])
            sent = [identifier for identifier, outcome in outcomes.items() if outcome == CONFIRMED]
            self._database.write(_sent_again, sent, now())
            AGAIN.labels(self._service, "fetched").inc(len(sent))
            for envelope in envelopes:
                log.warning("events.missed", event_type=envelope.type, event_id=envelope.id, subject=envelope.subject)

    def _message(self, envelope: Envelope) -> Message:
        queue = event_queue_name(self._events[envelope.type], self._service)
        return Message(envelope.id, own_exchange(self._service), queue, envelope.model_dump_json().encode())


def problems(database: Database) -> list[str]:
    """List what an operator should look at: events that have been missing for too long."""
    longest = now() - TOO_LONG
    count, oldest = database.read(_survey)
    if oldest is None or oldest > longest:
        return []
    minutes = (now() - oldest).total_seconds() / 60
    return [f"{count} events are missing, the oldest for {minutes:.0f} minutes: see what is parked"]


def owner_epoch(owner: str | sa.BindParameter[str]) -> sa.Select[tuple[str]]:
    """Selects the epoch of ``owner`` as the walk has seen it last; nothing before the first walk."""
    return sa.select(event_cursors.c.epoch).where(event_cursors.c.owner == owner)


def _cursor(session: Session, owner: str) -> tuple[Row[Any] | None, int]:
    """Return how far the walk has come, and how many events of this owner are missing."""
    cursor = session.execute(sa.select(event_cursors).where(event_cursors.c.owner == owner)).first()
    missing = sa.select(sa.func.count()).select_from(missing_events).where(missing_events.c.owner == owner)
    return cursor, session.scalar(missing) or 0


def _moved(cursor: Row[Any] | None, page: rpc.ToldPage, kinds: list[str]) -> bool:
    there = (page.epoch, page.position, ",".join(kinds))
    return cursor is None or (cursor.epoch, cursor.position, cursor.kinds) != there


def _note(session: Session, owner: str, page: rpc.ToldPage, kinds: list[str], at: datetime) -> None:
    """Move the cursor, and keep what is missing of the page."""
    ids = [event.event_id for event in page.events]
    handled = set(session.scalars(sa.select(inbox.c.event_id).where(inbox.c.event_id.in_(ids))))
    rows = [
        {"event_id": event.event_id, "owner": owner, "type": event.type, "noticed_at": now(), "next_at": at}
        for event in page.events
        if event.event_id not in handled
    ]
    if rows:
        session.execute(insert_into(session, missing_events).values(rows).on_conflict_do_nothing())
    there = {"epoch": page.epoch, "position": page.position, "event_id": page.event_id, "kinds": ",".join(kinds)}
    insert = insert_into(session, event_cursors).values(owner=owner, **there)
    session.execute(insert.on_conflict_do_update(index_elements=["owner"], set_=there))


def _due(session: Session, owner: str, moment: datetime, pause: timedelta, behind: Sequence[str]) -> list[str]:
    """Choose the next ones to be fetched. They are due again in a moment, in case nothing comes of it. Those of the kinds that
    are ``behind`` are due only when they have been missing for long.

    What would wait for longer than the pause after its own is due, too: that comes of a clock that was put back. A pause is
    never cut short by that, or all of an event's times would be over in a moment, and the broker have lost them together.
    """
    at, tries = missing_events.c.next_at, missing_events.c.tries
    longest = (pause + PAUSES[0], *PAUSES[1:])
    too_long = [sa.and_(tries == times, at > moment + wait) for times, wait in enumerate(longest)]
    late = sa.and_(
        missing_events.c.type.in_(behind),
        tries == 0,
        missing_events.c.noticed_at.between(moment - LONGEST_LATE, moment),
    )
    due = (
        sa.select(missing_events.c.event_id)
        .where(missing_events.c.owner == owner, sa.or_(at <= moment, *too_long), sa.not_(late))
        .order_by(missing_events.c.event_id)  # as they were stated
        .limit(FETCHED_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    ids = list(session.scalars(due))
    again = sa.update(missing_events).where(missing_events.c.event_id.in_(ids))
    session.execute(again.values(next_at=moment + pause))
    return ids


def _sent_again(session: Session, ids: Sequence[str], moment: datetime) -> None:
    for row in session.execute(sa.select(missing_events).where(missing_events.c.event_id.in_(ids))).all():
        pause = PAUSES[row.tries] if row.tries < len(PAUSES) else None
        session.execute(
            sa.update(missing_events)
            .where(missing_events.c.event_id == row.event_id)
            .values(tries=row.tries + 1, next_at=None if pause is None else moment + pause)
        )


def _forget(session: Session, ids: Iterable[str]) -> None:
    session.execute(sa.delete(missing_events).where(missing_events.c.event_id.in_(list(ids))))


def _forget_taken(session: Session) -> set[str]:
    """Forget those that have been taken meanwhile. Returns the kinds of which one came by itself."""
    handled = sa.exists().where(inbox.c.event_id == missing_events.c.event_id)
    kind, tries = missing_events.c.type, missing_events.c.tries
    taken = session.execute(sa.delete(missing_events).where(handled).returning(kind, tries))
    return {row.type for row in taken if row.tries == 0}


def _survey(session: Session) -> tuple[int, datetime | None]:
    count, oldest = session.execute(sa.select(sa.func.count(), sa.func.min(missing_events.c.noticed_at))).one()
    return count, oldest
