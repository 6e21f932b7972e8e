"""The state machine of a submission (specification section 3): state, command and time in, state and facts out.

Nothing here reads a clock, a database or a value that somebody typed. A command either returns the new state with what
happened, in order, or raises Refused and nothing happened; ``sealed`` and the other answers to events that may come
late, twice or out of order return no facts instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from contracts.types import Order, SealingStatus, SubmissionStatus, SubmitterStatus


class FormState(StrEnum):
    """What a signer's link shows (``SigningForm.state``)."""

    OPEN = "open"
    CONFIRMING = "confirming"
    WAITING = "waiting"
    COMPLETED = "completed"
    DECLINED = "declined"
    EXPIRED = "expired"
    ARCHIVED = "archived"
    RETURNED = "returned"


class Fact(StrEnum):
    """What can happen to a submission."""

    CREATED = "created"
    INVITED = "invited"
    INVITED_AGAIN = "invited again"
    VIEWED = "viewed"
    STARTED = "started"
    COMPLETED = "completed"
    DECLINED = "declined"
    RETURNED = "returned"
    SENT_AGAIN = "sent again"
    EXPIRED = "expired"
    ARCHIVED = "archived"
    RESTORED = "restored"
    SEALING = "sealing"
    SEALING_FAILED = "sealing failed"
    SEALED = "sealed"


@dataclass(frozen=True)
class Happened:
    """A fact; ``submitter_id`` says whose, None when it is about the whole submission."""

    fact: Fact
    submitter_id: int | None = None


class Refused(Exception):
    """The command is not possible in this state. ``state`` is what the page should show now."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state
        self.message = message


REFUSALS = {
    FormState.CONFIRMING: "Your signature is being confirmed with the provider.",
    FormState.WAITING: "It is not your turn to sign yet.",
    FormState.COMPLETED: "Form has been completed already.",
    FormState.DECLINED: "Form has been declined.",
    FormState.EXPIRED: "Form has been expired.",
    FormState.ARCHIVED: "Form has been archived.",
    FormState.RETURNED: "Form has been sent back to the sender.",
}


@dataclass(frozen=True)
class Submitter:
    """One party. ``group`` is its place in the order, equal numbers sign in parallel. A ``viewer`` has no fields: it may
    look and never blocks. ``invited``: its turn has come. ``confirming``: they have filled in everything, and confirm it at a
    provider."""

    id: int
    group: int
    viewer: bool = False
    status: SubmitterStatus = SubmitterStatus.PENDING
    invited: bool = False
    started: bool = False
    confirming: bool = False

    @property
    def awaited(self) -> bool:
        """The submission cannot be completed without it."""
        return not self.viewer and self.status is SubmitterStatus.PENDING


@dataclass(frozen=True)
class Submission:
    """``status`` is what has been decided; ``status_at`` adds that time may have run out since.

    ``seal_id`` names the sealing that is under way or done: only its result counts. ``returned``: a party has sent it back for
    correction, and nobody goes on until the sender has sent it again.
    """

    order: Order
    submitters: tuple[Submitter, ...]
    expire_at: datetime | None = None
    status: SubmissionStatus = SubmissionStatus.PENDING
    archived: bool = False
    sealing: SealingStatus | None = None
    seal_id: str | None = None
    returned: bool = False

    def submitter(self, submitter_id: int) -> Submitter:
        return next(s for s in self.submitters if s.id == submitter_id)

    @property
    def all_signed(self) -> bool:
        return all(s.viewer or s.status is SubmitterStatus.COMPLETED for s in self.submitters)

    def status_at(self, now: datetime) -> SubmissionStatus:
        """Expiry wins on access, before the sweep has seen it; what everybody signed in time does not expire."""
        due = self.expire_at is not None and self.expire_at <= now
        if due and self.status is SubmissionStatus.PENDING and not self.all_signed:
            return SubmissionStatus.EXPIRED
        return self.status

    def turn(self) -> int | None:
        """The group that signs now; None when nobody is left."""
        return min((s.group for s in self.submitters if s.awaited), default=None)

    def reached(self, submitter: Submitter) -> bool:
        """The turn has come to this party. A viewer comes with the signers before the next group that signs."""
        turn = self.turn()
        if self.order is Order.RANDOM or turn is None:
            return True
        if not submitter.viewer:
            return submitter.group <= turn
        later = [s.group for s in self.submitters if s.awaited and s.group > turn]
        return submitter.group < min(later, default=submitter.group + 1)

    def form_state(self, submitter_id: int, now: datetime) -> FormState:
        """Return what the link of this party shows."""
        submitter = self.submitter(submitter_id)
        if self.archived:
            return FormState.ARCHIVED
        status = self.status_at(now)
        if status is not SubmissionStatus.PENDING:
            return FormState(status.value)
        if self.returned:
            return FormState.RETURNED
        if submitter.status is SubmitterStatus.COMPLETED or self.all_signed:
            return FormState.COMPLETED
        if not self.reached(submitter):
            return FormState.WAITING
        return FormState.CONFIRMING if submitter.confirming else FormState.OPEN

    def next_after(self, submitter_id: int, now: datetime) -> int | None:
        """The party whose form can be filled in once this one has completed: the first after it in the order, else the first
        before it; None when nobody's can. A viewer has nothing to fill in."""
        done = _change(self, submitter_id, status=SubmitterStatus.COMPLETED)
        ordered = sorted(done.submitters, key=lambda party: party.group)
        place = [party.id for party in ordered].index(submitter_id)
        for party in (*ordered[place + 1 :], *ordered[:place]):
            if not party.viewer and done.form_state(party.id, now) is FormState.OPEN:
                return party.id
        return None


