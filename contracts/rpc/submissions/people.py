"""Everything that submissions hold about one person (GDPR, Art. 15 and 20), for admins."""

from typing import Any

from pydantic import Field

from contracts.rpc import Rpc
from contracts.rpc.submissions.batches import RowStatus
from contracts.types import Actor, Moment, SubmissionEvent, SubmissionStatus, Submitter, Tolerant


class FindPerson(Tolerant):
    """``after``: only submissions with a higher id; the lowest ids first, ``limit`` of them."""

    actor: Actor
    email: str
    after: int = 0
    limit: int = Field(default=10, ge=1, le=100)


class FoundPerson(Tolerant):
    ids: list[int]


class DescribePerson(Tolerant):
    actor: Actor
    email: str
    ids: list[int] = Field(max_length=200)


class PersonAsParty(Tolerant):
    """A person as a party, as the API shows it, with links to its files, without the audit trail. ``visit`` is what is known of
    their last visit: ``ip``, ``user_agent``, ``time_zone``. ``message`` is what they were written."""

    submitter: Submitter
    visit: dict[str, Any] = Field(default_factory=dict)
    message: dict[str, Any] | None = None


class PersonInSubmission(Tolerant):
    """A submission that names a person. ``mentioned_in`` are the places, such as ``submitters[0].email`` or
    ``preferences.bcc_completed``. ``parties`` are those that are this person, ``events`` the lines of the audit trail that are
    about these, or name the person. Of other people it has nothing but what these lines say."""

    id: int
    name: str | None = None
    template_name: str | None = None
    status: SubmissionStatus
    created_at: Moment
    completed_at: Moment | None = None
    archived_at: Moment | None = None
    erase_at: Moment | None = None
    legal_hold: bool = False
    mentioned_in: list[str]
    parties: list[PersonAsParty] = Field(default_factory=list)
    events: list[SubmissionEvent] = Field(default_factory=list)


class PersonInSubmissions(Tolerant):
    """In the order of the ids, without those of which there is nothing (any more)."""

    data: list[PersonInSubmission]


class FindUnsent(Tolerant):
    actor: Actor
    email: str


class UnsentRow(Tolerant):
    """A row of a batch that names a person and of which no submission tells it. ``row`` None stands for what all rows of the
    batch have in common. ``mentioned_in`` are the places in the row, such as ``submitters[0].email``; ``parties`` the
    submitters that are this person, as they were sent in."""

    batch_id: int
    row: int | None = None
    status: RowStatus | None = None
    external_id: str | None = None
    mentioned_in: list[str]
    parties: list[dict[str, Any]] = Field(default_factory=list)
    updated_at: Moment


class UnsentRows(Tolerant):
    """The latest thousand, the newest first."""

    data: list[UnsentRow]


class RemoveUnsent(Tolerant):
    """Drop every row of a batch that names the person and is no submission."""

    request_id: str
    actor: Actor
    email: str


class RemovedUnsent(Tolerant):
    """``rows`` is how many were dropped. ``batches`` are those whose rows have something in common that names the person
    still: it goes with the batch."""

    rows: int
    batches: list[int] = Field(default_factory=list)


FIND_PERSON = Rpc("submissions", "find_person", FindPerson, FoundPerson, timeout=60)
PERSON = Rpc("submissions", "person", DescribePerson, PersonInSubmissions, timeout=30)
UNSENT_OF_PERSON = Rpc("submissions", "unsent_of_person", FindUnsent, UnsentRows, timeout=60)
REMOVE_UNSENT = Rpc("submissions", "remove_unsent", RemoveUnsent, RemovedUnsent, timeout=60)
