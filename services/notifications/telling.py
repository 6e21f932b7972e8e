"""Tell the submissions service of a mail or a message to a phone: that it was taken, or never will be."""

from datetime import datetime

from sqlalchemy.orm import Session

from contracts.events import Event
from contracts.runtime.bus.outbox import emit
from services.notifications.models import OutgoingRow


def tell(
    session: Session,
    event: Event,
    row: OutgoingRow,
    *,
    to: str,
    error: str | None = None,
    sent_at: datetime | None = None,
) -> None:
    """Nothing of what is about no submission. ``event`` carries a SendingOutcome."""
    if row.submission_id is None:
        return
    outcome = event.model(
        submission_id=row.submission_id,
        submitter_id=row.submitter_id,
        kind=row.kind,
        to=to,
        invitation_id=row.invitation_id,
        error=error,
        sent_at=sent_at,
    )
    emit(session, event, outcome, subject=f"submission:{row.submission_id}")
