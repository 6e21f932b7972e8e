"""One attempt to deliver one event to one webhook: signed, guarded, bounded. What came of it is written by ``commands``."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session
from standardwebhooks.webhooks import Webhook as Signer

from contracts.errors import ServiceError
from contracts.runtime import observe
from contracts.runtime.background import Done, Outcome, Park, Retry
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.database import Database
from contracts.runtime.outbound import Outbound, OutboundFailed, OutboundNotCalled, OutboundRefused
from services.webhooks import commands, domain
from services.webhooks.models import Attempt, Delivery, LoggedEvent, Webhook
from services.webhooks.settings import Settings

log = observe.logger(__name__)

USER_AGENT = "Countersign-Webhooks/1"

NOT_CALLED_PAUSE = timedelta(seconds=3)
"""Until a receiver that we could not call, for a reason of ours, is called after all."""


@dataclass(frozen=True)
class Receiver:
    """Where a delivery goes. ``secret`` is the caller's own header."""

    id: int
    url: str
    secret: dict[str, str]
    signing_secret: str


_RECEIVER = (Webhook.id.label("webhook_id"), Webhook.url, Webhook.secret, Webhook.signing_secret)


class Deliverer:
    """Makes attempts; each is repeatable, the receiver tells repeats by the ``webhook-id`` header."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._outbound = Outbound.configured(settings)

    def attempt(self, delivery: Delivery) -> Outcome:
        """Send once; the outcome says whether it is done, to be tried again (and when), or given up."""
        try:
            prepared = self._database.read(_prepare, delivery.id)
        except ServiceError as error:
            return Retry(error.message, NOT_CALLED_PAUSE, counts=False)
        if prepared is None:
            return Done()
        webhook, body = prepared
        began, started = now(), time.monotonic()
        attempt = Attempt(delivery_id=delivery.id, attempted_at=began)
        try:
            verdict = self._send(webhook, delivery, body, attempt, began)
        except OutboundNotCalled as error:
            return Retry(error.reason, NOT_CALLED_PAUSE, counts=False)
        attempt.duration_ms = int((time.monotonic() - started) * 1000)
        log.info(
            "webhook.attempted",
            webhook_id=webhook.id,
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

    def _send(
        self, webhook: Receiver, delivery: Delivery, body: bytes, attempt: Attempt, moment: datetime
    ) -> domain.Verdict:
        try:
            answer = self._outbound.post(
                webhook.url,
                body,
                headers(webhook, delivery.message_id, body, moment),
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
            return Done(lambda session, row: commands.delivered(session, row, attempt))

        give_up_after = timedelta(hours=self._settings.webhook_give_up_after_hours)

        def record(session: Session, row: Delivery) -> None:
            commands.failed(
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


def headers(webhook: Receiver, message_id: str, body: bytes, moment: datetime) -> dict[str, str]:
    """The Standard Webhooks headers and the caller's own one."""
    return {
        **webhook.secret,
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Signer(webhook.signing_secret).sign(message_id, moment, body.decode()),
    }


_WHAT = (
    sa.select(Delivery.outcome, Delivery.body, LoggedEvent.body.label("logged"), *_RECEIVER)
    .join(Webhook, Webhook.id == Delivery.webhook_id)
    .join(LoggedEvent, LoggedEvent.position == Delivery.position, isouter=True)
    .where(Delivery.id == sa.bindparam("delivery"))
)


def _prepare(session: Session, delivery_id: int) -> tuple[Receiver, bytes] | None:
    """The receiver and the bytes to send, or None when the delivery or its webhook has gone meanwhile."""
    found = session.execute(_WHAT, {"delivery": delivery_id}).one_or_none()
    if found is None or found.outcome is not None:
        return None
    body = found.logged if found.body is None else found.body
    if body is None:
        return None
    return Receiver(found.webhook_id, found.url, found.secret, found.signing_secret), body.encode()
