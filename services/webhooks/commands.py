"""Use cases that change something: webhooks, the event log, deliveries and what became of them."""

import base64
import json
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Row
from sqlalchemy.orm import Session, aliased

from contracts import links
from contracts.envelope import Envelope
from contracts.errors import ServiceError, invalid, not_found
from contracts.events import (
    EVENT_LOG_ERASED,
    SUBMISSION_ERASED,
    WEBHOOK_DISABLED,
    Admins,
    Erased,
    ErasureConfirmed,
    PublicData,
    TestModeWiped,
    WebhookDisabled,
    public_data,
)
from contracts.rpc import webhooks as rpc
from contracts.rpc.events import SubjectEvents
from contracts.rpc.unchanged import require_unchanged
from contracts.runtime.bus import catching_up, outbox
from contracts.runtime.clock import uuid7
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import UtcDateTime, for_update, insert_into, leave_work
from contracts.runtime.data.due_work.background import JITTER
from contracts.runtime.monitoring import tracing
from contracts.types import Actor, FormerSecret, iso
from contracts.types import Webhook as PublicWebhook
from services.webhooks import domain, queries
from services.webhooks.models import (
    Arrival,
    Attempt,
    Delivery,
    KnownAdmins,
    KnownTemplate,
    LoggedEvent,
    LogHead,
    SubjectHead,
    Webhook,
)

RESPONSE_KEPT = 1000

REPLAYED_AT_ONCE = 500
"""Events of one replay request: so many are planned in well under a second, with the log and the webhook locked."""

_AT_ONCE = 10_000
"""Parameters of one statement."""

T = TypeVar("T")


@dataclass
class CaughtUp:
    """The result of asking an owner: gaps whose events it does not have, and events that waited in vain for another life's."""

    passed_over: int = 0
    of_another_life: int = 0


def create(session: Session, command: rpc.CreateWebhook, now: datetime) -> PublicWebhook:
    """A new receiver, with a signing secret of its own."""

    def decide() -> PublicWebhook:
        webhook = Webhook(
            url=command.url,
            events=_checked(lambda: domain.subscribed(command.events)),
            secret=_checked(lambda: domain.checked_secret(command.secret)),
            signing_secret=_new_secret(),
            payload=command.payload or "full",
            file_link_minutes=_checked(lambda: domain.checked_minutes(command.file_link_minutes)),
            owner_email=command.actor.email,
            test=command.actor.test,
            created_at=now,
            updated_at=now,
        )
        session.add(webhook)
        session.flush()
        return queries.public_webhook(webhook, now)

    return outbox.once(session, rpc.CREATE, command.request_id, decide)


def update(session: Session, command: rpc.UpdateWebhook, now: datetime) -> PublicWebhook:
    """Change what is given. Naming an address or events enables a disabled webhook again, from the next event on; naming an
    address has what waits for its next attempt tried now."""

    def decide() -> PublicWebhook:
        webhook = _load(session, command.id, command.actor)
        _require_unchanged(command, webhook, now)
        keys = command.model_fields_set
        if "url" in keys and command.url is not None:
            webhook.url = command.url
        if "events" in keys:
            webhook.events = _checked(lambda: domain.subscribed(command.events))
        if "secret" in keys:
            webhook.secret = _checked(lambda: domain.checked_secret(command.secret))
        if command.payload is not None:
            webhook.payload = command.payload
        if "file_link_minutes" in keys:
            webhook.file_link_minutes = _checked(lambda: domain.checked_minutes(command.file_link_minutes))
        if keys & {"url", "events"}:
            webhook.disabled_at = webhook.disabled_reason = webhook.failing_since = None
        if "url" in keys:
            _hurry(session, Delivery.webhook_id == webhook.id, now)
        webhook.updated_at = now
        return queries.public_webhook(webhook, now)

    return outbox.once(session, rpc.UPDATE, command.request_id, decide)


def replace_secret(session: Session, command: rpc.ReplaceSecret, now: datetime) -> PublicWebhook:
    """Another signing secret. Deliveries are signed with the one before as well, until receivers have had time to change."""

    def decide() -> PublicWebhook:
        webhook = _load(session, command.id, command.actor)
        former = [FormerSecret.model_validate(each) for each in webhook.former_secrets]
        kept = _checked(lambda: domain.with_former(former, webhook.signing_secret, command.overlap_hours, now))
        webhook.former_secrets = [each.model_dump(mode="json") for each in kept]
        webhook.signing_secret = _new_secret()
        webhook.updated_at = now
        return queries.public_webhook(webhook, now)

    return outbox.once(session, rpc.REPLACE_SECRET, command.request_id, decide)


def remove(session: Session, command: rpc.RemoveWebhook, now: datetime) -> rpc.Confirmation:
    def decide() -> rpc.Confirmation:
        webhook = _load(session, command.id, command.actor)
        _require_unchanged(command, webhook, now)
        session.delete(webhook)
        return rpc.Confirmation(message="Webhook has been deleted")

    return outbox.once(session, rpc.REMOVE, command.request_id, decide)


