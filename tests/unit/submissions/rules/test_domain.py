"""The state machine of a submission, case by case: the table of specification section 3 and the rules of decisions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.types import Order, SealingStatus, SubmissionStatus, SubmitterStatus
from services.submissions.rules import domain
from services.submissions.rules.domain import Fact, FormState, Happened, Refused, Submission, Submitter

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def submission(*groups: int, order: Order = Order.PRESERVED, viewers: tuple[int, ...] = (), **more: Any) -> Submission:
    """Submitters 1, 2, ... with these places in the order."""
    parties = tuple(Submitter(id=n, group=group, viewer=n in viewers) for n, group in enumerate(groups, start=1))
    return Submission(order=order, submitters=parties, **more)


def created(found: Submission, *completed: int) -> tuple[Submission, Sequence[Happened]]:
    state, happened = domain.create(found, completed, seal_id="seal-0")
    return state, list(happened)


def invited(happened: Iterable[Happened]) -> list[int | None]:
    return [one.submitter_id for one in happened if one.fact is Fact.INVITED]


def completed(state: Submission, submitter_id: int) -> tuple[Submission, tuple[Happened, ...]]:
    return domain.complete(state, submitter_id, NOW, seal_id=f"seal-{submitter_id}")


def test_preserved_order_invites_one_after_the_other() -> None:
    state, happened = created(submission(0, 1, 2))
    assert happened == [Happened(Fact.CREATED), Happened(Fact.INVITED, 1)]
    state, happened = completed(state, 1)
    assert happened == (Happened(Fact.COMPLETED, 1), Happened(Fact.INVITED, 2))
    state, happened = completed(state, 2)
    assert invited(happened) == [3]
    state, happened = completed(state, 3)
    assert happened == (Happened(Fact.COMPLETED, 3), Happened(Fact.SEALING))
    assert state.status is SubmissionStatus.PENDING
    assert (state.sealing, state.seal_id) == (SealingStatus.SEALING, "seal-3")


def test_the_completion_that_the_sealing_begins_with_is_told_later() -> None:
    assert domain.completion_to_tell_later([]) is None
    state, happened = created(submission(0, 1, 2), 2)
    assert domain.completion_to_tell_later(happened) is None
    state, happened = completed(state, 1)
    assert domain.completion_to_tell_later(happened) is None
    state, last = completed(state, 3)
    assert domain.completion_to_tell_later(last) == 3
    _, happened = created(submission(0, 1, 2), 1, 3, 2)
    assert domain.completion_to_tell_later(happened) == 2
    failed, _ = domain.sealing_failed(state, "seal-3")
    _, retried = domain.retry_seal(failed, seal_id="again")
    assert domain.completion_to_tell_later(retried) is None


def test_random_order_invites_everybody_at_once() -> None:
    state, happened = created(submission(0, 5, 9, order=Order.RANDOM))
    assert invited(happened) == [1, 2, 3]
    state, _ = completed(state, 3)
    assert state.form_state(1, NOW) is FormState.OPEN


def test_equal_numbers_are_invited_together_and_the_next_group_waits_for_all_of_them() -> None:
    state, happened = created(submission(0, 0, 1))
    assert invited(happened) == [1, 2]
    state, happened = completed(state, 2)
    assert invited(happened) == []
    _, happened = completed(state, 1)
    assert invited(happened) == [3]


def test_when_the_whole_first_group_was_completed_in_advance_the_next_one_is_invited_at_once() -> None:
    _, happened = created(submission(0, 0, 1, 2), 1, 2)
    assert [one.fact for one in happened] == [Fact.CREATED, Fact.COMPLETED, Fact.COMPLETED, Fact.INVITED]
    assert invited(happened) == [3]


def test_a_submitter_completed_in_advance_in_the_middle_is_skipped() -> None:
    state, _ = created(submission(0, 1, 2), 2)
    _, happened = completed(state, 1)
    assert invited(happened) == [3]


def test_everybody_completed_in_advance_is_sealed_at_once() -> None:
    state, happened = created(submission(0, 1), 1, 2)
    assert happened[-1] == Happened(Fact.SEALING)
    assert state.seal_id == "seal-0"


def test_a_viewer_comes_with_the_signers_before_the_next_signer_and_blocks_nobody() -> None:
    state, happened = created(submission(0, 1, 2, 3, viewers=(2, 4)))
    assert invited(happened) == [1, 2]
    assert state.form_state(4, NOW) is FormState.WAITING
    state, happened = completed(state, 1)
    assert invited(happened) == [3, 4]
    state, happened = completed(state, 3)
    assert state.sealing is SealingStatus.SEALING
    assert state.form_state(2, NOW) is FormState.COMPLETED


def test_a_viewer_may_look_and_nothing_else() -> None:
    state, _ = created(submission(0, 1, viewers=(1,)))
    _, happened = domain.view(state, 1, NOW)
    assert happened == (Happened(Fact.VIEWED, 1),)
    with pytest.raises(Refused, match="view only"):
        completed(state, 1)
    with pytest.raises(Refused, match="view only"):
        domain.save(state, 1, NOW)
    with pytest.raises(Refused, match="view only"):
        domain.decline(state, 1, NOW)
    with pytest.raises(Refused, match="view only"):
        domain.complete_for(state, 1, NOW, seal_id="x")


def test_a_later_signer_who_opens_early_waits_and_his_values_are_refused() -> None:
    state, _ = created(submission(0, 1))
    assert state.form_state(2, NOW) is FormState.WAITING
    for command in (domain.save, domain.decline):
        with pytest.raises(Refused) as refused:
            command(state, 2, NOW)
        assert refused.value.state is FormState.WAITING
    with pytest.raises(Refused) as refused:
        completed(state, 2)
    assert refused.value.state is FormState.WAITING
    assert domain.view(state, 2, NOW) == (state, ())


def test_the_form_starts_once() -> None:
    state, _ = created(submission(0))
    state, happened = domain.save(state, 1, NOW)
    assert happened == (Happened(Fact.STARTED, 1),)
    assert domain.save(state, 1, NOW) == (state, ())


def test_a_form_is_completed_once() -> None:
    state, _ = created(submission(0, 0))
    state, _ = completed(state, 1)
    commands: tuple[Callable[[], Any], ...] = (
        lambda: completed(state, 1),
        lambda: domain.decline(state, 1, NOW),
        lambda: domain.save(state, 1, NOW),
    )
    for command in commands:
        with pytest.raises(Refused, match="completed already"):
            command()


def test_decline_ends_the_submission_for_everybody() -> None:
    state, _ = created(submission(0, 0, 1))
    state, happened = domain.decline(state, 1, NOW)
    assert happened == (Happened(Fact.DECLINED, 1),)
    assert state.status is SubmissionStatus.DECLINED
    assert {state.form_state(n, NOW) for n in (1, 2, 3)} == {FormState.DECLINED}
    with pytest.raises(Refused, match="declined"):
        completed(state, 2)
    with pytest.raises(Refused, match="declined"):
        domain.complete_for(state, 2, NOW, seal_id="x")


def test_expiry_wins_on_access_before_the_sweep_has_seen_it() -> None:
    state, _ = created(submission(0, expire_at=LATER))
    assert state.form_state(1, LATER - timedelta(milliseconds=1)) is FormState.OPEN
    assert state.form_state(1, LATER) is FormState.EXPIRED
    with pytest.raises(Refused, match="expired"):
        domain.complete(state, 1, LATER, seal_id="x")
    with pytest.raises(Refused, match="expired"):
        domain.complete_for(state, 1, LATER, seal_id="x")


def test_expiry_is_told_once() -> None:
    state, _ = created(submission(0, expire_at=LATER))
    assert domain.expire(state, NOW) == (state, ())
    state, happened = domain.expire(state, LATER)
    assert happened == (Happened(Fact.EXPIRED),)
    assert domain.expire(state, LATER) == (state, ())


def test_what_everybody_signed_in_time_does_not_expire_while_it_is_sealed() -> None:
    state, _ = created(submission(0, expire_at=LATER))
    state, _ = completed(state, 1)
    assert domain.expire(state, LATER) == (state, ())
    state, happened = domain.sealed(state, "seal-1")
    assert happened == (Happened(Fact.SEALED),)
    assert state.status_at(LATER) is SubmissionStatus.COMPLETED


@pytest.mark.parametrize("ended", ["declined", "archived"])
def test_nothing_that_has_ended_expires(ended: str) -> None:
    state, _ = created(submission(0, expire_at=LATER))
    state = domain.archive(state)[0] if ended == "archived" else domain.decline(state, 1, NOW)[0]
    assert domain.expire(state, LATER) == (state, ())


def test_a_later_expiry_brings_an_expired_submission_back() -> None:
    state, _ = created(submission(0, expire_at=NOW))
    state, _ = domain.expire(state, NOW)
    state, _ = domain.reschedule(state, LATER, NOW)
    assert state.form_state(1, NOW) is FormState.OPEN
    _, happened = domain.expire(state, LATER)
    assert happened == (Happened(Fact.EXPIRED),)


def test_what_is_signed_gets_no_expiry() -> None:
    state, _ = completed(created(submission(0))[0], 1)
    with pytest.raises(Refused, match="has ended"):
        domain.reschedule(state, LATER, NOW)
    assert domain.reschedule(state, None, NOW) == (state, ())


def test_archived_links_are_closed_and_open_again_afterwards() -> None:
    state, _ = created(submission(0, 1))
    state, happened = domain.archive(state)
    assert happened == (Happened(Fact.ARCHIVED),)
    assert domain.archive(state) == (state, ())
    with pytest.raises(Refused, match="archived"):
        completed(state, 1)
    state, happened = domain.restore(state)
    assert happened == (Happened(Fact.RESTORED),)
    assert state.form_state(1, NOW) is FormState.OPEN


def test_completed_only_when_the_present_sealing_is_done() -> None:
    state, _ = completed(created(submission(0))[0], 1)
    assert domain.sealed(state, "another") == (state, ())
    assert state.status is SubmissionStatus.PENDING
    state, _ = domain.sealed(state, "seal-1")
    assert (state.status, state.sealing) == (SubmissionStatus.COMPLETED, SealingStatus.SEALED)
    assert domain.sealed(state, "seal-1") == (state, ())
    assert domain.sealing_failed(state, "seal-1") == (state, ())


def test_a_failed_sealing_is_retried_under_a_new_id_and_the_old_one_counts_no_more() -> None:
    state, _ = completed(created(submission(0))[0], 1)
    with pytest.raises(Refused, match="Only a failed sealing"):
        domain.retry_seal(state, seal_id="seal-2")
    state, happened = domain.sealing_failed(state, "seal-1")
    assert happened == (Happened(Fact.SEALING_FAILED),)
    state, happened = domain.retry_seal(state, seal_id="seal-2")
    assert happened == (Happened(Fact.SEALING),)
    assert domain.sealed(state, "seal-1") == (state, ())
    assert domain.sealing_failed(state, "seal-1") == (state, ())
    assert domain.sealed(state, "seal-2")[0].status is SubmissionStatus.COMPLETED


def test_sealed_after_failed_of_the_same_id_still_completes() -> None:
    state, _ = completed(created(submission(0))[0], 1)
    state, _ = domain.sealing_failed(state, "seal-1")
    assert domain.sealed(state, "seal-1")[0].status is SubmissionStatus.COMPLETED


def test_the_api_user_may_complete_out_of_turn_and_the_order_goes_on() -> None:
    state, _ = created(submission(0, 1, 2))
    state, happened = domain.complete_for(state, 2, NOW, seal_id="x")
    assert happened == (Happened(Fact.COMPLETED, 2),)
    _, happened = completed(state, 1)
    assert invited(happened) == [3]


def test_an_invitation_is_sent_again_only_when_the_turn_has_come() -> None:
    state, _ = created(submission(0, 1))
    _, happened = domain.invite_again(state, 1, NOW)
    assert happened == (Happened(Fact.INVITED_AGAIN, 1),)
    assert domain.invite_again(state, 2, NOW) == (state, ())


def test_nobody_is_invited_again_who_is_done_or_whose_form_is_closed() -> None:
    state, _ = completed(created(submission(0, 1, expire_at=LATER))[0], 1)
    with pytest.raises(Refused, match="already completed"):
        domain.invite_again(state, 1, NOW)
    for closed, at in ((state, LATER), (domain.archive(state)[0], NOW), (domain.decline(state, 2, NOW)[0], NOW)):
        with pytest.raises(Refused):
            domain.invite_again(closed, 2, at)


@pytest.mark.parametrize("groups", [(0,), (0, 1)])
def test_a_form_that_is_done_is_not_completed_in_its_signer_s_place(groups: tuple[int, ...]) -> None:
    state, _ = completed(created(submission(*groups))[0], 1)
    with pytest.raises(Refused, match="Submitter has already completed the submission"):
        domain.complete_for(state, 1, NOW, seal_id="x")


def test_what_everybody_has_signed_is_not_changed_for_who_may_look() -> None:
    state, _ = completed(created(submission(0, 1, viewers=(2,)))[0], 1)
    with pytest.raises(Refused, match="already completed") as refused:
        domain.change(state, 2)
    assert str(refused.value) == "Submitter has already completed the submission."


def test_a_viewer_of_a_later_group_waits_for_the_one_before() -> None:
    state, _ = created(submission(0, 1, 1, 2, 3, viewers=(3, 5)))
    shown = [state.form_state(number, NOW) for number in (1, 2, 3, 4, 5)]
    assert shown == [FormState.OPEN, *[FormState.WAITING] * 4], (
        "a viewer of the next group is not let in one group early"
    )
    state, happened = completed(state, 1)
    assert invited(happened) == [2, 3]
    state, happened = completed(state, 2)
    assert invited(happened) == [4, 5]
    last, _ = created(submission(0, 5, 3, viewers=(2, 3)))
    assert [last.form_state(number, NOW) for number in (1, 2, 3)] == [FormState.OPEN] * 3, "nobody signs after them"


def test_when_nobody_is_left_everybody_may_look() -> None:
    state, _ = completed(created(submission(1, 0, viewers=(2,)))[0], 1)
    assert state.turn() is None
    assert all(state.reached(one) for one in state.submitters)


def test_a_signer_who_is_done_sees_that_while_others_sign() -> None:
    state, _ = completed(created(submission(0, 1, 0, viewers=(3,)))[0], 1)
    assert [state.form_state(number, NOW) for number in (1, 2, 3)] == [
        FormState.COMPLETED,
        FormState.OPEN,
        FormState.OPEN,
    ]
    sealing, _ = completed(state, 2)
    assert sealing.form_state(3, NOW) is FormState.COMPLETED


def test_a_link_that_goes_to_somebody_else_begins_anew() -> None:
    state, _ = domain.save(created(submission(0, 1))[0], 1, NOW)
    state = domain.readdress(state, 1)
    assert (state.submitter(1).invited, state.submitter(1).started) == (False, False)
    invited_again, happened = domain.invite_awaited(state, NOW)
    assert happened == (Happened(Fact.INVITED, 1),)
    assert domain.invite_awaited(invited_again, NOW) == (invited_again, ())
    done, _ = completed(invited_again, 1)
    with pytest.raises(Refused, match="already completed"):
        domain.readdress(done, 1)


def test_nobody_is_invited_to_what_is_closed() -> None:
    state = domain.readdress(created(submission(0, expire_at=LATER))[0], 1)
    archived = domain.archive(state)[0]
    for closed, at in ((state, LATER), (archived, NOW)):
        assert domain.invite_awaited(closed, at) == (closed, ())
    assert invited(domain.restore(archived)[1]) == [1], "when it lives again"
    expired, _ = domain.expire(state, LATER)
    assert invited(domain.reschedule(expired, None, LATER)[1]) == [1]
    both = domain.archive(expired)[0]
    assert invited(domain.restore(both)[1]) == []
    assert invited(domain.reschedule(both, None, LATER)[1]) == []
    declined = domain.archive(domain.decline(created(submission(0, 1))[0], 1, NOW)[0])[0]
    assert domain.restore(declined)[1] == (Happened(Fact.RESTORED),)


def test_who_is_not_the_party_may_say_so_while_the_form_is_open() -> None:
    state, _ = domain.save(created(submission(0, 1))[0], 1, NOW)
    told = domain.report_wrong_recipient(state, 1, NOW)
    assert (told.submitter(1).started, told.submitter(1).invited) == (False, True)
    with pytest.raises(Refused) as refused:
        domain.report_wrong_recipient(state, 2, NOW)
    assert refused.value.state is FormState.WAITING
    with pytest.raises(Refused, match="declined"):
        domain.report_wrong_recipient(domain.decline(state, 1, NOW)[0], 1, NOW)


def test_what_is_declined_gets_no_expiry() -> None:
    state, _ = domain.decline(created(submission(0))[0], 1, NOW)
    with pytest.raises(Refused, match="has ended"):
        domain.reschedule(state, LATER, NOW)
    assert domain.reschedule(state, None, NOW) == (state, ())


@pytest.mark.parametrize("status", [SubmitterStatus.COMPLETED, SubmitterStatus.DECLINED])
def test_details_of_a_submitter_who_is_done_cannot_be_changed(status: SubmitterStatus) -> None:
    state, _ = created(submission(0, 1))
    done = replace(state, submitters=(replace(state.submitters[0], status=status), state.submitters[1]))
    with pytest.raises(Refused, match=f"already {status.value} the submission"):
        domain.change(done, 1)
    domain.change(done, 2)


def test_the_device_goes_to_the_next_party_whose_form_can_be_filled_in() -> None:
    state, _ = created(submission(0, 1, 2, 3, viewers=(3,)))
    with pytest.raises(Refused) as refused:
        domain.hand_device(state, 1, NOW)
    assert (refused.value.state, refused.value.message) == (FormState.OPEN, "This form is not completed yet.")
    assert state.next_after(1, NOW) == 2, "whom it will be"
    with pytest.raises(Refused) as refused:
        domain.hand_device(state, 2, NOW)
    assert (refused.value.state, refused.value.message) == (FormState.WAITING, "It is not your turn to sign yet.")
    state, _ = completed(state, 1)
    assert domain.hand_device(state, 1, NOW) == 2
    state, _ = completed(state, 2)
    assert [domain.hand_device(state, done, NOW) for done in (1, 2)] == [4, 4], "not to a viewer"
    state, _ = completed(state, 4)
    assert domain.hand_device(state, 4, NOW) is None
    with pytest.raises(Refused) as refused:  # the form is completed, but not by the viewer
        domain.hand_device(state, 3, NOW)
    assert refused.value.state == FormState.COMPLETED


def test_the_device_goes_round_where_there_is_no_order() -> None:
    state, _ = created(submission(0, 0, 0, order=Order.RANDOM))
    state, _ = completed(state, 2)
    assert domain.hand_device(state, 2, NOW) == 3
    confirmed, _ = domain.confirm(state, 3, NOW)
    assert domain.hand_device(confirmed, 2, NOW) == 1, "who confirms at a provider has nothing to fill in"
    state, _ = completed(state, 3)
    assert [domain.hand_device(state, done, NOW) for done in (2, 3)] == [1, 1]


def test_the_device_goes_to_the_first_in_the_order_not_in_the_list() -> None:
    state, _ = created(submission(2, 0, 1))
    state, _ = completed(state, 2)
    assert domain.hand_device(state, 2, NOW) == 3
    state, _ = completed(state, 3)
    assert domain.hand_device(state, 3, NOW) == 1


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"archived": True}, FormState.ARCHIVED),
        ({"returned": True}, FormState.RETURNED),
        ({"expire_at": NOW}, FormState.EXPIRED),
    ],
)
def test_a_submission_that_is_over_is_handed_to_nobody(changes: dict[str, Any], shown: FormState) -> None:
    state, _ = completed(created(submission(0, 1))[0], 1)
    with pytest.raises(Refused) as refused:
        domain.hand_device(replace(state, **changes), 1, NOW)
    assert refused.value.state == shown