Decision = tuple[Submission, tuple[Happened, ...]]


def create(submission: Submission, completed: Iterable[int], *, seal_id: str) -> Decision:
    """Begin. ``completed`` are the submitters whom the API user completed in advance; the first group that has somebody
    left is invited at once, whoever was skipped."""
    happened = [Happened(Fact.CREATED)]
    for submitter_id in completed:
        submission = _change(submission, submitter_id, status=SubmitterStatus.COMPLETED)
        happened.append(Happened(Fact.COMPLETED, submitter_id))
    return _go_on(submission, happened, seal_id)


def view(submission: Submission, submitter_id: int, now: datetime) -> Decision:
    """The signing page was shown. It may be shown in any state; only an open form is a view that is told of."""
    if submission.form_state(submitter_id, now) not in (FormState.OPEN, FormState.CONFIRMING):
        return submission, ()
    return submission, (Happened(Fact.VIEWED, submitter_id),)


def save(submission: Submission, submitter_id: int, now: datetime) -> Decision:
    """Values come in. The first ones start the form."""
    _must_be_open(submission, submitter_id, now)
    if submission.submitter(submitter_id).started:
        return submission, ()
    return _change(submission, submitter_id, started=True), (Happened(Fact.STARTED, submitter_id),)


def complete(submission: Submission, submitter_id: int, now: datetime, *, seal_id: str) -> Decision:
    """The signer is done. The next group is invited, or everybody is done and sealing ``seal_id`` begins."""
    _must_be_open(submission, submitter_id, now)
    return _completed(submission, submitter_id, seal_id)


def complete_for(submission: Submission, submitter_id: int, now: datetime, *, seal_id: str) -> Decision:
    """As ``complete``, by the API user in the signer's place, without waiting for the signer's turn."""
    _must_be_pending(submission, submitter_id, now)
    return _completed(submission, submitter_id, seal_id)


def decline(submission: Submission, submitter_id: int, now: datetime) -> Decision:
    """The signer refuses, until they have completed. That ends the submission: nobody further is invited."""
    submission = _change(submission, submitter_id, confirming=False)
    _must_be_open(submission, submitter_id, now)
    submission = _change(submission, submitter_id, status=SubmitterStatus.DECLINED)
    return replace(submission, status=SubmissionStatus.DECLINED), (Happened(Fact.DECLINED, submitter_id),)


def send_back(submission: Submission, submitter_id: int, now: datetime) -> Decision:
    """The signer wants the sender to correct something: nobody goes on until it is sent again."""
    _must_be_open(submission, submitter_id, now)
    return replace(submission, returned=True), (Happened(Fact.RETURNED, submitter_id),)


def reopen(submission: Submission, submitter_id: int) -> Submission:
    """Undo what this party has signed of a returned submission: they complete once more."""
    return _change(submission, submitter_id, status=SubmitterStatus.PENDING, invited=False, started=False)


