"""One attempt to deliver one event to one webhook: signed, guarded, bounded. What came of it is written by ``commands``."""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.background import Done, Outcome, Park, Retry
from contracts.runtime.monitoring import observe
from contracts.runtime.outbound import Outbound, OutboundFailed, OutboundNotCalled, OutboundRefused
from contracts.runtime.signed_requests import signed_headers
from contracts.types import FormerSecret
from services.webhooks import commands, domain
from services.webhooks.models import Attempt, Delivery, LoggedEvent, Request, Webhook
from services.webhooks.settings import Settings

log = observe.logger(__name__)

USER_AGENT = "Countersign-Webhooks/1"

NOT_CALLED_PAUSE = timedelta(seconds=3)
"""Until a receiver that we could not call, for a reason of ours, is called after all."""


class Deliverer:
    """Makes attempts; each is repeatable, the receiver tells repeats by the ``webhook-id`` header."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._outbound = Outbound.configured(settings)

    def attempt(self, delivery: Delivery) -> Outcome:
        """Send once what ``prepare`` found; the outcome says whether it is done, to be tried again (and when), or given up."""
        request = delivery.request
        if request is None:
            return Done()
        began, started = now(), time.monotonic()
        attempt = Attempt(delivery_id=delivery.id, attempted_at=began)
        try:
            verdict = self._send(request, delivery.message_id, attempt, began)
        except OutboundNotCalled as error:
            return Retry(error.reason, NOT_CALLED_PAUSE, counts=False)
        attempt.duration_ms = int((time.monotonic() - started) * 1000)
        log.info(
            "webhook.attempted",
            webhook_id=request.webhook_id,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            attempt=delivery.attempts,
            status=attempt.status,
            error=attempt.error,
            duration_ms=attempt.duration_ms,
            delivered=verdict.delivered,
        )
        return self._outcome(delivery, attempt, verdict)

    def close_idle(self) -> None:
        """Close connections to receivers that are not called any more."""
        self._outbound.close_idle()

    def _send(self, request: Request, message_id: str, attempt: Attempt, moment: datetime) -> domain.Verdict:
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

    def _outcome(self, delivery: Delivery, attempt: Attempt, verdict: domain.Verdict) -> Outcome:
        if verdict.delivered:
            return Done(lambda session, row: commands.record_success(session, row, attempt))

        give_up_after = timedelta(hours=self._settings.webhook_give_up_after_hours)

        def record(session: Session, row: Delivery) -> None:
            commands.record_failure(
                session,
                row,
                attempt,
                now(),
                gone=verdict.gone,
                give_up_after=give_up_after,
                attempts_kept=self._settings.webhook_attempts_kept,
                without_leaps=without_leaps(give_up_after),
            )

        reason = f"status {attempt.status}" if attempt.status is not None else str(attempt.error)
        if verdict.gone or delivery.test:
            return Park(reason, record)
        return Retry(reason, verdict.wait, record)


def headers(request: Request, message_id: str, moment: datetime) -> dict[str, str]:
    """The Standard Webhooks headers and the caller's own one."""
    former = domain.still_valid(map(FormerSecret.model_validate, request.former_secrets), moment)
    signed = signed_headers(request.signing_secret, message_id, request.body, moment, [each.secret for each in former])
    return {**request.secret, "User-Agent": USER_AGENT, **signed}


_DELIVERIES, _WEBHOOKS, _EVENTS = (
    model.metadata.tables[model.__tablename__] for model in (Delivery, Webhook, LoggedEvent)
)
_REQUESTS = (  # compiled once: building the statement costs more than running it
    sa.select(
        _DELIVERIES.c.id,
        _WEBHOOKS.c.id.label("webhook_id"),
        _WEBHOOKS.c.url,
        _WEBHOOKS.c.secret,
        _WEBHOOKS.c.signing_secret,
        _WEBHOOKS.c.former_secrets,
        sa.func.coalesce(_DELIVERIES.c.body, _EVENTS.c.body).label("body"),
    )
    .join(_WEBHOOKS, _WEBHOOKS.c.id == _DELIVERIES.c.webhook_id)
    .join(_EVENTS, _EVENTS.c.position == _DELIVERIES.c.position, isouter=True)
    .where(_DELIVERIES.c.id.in_(sa.bindparam("ids", expanding=True)), _DELIVERIES.c.outcome.is_(None))
)


def prepare(session: Session, deliveries: Sequence[Delivery]) -> None:
    """Read what these deliveries send, and to whom: nothing for one that has ended meanwhile."""
    rows = session.execute(_REQUESTS, {"ids": [delivery.id for delivery in deliveries]})
    requests = {
        row.id: Request(row.webhook_id, row.url, row.secret, row.signing_secret, row.body.encode(), row.former_secrets)
        for row in rows
        if row.body is not None
    }
    for delivery in deliveries:
        delivery.request = requests.get(delivery.id)
