"""What an operator may give up of what is to be delivered (see ``contracts.runtime.operations.operating``), and what of it
waits for a receiver."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.webhooks import commands
from services.webhooks.models import Delivery, Webhook


def _delivery(session: Session, row: Delivery, moment: datetime) -> None:
    """The next one of its stream is due."""
    commands.record_exhaustion(session, row)
    commands.follow_up(session, [row], moment)


GIVES_UP: dict[Any, Callable[[Session, Any, datetime], None]] = {Delivery: _delivery}
"""What else becomes of a row in the transaction that gives it up, as when its schedule is at its end."""

HELD_UP: dict[Any, sa.ColumnElement[bool]] = {
    Delivery: Delivery.webhook_id.in_(sa.select(Webhook.id).where(Webhook.failing_since.is_not(None)))
}
"""A receiver that does nothing but fail gets one delivery at a time, once a second at most: the rest waits behind it."""