def send_again(submission: Submission, now: datetime) -> Decision:
    """The sender has corrected what was sent back: whose turn it is, is invited anew."""
    status = FormState.ARCHIVED if submission.archived else submission.status_at(now)
    if not submission.returned or status is not SubmissionStatus.PENDING:
        raise Refused(status.value, "The submission has not been sent back.")
    waiting = [s.id for s in submission.submitters if s.status is SubmitterStatus.PENDING]
    for submitter_id in waiting:
        submission = _change(submission, submitter_id, invited=False)
    return _go_on(replace(submission, returned=False), [Happened(Fact.SENT_AGAIN)], None)


def change(submission: Submission, submitter_id: int) -> None:
    """Check that details of this submitter may still be changed. Raises Refused once they have completed or declined, unless
    the submission has been sent back: who has completed then does so once more (``reopen``)."""
    status = submission.submitter(submitter_id).status
    if submission.returned and status is SubmitterStatus.COMPLETED:
        return
    if status is not SubmitterStatus.PENDING:
        raise Refused(status.value, f"Submitter has already {status.value} the submission.")
    if submission.all_signed:
        raise Refused(FormState.COMPLETED, "Submitter has already completed the submission.")


def confirm(submission: Submission, submitter_id: int, now: datetime) -> Decision:
    """The signer has filled in everything, and confirms it at a provider: nothing is changed until they have, or go back."""
    started, happened = save(submission, submitter_id, now)
    return _change(started, submitter_id, confirming=True), happened


def leave_confirmation(submission: Submission, submitter_id: int) -> Submission:
    """The form can be filled in again."""
    return _change(submission, submitter_id, confirming=False)


def invite_again(submission: Submission, submitter_id: int, now: datetime) -> Decision:
    """Send the invitation once more. Before the submitter's turn nothing is sent: they are invited when it comes."""
    _must_be_pending(submission, submitter_id, now)
    submitter = submission.submitter(submitter_id)
    if not submission.reached(submitter):
        return submission, ()
    return _change(submission, submitter_id, invited=True), (Happened(Fact.INVITED_AGAIN, submitter_id),)


def readdress(submission: Submission, submitter_id: int) -> Submission:
    """The link goes to somebody else: what was begun is not, and the invitation is not sent."""
    change(submission, submitter_id)
    return _change(submission, submitter_id, invited=False, started=False, confirming=False)


def delegate(submission: Submission, submitter_id: int, now: datetime) -> Submission:
    """The signer hands their open form over to somebody else, who begins anew and has yet to be invited."""
    _must_be_open(submission, submitter_id, now)
    return readdress(submission, submitter_id)


def hand_device(submission: Submission, submitter_id: int, now: datetime) -> int | None:
    """The party to whom this one, who has completed, hands the device; None when nobody can go on. Nothing is changed by it.
    Raises Refused for who has not completed."""
    state = submission.form_state(submitter_id, now)
    if submission.submitter(submitter_id).status is not SubmitterStatus.COMPLETED or state is not FormState.COMPLETED:
        raise Refused(state, REFUSALS.get(state, "This form is not completed yet."))
    return submission.next_after(submitter_id, now)


def invite_awaited(submission: Submission, now: datetime) -> Decision:
    """Invite everybody whose turn it is and who is not invited, such as who was readdressed. In a submission that has expired
    or is archived they are invited when it lives again."""
    if submission.status_at(now) is not SubmissionStatus.PENDING:
        return submission, ()
    return _go_on(submission, [], None)


def report_wrong_recipient(submission: Submission, submitter_id: int, now: datetime) -> Submission:
    """Whoever has the link says that they are not this party. Only while it shows something; nobody is invited by it."""
    state = submission.form_state(submitter_id, now)
    if state not in (FormState.OPEN, FormState.CONFIRMING):
        raise Refused(state, REFUSALS[state])
    return _change(submission, submitter_id, started=False, confirming=False)


def reschedule(submission: Submission, expire_at: datetime | None, now: datetime) -> Decision:
    """Another expiry, or none. An expired submission lives again; what is signed or declined keeps its end."""
    if expire_at is not None and (submission.all_signed or submission.status is SubmissionStatus.DECLINED):
        raise Refused(submission.status.value, "The submission has ended and cannot expire.")
    if submission.status is SubmissionStatus.EXPIRED:
        submission = replace(submission, status=SubmissionStatus.PENDING)
    return _go_on(replace(submission, expire_at=expire_at), [], None)


