"""How far a provider is with a submission, told by rendering: its news may come late, twice or out of order.

Whoever retries or waives changes the state here at once; what rendering tells counts by rendering's own clock alone
(``told_at``), which may go ahead of ours or behind it. Rendering tells each as later than the one before, also when its clock
was put back, unless its database was restored: what is over for good (signed, stamped) therefore counts whenever it was told,
or nobody would hear of it.
"""

from collections.abc import Mapping
from typing import Any

from contracts.types import CertsignState, CertsignStatus, DutystampState, DutystampStatus, Moment


class KeptCertsign(CertsignState):
    """``told_at``: the moment of the last news that rendering told, None before there were any."""

    told_at: Moment | None = None

    @property
    def may_be_retried(self) -> bool:
        """Something failed: for good, or so that it is tried again later by itself."""
        waits = self.status is CertsignStatus.PENDING and self.next_attempt_at is not None
        return self.waived_by is None and (waits or self.status is CertsignStatus.FAILED)

    @property
    def may_be_waived(self) -> bool:
        return self.waived_by is None and self.status is not CertsignStatus.SIGNED


class KeptDutystamp(DutystampState):
    """As ``KeptCertsign``."""

    told_at: Moment | None = None

    @property
    def may_be_retried(self) -> bool:
        waits = self.status is DutystampStatus.PENDING and self.next_attempt_at is not None
        return waits or self.status is DutystampStatus.FAILED


def certsign_of(stored: Mapping[str, Any] | None) -> KeptCertsign | None:
    return KeptCertsign.model_validate(stored) if stored else None


def dutystamp_of(stored: Mapping[str, Any] | None) -> KeptDutystamp | None:
    return KeptDutystamp.model_validate(stored) if stored else None


def certsign_after(before: KeptCertsign | None, news: CertsignState) -> KeptCertsign | None:
    """The state after these news; None when they change nothing. Once waived, nothing but a signature counts."""
    if _is_old(before, news, CertsignStatus.SIGNED):
        return None
    waived_by = news.waived_by or (before.waived_by if before else None)
    if news.status is CertsignStatus.SIGNED:
        waived_by = None
    elif waived_by and not news.waived_by:
        return None
    return KeptCertsign(**{**news.model_dump(), "waived_by": waived_by}, told_at=news.at)


def dutystamp_after(before: KeptDutystamp | None, news: DutystampState) -> KeptDutystamp | None:
    """The state after these news; None when they change nothing."""
    if _is_old(before, news, DutystampStatus.STAMPED):
        return None
    return KeptDutystamp(**news.model_dump(), told_at=news.at)


def waiting(certsign: Mapping[str, Any] | None, dutystamp: Mapping[str, Any] | None) -> bool:
    """Return whether documents that are being sealed wait for a provider that has failed: for long, maybe."""
    states = (certsign_of(certsign), dutystamp_of(dutystamp))
    return any(state is not None and state.may_be_retried for state in states)


def signed_without_news(before: KeptCertsign | None) -> KeptCertsign | None:
    """The state once the final documents exist: they are never sealed otherwise than was ordered, so that the provider has
    signed, unless somebody waived that. What rendering tells of it may come later."""
    if before is None or before.waived_by or before.status is CertsignStatus.SIGNED:
        return before
    return before.model_copy(update={"status": CertsignStatus.SIGNED, "message": None, "next_attempt_at": None})


def _is_old(
    before: KeptCertsign | KeptDutystamp | None,
    news: CertsignState | DutystampState,
    over: CertsignStatus | DutystampStatus,
) -> bool:
    if before is None or before.told_at is None or (news.status is over and before.status is not over):
        return False
    return news.at <= before.told_at
