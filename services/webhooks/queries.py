"""Reads: webhooks, their deliveries, and the event log that pollers walk."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import invalid, not_found
from contracts.formats.mentions import places
from contracts.rpc import webhooks as rpc
from contracts.runtime.data.database import for_update
from contracts.runtime.data.lists.page import LARGEST_ID, LARGEST_PAGE
from contracts.runtime.data.stored import as_stored, readable, reading
from contracts.types import Actor, EventRecord, FormerSecret, Page, Pagination, Role
from contracts.types import Webhook as PublicWebhook
from services.webhooks import domain
from services.webhooks.models import (
    Arrival,
    Attempt,
    Delivery,
    KnownTemplate,
    LoggedEvent,
    LogHead,
    SubjectHead,
    Webhook,
)

_LAST_SECOND = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def webhook(session: Session, request: rpc.GetWebhook, now: datetime) -> PublicWebhook:
    row = _of_mode(session, request.id, request.actor)
    with reading(PublicWebhook, row.id):
        return public_webhook(row, now)


def _of_mode(session: Session, webhook_id: int, actor: Actor) -> Webhook:
    """The webhook, if it is of the mode of the actor's key. Raises ServiceError("not_found")."""
    row: Webhook | None = session.get(Webhook, webhook_id)
    if row is None or row.test != actor.test:
        raise not_found("Webhook")
    return row


def webhooks(session: Session, request: rpc.ListWebhooks, now: datetime) -> Page[PublicWebhook]:
    of_mode = sa.select(Webhook).where(Webhook.test.is_(request.actor.test))
    rows = _page(session, of_mode, Webhook.id, request.limit, request.after, request.before)
    return Page[PublicWebhook](
        data=readable(PublicWebhook, rows, lambda row: public_webhook(row, now)),
        pagination=Pagination.of([row.id for row in rows]),
    )


def deliveries(session: Session, request: rpc.ListDeliveries) -> Page[rpc.Delivery]:
    """The deliveries of one webhook with their attempts, oldest first."""
    _of_mode(session, request.webhook_id, request.actor)
    query = sa.select(Delivery).where(Delivery.webhook_id == request.webhook_id)
    rows = _page(session, query, Delivery.id, request.limit, request.after, request.before)
    attempts: dict[int, list[Attempt]] = {}
    attempts_query = sa.select(Attempt).where(Attempt.delivery_id.in_([row.id for row in rows])).order_by(Attempt.id)
    for attempt in session.scalars(attempts_query):
        attempts.setdefault(attempt.delivery_id, []).append(attempt)
    data = readable(rpc.Delivery, rows, lambda row: _delivery(row, attempts.get(row.id, [])))
    return Page[rpc.Delivery](data=data, pagination=Pagination.of([row.id for row in rows]))


def delivery(session: Session, row: Delivery) -> rpc.Delivery:
    attempts = session.scalars(sa.select(Attempt).where(Attempt.delivery_id == row.id).order_by(Attempt.id))
    return _delivery(row, list(attempts))


def events(session: Session, request: rpc.ListEvents, now: datetime) -> rpc.EventPage:
    """A page of the log. Run it in a write transaction: it waits for whoever is appending.

    Cursors are whole Unix seconds, so a page never ends within a second (it may be longer than ``limit``), and the second
    that is under way is not shown yet. Seconds that were shown are closed: no process appends to them any more, however late
    its clock is. So a poller that passes ``next`` as ``after`` sees every event exactly once.
    """
    if request.event_type not in domain.EVENTS:
        raise invalid(f"Unknown event type '{request.event_type}'.", "type")
    this_second = _close_until(session, now)
    moment = LoggedEvent.recorded_at
    query = sa.select(LoggedEvent).where(
        LoggedEvent.event_type == request.event_type, moment < this_second, *_visible(request.actor)
    )
    upward = (moment.asc(), LoggedEvent.position.asc())
    downward = (moment.desc(), LoggedEvent.position.desc())
    if request.after is not None:
        query = query.where(moment >= _second(int(request.after) + 1))
    if request.before is not None:
        query = query.where(moment < _second(int(request.before)))
    backward = request.before is not None and request.after is None
    rows = list(session.scalars(query.order_by(*(downward if backward else upward)).limit(request.limit)))
    if rows:
        edge = int(rows[-1].recorded_at.timestamp())
        positions = [row.position for row in rows]
        same_second = query.where(
            moment >= _second(edge), moment < _second(edge + 1), LoggedEvent.position.not_in(positions)
        )
        rows = sorted([*rows, *session.scalars(same_second)], key=lambda row: (row.recorded_at, row.position))
    seconds = [int(row.recorded_at.timestamp()) for row in rows]
    return rpc.EventPage(data=readable(EventRecord, rows, _record), pagination=Pagination.of(seconds))


