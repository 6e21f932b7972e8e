"""One attempt to deliver one event to one webhook: signed, guarded, bounded. What came of it is written by ``commands``."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.http.outbound import Outbound, OutboundFailed, OutboundNotCalled, OutboundRefused
from contracts.runtime.http.signed_requests import signed_headers
from contracts.runtime.monitoring import observe
from contracts.types import FormerSecret
from services.webhooks import commands, domain
from services.webhooks.models import Attempt, Delivery, Follower, LoggedEvent, Request, Webhook
from services.webhooks.settings import Settings

log = observe.logger(__name__)

USER_AGENT = "Countersign-Webhooks/1"

NOT_CALLED_PAUSE = timedelta(seconds=3)
"""Until a receiver that we could not call, for a reason of ours, is called after all."""


LONGEST_RUN_SECONDS = 0.5
"""Until then an attempt goes on with what follows in the stream: a receiver that takes its time holds no place for long."""

LONGEST_RUN = 8
"""Deliveries that follow another one in its stream and are sent by the same attempt. When its process is killed meanwhile, all
of them are repeated."""


@dataclass(frozen=True)
class Sent:
    """A request that was made, with what its answer means."""

    attempt: Attempt
    verdict: domain.Verdict

    @property
    def reason(self) -> str:
        """Say why it was not taken."""
        return f"status {self.attempt.status}" if self.attempt.status is not None else str(self.attempt.error)


class Deliverer:
    """Makes attempts; each is repeatable, the receiver tells repeats by the ``webhook-id`` header."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._outbound = Outbound.configured(settings)

    def attempt(self, delivery: Delivery) -> Outcome:
        """Send once what ``prepare`` found; the outcome says whether it is done, to be tried again (and when), or given up.

        What follows it in its stream is sent as well, as long as all is taken, and quickly."""
        if delivery.request is None:
            return Done()
        began = time.monotonic()
        try:
            sent = self._send(delivery.request, delivery, delivery.attempts)
        except OutboundNotCalled as error:
            return Retry(error.reason, NOT_CALLED_PAUSE, counts=False)
        run: list[Sent] = []
        last = sent
        for follower in delivery.followers:
            if not last.verdict.delivered or time.monotonic() - began > LONGEST_RUN_SECONDS:
                break
            try:
                last = self._send(follower.request, follower, 1)
            except OutboundNotCalled:
                break
            run.append(last)
        return self._outcome(delivery, sent, run)

    def close_idle(self) -> None:
        """Close connections to receivers that are not called any more."""
        self._outbound.close_idle()

    def _send(self, request: Request, delivery: Delivery | Follower, number: int) -> Sent:
        began, started = now(), time.monotonic()
        attempt = Attempt(delivery_id=delivery.id, attempted_at=began)
        verdict = self._answered(request, delivery.message_id, attempt, began)
        attempt.duration_ms = int((time.monotonic() - started) * 1000)
        log.info(
            "webhook.attempted",
            webhook_id=request.webhook_id,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            attempt=number,
            status=attempt.status,
            error=attempt.error,
            duration_ms=attempt.duration_ms,
            delivered=verdict.delivered,
        )
        return Sent(attempt, verdict)

    def _answered(self, request: Request, message_id: str, attempt: Attempt, moment: datetime) -> domain.Verdict:
        try:
            answer = self._outbound.post(
                request.url,
                request.body,
                headers(request, message_id, moment),
                connect_timeout=self._settings.webhook_connect_timeout,
                total_timeout=self._settings.webhook_total_timeout,
                keep_alive=True,
            )
        except OutboundNotCalled:
            raise
        except (OutboundRefused, OutboundFailed) as error:
            attempt.error = str(error)[: commands.RESPONSE_KEPT]
            return domain.Verdict(delivered=False)
        attempt.status = answer.status
        attempt.response = answer.text[: commands.RESPONSE_KEPT].replace("\x00", "")
        return domain.judge(answer.status, answer.headers.get("Retry-After"), now())

    def _outcome(self, delivery: Delivery, sent: Sent, run: Sequence[Sent]) -> Outcome:
        if sent.verdict.delivered:
            return Done(lambda session, row: self._record_taken(session, row, sent, run))

        def record(session: Session, row: Delivery) -> None:
            self._record_failure(session, row, sent)

        if sent.verdict.gone or delivery.test:
            return Park(sent.reason, record)
        return Retry(sent.reason, sent.verdict.wait, record)

    def _record_taken(self, session: Session, row: Delivery, sent: Sent, run: Sequence[Sent]) -> None:
        """The first was taken, and of those that follow it all but perhaps the last one."""
        commands.record_success(session, row, sent.attempt)
        taken = [each.attempt for each in run if each.verdict.delivered]
        commands.record_followers(session, taken, now())
        for each in run:
            if each.verdict.delivered:
                continue
            pause = each.verdict.wait or domain.SCHEDULE[0]
            follower = commands.begun_follower(session, each.attempt, each.reason, pause, now(), gone=each.verdict.gone)
            if follower is not None:
                self._record_failure(session, follower, each)
                row.broke_off = True

    def _record_failure(self, session: Session, row: Delivery, sent: Sent) -> None:
        give_up_after = timedelta(hours=self._settings.webhook_give_up_after_hours)
        commands.record_failure(
            session,
            row,
            sent.attempt,
            now(),
            gone=sent.verdict.gone,
            give_up_after=give_up_after,
            attempts_kept=self._settings.webhook_attempts_kept,
            without_leaps=without_leaps(give_up_after),
        )


