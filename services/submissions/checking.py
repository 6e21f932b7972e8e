"""The trials of ``check`` for this service: receipts for what was removed for good that do not come."""

from functools import partial

from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.operations.checking import Trial
from services.submissions.commands import erasures
from services.submissions.settings import Settings


def trials(settings: Settings) -> list[Trial]:
    return [
        Trial(
            "receipts of deletions",
            partial(_receipts, settings),
            "see CountersignErasureUnconfirmed in deploy/RUNBOOK.md",
        )
    ]


def _receipts(settings: Settings) -> str:
    database = Database(settings.database_url)
    try:
        count, oldest = database.read(erasures.backlog)
    finally:
        database.dispose()
    if oldest is None or now() - oldest < erasures.TOO_LONG:
        return f"{count} are waited for" if count else ""
    return f"but {count} are waited for, the oldest since {oldest:%Y-%m-%d %H:%M} UTC"
