"""How far a party is, from the rows and the trail."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.types import ActsAs, Order, SubmissionStatus, SubmitterStatus
from services.submissions.rules import domain
from services.submissions.rules.progress import DISOWNED, LEFT, LOST, SENDING, Message, Party, Told, awaited, state_of
from services.submissions.rules.progress import PartyState as State

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
EARLY, LATE = NOW - timedelta(hours=2), NOW - timedelta(hours=1)
ANN = Party(id=1, acts_as=ActsAs.SIGNER)
BOTH = domain.Submission(Order.PRESERVED, (domain.Submitter(1, 1), domain.Submitter(2, 2)))


def with_(submission: domain.Submission, number: int, **changes: Any) -> domain.Submission:
    parties = tuple(replace(one, **changes) if one.id == number else one for one in submission.submitters)
    return replace(submission, submitters=parties)


DONE = with_(BOTH, 1, status=SubmitterStatus.COMPLETED)


@pytest.mark.parametrize(
    ("party", "submission", "expected"),
    [
        (replace(ANN, completed_at=LATE), DONE, Told(State.SIGNED, LATE)),
        (replace(ANN, completed_at=LATE, acts_as=ActsAs.APPROVER), DONE, Told(State.APPROVED, LATE)),
        (replace(ANN, completed_at=LATE, by_sender=True), DONE, Told(State.BY_SENDER, LATE)),
        (replace(ANN, completed_at=LATE), replace(DONE, archived=True), Told(State.SIGNED, LATE)),
        (replace(ANN, declined_at=LATE), with_(BOTH, 1, status=SubmitterStatus.DECLINED), Told(State.DECLINED, LATE)),
        (replace(ANN, acts_as=ActsAs.VIEWER, opened_at=EARLY), BOTH, Told(State.READ, EARLY)),
        (replace(ANN, acts_as=ActsAs.VIEWER), replace(BOTH, archived=True), Told(State.NOT_READ)),
        (replace(ANN, opened_at=EARLY), replace(BOTH, status=SubmissionStatus.DECLINED), Told(State.NOT_DONE)),
        (ANN, replace(BOTH, expire_at=EARLY), Told(State.NOT_DONE)),
        (replace(ANN, id=2), BOTH, Told(State.WAITING)),
        (replace(ANN, id=2), DONE, Told(State.ON_ITS_WAY)),
        (replace(ANN, started_at=LATE), with_(BOTH, 1, confirming=True), Told(State.CONFIRMING, LATE)),
        (replace(ANN, opened_at=EARLY, last=Message(DISOWNED, LATE)), BOTH, Told(State.WRONG_RECIPIENT, LATE)),
        (replace(ANN, last=Message(LOST, LATE, "550")), BOTH, Told(State.FAILED, LATE, "550")),
        (replace(ANN, opened_at=EARLY, last=Message(LOST, LATE, "550")), BOTH, Told(State.FAILED, LATE, "550")),
        (replace(ANN, opened_at=LATE, last=Message(LOST, LATE, "550")), BOTH, Told(State.OPENED, LATE)),
        (replace(ANN, opened_at=LATE, last=Message(LOST, EARLY)), BOTH, Told(State.OPENED, LATE)),
        (replace(ANN, opened_at=EARLY, started_at=LATE, last=Message(LEFT, EARLY)), BOTH, Told(State.STARTED, LATE)),
        (replace(ANN, sent_at=EARLY, last=Message(LEFT, LATE)), BOTH, Told(State.SENT, LATE)),
        (replace(ANN, sent_at=EARLY, last=Message(SENDING, LATE)), BOTH, Told(State.SENT, EARLY)),
        (replace(ANN, last=Message(SENDING, LATE)), BOTH, Told(State.ON_ITS_WAY)),
        (replace(ANN, is_notified=False), BOTH, Told(State.NOT_OPENED)),
    ],
)
def test_what_is_said_of_a_party(party: Party, submission: domain.Submission, expected: Told) -> None:
    assert state_of(party, submission, NOW) == expected


def test_whose_turn_it_is() -> None:
    assert list(awaited(BOTH)) == [1]
    assert list(awaited(DONE)) == [2]
    assert list(awaited(replace(BOTH, order=Order.RANDOM))) == [1, 2]
    assert list(awaited(with_(BOTH, 1, viewer=True))) == [2]