def feed(session: Session, request: rpc.ReadFeed) -> rpc.FeedPage:
    """A page of the whole log, or of some kinds of events, by their positions.

    Positions rise in the order of the commits (``LogHead``): when one can be read, all lower ones can, and none comes later. So
    a reader that passes ``next`` as ``after`` sees every event exactly once. Raises ServiceError for a position that the log
    has not reached: it is of a log that was there before a backup was restored, and its reader would wait in vain.
    """
    try:
        kinds = domain.kinds_of(request.kinds)
    except domain.Refused as refused:
        raise invalid(f"{refused.field} {refused.reason}", refused.field, refused.reason) from refused
    after = min(request.after or 0, LARGEST_ID)
    end = feed_end(
        session
    ).sequence  # before the page: all until there that the caller asks for and may see is in it, or follows
    if after > end:
        reason = f"must not be greater than {end}, the end of the log"
        raise invalid(f"after {reason}", "after", reason)
    limit = max(1, min(request.limit, LARGEST_PAGE))
    position = LoggedEvent.position

    def found(*of_kind: sa.ColumnElement[bool]) -> sa.Select[Any]:
        seen = sa.select(position.label("position")).where(position > after, *_visible(request.actor), *of_kind)
        return seen.order_by(position).limit(limit)

    if kinds:  # each by its index: one that is rare is not searched for along all the others
        parts = [sa.select(found(LoggedEvent.event_type == kind).subquery().c.position) for kind in kinds]
        chosen = sa.union_all(*parts).subquery()
        wanted: sa.Select[Any] = sa.select(chosen.c.position).order_by(chosen.c.position).limit(limit)
    else:
        wanted = found()
    positions = list(session.scalars(wanted))
    rows = list(session.scalars(sa.select(LoggedEvent).where(position.in_(positions)).order_by(position)))
    return rpc.FeedPage(data=readable(rpc.FeedEvent, rows, _of_feed), pagination=Pagination.of(positions), end=end)


def feed_end(session: Session) -> rpc.FeedEnd:
    """Tell the position of the last event of the log, which only rises."""
    return rpc.FeedEnd(sequence=session.scalar(sa.select(sa.func.max(LoggedEvent.position))) or 0)


def told_of_person(session: Session, request: rpc.DescribeTold) -> rpc.ToldOfPersons:
    """The events about submissions whose body names the address, with their deliveries; tests are no events."""
    subjects = [f"submission:{number}" for number in request.submission_ids]
    events_found = [
        event
        for event in session.scalars(
            sa.select(LoggedEvent).where(LoggedEvent.subject.in_(subjects)).order_by(LoggedEvent.position)
        )
        if next(places(json.loads(event.body), request.email), None) is not None
    ]
    told: dict[int, list[rpc.ToldReceiver]] = {event.position: [] for event in events_found}
    of_them = sa.select(Delivery, Webhook.url).join(Webhook, Webhook.id == Delivery.webhook_id)
    of_them = of_them.where(Delivery.position.in_(told), Delivery.test.is_(False)).order_by(Delivery.id)
    for row, url in session.execute(of_them):
        told[row.position].append(rpc.ToldReceiver(webhook_id=row.webhook_id, url=url, state=row.outcome or "pending"))
    return rpc.ToldOfPersons(
        data=[
            rpc.ToldOfPerson(
                submission_id=int(event.subject.partition(":")[2]),
                event_id=event.event_id,
                event_type=event.event_type,
                timestamp=event.recorded_at,
                receivers=told[event.position],
            )
            for event in events_found
        ]
    )


def _close_until(session: Session, now: datetime) -> datetime:
    """The beginning of the second that is under way; what is appended from now on is not earlier."""
    head = session.scalar(for_update(sa.select(LogHead).where(LogHead.id == 1)))
    assert head is not None  # the migration inserts it
    this_second = _second(int(now.timestamp()))
    if head.last_recorded_at > now + domain.CLOCKS_DIFFER:
        # The clock was put back: the log goes on from where it is, and closes its seconds without it.
        this_second = _second(int(head.last_recorded_at.timestamp()))
        recorded = sa.exists().where(LoggedEvent.recorded_at >= this_second)
        if session.scalar(sa.select(sa.literal(True)).where(recorded)):
            this_second += timedelta(seconds=1)
    if head.last_recorded_at < this_second:
        head.last_recorded_at = this_second
    return this_second


@dataclass(frozen=True)
class Gap:
    """A subject whose events wait: for whom to ask, and what was known when it was looked at.

    ``after``: of the same life only what follows ``head`` (epoch, number) is asked for, of another one everything (0).
    """

    subject: str
    owner: str
    head: tuple[str, int]
    after: int
    arrivals: frozenset[str]
    since: datetime


