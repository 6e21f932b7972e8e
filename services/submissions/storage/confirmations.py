"""Ending a signer's confirmation at a provider from wherever that is decided: the form is open again, what was prepared
goes."""

from datetime import datetime

from contracts.events import CONFIRMATION_LEFT
from contracts.providers import ConfirmationLeft
from contracts.runtime.bus.outbox import emit
from services.submissions.models import SubmitterRow
from services.submissions.rules import confirming, domain
from services.submissions.storage import trail
from services.submissions.storage.store import LoadedSubmission


def keep(submitter: SubmitterRow, confirmation: confirming.KeptConfirmation) -> None:
    """Write how far a confirmation is."""
    submitter.confirmation = confirmation.model_dump(mode="json")


def discard(submission: LoadedSubmission, submitter: SubmitterRow, reason: str, now: datetime) -> bool:
    """Nobody goes on with the submitter's confirmation, if one is under way: say so, and record why. A signature that is made
    meanwhile counts for nothing."""
    confirmation = confirming.of(submitter.confirmation)
    if confirmation is None or confirmation.stage is not confirming.Stage.ASKED:
        return False
    keep(submitter, confirming.left(confirmation))
    submission.state = domain.leave_confirmation(submission.state, submitter.id)
    tell_left(submission, confirmation)
    data = {"provider": confirmation.provider, "reason": reason}
    trail.append(submission, [trail.Line(trail.LEAVE_CONFIRMATION, submitter.id, data)], now)
    submitter.updated_at = submission.row.updated_at = now
    return True


def tell_left(submission: LoadedSubmission, confirmation: confirming.KeptConfirmation) -> None:
    """Have rendering discard what it has prepared."""
    left = ConfirmationLeft(submission_id=submission.row.id, confirmation_id=confirmation.id)
    emit(submission.session, CONFIRMATION_LEFT, left, subject=f"submission:{submission.row.id}")