def test(session: Session, command: rpc.TestWebhook, now: datetime, link_secret: str) -> rpc.Confirmation:
    """Queue one ``form.completed`` with the data of the newest one that still has any; it is tried once and not logged as an
    event."""

    def decide() -> rpc.Confirmation:
        webhook = _load(session, command.id, command.actor)
        newest = session.scalar(
            sa.select(LoggedEvent)
            .join(SubjectHead, SubjectHead.subject == LoggedEvent.subject)
            .where(
                LoggedEvent.event_type == "form.completed",
                LoggedEvent.test.is_(webhook.test),
                SubjectHead.erased.is_(False),
            )
            .order_by(LoggedEvent.position.desc())
            .limit(1)
        )
        if newest is None:
            raise ServiceError("invalid", "No completed submitter found to generate test payload")
        delivery = Delivery(**_delivery(webhook, newest, f"test_{uuid7()}", now, link_secret))
        delivery.stream = delivery.message_id
        delivery.body = _body("form.completed", now, json.loads(delivery.body or newest.body)["data"])
        delivery.test = True
        session.add(delivery)
        return rpc.Confirmation(message="Test webhook request has been queued")

    return outbox.once(session, rpc.TEST, command.request_id, decide)


def resend(session: Session, command: rpc.ResendDelivery, now: datetime) -> rpc.Delivery:
    """Try a delivery now, with the same id and the same bytes: one that has ended once more, one that waits before its time.
    What is still to be told of the same submission or template before it comes first, and now, too. Raises ServiceError for an
    event of a submission that was removed for good: other bytes would go out under an id that the receiver may know."""

    def decide() -> rpc.Delivery:
        delivery = session.scalar(
            for_update(sa.select(Delivery).where(Delivery.id == command.id, Delivery.webhook_id == command.webhook_id))
        )
        webhook = session.get(Webhook, command.webhook_id)
        if delivery is None or webhook is None or webhook.test != command.actor.test:
            raise not_found("Delivery")
        if session.scalar(sa.select(Delivery.id).where(Delivery.id == delivery.id, Delivery.of_erased())) is not None:
            reason = "is of a submission that was removed for good"
            raise invalid(f"delivery_id {reason}", "delivery_id", reason)
        if delivery.outcome is not None:
            _lock_streams(session, [delivery.stream])
            delivery.retry(now)
            session.flush()
        _hurry(session, Delivery.stream == delivery.stream, now)
        session.refresh(delivery)
        return queries.delivery(session, delivery)

    return outbox.once(session, rpc.RESEND, command.request_id, decide)


def replay(session: Session, command: rpc.ReplayEvents, now: datetime, link_secret: str) -> rpc.Replayed:
    """Deliver logged events once more, REPLAYED_AT_ONCE at most: what was delivered or given up again, what is under way
    sooner, what the webhook was never told of for the first time. Each has the ``webhook-id`` that it has, or would have
    had, and what was planned before has its bytes."""

    def decide() -> rpc.Replayed:
        webhook = _load(session, command.id, command.actor)
        if webhook.disabled_at is not None:
            raise invalid("The webhook is disabled. Name its url or events in a PUT to enable it.", "id", "is disabled")
        kinds = _checked(lambda: domain.kinds_of(command.kinds)) or webhook.events
        if command.until is not None and command.until < command.since:
            raise invalid("to must not be before from", "to", "must not be before from")
        _lock_log(session)  # what is appended meanwhile is planned by who appends it
        chosen = (
            sa.select(LoggedEvent)
            .join(SubjectHead, SubjectHead.subject == LoggedEvent.subject)
            .where(
                LoggedEvent.event_type.in_(kinds),
                LoggedEvent.test.is_(webhook.test),
                sa.or_(SubjectHead.erased.is_(False), LoggedEvent.event_type == SUBMISSION_ERASED.type),
                LoggedEvent.recorded_at >= command.since,
                LoggedEvent.recorded_at <= (command.until or now),
                LoggedEvent.position > (command.after or 0),
            )
            .order_by(LoggedEvent.position)
            .limit(REPLAYED_AT_ONCE + 1)
        )
        events = list(session.scalars(chosen))
        more, events = len(events) > REPLAYED_AT_ONCE, events[:REPLAYED_AT_ONCE]
        _deliver_again(session, webhook, events, now, link_secret)
        return rpc.Replayed(queued=len(events), next=events[-1].position if more else None)

    return outbox.once(session, rpc.REPLAY, command.request_id, decide)


def record_event(session: Session, envelope: Envelope, now: datetime, link_secret: str) -> None:
    """Append a public event to the log and plan its deliveries: ``record_events`` of one."""
    record_events(session, [envelope], now, link_secret)


def record_events(session: Session, envelopes: Sequence[Envelope], now: datetime, link_secret: str) -> None:
    """Append public events to the log and plan their deliveries, in the order of each subject's sequence.

    What is not the next event of its subject waits in ``arrivals``: its predecessor takes it along, or ``catch_up`` does.
    """
    # Before the inbox, as who closes a gap does: they may be about the same events at once.
    log = _Log(session, now, link_secret)
    new = outbox.first_times(session, "event_log", [envelope.id for envelope in envelopes])
    if not new:
        return
    by_id = {envelope.id: envelope for envelope in envelopes if envelope.id in new}
    subjects = list(dict.fromkeys(envelope.subject for envelope in by_id.values()))
    log.load(subjects)
    places = {subject: place for place, subject in enumerate(subjects)}
    for envelope in sorted(by_id.values(), key=lambda each: (places[each.subject], each.epoch or "", _number(each))):
        subject = log.subject(envelope.subject)
        if log.is_next(subject, envelope):
            log.append(subject, envelope)
            log.append_followers(subject)
        else:
            log.have_wait(envelope)
    log.write()


