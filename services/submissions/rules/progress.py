"""How far each party of a submission is, as its page says it in words (``/e/<slug>``)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from contracts.types import ActsAs, SubmitterStatus
from services.submissions.rules import domain


class PartyState(StrEnum):
    """What can be said of a party. A message of the pages has the name of each (``progress.party.<state>``)."""

    SIGNED = "signed"
    APPROVED = "approved"
    BY_SENDER = "by_sender"
    DECLINED = "declined"
    READ = "read"
    NOT_READ = "not_read"
    NOT_DONE = "not_done"
    WAITING = "waiting"
    CONFIRMING = "confirming"
    WRONG_RECIPIENT = "wrong_recipient"
    FAILED = "failed"
    STARTED = "started"
    OPENED = "opened"
    SENT = "sent"
    ON_ITS_WAY = "on_its_way"
    NOT_OPENED = "not_opened"


@dataclass(frozen=True)
class Message:
    """What became of a party's invitation, or of their link, last: ``kind`` is one of ``SENDING``, ``LEFT``, ``LOST`` and
    ``DISOWNED``."""

    kind: str
    at: datetime
    reason: str = ""


SENDING, LEFT, LOST, DISOWNED = "sending", "left", "lost", "disowned"


@dataclass(frozen=True)
class Party:
    """One party, as the rows and the trail have it. ``told``: invitations of theirs go by mail or SMS; ``by_sender``: the
    sender completed it in their place."""

    id: int
    acts_as: ActsAs
    is_notified: bool = True
    by_sender: bool = False
    sent_at: datetime | None = None
    opened_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    declined_at: datetime | None = None
    last: Message | None = None


@dataclass(frozen=True)
class Told:
    """A party's state, since when, and in whose words why."""

    state: PartyState
    at: datetime | None = None
    reason: str = ""


def state_of(party: Party, submission: domain.Submission, now: datetime) -> Told:
    """Say how far the party is."""
    status = submission.submitter(party.id).status
    if status is SubmitterStatus.COMPLETED:
        if party.by_sender:
            return Told(PartyState.BY_SENDER, party.completed_at)
        return Told(PartyState.APPROVED if party.acts_as is ActsAs.APPROVER else PartyState.SIGNED, party.completed_at)
    if status is SubmitterStatus.DECLINED:
        return Told(PartyState.DECLINED, party.declined_at)
    if party.acts_as is ActsAs.VIEWER and party.opened_at is not None:
        return Told(PartyState.READ, party.opened_at)
    if submission.archived or submission.status_at(now).value != "pending":
        return Told(PartyState.NOT_READ if party.acts_as is ActsAs.VIEWER else PartyState.NOT_DONE)
    if not submission.reached(submission.submitter(party.id)):
        return Told(PartyState.WAITING)
    return _standing_of_asked(party, submission.submitter(party.id).confirming)


def _standing_of_asked(party: Party, confirming: bool) -> Told:
    """Of a party whose turn it is."""
    last, seen = party.last, party.started_at or party.opened_at
    if confirming:
        return Told(PartyState.CONFIRMING, party.started_at)
    if last is not None and last.kind == DISOWNED:
        return Told(PartyState.WRONG_RECIPIENT, last.at)
    if last is not None and last.kind == LOST and (seen is None or seen < last.at):
        return Told(PartyState.FAILED, last.at, last.reason)
    if seen is not None:
        return Told(PartyState.STARTED if party.started_at else PartyState.OPENED, seen)
    if last is not None and last.kind == LEFT:
        return Told(PartyState.SENT, last.at)
    if party.sent_at is not None:
        return Told(PartyState.SENT, party.sent_at)
    return Told(PartyState.ON_ITS_WAY if party.is_notified else PartyState.NOT_OPENED)


def awaited(submission: domain.Submission) -> Iterable[int]:
    """Return whose turn it is now, by id."""
    return (party.id for party in submission.submitters if party.awaited and submission.reached(party))
