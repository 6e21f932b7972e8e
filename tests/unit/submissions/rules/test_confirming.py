"""A signer's last step at a provider, as submissions keeps it: which news count, who signs in which order."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.providers import CertsignMode, CertsignOrder, ConfirmationChanged
from contracts.types import IdentityStatus, Order, SignerCertificate
from services.submissions.rules import confirming, domain
from services.submissions.rules.confirming import KeptConfirmation, Stage
from services.submissions.rules.domain import FormState, Refused, Submission, Submitter

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SIGNER = SignerCertificate(provider="p", subject="s", issuer="i", serial="1", sha256="c" * 64, signed_at=NOW)


def kept(**more: Any) -> KeptConfirmation:
    known: dict[str, Any] = {"id": "c1", "stage": Stage.ASKED, "provider": "p", "started_at": NOW, "command": {"a": 1}}
    return KeptConfirmation(**{**known, **more})


def news(status: str = "signed", **more: Any) -> ConfirmationChanged:
    known: dict[str, Any] = {"submission_id": 1, "submitter_id": 2, "confirmation_id": "c1", "at": NOW, "provider": "p"}
    return ConfirmationChanged(status=status, **{**known, **more})


def test_somebody_has_signed() -> None:
    after = confirming.after_news(kept(), news(signer=SIGNER))
    assert after is not None
    assert (after.stage, after.status, after.signer, after.told_at) == (
        Stage.SIGNED,
        IdentityStatus.VERIFIED,
        SIGNER,
        NOW,
    )


@pytest.mark.parametrize(
    ("status", "stage", "identity"),
    [
        ("refused", Stage.ASKED, "failed"),
        ("failed", Stage.ASKED, "failed"),
        ("discarded", Stage.LEFT, "failed"),
        ("pending", Stage.ASKED, "pending"),
    ],
)
def test_what_else_is_told(status: str, stage: Stage, identity: str) -> None:
    after = confirming.after_news(kept(status=IdentityStatus.VERIFIED), news(status, message="why", problem="locked"))
    assert after is not None
    assert (after.stage, after.status, after.message, after.problem) == (stage, identity, "why", "locked")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (None, news()),
        (kept(id="c2"), news()),
        (kept(stage=Stage.LEFT), news()),
        (kept(stage=Stage.SIGNED), news("failed")),
        (kept(told_at=NOW), news("failed")),
        (kept(told_at=NOW + timedelta(seconds=1)), news("pending")),
    ],
)
def test_what_does_not_count(before: KeptConfirmation | None, told: ConfirmationChanged) -> None:
    assert confirming.after_news(before, told) is None


def test_the_later_news_count() -> None:
    assert confirming.after_news(kept(told_at=NOW - timedelta(seconds=1)), news("failed")) is not None


def test_a_signature_counts_although_the_clock_was_put_back() -> None:
    after = confirming.after_news(kept(told_at=NOW + timedelta(hours=1)), news())
    assert after is not None
    assert after.stage is Stage.SIGNED


def test_going_back_keeps_nothing_but_that_it_failed() -> None:
    back = confirming.left(kept(values={"a": "b"}))
    assert (back.stage, back.status, back.command, back.values) == (Stage.LEFT, None, None, {})
    assert confirming.left(kept(status=IdentityStatus.FAILED)).status is IdentityStatus.FAILED


def test_asking_again() -> None:
    failed = kept(status=IdentityStatus.FAILED, problem="locked", message="why", round=3)
    again = confirming.asked_again(failed)
    assert (again.round, again.status, again.problem, again.message) == (4, IdentityStatus.PENDING, None, None)


@pytest.mark.parametrize(
    ("stored", "asked"),
    [(None, False), ({"stage": "asked"}, True), ({"stage": "left"}, False), ({"stage": "signed"}, False)],
)
def test_whether_the_form_is_locked(stored: dict[str, Any] | None, asked: bool) -> None:
    assert confirming.is_asked(stored) is asked


@pytest.mark.parametrize("confirmation", [None, kept(), kept(stage=Stage.LEFT), kept(stage=Stage.SIGNED)])
def test_what_a_row_keeps_and_whether_it_waits_for_anybody(confirmation: KeptConfirmation | None) -> None:
    stored = confirmation.model_dump(mode="json") if confirmation is not None else None
    assert confirming.of(stored) == confirmation
    assert confirming.of({}) is None
    waits = confirmation is not None and confirmation.stage == "asked"
    assert confirming.may_be_asked_again(confirmation) is waits


def test_who_confirms_at_a_provider() -> None:
    signer = CertsignOrder(settings="s", provider="p", mode=CertsignMode.SIGNER).model_dump(mode="json")
    seal = CertsignOrder(settings="s", provider="p").model_dump(mode="json")
    order = confirming.order_of(signer, None)
    assert order is not None
    assert order.provider == "p"
    assert confirming.order_of(signer, {"waived_by": None}) is not None
    assert confirming.order_of(signer, {"waived_by": "ada"}) is None
    assert confirming.order_of(seal, None) is None
    assert confirming.order_of(None, None) is None


@dataclass(frozen=True)
class P:
    group: int
    viewer: bool = False
    completed: bool = False


@pytest.mark.parametrize(
    ("order", "parties", "wrong"),
    [
        (Order.PRESERVED, [P(0), P(1)], None),
        (Order.PRESERVED, [P(1), P(1)], "must be different for each signer"),
        (Order.PRESERVED, [P(1), P(1, viewer=True)], None),
        (Order.PRESERVED, [P(1), P(1, completed=True)], None),
        (Order.RANDOM, [P(0), P(1)], "must be preserved"),
        (Order.RANDOM, [P(0), P(1, viewer=True)], None),
        (Order.RANDOM, [P(0), P(1, completed=True)], None),
    ],
)
def test_signers_sign_one_after_the_other(order: Order, parties: list[P], wrong: str | None) -> None:
    reason = confirming.not_in_order(order, parties)
    assert reason is None if wrong is None else (reason or "").startswith(wrong)


def state(**more: Any) -> Submission:
    return Submission(Order.PRESERVED, (Submitter(1, 0, invited=True, started=True, **more), Submitter(2, 1)))


def test_the_form_is_locked_while_it_is_confirmed() -> None:
    locked, happened = domain.confirm(state(), 1, NOW)
    assert happened == ()
    assert locked.form_state(1, NOW) is FormState.CONFIRMING
    for refused in (domain.save, domain.confirm):
        with pytest.raises(Refused) as caught:
            refused(locked, 1, NOW)
        assert caught.value.state is FormState.CONFIRMING
    with pytest.raises(Refused):
        domain.complete(locked, 1, NOW, seal_id="s")
    assert domain.leave_confirmation(locked, 1).form_state(1, NOW) is FormState.OPEN
    assert domain.view(locked, 1, NOW)[1] != ()
    assert domain.complete_for(locked, 1, NOW, seal_id="s")[0].submitter(1).status == "completed"
    assert domain.invite_again(locked, 1, NOW)[1] != ()


def test_the_first_step_may_be_the_last() -> None:
    fresh = Submission(Order.PRESERVED, (Submitter(1, 0, invited=True),))
    _, happened = domain.confirm(fresh, 1, NOW)
    assert [one.fact for one in happened] == [domain.Fact.STARTED]


def test_whoever_confirms_may_still_decline_or_be_somebody_else() -> None:
    locked = state(confirming=True)
    declined, _ = domain.decline(locked, 1, NOW)
    assert not declined.submitter(1).confirming
    other = domain.report_wrong_recipient(locked, 1, NOW)
    assert (other.submitter(1).confirming, other.submitter(1).started) == (False, False)
    assert not domain.readdress(locked, 1).submitter(1).confirming


def test_a_submission_that_ended_shows_that_first() -> None:
    locked = Submission(Order.PRESERVED, (Submitter(1, 0, invited=True, confirming=True),), expire_at=NOW)
    assert locked.form_state(1, NOW) is FormState.EXPIRED
