"""Receipts for submissions that were removed for good: signed with the seal's key (docs/retention.md)."""

from datetime import timedelta

from contracts.runtime.clock import now
from contracts.runtime.data.due_work.background import Done, Outcome, Retry
from services.rendering.models import ErasureReceipt
from services.rendering.rules import domain
from services.rendering.settings import Settings
from services.rendering.signatures.sealer import Sealer
from services.rendering.signatures.time_stamping import TimeStampFailed
from services.rendering.storage import erasures

_CERTIFICATE_WAIT = timedelta(hours=1)


class ReceiptWork:
    """What the background process does with a due ErasureReceipt."""

    def __init__(self, settings: Settings, sealer: Sealer) -> None:
        self._settings, self._sealer = settings, sealer

    def attempt(self, row: ErasureReceipt) -> Outcome:
        """Sign it. A failing time-stamping authority is waited for as for seals. Signed twice, the first that arrives is
        kept."""
        if (problem := self._sealer.identity.problem(now())) is not None:
            return Retry(problem, after=_CERTIFICATE_WAIT)
        alone = row.test or domain.goes_without_time_stamp(row.attempts, self._settings.tsa_attempts)
        try:
            signature, stamped = self._sealer.sign_detached(row.text.encode(), now(), with_time_stamp=not alone)
        except TimeStampFailed as error:
            return Retry(f"no time-stamp: {error}")
        return Done(record=lambda session, due: erasures.finish_receipt(session, due, signature, stamped=stamped))
