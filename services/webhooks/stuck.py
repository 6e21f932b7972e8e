"""What an operator may give up of what is to be delivered: see ``contracts.runtime.operations.operating``."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from services.webhooks import commands
from services.webhooks.models import Delivery


def _delivery(session: Session, row: Delivery, moment: datetime) -> None:
    """The next one of its stream is due."""
    commands.record_exhaustion(session, row)
    commands.follow_up(session, [row], moment)


GIVES_UP: dict[Any, Callable[[Session, Any, datetime], None]] = {Delivery: _delivery}
"""What else becomes of a row in the transaction that gives it up, as when its schedule is at its end."""