def catch_up(session: Session, gap: queries.Gap, history: SubjectEvents, now: datetime, link_secret: str) -> CaughtUp:
    """Log what the owner of a subject says there is of it: in order, and nothing that was logged or dropped before.

    The owner's events are the truth. What it does not have is not waited for any longer. What waited and is not among them is
    of a life that the owner's database no longer has, and is not told; but what is of the present life, or older than what the
    owner keeps, is.
    """
    caught_up = CaughtUp()
    log = _Log(session, now, link_secret)
    subject = session.get(SubjectHead, gap.subject)
    if subject is None or (subject.epoch, subject.last_sequence) != gap.head:
        return caught_up  # another one came in between
    arrivals = {
        arrival.event_id: arrival
        for arrival in session.scalars(sa.select(Arrival).where(Arrival.subject == gap.subject))
    }
    if history.events and gap.after == 0:
        subject.last_sequence = min(subject.last_sequence, _number(history.events[0]) - 1)
    for envelope in history.events:
        waited = arrivals.pop(envelope.id, None)
        if waited is None and not outbox.first_time(session, "event_log", envelope.id):
            _advance(subject, envelope)
            continue
        caught_up.passed_over += _number(envelope) > subject.last_sequence + 1
        log.append(subject, envelope)
        if waited is not None:
            session.delete(waited)
    for arrival in sorted(arrivals.values(), key=lambda arrival: (arrival.epoch, arrival.sequence)):
        if arrival.event_id not in gap.arrivals or arrival.epoch > history.epoch:
            continue  # it came after the owner was asked
        envelope = Envelope.model_validate(arrival.envelope)
        if "" != arrival.epoch < history.epoch and envelope.occurred_at >= history.kept_since:
            caught_up.of_another_life += 1
        else:
            caught_up.passed_over += arrival.sequence > subject.last_sequence + 1
            log.append(subject, envelope)
        session.delete(arrival)
    session.flush()
    log.load([gap.subject])
    log.append_followers(subject)
    log.write()
    return caught_up


def erase(session: Session, envelope: Envelope, erased: Erased, now: datetime, link_secret: str) -> None:
    """Forget a submission that was removed for good: its events keep their kind and time and nothing else, and what is still to
    be told of it is not. That it was removed is told, as the last of it."""
    if not outbox.first_time(session, "erase", envelope.id):
        return
    name = f"submission:{erased.submission_id}"
    _lock_log(session)
    subject = session.get(SubjectHead, name)
    if subject is None:
        subject = SubjectHead(subject=name, last_sequence=0, epoch="", erased=True)
        session.add(subject)
    subject.erased = True
    if erased.forget:
        _forget_whole(session, erased.submission_id, now)
        return
    data = {"id": erased.submission_id, "erased": True}
    told_before = sa.and_(LoggedEvent.subject == name, LoggedEvent.event_type != SUBMISSION_ERASED.type)
    for event in session.scalars(sa.select(LoggedEvent).where(told_before)):
        event.body = _body(event.event_type, event.recorded_at, data)
    for arrival in session.scalars(sa.select(Arrival).where(Arrival.subject == name)):
        if arrival.envelope["type"] != SUBMISSION_ERASED.type:
            arrival.envelope = {**arrival.envelope, "data": {"data": data}}
    logged = sa.select(LoggedEvent.position).where(told_before)
    scrubbing.ask(session)
    deliveries = list(session.scalars(sa.select(Delivery).where(Delivery.position.in_(logged))))
    dropped = [delivery for delivery in deliveries if delivery.outcome is None]
    for delivery in deliveries:
        delivery.body = None
        if delivery.outcome is None:
            _end(delivery, "cancelled", now)
    session.flush()
    _release_next(session, dropped, now)  # the erasure waits behind them where ``catch_up`` has logged it before this
    if deliveries:
        session.execute(
            sa.update(Attempt).where(Attempt.delivery_id.in_([row.id for row in deliveries])).values(response=None)
        )
    deleted = {
        "events": session.scalar(sa.select(sa.func.count()).where(told_before)) or 0,
        "deliveries": len(deliveries),
    }
    confirmed = ErasureConfirmed(submission_id=erased.submission_id, at=now, deleted=deleted)
    # Not the submission's own subject: what is told of that is no business of this service.
    outbox.emit(session, EVENT_LOG_ERASED, confirmed, subject=f"erasure:{erased.submission_id}")
    if erased.public is not None:
        record_event(session, envelope, now, link_secret)


def _forget_whole(session: Session, submission_id: int, now: datetime) -> None:
    """Nothing of a submission of test mode stays but that its events are not to be logged, should one still come."""
    name = f"submission:{submission_id}"
    which = LoggedEvent.subject == name
    count = session.scalar(sa.select(sa.func.count()).where(which)) or 0
    deliveries = _delete_events(session, which)
    session.execute(sa.delete(Arrival).where(Arrival.subject == name))
    scrubbing.ask(session)
    confirmed = ErasureConfirmed(
        submission_id=submission_id, at=now, deleted={"events": count, "deliveries": deliveries}
    )
    outbox.emit(session, EVENT_LOG_ERASED, confirmed, subject=f"erasure:{submission_id}")