def headers(request: Request, message_id: str, moment: datetime) -> dict[str, str]:
    """The Standard Webhooks headers and the caller's own one."""
    former = domain.still_valid(map(FormerSecret.model_validate, request.former_secrets), moment)
    signed = signed_headers(request.signing_secret, message_id, request.body, moment, [each.secret for each in former])
    return {**request.secret, "User-Agent": USER_AGENT, **signed}


_DELIVERIES, _WEBHOOKS, _EVENTS = (
    model.metadata.tables[model.__tablename__] for model in (Delivery, Webhook, LoggedEvent)
)
_OPEN_REQUESTS = (  # compiled once: building the statement costs more than running it
    sa.select(
        _DELIVERIES.c.id,
        _DELIVERIES.c.position,
        _DELIVERIES.c.stream,
        _DELIVERIES.c.state,
        _DELIVERIES.c.message_id,
        _DELIVERIES.c.event_id,
        _DELIVERIES.c.event_type,
        _WEBHOOKS.c.id.label("webhook_id"),
        _WEBHOOKS.c.url,
        _WEBHOOKS.c.secret,
        _WEBHOOKS.c.signing_secret,
        _WEBHOOKS.c.former_secrets,
        sa.func.coalesce(_DELIVERIES.c.body, _EVENTS.c.body).label("body"),
    )
    .join(_WEBHOOKS, _WEBHOOKS.c.id == _DELIVERIES.c.webhook_id)
    .join(_EVENTS, _EVENTS.c.position == _DELIVERIES.c.position, isouter=True)
    .where(_DELIVERIES.c.outcome.is_(None))
)
_REQUESTS = _OPEN_REQUESTS.where(_DELIVERIES.c.id.in_(sa.bindparam("ids", expanding=True)))
_FOLLOWING = (
    _OPEN_REQUESTS.where(_DELIVERIES.c.stream.in_(sa.bindparam("streams", expanding=True)))
    .order_by(_DELIVERIES.c.stream, _DELIVERIES.c.position)
    .limit(sa.bindparam("most", type_=sa.Integer))
)


def prepare(session: Session, deliveries: Sequence[Delivery]) -> None:
    """Read what these deliveries send, and to whom: nothing for one that has ended meanwhile. And what waits behind them, as
    far as nothing lies between that is under way by itself, as when one is sent again while a later one is being tried: nobody
    else begins with that as long as they are leased."""
    rows = session.execute(_REQUESTS, {"ids": [delivery.id for delivery in deliveries]})
    requests = {row.id: _request(row) for row in rows if row.body is not None}
    for delivery in deliveries:
        delivery.request = requests.get(delivery.id)
    begun = {delivery.stream: delivery for delivery in deliveries if delivery.request is not None}
    behind: dict[str, list[Follower]] = {stream: [] for stream in begun}
    ends: set[str] = set()
    following = {"streams": list(begun), "most": (LONGEST_RUN + 1) * len(begun)}
    for row in session.execute(_FOLLOWING, following) if begun else ():
        if row.position <= begun[row.stream].position or row.stream in ends:
            continue
        if row.state != "waiting" or row.body is None:
            ends.add(row.stream)
            continue
        follower = Follower(row.id, row.message_id, row.event_id, row.event_type, _request(row))
        behind[row.stream].append(follower)
    for stream, delivery in begun.items():
        delivery.followers = behind[stream][:LONGEST_RUN]


def _request(row: Any) -> Request:
    return Request(row.webhook_id, row.url, row.secret, row.signing_secret, row.body.encode(), row.former_secrets)