def expire(submission: Submission, now: datetime) -> Decision:
    """Time has run out, once for each expiry. Nothing happens when it has not, or when there is nothing left to stop."""
    if submission.archived or submission.status is SubmissionStatus.EXPIRED:
        return submission, ()
    if submission.status_at(now) is not SubmissionStatus.EXPIRED:
        return submission, ()
    return replace(submission, status=SubmissionStatus.EXPIRED), (Happened(Fact.EXPIRED),)


def archive(submission: Submission) -> Decision:
    if submission.archived:
        return submission, ()
    return replace(submission, archived=True), (Happened(Fact.ARCHIVED),)


def restore(submission: Submission) -> Decision:
    """Undo ``archive``; who should have been invited in the meantime is invited now."""
    if not submission.archived:
        return submission, ()
    return _go_on(replace(submission, archived=False), [Happened(Fact.RESTORED)], None)


def completion_to_tell_later(happened: Iterable[Happened]) -> int | None:
    """Return the submitter whose completion is told as such only with the sealed documents: the last one before a sealing that
    begins with it."""
    last = None
    for event in happened:
        if event.fact is Fact.COMPLETED:
            last = event.submitter_id
        elif event.fact is Fact.SEALING:
            return last
    return None


def sealed(submission: Submission, seal_id: str) -> Decision:
    """The final documents and the audit trail exist: only now is the submission completed."""
    if submission.seal_id != seal_id or submission.sealing is SealingStatus.SEALED:
        return submission, ()
    completed = replace(submission, sealing=SealingStatus.SEALED, status=SubmissionStatus.COMPLETED)
    return completed, (Happened(Fact.SEALED),)


def sealing_failed(submission: Submission, seal_id: str) -> Decision:
    """Rendering gave up. The submission stays as it is until somebody asks for a retry."""
    if submission.seal_id != seal_id or submission.sealing is not SealingStatus.SEALING:
        return submission, ()
    return replace(submission, sealing=SealingStatus.FAILED), (Happened(Fact.SEALING_FAILED),)


def retry_seal(submission: Submission, *, seal_id: str) -> Decision:
    """Seal again under a new ``seal_id``; a late answer to the old one counts no more."""
    if submission.sealing is not SealingStatus.FAILED:
        state = submission.sealing.value if submission.sealing else submission.status.value
        raise Refused(state, f"Only a failed sealing can be retried; this submission is {state}.")
    return replace(submission, sealing=SealingStatus.SEALING, seal_id=seal_id), (Happened(Fact.SEALING),)


def _completed(submission: Submission, submitter_id: int, seal_id: str) -> Decision:
    if submission.submitter(submitter_id).viewer:
        raise Refused(FormState.OPEN, "Form is view only.")
    submission = _change(submission, submitter_id, status=SubmitterStatus.COMPLETED)
    return _go_on(submission, [Happened(Fact.COMPLETED, submitter_id)], seal_id)


def _go_on(submission: Submission, happened: list[Happened], seal_id: str | None) -> Decision:
    """Seal when everybody has signed, else invite everybody whose turn has come."""
    if submission.status is not SubmissionStatus.PENDING or submission.archived or submission.returned:
        return submission, tuple(happened)
    if submission.all_signed and seal_id is not None:
        submission = replace(submission, sealing=SealingStatus.SEALING, seal_id=seal_id)
        happened.append(Happened(Fact.SEALING))
    for submitter in submission.submitters:
        if submitter.status is SubmitterStatus.PENDING and not submitter.invited and submission.reached(submitter):
            submission = _change(submission, submitter.id, invited=True)
            happened.append(Happened(Fact.INVITED, submitter.id))
    return submission, tuple(happened)


def _must_be_open(submission: Submission, submitter_id: int, now: datetime) -> None:
    state = submission.form_state(submitter_id, now)
    if state is not FormState.OPEN:
        raise Refused(state, REFUSALS[state])
    if submission.submitter(submitter_id).viewer:
        raise Refused(FormState.OPEN, "Form is view only.")


def _must_be_pending(submission: Submission, submitter_id: int, now: datetime) -> None:
    change(submission, submitter_id)
    state = submission.form_state(submitter_id, now)
    if state not in (FormState.OPEN, FormState.CONFIRMING, FormState.WAITING):
        raise Refused(state, REFUSALS[state])


def _change(submission: Submission, submitter_id: int, **changes: object) -> Submission:
    submitters = tuple(replace(s, **changes) if s.id == submitter_id else s for s in submission.submitters)  # type: ignore[arg-type]
    return replace(submission, submitters=submitters)
