"""For how long a device that was handed over shows the next party's form (``docs/ways.md``). Pure."""

from datetime import datetime, timedelta

LIFETIME = timedelta(minutes=10)
"""Of the screen between: the next person stands beside the one who hands the device over."""

STAY = timedelta(hours=2)
"""To read and fill in a form."""

AFTERWARDS = timedelta(minutes=10)
"""To keep a copy of what one has completed, and hand the device on."""


def shown_until(taken_at: datetime, completed_at: datetime | None) -> datetime:
    """The moment from which the link of a device opens nothing any more. ``taken_at``: when its party got the device."""
    latest = taken_at + STAY
    return latest if completed_at is None else min(latest, completed_at + AFTERWARDS)