def gaps(session: Session, arrived_before: datetime) -> list[Gap]:
    """The subjects with events that have waited since then or longer, the longest waiting first; at most 1,000."""
    oldest = sa.func.min(Arrival.arrived_at)
    waiting = (
        sa.select(Arrival.subject)
        .group_by(Arrival.subject)
        .having(oldest <= arrived_before)
        .order_by(oldest)
        .limit(1000)
    )
    names = list(session.scalars(waiting))
    heads = {
        head.subject: head for head in session.scalars(sa.select(SubjectHead).where(SubjectHead.subject.in_(names)))
    }
    arrivals: dict[str, list[Arrival]] = {}
    for arrival in session.scalars(sa.select(Arrival).where(Arrival.subject.in_(names))):
        arrivals.setdefault(arrival.subject, []).append(arrival)
    # What waited when the subjects were read may have been logged since.
    return [_gap(heads[name], arrivals[name]) for name in names if name in arrivals]


def waiting_arrivals(session: Session) -> tuple[int, datetime | None]:
    """Return how many events wait for another one, and since when the first of them does."""
    count, oldest = session.execute(sa.select(sa.func.count(), sa.func.min(Arrival.arrived_at))).one()
    return count, oldest


def _gap(head: SubjectHead, arrivals: list[Arrival]) -> Gap:
    same_life = all(arrival.epoch in (head.epoch, "") and arrival.sequence > head.last_sequence for arrival in arrivals)
    return Gap(
        subject=head.subject,
        owner=arrivals[0].envelope["source"],
        head=(head.epoch, head.last_sequence),
        after=head.last_sequence if same_life else 0,
        arrivals=frozenset(arrival.event_id for arrival in arrivals),
        since=min(arrival.arrived_at for arrival in arrivals),
    )


def public_webhook(row: Webhook, now: datetime) -> PublicWebhook:
    return as_stored(
        PublicWebhook,
        id=row.id,
        url=row.url,
        events=row.events,
        secret=row.secret,
        signing_secret=row.signing_secret,
        former_signing_secrets=domain.still_valid(map(FormerSecret.model_validate, row.former_secrets), now),
        payload=row.payload,
        file_link_minutes=row.file_link_minutes,
        disabled_at=row.disabled_at,
        test=row.test,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _delivery(row: Delivery, attempts: list[Attempt]) -> rpc.Delivery:
    return as_stored(
        rpc.Delivery,
        id=row.id,
        webhook_id=row.webhook_id,
        event_id=row.event_id,
        event_type=row.event_type,
        message_id=row.message_id,
        test=row.test,
        state=row.outcome or "pending",
        attempts=[
            as_stored(
                rpc.DeliveryAttempt,
                attempted_at=attempt.attempted_at,
                status=attempt.status,
                error=attempt.error,
                response=attempt.response,
                duration_ms=attempt.duration_ms,
            )
            for attempt in attempts
        ],
        next_attempt_at=row.next_attempt_at if row.state == "due" else None,
        created_at=row.created_at,
    )


def _record(row: LoggedEvent) -> EventRecord:
    return as_stored(EventRecord, **{"id": row.event_id, **json.loads(row.body)})


def _of_feed(row: LoggedEvent) -> rpc.FeedEvent:
    return as_stored(rpc.FeedEvent, **{"id": row.event_id, "sequence": row.position, **json.loads(row.body)})


def _visible(actor: Actor) -> list[sa.ColumnElement[bool]]:
    """As the submissions and templates themselves are seen now (decisions: 'shared' templates): an editor has the events of
    their own templates and of what they created, and those of a shared template itself; a viewer has all events of shared
    templates. Unsharing a template takes its events away, too. A test key has the events of test mode, a live one all
    others; one that is limited to folders has none, since an event does not know in which one its template is."""
    if actor.folders is not None:
        return [sa.false()]
    of_mode: list[sa.ColumnElement[bool]] = [LoggedEvent.test.is_(actor.test)]
    if actor.role is Role.ADMIN:
        return of_mode
    shared = sa.func.coalesce(_of_template(KnownTemplate.shared), LoggedEvent.shared).is_(True)
    if actor.role is Role.EDITOR:
        author = sa.func.coalesce(_of_template(KnownTemplate.author_id), LoggedEvent.author_id)
        of_template = LoggedEvent.subject.startswith("template:")
        return [
            *of_mode,
            sa.or_(author == actor.user_id, LoggedEvent.created_by_id == actor.user_id, sa.and_(of_template, shared)),
        ]
    return [*of_mode, shared]


def _of_template(column: Any) -> Any:
    """Return what is known of the event's template now; null when it is not known, or there is none."""
    return sa.select(column).where(KnownTemplate.id == LoggedEvent.template_id).correlate(LoggedEvent).scalar_subquery()


def _page(
    session: Session, query: sa.Select[Any], key: Any, limit: int, after: int | None, before: int | None
) -> list[Any]:
    """Return rows ascending by ``key`` (decisions: 'Order and cursors')."""
    if after is not None:
        query = query.where(key > after)
    if before is not None:
        query = query.where(key < before)
    if before is not None and after is None:
        return list(session.scalars(query.order_by(key.desc()).limit(limit)))[::-1]
    return list(session.scalars(query.order_by(key).limit(limit)))


def _second(unix: int) -> datetime:
    """The beginning of that second; of the last one there is for all that follow it."""
    return datetime.fromtimestamp(min(unix, _LAST_SECOND), UTC)
