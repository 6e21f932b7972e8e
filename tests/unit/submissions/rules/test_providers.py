"""How far a provider is: what rendering tells late, twice, out of order, or by a clock that was put back."""

from datetime import UTC, datetime, timedelta

import pytest

from contracts.types import CertsignState, CertsignStatus, DutystampState, DutystampStatus
from services.submissions.rules import providers
from services.submissions.rules.providers import KeptCertsign, KeptDutystamp

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def signature(status: str, at: datetime = NOW) -> CertsignState:
    return CertsignState(status=CertsignStatus(status), provider="csc", at=at)


def signature_kept(status: str, told_at: datetime, waived_by: str | None = None) -> KeptCertsign:
    state = signature(status, told_at).model_copy(update={"waived_by": waived_by})
    return KeptCertsign(**state.model_dump(), told_at=told_at)


def stamps(status: str, at: datetime = NOW) -> DutystampState:
    return DutystampState(status=DutystampStatus(status), provider="issuer", at=at)


def stamps_kept(status: str, told_at: datetime) -> KeptDutystamp:
    return KeptDutystamp(**stamps(status, told_at).model_dump(), told_at=told_at)


@pytest.mark.parametrize("before", ["pending", "failed"])
def test_what_is_over_counts_although_the_clock_was_put_back(before: str) -> None:
    """Else nobody would ever hear that the documents are signed and stamped: nothing is told after that."""
    signed = providers.certsign_after(signature_kept(before, LATER), signature("signed"))
    stamped = providers.dutystamp_after(stamps_kept(before, LATER), stamps("stamped"))
    assert signed is not None
    assert (signed.status, signed.told_at) == (CertsignStatus.SIGNED, NOW)
    assert stamped is not None
    assert (stamped.status, stamped.told_at) == (DutystampStatus.STAMPED, NOW)


@pytest.mark.parametrize("told_at", [NOW, LATER])
@pytest.mark.parametrize(
    ("before", "news"), [("pending", "failed"), ("failed", "pending"), ("over", "pending"), ("over", "over")]
)
def test_what_is_older_or_comes_twice_changes_nothing(before: str, news: str, told_at: datetime) -> None:
    def of(word: str, over: str) -> str:
        return over if word == "over" else word

    signed = signature_kept(of(before, "signed"), told_at), signature(of(news, "signed"))
    stamped = stamps_kept(of(before, "stamped"), told_at), stamps(of(news, "stamped"))
    assert providers.certsign_after(*signed) is None
    assert providers.dutystamp_after(*stamped) is None


def test_later_news_count() -> None:
    assert providers.certsign_after(signature_kept("pending", NOW), signature("failed", LATER)) is not None
    assert providers.dutystamp_after(stamps_kept("failed", NOW), stamps("pending", LATER)) is not None


def test_once_waived_nothing_but_a_signature_counts() -> None:
    waived = signature_kept("failed", NOW, waived_by="admin@example.com")
    assert providers.certsign_after(waived, signature("pending", LATER)) is None
    signed = providers.certsign_after(waived, signature("signed", LATER))
    assert signed is not None
    assert signed.waived_by is None