def wipe_test_mode(session: Session, event_id: str, wiped: TestModeWiped) -> None:
    """Forget the events of test mode that were logged before, with their deliveries, and the tests of its webhooks."""
    if not outbox.first_time(session, "test_mode", event_id):
        return
    _lock_log(session)
    _delete_events(session, sa.and_(LoggedEvent.test, LoggedEvent.recorded_at <= wiped.at))
    of_tests = Delivery.webhook_id.in_(sa.select(Webhook.id).where(Webhook.test))
    _delete_deliveries(session, sa.and_(of_tests, Delivery.test, Delivery.created_at <= wiped.at))
    scrubbing.ask(session)


def _delete_events(session: Session, which: sa.ColumnElement[bool]) -> int:
    """Delete events with their deliveries. Returns how many deliveries there were."""
    positions = sa.select(LoggedEvent.position).where(which)
    count = _delete_deliveries(session, Delivery.position.in_(positions))
    session.execute(sa.delete(LoggedEvent).where(which))
    return count


def _delete_deliveries(session: Session, which: sa.ColumnElement[bool]) -> int:
    session.execute(sa.delete(Attempt).where(Attempt.delivery_id.in_(sa.select(Delivery.id).where(which))))
    return int(session.execute(sa.delete(Delivery).where(which)).rowcount)  # type: ignore[attr-defined]


def keep_admins(session: Session, event_id: str, admins: Admins) -> None:
    """Remember who the admins are; news that come twice or late change nothing."""
    if not outbox.first_time(session, "keep_admins", event_id):
        return
    insert = insert_into(session, KnownAdmins).values(id=1, emails=admins.emails, revision=admins.revision)
    changed = {"emails": insert.excluded.emails, "revision": insert.excluded.revision}
    newer = KnownAdmins.revision < insert.excluded.revision
    session.execute(insert.on_conflict_do_update(index_elements=["id"], set_=changed, where=newer))


def record_success(session: Session, delivery: Delivery, attempt: Attempt) -> None:
    """A receiver took it."""
    session.add(attempt)
    delivery.outcome = "delivered"


def record_followers(session: Session, attempts: Sequence[Attempt], now: datetime) -> None:
    """A receiver took these, too, which waited behind another delivery: those that have not been ended meanwhile are
    delivered."""
    if not attempts:
        return
    by_id = {attempt.delivery_id: attempt for attempt in attempts}
    taken = session.scalars(_TAKE_FOLLOWERS, {"ids": list(by_id), "now": now}).all()
    session.add_all(by_id[delivery_id] for delivery_id in taken)


def begun_follower(
    session: Session, attempt: Attempt, reason: str, pause: timedelta, now: datetime, *, gone: bool
) -> Delivery | None:
    """A try of a delivery that waited behind another one failed: it has begun now, and is tried again after ``pause``, or never
    when the receiver is ``gone``. None when it was ended meanwhile."""
    which = sa.select(Delivery).where(Delivery.id == attempt.delivery_id, Delivery.state == "waiting")
    delivery: Delivery | None = session.scalar(for_update(which))
    if delivery is not None:
        delivery.state, delivery.attempts, delivery.last_error = "due", 1, reason
        delivery.next_attempt_at = now + pause * random.uniform(1 - JITTER, 1 + JITTER)
        if gone:
            delivery.state, delivery.finished_at = "parked", now
    return delivery


def record_failure(
    session: Session,
    delivery: Delivery,
    attempt: Attempt,
    now: datetime,
    *,
    gone: bool,
    give_up_after: timedelta,
    attempts_kept: int,
    without_leaps: datetime | None = None,
) -> None:
    """A try failed. A receiver that is gone (410), or failed for five days without a success, is disabled. The days end
    ``without_leaps`` of the clock, if that is given."""
    session.add(attempt)
    session.flush()
    _drop_old_attempts(session, delivery.id, attempts_kept)
    if delivery.test or gone:
        delivery.outcome = "exhausted"
    if delivery.test:
        return
    webhook = _locked_webhook(session, delivery.webhook_id)
    if webhook is None or webhook.disabled_at is not None:
        return
    webhook.failing_since = webhook.failing_since or attempt.attempted_at
    if gone:
        _disable(session, webhook, "the receiver answered 410 Gone", now)
    elif domain.hopeless(webhook.failing_since, without_leaps or now, give_up_after):
        hours = give_up_after.total_seconds() / 3600
        _disable(session, webhook, f"nothing but failures for {hours:.0f} hours; the last: {_describe(attempt)}", now)


def record_exhaustion(_session: Session, delivery: Delivery) -> None:
    """The schedule is at its end."""
    if delivery.outcome is None:
        delivery.outcome = "exhausted"


def follow_up(session: Session, deliveries: Sequence[Delivery], now: datetime) -> None:
    """After attempts of these deliveries: a webhook that took one is well again, unless it did not take the one after it, and
    where one came to its end, the next one of its stream is due."""
    session.flush()
    taken = [delivery for delivery in deliveries if delivery.outcome == "delivered" and not delivery.broke_off]
    if well := {delivery.webhook_id for delivery in taken}:
        # Only if it failed: deliveries of one receiver, made side by side, would else wait for each other here.
        session.execute(_WELL, {"well": list(well)})
    _release_next(session, [delivery for delivery in deliveries if delivery.outcome is not None], now)


