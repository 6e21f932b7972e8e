"""Random commands in random order, twice, late and out of turn: the invariants I2 and I5 hold whatever comes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contracts.types import Order, SealingStatus, SubmissionStatus, SubmitterStatus
from services.submissions.rules import domain
from services.submissions.rules.domain import Decision, Fact, FormState, Happened, Refused, Submission, Submitter

START = datetime(2026, 3, 4, 12, tzinfo=UTC)
# The numbers are small, so that a random one often means somebody.
NUMBER = st.integers(0, 5)


class SubmissionMachine(RuleBasedStateMachine):
    """Keeps its own simple books of what was told and compares the state machine with them after each step."""

    @initialize(
        parties=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=5),
        in_advance=st.sets(NUMBER),
        order=st.sampled_from(Order),
        expires=st.booleans(),
    )
    def create(self, parties: list[tuple[int, bool]], in_advance: set[int], order: Order, expires: bool) -> None:
        parties = [(parties[0][0], False), *parties[1:]]
        submitters = tuple(Submitter(id=n, group=group, viewer=viewer) for n, (group, viewer) in enumerate(parties))
        self.now = START
        self.seals = 0
        self.told: list[Happened] = []
        self.expiries = int(expires)
        self.deliveries: list[str] = []
        self.state = Submission(order, submitters, expire_at=START + timedelta(hours=5) if expires else None)
        done = [n for n in in_advance if n < len(submitters) and not submitters[n].viewer]
        self._take(domain.create(self.state, done, seal_id=self._new_seal()))

    @rule(hours=st.integers(0, 3))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @rule(number=NUMBER)
    def view(self, number: int) -> None:
        self._take(domain.view(self.state, self._one(number), self.now))

    @rule(number=NUMBER)
    def save(self, number: int) -> None:
        self._on_the_page(number, lambda n: domain.save(self.state, n, self.now))

    @rule(number=NUMBER)
    def complete(self, number: int) -> None:
        self._on_the_page(number, lambda n: domain.complete(self.state, n, self.now, seal_id=self._new_seal()))

    @rule(number=NUMBER)
    def decline(self, number: int) -> None:
        self._on_the_page(number, lambda n: domain.decline(self.state, n, self.now))

    @rule(number=NUMBER)
    def complete_for(self, number: int) -> None:
        self._try(lambda: domain.complete_for(self.state, self._one(number), self.now, seal_id=self._new_seal()))

    @rule(number=NUMBER)
    def invite_again(self, number: int) -> None:
        self._try(lambda: domain.invite_again(self.state, self._one(number), self.now))

    @rule(twice=st.booleans())
    def sweep(self, twice: bool) -> None:
        for _ in range(1 + twice):
            self._take(domain.expire(self.state, self.now))

    @rule(hours=st.none() | st.integers(1, 9))
    def reschedule(self, hours: int | None) -> None:
        expire_at = None if hours is None else self.now + timedelta(hours=hours)
        self.expiries += expire_at is not None
        self._try(lambda: domain.reschedule(self.state, expire_at, self.now))

    @rule()
    def archive(self) -> None:
        self._take(domain.archive(self.state))

    @rule()
    def restore(self) -> None:
        self._take(domain.restore(self.state))

    @rule()
    def retry_seal(self) -> None:
        self._try(lambda: domain.retry_seal(self.state, seal_id=self._new_seal()))

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), failed=st.booleans(), times=st.integers(1, 2))
    def rendering_answers(self, data: st.DataObject, failed: bool, times: int) -> None:
        """Any sealing that was ever ordered is answered, perhaps late, perhaps twice, perhaps with both outcomes."""
        seal_id = data.draw(st.sampled_from(self.deliveries))
        answer = domain.sealing_failed if failed else domain.sealed
        for _ in range(times):
            self._take(answer(self.state, seal_id))

    @rule()
    def a_stranger_answers(self) -> None:
        assert domain.sealed(self.state, "never ordered") == (self.state, ())

    @invariant()
    def each_submitter_ends_at_most_once(self) -> None:
        for one in self.state.submitters:
            ends = [h for h in self.told if h.submitter_id == one.id and h.fact in (Fact.COMPLETED, Fact.DECLINED)]
            assert len(ends) == (one.status is not SubmitterStatus.PENDING)

    @invariant()
    def a_submission_is_completed_at_most_once_and_only_sealed(self) -> None:
        sealed = [h for h in self.told if h.fact is Fact.SEALED]
        assert len(sealed) == (self.state.status is SubmissionStatus.COMPLETED)
        if sealed:
            assert self.state.all_signed
            assert self.state.sealing is SealingStatus.SEALED

    @invariant()
    def nobody_is_invited_before_the_group_before_him_is_done(self) -> None:
        if self.state.order is Order.RANDOM:
            return
        for one in self.state.submitters:
            if one.invited and not one.viewer:
                assert not [s for s in self.state.submitters if s.awaited and s.group < one.group]

    @invariant()
    def in_random_order_everybody_is_invited_at_once(self) -> None:
        if self.state.order is Order.RANDOM:
            waiting = [s for s in self.state.submitters if s.status is SubmitterStatus.PENDING and not s.invited]
            assert waiting == []
            shown = {self.state.form_state(s.id, self.now) for s in self.state.submitters}
            assert FormState.WAITING not in shown

    @invariant()
    def each_expiry_is_told_at_most_once_and_never_of_what_is_signed(self) -> None:
        assert sum(h.fact is Fact.EXPIRED for h in self.told) <= self.expiries
        if self.state.all_signed:
            assert self.state.status_at(self.now + timedelta(days=9)) is not SubmissionStatus.EXPIRED

    @invariant()
    def whoever_can_sign_now_was_invited(self) -> None:
        for one in self.state.submitters:
            if self.state.form_state(one.id, self.now) is FormState.OPEN:
                assert one.invited

    @invariant()
    def everybody_is_invited_once(self) -> None:
        invited = [h.submitter_id for h in self.told if h.fact is Fact.INVITED]
        assert len(invited) == len(set(invited))

    @invariant()
    def sealing_begins_when_the_last_one_signs_and_never_stops_by_itself(self) -> None:
        assert (self.state.sealing is not None) == self.state.all_signed
        assert (self.state.seal_id is not None) == self.state.all_signed

    @invariant()
    def ends_exclude_each_other(self) -> None:
        declined = [s for s in self.state.submitters if s.status is SubmitterStatus.DECLINED]
        assert bool(declined) == (self.state.status is SubmissionStatus.DECLINED)
        if self.state.status in (SubmissionStatus.DECLINED, SubmissionStatus.EXPIRED):
            assert self.state.sealing is None

    def _on_the_page(self, number: int, command: Callable[[int], Decision]) -> None:
        """What the page shows and what the server takes must agree."""
        one = self._one(number)
        shown = self.state.form_state(one, self.now)
        writable = shown is FormState.OPEN and not self.state.submitter(one).viewer
        if writable:
            self._take(command(one))
            return
        with pytest.raises(Refused) as refused:
            command(one)
        assert refused.value.state == shown

    def _try(self, command: Callable[[], Decision]) -> None:
        try:
            decision = command()
        except Refused:
            return
        self._take(decision)

    def _take(self, decision: Decision) -> None:
        before = self.state
        self.state, happened = decision
        self.told += happened
        if any(h.fact is Fact.SEALING for h in happened) and self.state.seal_id is not None:
            self.deliveries.append(self.state.seal_id)
        if before.status in (SubmissionStatus.COMPLETED, SubmissionStatus.DECLINED):
            assert self.state.status is before.status

    def _one(self, number: int) -> int:
        return number % len(self.state.submitters)

    def _new_seal(self) -> str:
        self.seals += 1
        return f"seal-{self.seals}"


SubmissionMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestSubmissionMachine = SubmissionMachine.TestCase
