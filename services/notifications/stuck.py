"""What an operator may give up of what is to be sent: see ``contracts.runtime.operations.operating``."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from services.notifications import commands
from services.notifications.models import MailRow, PhoneMessageRow
from services.notifications.sending import phone_messages


def _mail(session: Session, row: MailRow, _moment: datetime) -> None:
    commands.mark_failed(session, row)


def _phone_message(session: Session, row: PhoneMessageRow, _moment: datetime) -> None:
    phone_messages.mark_failed(session, row)


GIVES_UP: dict[Any, Callable[[Session, Any, datetime], None]] = {MailRow: _mail, PhoneMessageRow: _phone_message}
"""What else becomes of a row in the transaction that gives it up, as when its schedule is at its end."""