def forgotten_deliveries(session: Session) -> list[int]:
    """Ids of deliveries that wait for nothing: without an open one before them in their stream; at most 500."""
    earlier = aliased(Delivery)
    first = ~sa.exists().where(
        earlier.stream == Delivery.stream, earlier.outcome.is_(None), earlier.position < Delivery.position
    )
    return list(session.scalars(sa.select(Delivery.id).where(Delivery.state == "waiting", first).limit(500)))


def release_forgotten(session: Session, now: datetime) -> int:
    """Make deliveries due that wait for nothing. Returns how many.

    Safety net: normally finds nothing; otherwise such deliveries would never be sent.
    """
    deliveries = list(
        session.scalars(for_update(sa.select(Delivery).where(Delivery.id.in_(forgotten_deliveries(session)))))
    )
    for delivery in deliveries:
        delivery.make_due(now)
    return len(deliveries)


class _Log:
    """What a transaction appends to the log. Everyone who appends waits for its head, so that what is read afterwards is what
    there is. Rows are written together in the end (``write``): their number costs little, each statement a lot."""

    def __init__(self, session: Session, now: datetime, link_secret: str) -> None:
        """``link_secret`` signs the links in what webhooks are sent."""
        self._session, self._now, self._link_secret = session, now, link_secret
        self._head = _lock_log(session)
        self._webhooks = session.execute(_ENABLED).all()
        self._subjects: dict[str, SubjectHead] = {}
        self._waiting: dict[str, dict[str, _Waiting]] = {}
        self._epochs: dict[str, str | None] = {}
        self._events: list[LoggedEvent] = []
        self._traces: dict[str, str | None] = {}
        self._planned: list[tuple[Receiver, LoggedEvent]] = []

    def load(self, subjects: Sequence[str]) -> None:
        """Read how far the log of these has come, and what waits for an earlier event of theirs."""
        self._subjects |= {
            subject.subject: subject for subject in self._session.scalars(_HEADS, {"subjects": subjects})
        }
        self._waiting |= {subject: {} for subject in subjects}
        for event_id, subject, sequence, epoch in self._session.execute(_WAITING, {"subjects": subjects}):
            self._waiting[subject][event_id] = _Waiting(sequence, epoch)

    def subject(self, name: str) -> SubjectHead:
        """Return the head of a subject; a new one has logged nothing yet."""
        if (subject := self._subjects.get(name)) is None:
            subject = self._subjects[name] = SubjectHead(subject=name, last_sequence=0, epoch="", erased=False)
            self._session.add(subject)
        return subject

    def is_next(self, subject: SubjectHead, envelope: Envelope) -> bool:
        """Does the event follow on the subject's last one, in the same life of its owner's database, which is the present one?

        Not while another one waits under a number that was logged: then the numbers may be those of another life.
        """
        if envelope.sequence != subject.last_sequence + 1:
            return False
        if any(waiting.sequence <= subject.last_sequence for waiting in self._waiting[subject.subject].values()):
            return False
        if envelope.epoch is None:  # said by a version that knows of one life only
            return True
        return subject.epoch in ("", envelope.epoch) and self._epoch_of(envelope.source) in (None, envelope.epoch)

    def append(self, subject: SubjectHead, envelope: Envelope) -> None:
        """The next event of its subject: into the log, and a delivery for each webhook that wants it. That a submission was
        erased is told once, though it be erased again after a restore."""
        public = public_data(envelope)
        erasure = envelope.type == SUBMISSION_ERASED.type
        if public is None or (public.test and subject.erased and not erasure) or (erasure and self._is_told(envelope)):
            _advance(subject, envelope)
            return
        event = self._logged(subject, envelope, public)
        _advance(subject, envelope)
        self._events.append(event)
        self._traces[event.event_id] = tracing.of(envelope.traceparent)
        for webhook in self._webhooks:
            wants = webhook.test == event.test and event.event_type in webhook.events
            if wants and (not subject.erased or erasure):
                self._planned.append((webhook, event))

    def append_followers(self, subject: SubjectHead) -> None:
        """Append the events that have waited for the one that was just appended."""
        waiting = self._waiting[subject.subject]
        while (event_id := self._next_of(subject)) is not None:
            envelope = waiting.pop(event_id).envelope
            if envelope is None:
                arrival = self._session.get_one(Arrival, event_id)
                envelope = Envelope.model_validate(arrival.envelope)
                self._session.delete(arrival)
            self.append(subject, envelope)

    def have_wait(self, envelope: Envelope) -> None:
        """Keep what is not the next event of its subject."""
        waiting = _Waiting(_number(envelope), envelope.epoch or "", envelope)
        self._waiting[envelope.subject][envelope.id] = waiting

    def write(self) -> None:
        """Write the rows: events, deliveries, and what goes on waiting."""
        kept = [each.envelope for of_subject in self._waiting.values() for each in of_subject.values() if each.envelope]
        self._session.add_all(_arrival(envelope, self._now) for envelope in kept)
        if not self._events:
            return
        rows = [{name: getattr(event, name) for name in _LOGGED} for event in self._events]
        positions = {row.event_id: row.position for row in self._session.execute(_APPEND, rows)}
        for event in self._events:
            event.position = positions[event.event_id]
        if self._planned:
            self._plan()

    def _plan(self) -> None:
        """A delivery waits for an earlier one of its stream that is open, or that is planned before it here."""
        deliveries = []
        for webhook, event in self._planned:
            delivery = _delivery(webhook, event, event.event_id, self._now, self._link_secret)
            deliveries.append({**delivery, "outcome": None, "traceparent": self._traces[event.event_id]})
        streams = list(dict.fromkeys(row["stream"] for row in sorted(deliveries, key=_by_stream)))
        for row in deliveries:
            if row["event_type"] == SUBMISSION_ERASED.type and (
                until := self._session.scalar(_UNDER_WAY, {"stream": row["stream"]})
            ):
                # the receiver may be getting now what was cancelled while it was tried
                row["next_attempt_at"] = max(self._now, until)
        _lock_streams(self._session, streams)
        begun = self._begun(streams)
        for row in deliveries:
            row["state"] = "waiting" if row["stream"] in begun else "due"
            begun.add(row["stream"])
        self._session.execute(_PLAN, deliveries)
        if any(row["state"] == "due" and row["next_attempt_at"] <= self._now for row in deliveries):
            leave_work(self._session, Delivery.__tablename__)

    def _begun(self, streams: Sequence[str]) -> set[str]:
        """Return those of the streams that have an open delivery. Several events have a stream for each webhook each, which can
        be more than a statement takes parameters: 32,766 on SQLite, 65,535 on PostgreSQL."""
        begun: set[str] = set()
        for start in range(0, len(streams), _AT_ONCE):
            begun |= set(self._session.scalars(_BEGUN, {"streams": streams[start : start + _AT_ONCE]}))
        return begun

    def _epoch_of(self, owner: str) -> str | None:
        if owner not in self._epochs:
            self._epochs[owner] = self._session.scalar(_EPOCH, {"owner": owner})
        return self._epochs[owner]

    def _next_of(self, subject: SubjectHead) -> str | None:
        for event_id, waiting in self._waiting[subject.subject].items():
            if waiting.sequence == subject.last_sequence + 1 and waiting.epoch in (subject.epoch, ""):
                return event_id
        return None

    def _is_told(self, envelope: Envelope) -> bool:
        """Return whether an event of its kind is in the log of its subject."""
        here = any((each.subject, each.event_type) == (envelope.subject, envelope.type) for each in self._events)
        such = sa.exists().where(LoggedEvent.subject == envelope.subject, LoggedEvent.event_type == envelope.type)
        return here or self._session.scalar(sa.select(such)) or False

    def _logged(self, subject: SubjectHead, envelope: Envelope, public: PublicData) -> LoggedEvent:
        recorded_at = self._head.last_recorded_at = max(self._now, self._head.last_recorded_at)
        if envelope.subject.startswith("template:") and public.template_id is not None:
            known = KnownTemplate(id=public.template_id, author_id=public.author_id, shared=public.shared)
            self._session.merge(known)
        data = public.data
        if subject.erased and envelope.type != SUBMISSION_ERASED.type:
            data = {"id": int(subject.subject.split(":")[1]), "erased": True}
        return LoggedEvent(
            event_id=envelope.id,
            event_type=envelope.type,
            subject=envelope.subject,
            sequence=envelope.sequence,
            recorded_at=recorded_at,
            body=_body(envelope.type, recorded_at, data),
            author_id=public.author_id,
            template_id=public.template_id,
            shared=public.shared,
            created_by_id=public.created_by_id,
            test=public.test,
        )


