"""For how long a submission is kept once it has ended. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from contracts.fields.preferences import KEEP_DAYS
from contracts.types import SubmissionStatus
from services.submissions.rules.domain import Submission

FOR_EVER = 0


def has_ended(state: Submission) -> bool:
    """Return whether nobody is waited for any more: completed, declined, expired, or withdrawn."""
    return state.archived or state.status is not SubmissionStatus.PENDING


def days(preferences: Mapping[str, Any], account: Mapping[str, Any]) -> int | None:
    """Return for how many days it is kept, as the submission's ``preferences`` say (its template's are among them), else the
    ``account``; None until somebody deletes it."""
    preference = preferences.get(KEEP_DAYS)
    return (account.get(KEEP_DAYS) if preference is None else int(preference)) or None


def erase_at(ended_at: datetime, preferences: Mapping[str, Any], account: Mapping[str, Any]) -> datetime | None:
    """Return when it is erased, None for never."""
    keep_days = days(preferences, account)
    return None if keep_days is None else ended_at + timedelta(days=keep_days)
