"""How a service stands, for whoever operates it, and what they may do about what does not go on. The gateway's page ``/ops``
asks every service; a service answers of its own database and its own queues alone."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.rpc import Rpc
from contracts.rpc.health import SERVICES
from contracts.types import Moment, Tolerant


@dataclass(frozen=True)
class StuckRow:
    """One of the rows: its key, the submission it is about, if any, since when it is there, the attempts that were begun, when
    the next one is due, if one is, and the reason that the last one failed, or an empty string."""

    key: str
    submission_id: int | None
    since: datetime
    attempts: int
    next_at: datetime | None
    reason: str


@dataclass(frozen=True)
class Stuck:
    """``count`` rows of ``work`` are in ``state``: a constant of ``contracts.runtime.operations.stuck``. ``remedy`` says what
    to do, and ``actions`` (RETRY, GIVE_UP, SEAL) what an operator may have done to each row."""

    work: str
    state: str
    count: int
    rows: tuple[StuckRow, ...]
    remedy: str
    actions: tuple[str, ...] = ()


RETRY, GIVE_UP, SEAL = "retry", "give_up", "seal"
"""Have work that was given up tried again; try it no longer; have a submission sealed again whose sealing has failed."""


class Backlog(Tolerant):
    """What is still to be done of a kind of work: rows that are ``due`` and whose time has come, the ``oldest`` of them since
    then; rows that are planned for ``later``, that are ``waiting`` for somebody else, and that were given up (``parked``)."""

    work: str
    due: int = 0
    oldest: Moment | None = None
    later: int = 0
    waiting: int = 0
    parked: int = 0


class ParkedQueue(Tolerant):
    """A parking queue with ``count`` events that were given up."""

    queue: str
    count: int


class Process(Tolerant):
    """A process of the service: ``serve`` or ``background``, what it is built of, and when it was seen last."""

    kind: str
    version: str
    revision: str
    seen_at: Moment


class StoredFiles(Tolerant):
    """Files and their bytes, of one ``folder`` of templates (None: of none) and one ``age`` (``AGES``)."""

    folder: str | None
    age: str
    files: int
    bytes: int


AGES = ("30 days", "1 year", "older")
"""Up to 30 days old, up to a year, older than that."""


class Storage(Tolerant):
    """The files that the service's records name, as they were counted at ``at``; None before they were for the first time."""

    at: Moment | None = None
    files: list[StoredFiles] = Field(default_factory=list)


class LookAround(Tolerant):
    """How does the service stand?"""


class Standing(Tolerant):
    """``problems`` keep it from working, ``notes`` do not (``health.Pong``). ``unseen`` says what could not be looked at, and
    why."""

    problems: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    stuck: list[Stuck] = Field(default_factory=list)
    backlog: list[Backlog] = Field(default_factory=list)
    parked: list[ParkedQueue] = Field(default_factory=list)
    processes: list[Process] = Field(default_factory=list)
    storage: Storage | None = None
    unseen: list[str] = Field(default_factory=list)


class ActOnWork(Tolerant):
    """``action`` (RETRY, GIVE_UP) on the row ``key`` of ``work``; without a key on all rows that it is possible for. Asked
    again, it changes nothing more."""

    action: Literal["retry", "give_up"]
    work: str
    key: int | None = None


class ReadParked(Tolerant):
    """The events in a parking queue of the service. ``queue`` is a name as ``ParkedQueue`` has it."""

    queue: str


class ParkedEvent(Tolerant):
    """An event that was given up; ``event_id`` is None of what is none."""

    event_id: str | None
    parked_at: str | None
    tries: int | None
    reason: str


class ParkedEvents(Tolerant):
    events: list[ParkedEvent]


class ActOnParked(Tolerant):
    """Have events of a parking queue handled again (``requeue``), or count as dealt with (``drop``): the one with ``event_id``,
    or all. Asked again, it changes nothing more."""

    action: Literal["requeue", "drop"]
    queue: str
    event_id: str | None = None


class Done(Tolerant):
    """How many rows or events it was done to."""

    count: int


LOOK_AROUND = {service: Rpc(service, "look_around", LookAround, Standing, timeout=5) for service in SERVICES}
ACT_ON_WORK = {service: Rpc(service, "act_on_work", ActOnWork, Done) for service in SERVICES}
READ_PARKED = {service: Rpc(service, "read_parked", ReadParked, ParkedEvents) for service in SERVICES}
ACT_ON_PARKED = {service: Rpc(service, "act_on_parked", ActOnParked, Done) for service in SERVICES}