Receiver = Webhook | Row[int, list[str], str, int | None, bool]
"""A webhook, or of it what decides whether a delivery is made, and of what."""


@dataclass(frozen=True)
class _Waiting:
    """An event that waits for an earlier one of its subject. ``envelope`` is None where it is in ``arrivals`` already."""

    sequence: int
    epoch: str
    envelope: Envelope | None = None


def _by_stream(delivery: Mapping[str, Any]) -> tuple[int, str]:
    return delivery["webhook_id"], delivery["stream"]


def _advance(subject: SubjectHead, envelope: Envelope) -> None:
    """The event has been logged, or dealt with otherwise. One that comes late, or of an older life, takes nothing back."""
    epoch = envelope.epoch or subject.epoch
    if epoch == subject.epoch:
        subject.last_sequence = max(subject.last_sequence, _number(envelope))
    elif epoch > subject.epoch:
        subject.epoch, subject.last_sequence = epoch, _number(envelope)


def _arrival(envelope: Envelope, now: datetime) -> Arrival:
    return Arrival(
        event_id=envelope.id,
        subject=envelope.subject,
        epoch=envelope.epoch or "",
        sequence=_number(envelope),
        envelope=envelope.model_dump(mode="json"),
        arrived_at=now,
    )


def _number(envelope: Envelope) -> int:
    assert envelope.sequence is not None  # public events have one
    return envelope.sequence


