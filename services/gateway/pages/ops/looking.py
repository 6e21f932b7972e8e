"""Looks at all services at once. One that does not answer is named, and the others are shown."""

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from contracts.errors import ServiceError
from contracts.rpc import operating as rpc
from contracts.rpc.health import SERVICES
from contracts.rpc.operating import AGES, Backlog, Standing, Stuck
from contracts.runtime.clock import now
from contracts.runtime.monitoring import observe
from contracts.runtime.operations import stuck
from services.gateway.pages.answering.context import Bus

GATEWAY = "gateway"

_COMPARED_AFTER = timedelta(minutes=1)
_ADDRESS = re.compile(r"[\w.+%'-]+@(?=[\w-]+\.)")
_ORDER = {state: place for place, state in enumerate((stuck.GIVEN_UP, stuck.FAILING, stuck.UNTOUCHED, stuck.UNDER_WAY))}


@dataclass(frozen=True)
class StuckWork:
    """What is stuck of a service, with the words that may be shown."""

    service: str
    stuck: Stuck


@dataclass(frozen=True)
class BacklogLine:
    """What is still to be done of a kind of work, and by how much more or less is due than at ``since``; None where that is not
    known."""

    service: str
    backlog: Backlog
    change: int | None
    since: datetime | None


@dataclass(frozen=True)
class StorageLine:
    """The files of a service in one folder: (files, bytes) by age, and of all ages."""

    service: str
    folder: str | None
    by_age: tuple[tuple[int, int], ...]
    all: tuple[int, int]


@dataclass(frozen=True)
class View:
    """All that the page shows of the services. ``silent`` are those that did not answer, with the reason."""

    at: datetime
    standings: dict[str, Standing]
    silent: dict[str, str]
    stuck: list[StuckWork]
    backlog: list[BacklogLine]
    storage: list[StorageLine] = field(default_factory=list)
    counted_at: datetime | None = None

    @property
    def parked(self) -> int:
        """Count the events that were given up."""
        return sum(queue.count for standing in self.standings.values() for queue in standing.parked)

    def count(self, state: str) -> int:
        """Count the rows that are stuck in this state."""
        return sum(work.stuck.count for work in self.stuck if work.stuck.state == state)


class Lookout:
    """Asks the services over the bus, and the gateway itself by ``own``."""

    def __init__(self, bus: Bus, own_standing: Callable[[], Standing]) -> None:
        self._bus, self._own_standing = bus, own_standing
        self._threads = ThreadPoolExecutor(2 * len(SERVICES), thread_name_prefix="ops")
        self._lock = threading.Lock()
        self._counts: list[tuple[datetime, dict[tuple[str, str], int]]] = []

    def look(self) -> View:
        """See how every service stands. It takes as long as the slowest, and no longer than a call may."""
        future_by_service = {name: self._threads.submit(self._standing, name) for name in (*SERVICES, GATEWAY)}
        answers = {name: future.result() for name, future in future_by_service.items()}
        standings = {name: answer for name, answer in answers.items() if isinstance(answer, Standing)}
        moment = now()
        return View(
            at=moment,
            standings=standings,
            silent={name: answer for name, answer in answers.items() if isinstance(answer, str)},
            stuck=_stuck(standings),
            backlog=self._backlog(standings, moment),
            storage=_storage(standings),
            counted_at=min((s.storage.at for s in standings.values() if s.storage and s.storage.at), default=None),
        )

    def _standing(self, name: str) -> Standing | str:
        try:
            return self._own_standing() if name == GATEWAY else self._bus.call(rpc.LOOK_AROUND[name], rpc.LookAround())
        except ServiceError as error:
            return error.message

    def _backlog(self, standings: Mapping[str, Standing], moment: datetime) -> list[BacklogLine]:
        lines = [(name, backlog) for name, standing in standings.items() for backlog in standing.backlog]
        since, before = self._compared(moment, {(name, backlog.work): backlog.due for name, backlog in lines})
        shown = [
            (name, backlog)
            for name, backlog in lines
            if backlog.due or backlog.later or backlog.waiting or backlog.parked
        ]
        return [
            BacklogLine(
                name,
                backlog,
                backlog.due - before[name, backlog.work] if (name, backlog.work) in before else None,
                since,
            )
            for name, backlog in shown
        ]

    def _compared(
        self, moment: datetime, counts: dict[tuple[str, str], int]
    ) -> tuple[datetime | None, dict[tuple[str, str], int]]:
        """The counts of an earlier look of this process, a minute ago or longer."""
        with self._lock:
            if not self._counts or moment - self._counts[-1][0] >= _COMPARED_AFTER:
                self._counts = [*self._counts[-1:], (moment, counts)]
            earlier = self._counts[0]
        return earlier if moment - earlier[0] >= _COMPARED_AFTER else (None, {})


def shown(reason: str) -> str:
    """The reason of a failure without secrets, and without the names of mailboxes."""
    return _ADDRESS.sub("***@", observe.shown(reason))


def _stuck(standings: Mapping[str, Standing]) -> list[StuckWork]:
    """List what is given up first, then what fails, what nobody does, and what waits."""
    stuck_work = [StuckWork(name, stuck) for name, standing in standings.items() for stuck in standing.stuck]
    return sorted(stuck_work, key=lambda line: _ORDER.get(line.stuck.state, len(_ORDER)))


def _storage(standings: Mapping[str, Standing]) -> list[StorageLine]:
    """The folders of each service, the largest first."""
    lines = []
    for name, standing in standings.items():
        by_folder: dict[str | None, dict[str, tuple[int, int]]] = {}
        for part in standing.storage.files if standing.storage else ():
            by_folder.setdefault(part.folder, {})[part.age] = (part.files, part.bytes)
        for folder, by_age in by_folder.items():
            parts = tuple(by_age.get(age, (0, 0)) for age in AGES)
            total = (sum(files for files, _ in by_age.values()), sum(size for _, size in by_age.values()))
            lines.append(StorageLine(name, folder, parts, total))
    return sorted(lines, key=lambda line: -line.all[1])
