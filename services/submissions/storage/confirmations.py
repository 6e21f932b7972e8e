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


def keep(submitter: SubmitterRow, kept: confirming.KeptConfirmation) -> None:
    """Write how far a confirmation is."""
    submitter.confirmation = kept.model_dump(mode="json")


def discard(submission: LoadedSubmission, submitter: SubmitterRow, reason: str, now: datetime) -> bool:
    """Nobody goes on with the submitter's confirmation, if one is under way: say so, and record why. A signature that is made
    meanwhile counts for nothing."""
    kept = confirming.of(submitter.confirmation)
    if kept is None or kept.stage is not confirming.Stage.ASKED:
        return False
    keep(submitter, confirming.left(kept))
    submission.state = domain.leave_confirmation(submission.state, submitter.id)
    tell_left(submission, kept)
    data = {"provider": kept.provider, "reason": reason}
    trail.append(submission, [trail.Line(trail.LEAVE_CONFIRMATION, submitter.id, data)], now)
    submitter.updated_at = submission.row.updated_at = now
    return True


def tell_left(submission: LoadedSubmission, kept: confirming.KeptConfirmation) -> None:
    """Have rendering discard what it has prepared."""
    left = ConfirmationLeft(submission_id=submission.row.id, confirmation_id=kept.id)
    emit(submission.session, CONFIRMATION_LEFT, left, subject=f"submission:{submission.row.id}")