def _delivery(
    webhook: Receiver, event: LoggedEvent, message_id: str, now: datetime, link_secret: str
) -> dict[str, Any]:
    """The columns of a delivery that is due."""
    return {
        "webhook_id": webhook.id,
        "position": event.position,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "message_id": message_id,
        "stream": f"{webhook.id}/{event.subject}",
        "body": _own_body(webhook, event, now, link_secret),
        "test": False,
        "state": "due",
        "next_attempt_at": now,
        "created_at": now,
    }


def _deliver_again(
    session: Session, webhook: Webhook, events: Sequence[LoggedEvent], now: datetime, link_secret: str
) -> None:
    """Make deliveries of these events open, each stream in the order of its positions, whatever was open in it before."""
    if not events:
        return
    streams = sorted({f"{webhook.id}/{event.subject}" for event in events})
    _lock_streams(session, streams)
    found = session.scalars(
        for_update(
            sa.select(Delivery)
            .where(
                Delivery.webhook_id == webhook.id,
                Delivery.test.is_(False),
                Delivery.position.in_([event.position for event in events]),
            )
            .order_by(Delivery.id)
        )
    )
    known = {delivery.position: delivery for delivery in found}
    for event in events:
        delivery = known.get(event.position)
        if delivery is None:
            session.add(Delivery(**_delivery(webhook, event, event.event_id, now, link_secret)))
        elif delivery.outcome is not None:
            delivery.outcome = None
            delivery.make_due(now)
    session.flush()
    opened = session.scalars(
        for_update(
            sa.select(Delivery)
            .where(Delivery.stream.in_(streams), Delivery.outcome.is_(None))
            .order_by(Delivery.position, Delivery.id)
        )
    )
    begun: set[str] = set()
    for delivery in opened:
        if delivery.stream in begun and delivery.state == "due" and delivery.leased_by is None:
            delivery.state = "waiting"
        begun.add(delivery.stream)
    session.flush()
    _hurry(session, Delivery.stream.in_(streams), now)


def _hurry(session: Session, which: sa.ColumnElement[bool], now: datetime) -> None:
    """Have those of these deliveries tried now whose next attempt is planned for later. What they have tried counts."""
    later = (which, Delivery.state == "due", Delivery.outcome.is_(None), Delivery.next_attempt_at > now)
    session.execute(
        sa.update(Delivery).where(*later).values(next_attempt_at=now).execution_options(synchronize_session=False)
    )
    leave_work(session, Delivery.__tablename__)


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _release_next(session: Session, ended: Sequence[Delivery], now: datetime) -> None:
    """Make due what waits behind these deliveries, in its own turn: behind what was planned before it, not behind all that has
    been planned meanwhile."""
    if not ended:
        return
    _lock_streams(
        session,
        [delivery.stream for delivery in sorted(ended, key=lambda delivery: (delivery.webhook_id, delivery.stream))],
    )
    released = session.execute(_RELEASE_NEXT, {"ended": [delivery.id for delivery in ended], "now": now})
    if released.rowcount:  # type: ignore[attr-defined]
        leave_work(session, Delivery.__tablename__)


# Compiled once: building a statement costs more than running it.
_LOG_HEAD = for_update(sa.select(LogHead).where(LogHead.id == 1))
_ENABLED = (
    sa.select(Webhook.id, Webhook.events, Webhook.payload, Webhook.file_link_minutes, Webhook.test)
    .where(Webhook.disabled_at.is_(None))
    .order_by(Webhook.id)
)
_HEADS = sa.select(SubjectHead).where(SubjectHead.subject.in_(sa.bindparam("subjects", expanding=True)))
_WAITING = sa.select(Arrival.event_id, Arrival.subject, Arrival.sequence, Arrival.epoch).where(
    Arrival.subject.in_(sa.bindparam("subjects", expanding=True))
)
_EPOCH: sa.Select[Any] = catching_up.owner_epoch(sa.bindparam("owner"))
_UNDER_WAY = sa.select(sa.func.max(Delivery.leased_until)).where(
    Delivery.stream == sa.bindparam("stream"), Delivery.outcome == "cancelled", Delivery.leased_by.is_not(None)
)
# And of the tables: what is done for rows that are objects takes long as well.
_WEBHOOKS: Any = Webhook.__table__
_DELIVERIES: Any = Delivery.__table__
_EVENTS: Any = LoggedEvent.__table__
_LOGGED = [column.name for column in _EVENTS.c if column is not _EVENTS.c.position]
_APPEND = sa.insert(_EVENTS).returning(_EVENTS.c.event_id, _EVENTS.c.position)
_PLAN = sa.insert(_DELIVERIES)
_BEGUN = (
    sa.select(_DELIVERIES.c.stream)
    .where(_DELIVERIES.c.stream.in_(sa.bindparam("streams", expanding=True)), _DELIVERIES.c.outcome.is_(None))
    .distinct()
)
_FAILS = _WEBHOOKS.c.failing_since.is_not(None)
_WELL = (
    sa.update(_WEBHOOKS)
    .where(_WEBHOOKS.c.id.in_(sa.bindparam("well", expanding=True)), _FAILS)
    .values(failing_since=None)
)
_ENDED, _FOLLOWING = _DELIVERIES.alias().c, _DELIVERIES.alias().c
_NEXT = (
    sa.select(_FOLLOWING.id)
    .where(_FOLLOWING.stream == _ENDED.stream, _FOLLOWING.outcome.is_(None), _FOLLOWING.position > _ENDED.position)
    .order_by(_FOLLOWING.position)
    .limit(1)
    .correlate(_ENDED.id.table)
    .scalar_subquery()
)
_NOW = sa.bindparam("now", type_=UtcDateTime)
_TAKE_FOLLOWERS = (
    sa.update(_DELIVERIES)
    .where(_DELIVERIES.c.id.in_(sa.bindparam("ids", expanding=True)), _DELIVERIES.c.state == "waiting")
    .values(state="done", outcome="delivered", attempts=1, finished_at=_NOW)
    .returning(_DELIVERIES.c.id)
)
_RELEASE_NEXT = (
    sa.update(_DELIVERIES)
    .where(
        _DELIVERIES.c.state == "waiting",
        _DELIVERIES.c.id.in_(sa.select(_NEXT).where(_ENDED.id.in_(sa.bindparam("ended", expanding=True)))),
    )
    .values(
        state="due",
        next_attempt_at=sa.case((_DELIVERIES.c.next_attempt_at > _NOW, _NOW), else_=_DELIVERIES.c.next_attempt_at),
    )
)
"""One that waits has not been tried yet."""


def _disable(session: Session, webhook: Webhook, reason: str, now: datetime) -> None:
    webhook.disabled_at = now
    webhook.disabled_reason = reason
    for delivery in session.scalars(
        sa.select(Delivery).where(Delivery.webhook_id == webhook.id, Delivery.outcome.is_(None))
    ):
        _end(delivery, "cancelled", now)
    record = session.get(KnownAdmins, 1)
    admins = (record.emails if record is not None else []) or [webhook.owner_email]
    event = WebhookDisabled(webhook_id=webhook.id, url=webhook.url, reason=reason, admins=admins, test=webhook.test)
    outbox.emit(session, WEBHOOK_DISABLED, event, subject=f"webhook:{webhook.id}")


def _end(delivery: Delivery, outcome: str, now: datetime) -> None:
    delivery.outcome = outcome
    delivery.state = "parked"
    delivery.finished_at = now


def _drop_old_attempts(session: Session, delivery_id: int, count: int) -> None:
    newest = sa.select(Attempt.id).where(Attempt.delivery_id == delivery_id).order_by(Attempt.id.desc()).limit(count)
    oldest_kept = min(session.scalars(newest), default=0)
    session.execute(sa.delete(Attempt).where(Attempt.delivery_id == delivery_id, Attempt.id < oldest_kept))


def _lock_log(session: Session) -> LogHead:
    """Everyone who appends waits here, so that a reader who holds it has seen all that went before."""
    head: LogHead | None = session.scalar(_LOG_HEAD)
    assert head is not None  # the migration inserts it
    return head


def _lock_streams(session: Session, streams: Sequence[str]) -> None:
    """One at a time: who plans a delivery behind one that is just being finished, and who finishes it. Each would else not see
    the other's uncommitted row, and nobody would make the new one due.

    Whoever locks several does it by the ids of their webhooks, so that no two wait for each other.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_LOCK_STREAMS, {"streams": list(streams)})


_LOCK_STREAMS = sa.text(
    "SELECT pg_advisory_xact_lock(hashtext(stream)) FROM unnest(CAST(:streams AS text[])) AS stream"
)


def _load(session: Session, webhook_id: int, actor: Actor) -> Webhook:
    webhook = _locked_webhook(session, webhook_id)
    if webhook is None or webhook.test != actor.test:
        raise not_found("Webhook")
    return webhook


def _locked_webhook(session: Session, webhook_id: int) -> Webhook | None:
    """Keeps others from changing it, but nobody from planning a delivery for it: who does has the log, and streams, which
    whoever has the webhook may be about to wait for."""
    chosen = sa.select(Webhook).where(Webhook.id == webhook_id)
    webhook: Webhook | None = session.scalar(chosen.with_for_update(key_share=True))
    return webhook


def _require_unchanged(command: rpc.UpdateWebhook | rpc.RemoveWebhook, webhook: Webhook, now: datetime) -> None:
    require_unchanged(command.expected_state, rpc.GET, lambda: queries.public_webhook(webhook, now))


def _checked(rule: Callable[[], T]) -> T:
    try:
        return rule()
    except domain.Refused as refused:
        raise invalid(f"{refused.field} {refused.reason}", refused.field, refused.reason) from refused


def _body(event_type: str, timestamp: datetime, data: dict[str, Any]) -> str:
    return json.dumps(
        {"event_type": event_type, "timestamp": iso(timestamp), "data": data}, ensure_ascii=False, separators=(",", ":")
    )


def _own_body(webhook: Receiver, event: LoggedEvent, now: datetime, link_secret: str) -> str | None:
    """What is sent to this webhook where that is not the event's own body: one that is thin, or has links that are good without
    a key for a time, which begins now."""
    if webhook.payload == "thin":
        data = domain.thin(json.loads(event.body)["data"])
    elif webhook.file_link_minutes is not None:
        until = int(now.timestamp()) + webhook.file_link_minutes * 60
        data = links.opened(json.loads(event.body)["data"], link_secret, event.subject, until)
    else:
        return None
    return _body(event.event_type, event.recorded_at, data)


def _describe(attempt: Attempt) -> str:
    return f"status {attempt.status}" if attempt.status is not None else (attempt.error or "no answer")
