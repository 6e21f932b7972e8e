"""Work that can fail outside (mail, webhook, seal, provider) is a row: claimed, tried outside the transaction, retried
with backoff, parked when it is hopeless.

Every attempt may happen twice: a process can die after the outside effect and before the outcome is written, and a lease
can run out while a slow attempt is still under way. Attempts are therefore idempotent, or their receivers deduplicate.

An outcome is written as soon as the database takes it, however long that is; until then the attempt keeps its lease, and
nothing is done outside again because of a database that was away. Outcomes that come while others are being written share the
next transaction: one wait for the disk is enough for all of them.

A lease that is prolonged while its attempt is under way can be short, however long attempts may take: a process that is dead,
stopped or cut off no longer prolongs it, and another one takes the row over.

Nothing here sleeps in a worker: these loops run in a service's ``background`` process, in plain threads.
"""

import contextvars
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa
from prometheus_client import Counter, Gauge
from sqlalchemy.orm import Mapped, Session, mapped_column

from contracts.errors import ServiceError
from contracts.runtime import clock
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, UtcDateTime, leave_work
from contracts.runtime.data.due_work.holder import is_dead, own_name
from contracts.runtime.data.due_work.lanes import FRESH, MOMENT, MOST, LaneChoice, Lanes, is_due, is_free, is_held
from contracts.runtime.monitoring import liveness, observe, tracing

log = observe.logger(__name__)

FINISHED = Counter("countersign_due_work_total", "Attempts of due work", ["work", "outcome"])
PARKED = Gauge("countersign_due_work_parked", "Rows that were given up and wait for an operator", ["work"])
OLDEST = Gauge("countersign_due_work_oldest_seconds", "How long the row is overdue that waits longest for us", ["work"])

UNWRITTEN = Gauge("countersign_due_work_unwritten", "Outcomes of attempts that the database does not take", ["work"])

JITTER = 0.2
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between the tries to write an outcome."""

_PROLONGED_AFTER = 1 / 3
"""Of a lease, while its attempt is under way: a try that fails is followed by others before it ends."""

_TOGETHER = 32
"""Outcomes in one transaction, which holds SQLite's write lock."""

_GATHERING = 0.02
"""Seconds for which an outcome waits at most for those of attempts that were begun with its own."""

_TRIED_AGAIN = ("more", "not tried", "retry")
"""States of rows after an attempt that are due at another time than before."""

_ERROR_LENGTH = 2000

_LONGEST_REST = 30.0
"""Seconds after which a loop looks although nothing has changed."""

_TURNS_REST, _LONGEST_TURNS_REST = 3.0, 0.25
"""So many times as long as its last turn took, and for so many seconds at most, a loop leaves what comes to the next turn,
which then does it together: a turn takes about the same for one as for several, of the processor as well. A turn that is
quick, because nobody else uses the machine, is hardly waited for; where all are busy, nobody would have been quicker."""

TURNS_APART = 0.25
"""Seconds between the turns of a loop whose work reaches people and programs outside, who do not notice a quarter of a second
(``apart``): what comes one after the other within so long is claimed, and mostly done, together. What comes later than that
after a turn is begun at once."""


class DueRow:
    """Columns of a row that is work to be done; mix into a declarative class that has its own primary key.

    ``state`` is ``due`` until it is ``done`` or ``parked``. ``attempts`` counts the attempts that were started.
    ``leased_until`` and ``leased_by`` say who is at it. A migration creates them with ``tables.due_columns()``.
    """

    state: Mapped[str] = mapped_column(sa.String(10), default="due", server_default="due")
    attempts: Mapped[int] = mapped_column(sa.Integer, default=0, server_default="0")
    next_attempt_at: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    leased_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    leased_by: Mapped[str | None] = mapped_column(sa.Text)
    last_error: Mapped[str | None] = mapped_column(sa.Text)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    def make_due(self, at: datetime) -> None:
        """Try again at ``at``, with the whole schedule before it."""
        self.state, self.attempts, self.next_attempt_at = "due", 0, at
        self.leased_until = self.leased_by = self.finished_at = None

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Return the condition for parked rows that an operator may have tried again (``python -m services.<name> retry``);
        here all."""
        return sa.true()

    def retry(self, at: datetime) -> None:
        """Make a row due again, as an operator's retry does."""
        self.make_due(at)


class Traced:
    """The column of work that belongs to the trace of what caused it; mix in beside DueRow. A migration adds it with
    ``tables.add_trace(op, ...)``."""

    traceparent: Mapped[str | None] = mapped_column(sa.String(tracing.LENGTH), default=tracing.traceparent)


Record = Callable[[Session, Any], None]
"""Runs in the transaction that writes the outcome; gets the session and the row, loaded in it. emit() belongs here."""

RecordAll = Callable[[Session, Sequence[Any]], None]
"""Runs in one transaction for several rows, which gets them: for what costs about the same for many as for one."""


class Note(Protocol):
    """A note, outside the database, of work that was done and must not be done again."""

    def sync(self) -> None:
        """The database does not take the outcome at once: only the note will know of it when the machine fails."""

    def remove(self) -> None:
        """The outcome is in the database."""


@dataclass(frozen=True)
class Done:
    """The work is done. ``note`` is removed once that is written."""

    record: Record | None = None
    note: Note | None = None


@dataclass(frozen=True)
class Retry:
    """It failed and may succeed later: ``after`` that time instead of the schedule's next one. If it does not count, it was not
    tried at all, for a reason of ours."""

    error: str
    after: timedelta | None = None
    record: Record | None = None
    counts: bool = True


@dataclass(frozen=True)
class More:
    """A part of it is done, and the next one is due after that time. What failed before that counts no more."""

    after: timedelta


@dataclass(frozen=True)
class Park:
    """It can never succeed, or somebody has to look at it."""

    error: str
    record: Record | None = None


Outcome = Done | Retry | More | Park


class _Wave:
    """Attempts that were begun together. Their outcomes wait a moment for each other, and so do the claims that follow."""

    def __init__(self, attempts: int) -> None:
        self._under_way = deque(range(attempts))
        self._all_ended = threading.Event()

    def gather(self) -> None:
        """Called by each when it has ended."""
        self._under_way.pop()
        if self._under_way:
            self._all_ended.wait(_GATHERING)
        else:
            self._all_ended.set()


@dataclass
class _UnderWay:
    """An attempt that this process makes. ``prolong_at`` and ``ends`` are monotonic seconds: when its lease is prolonged next,
    and when it loses its lease and its place. ``held``: its outcome is not in the database. ``unwritten``: there is an outcome,
    and the database has not taken it. ``over``: it has. ``context``: what its outcome is recorded in, by whatever thread."""

    key: Any
    attempts: int
    wave: _Wave
    prolong_at: float
    ends: float
    held: bool = True
    unwritten: bool = False
    over: bool = False
    context: contextvars.Context = field(default_factory=contextvars.Context)


@dataclass
class _Ended:
    """An attempt whose outcome is on its way into the database. ``tried``: it was to be written together with others;
    ``state`` is that of its row since, or None; ``apart``: it has to be tried without the others."""

    attempt: _UnderWay
    outcome: Outcome
    state: str | None = None
    tried: bool = False
    apart: bool = False


@dataclass
class Rest:
    """A look found nothing to do and nobody at work. So it stays until ``until``, if ``Database.changes`` says no other number,
    or somebody has seen that nothing came of the change: they write the new number here. ``ends``, in monotonic seconds, is for
    what nobody thought of."""

    changes: int | None
    until: datetime | None
    ends: float


@sa.event.listens_for(Session, "after_flush")
def _notice_due_rows(session: Session, _context: Any) -> None:
    """Only of what is due now, and nobody is at: a loop that is told claims without looking, which on SQLite takes the write
    lock. What is planned for later is found by the loop's next look, at most ``poll_seconds`` after its time."""
    for row in (*session.new, *session.dirty):
        if not isinstance(row, DueRow) or row.state != "due" or row.leased_until is not None:
            continue
        if row.next_attempt_at <= now():
            leave_work(session, sa.inspect(row).mapper.local_table.name)


class Loop:
    """A thread of the background process: does something, then waits until it is woken or its time has come.

    ``table``: work that was left there is a reason to wake it. ``resting``: it found nothing to do, and looks again when that
    may have changed. It looks for that itself every ``poll_seconds``, or is told by somebody who looks for many loops
    (``watched``, see ``watch``). ``gathers``: between its turns it waits for more to come, for so many seconds at least,
    unless a turn knows that there is more. None: it does not wait.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.table: str | None = None
        self.poll_seconds = 1.0
        self.resting: Rest | None = None
        self.watched = False
        self.turn_seconds = liveness.TURN_SECONDS
        self.gathers: float | None = None
        self._hinted = False
        self._woken = threading.Event()
        self._stopping = threading.Event()

    def wake(self) -> None:
        """There is something to do. May be called from any thread."""
        self._hinted = True
        self._woken.set()

    def first_due(self) -> sa.ScalarSelect[Any] | None:
        """Select the time of the first row that there is, or will be, something to do for; NULL when there is none. None for a
        loop that never rests."""
        return None

    @property
    def knows_first(self) -> bool:
        """Is what ``first_due`` selects the first of all rows, and not just one of them?"""
        return True

    def rest(self, changes: int | None, until: datetime | None = None) -> None:
        """There is nothing to do now, nor until ``until``, as was seen after the database had been asked for ``changes``."""
        if changes is not None or self.watched:
            self.resting = Rest(changes, until, time.monotonic() + _LONGEST_REST)

    def rests_for(self, changes: int | None) -> float:
        """Return for how many seconds it may go on resting; 0 when it has to look."""
        rest = self.resting
        if rest is None:
            return 0.0
        wait = rest.ends - time.monotonic()
        if rest.until is not None:
            wait = min(wait, (rest.until - now()).total_seconds())
        if wait <= 0 or rest.changes != changes:
            self.resting = None
            return 0.0
        return wait if self.watched else min(wait, self.poll_seconds)

    def look_again(self) -> None:
        """End its rest, if it has one: something has changed. May be called from any thread."""
        self.resting = None
        self._woken.set()

    def stop(self) -> None:
        """Begin nothing new."""
        self._stopping.set()
        self._woken.set()

    def turn(self) -> float:
        """Do what is to be done; returns after how many seconds there is more, unless woken."""
        raise NotImplementedError

    def run(self) -> None:
        """Turns until stopped. An exception is logged, and the next turn comes later and later."""
        watched = liveness.Watched(f"the loop {self.name}", self.turn_seconds)
        watched.run(lambda: self._turns(watched))
        watched.finish()
        self.finish()

    def _turns(self, watched: liveness.Watched) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._woken.clear()
            watched.beat()
            began = time.monotonic()
            try:
                pause, failures = self.turn(), 0
            except Exception as error:
                failures += 1
                pause = min(30.0, 0.5 * 2**failures) * random.uniform(1 - JITTER, 1 + JITTER)
                _log_failure("loop.failed", error, loop=self.name, again_in_seconds=round(pause, 1))
                watched.rest()
                self._stopping.wait(pause)
                continue
            watched.rest()
            if self.gathers is not None and pause > 0:
                rest = min(_LONGEST_TURNS_REST, _TURNS_REST * (time.monotonic() - began))
                rest = min(pause, max(self.gathers, rest))
                self._stopping.wait(rest)
                pause -= rest
            if not self._stopping.is_set():  # else its wake-up may have been cleared above
                self._woken.wait(max(0.0, pause))

    def finish(self) -> None:
        """Wait for what is under way."""


class Every(Loop):
    """Calls ``function`` now and then every ``interval``, on each replica: it must be harmless to do it twice at once. It is
    called again at once when it returns True: there is more."""

    def __init__(self, name: str, interval: timedelta, function: Callable[[], bool | None]) -> None:
        super().__init__(name)
        self._interval = interval.total_seconds()
        self.turn_seconds = max(self.turn_seconds, self._interval)
        self._function = function

    def turn(self) -> float:
        if self._function():
            return 0.0
        return self._interval * random.uniform(1 - JITTER, 1 + JITTER)


class DueWork(Loop):
    """Attempts the due rows of a table.

    ``attempt`` gets the row, detached, outside any transaction. It returns Done, More, Retry or Park; an exception means Retry.
    After the n-th failed attempt the n-th time of ``schedule`` passes, +-20 %; after the last one the row is parked, and
    ``on_park`` runs in that transaction. ``Park`` runs its own ``record`` if it has one, else ``on_park``.
    ``on_claimed`` runs in the transaction that claims rows, ``on_written`` in the one that writes their outcomes, after their
    own records. A claim may be undone by a power cut while its attempts go on, unless ``synced_claims``: for an ``on_claimed``
    that notes what attempts rely on.
    ``lanes``: rows belong to somebody, and each gets a few places at once; without it the first due come first.
    ``apart``: so many seconds at least are between turns that took everything.

    An attempt that takes longer than ``lease`` may be made by another process as well. The first Done counts; the late outcome
    of an attempt that was taken over is dropped. ``lease`` should be well above the attempt's own time-outs, unless there is a
    ``limit``: then the lease is prolonged while the attempt is under way, until it has taken that long. (Not with ``lanes``,
    which tell from the lease since when an attempt is under way.) Once the attempt is over, the lease is prolonged until its
    outcome is written.

    When the wall clock is put forward no lease ends by that. When it is put back, what waits for its first attempt does not
    wait for the clock: it was due at once, unless ``scheduled`` says that rows are made for a later time. What has failed
    before waits for no longer than its pause.
    """

    def __init__(
        self,
        name: str,
        database: Database,
        row: type[Any],
        attempt: Callable[[Any], Outcome],
        *,
        schedule: Sequence[timedelta],
        lease: timedelta,
        limit: timedelta | None = None,
        concurrency: int = 1,
        lanes: Lanes | None = None,
        on_park: Record | None = None,
        on_claimed: RecordAll | None = None,
        on_written: RecordAll | None = None,
        scheduled: bool = False,
        synced_claims: bool = False,
        apart: float = 0.0,
    ) -> None:
        super().__init__(name)
        self.gathers = self._apart = apart
        self._database = database
        self._row = row
        self.table = row.__tablename__
        self._key = sa.inspect(row).primary_key
        self._attempt = attempt
        self._schedule = tuple(schedule)
        self._lease, self._limit = lease, limit
        self._concurrency = concurrency
        self._lanes = None if lanes is None else LaneChoice(row, lanes, lease, concurrency)
        self._on_park, self._on_claimed, self._on_written = on_park, on_claimed, on_written
        self._scheduled, self._synced_claims = scheduled, synced_claims
        self._running: dict[threading.Thread, _UnderWay] = {}
        self._ended: deque[_Ended] = deque()
        self._writing = threading.Lock()
        self._crowded = True
        self._again_at = datetime.min.replace(tzinfo=UTC)
        self._next_check_of_leases = 0.0
        self._put_back = clock.put_back_in_all()
        # Compiled once: building a statement costs more than running it.
        self._look = (
            sa.select(row.next_attempt_at).where(is_due(row), is_free(row)).order_by(row.next_attempt_at).limit(1)
        )
        taken = (
            sa.and_(is_due(row), row.leased_by.is_not(None)) if lanes is None else is_held(row),
            sa.or_(row.next_attempt_at <= MOMENT, row.next_attempt_at <= FRESH),
        )
        self._taken = sa.select(sa.literal(1)).where(*taken).limit(1)
        self._lease_rows = self._leasing()
        self._rows = self._by_keys().with_for_update()
        self._free_rows = self._by_keys().with_for_update(skip_locked=True)
        self._next_due = sa.select(sa.func.min(row.next_attempt_at)).where(is_due(row), row.next_attempt_at > MOMENT)

    def turn(self) -> float:
        hinted, self._hinted = self._hinted, False
        changes = self._database.changes()
        if not hinted and (pause := self.rests_for(changes)) > 0:
            return pause
        self.resting = None
        self._shorten_waits()
        self._free_leases_of_the_dead()
        self._hold_leases()
        self._crowded = True  # whoever ends meanwhile may make room for a row that is not taken now
        free = self._concurrency - self._busy()
        rows, pause = self._due(free, hinted, changes) if free > 0 else ([], self.poll_seconds)
        more = len(rows) >= free or (self._lanes is not None and self._lanes.crowded)
        self.gathers = None if more else self._apart
        self._crowded = more or now() < self._again_at  # a claim does not say when what is tried again is due
        wave = _Wave(len(rows))
        for row in rows:
            attempt = self._begun(row, wave)
            thread = threading.Thread(target=self._work, args=(row, attempt), name=f"{self.name}-attempt", daemon=True)
            self._running[thread] = attempt
            thread.start()
        return self.rests_for(changes) or min(pause, self.poll_seconds)

    def rests_for(self, changes: int | None) -> float:
        if clock.put_back_in_all() != self._put_back:
            self.resting = None
        return super().rests_for(changes)

    def finish(self) -> None:
        for thread in list(self._running):
            thread.join()

    def _begun(self, row: Any, wave: _Wave) -> _UnderWay:
        moment, lease = time.monotonic(), self._lease.total_seconds()
        key = sa.inspect(row).identity
        if self._limit is None:
            return _UnderWay(key, row.attempts, wave, prolong_at=moment + lease, ends=moment + lease)
        ends = moment + self._limit.total_seconds()
        return _UnderWay(key, row.attempts, wave, prolong_at=moment + lease * _PROLONGED_AFTER, ends=ends)

    def _busy(self) -> int:
        """Attempts under way. One that has outlived its lease no longer takes a place, up to a limit."""
        self._running = {thread: attempt for thread, attempt in self._running.items() if thread.is_alive()}
        under_way = [attempt for attempt in self._running.values() if not attempt.over]
        overdue = sum(attempt.ends < time.monotonic() for attempt in under_way)
        if overdue:
            log.error("due_work.stuck", work=self.name, attempts=overdue)
        return len(under_way) - min(overdue, 3 * self._concurrency)

    def _due(self, limit: int, hinted: bool, changes: int | None) -> tuple[list[Any], float]:
        """Looks before it claims, unless it was hinted that there is something: on SQLite a transaction that may write makes
        every other writer wait, for nothing."""
        pause = 0.0 if hinted else self._database.read(self._seconds_until_due, limit, changes)
        if pause > 0:
            return [], pause
        write = self._database.write if self._synced_claims else self._database.write_unsynced
        return write(self._claim, limit)

    def _seconds_until_due(self, session: Session, limit: int, changes: int | None) -> float:
        times = self._times()
        if self._lanes is not None:
            plan, wait = self._lanes.plan(session, times, limit)
            if plan:
                return 0.0
        else:
            soonest = session.scalar(self._look, {"leases_over": times["leases_over"]})
            wait = (soonest - times["fresh"]).total_seconds() if soonest else None
        if self._may_rest(changes, wait) and session.scalar(self._taken, times) is None:
            self.rest(changes, None if wait is None else times["moment"] + timedelta(seconds=wait))
        return self._pause(wait)

    def _may_rest(self, changes: int | None, wait: float | None) -> bool:
        """Not while it, or another process, is at work: a lease ends without a change of the database. And where nobody counts
        changes, not while a lane has something planned: which is the first of all lanes is found by no index."""
        if self._running:
            return False
        return changes is not None or (self.watched and (self._lanes is None or wait is None))

    def first_due(self) -> sa.ScalarSelect[Any] | None:
        row = self._row
        first = sa.select(row.next_attempt_at).where(is_due(row)).limit(1)
        return (first.order_by(row.next_attempt_at) if self._lanes is None else first).scalar_subquery()

    @property
    def knows_first(self) -> bool:
        return self._lanes is None

    def _pause(self, wait: float | None) -> float:
        return self.poll_seconds if wait is None else max(0.0, wait)

    def _times(self) -> dict[str, datetime]:
        """Return the times that those in the rows are compared with. The leases first: they must not end by a leap that comes
        in between."""
        leases_over = clock.without_leaps(self._lease)
        moment = now()
        fresh = moment if self._scheduled else moment + clock.put_back()
        return {"leases_over": leases_over, "moment": moment, "fresh": fresh}

    def _claim(self, session: Session, limit: int) -> tuple[list[Any], float]:
        """Lease up to ``limit`` due rows, and say in how many seconds there may be more: with lanes, unless an attempt ends."""
        times = self._times()
        moment = times["moment"]
        chosen: dict[str, Any] = {"most": limit}
        wait: float | None = None
        if self._lanes is not None:
            if session.get_bind().dialect.name == "postgresql":
                # Two processes must not each take the last place of a lane at the same moment.
                session.execute(
                    sa.text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": f"claim {self.name}"}
                )
            plan, wait = self._lanes.plan(session, times, limit)
            chosen = {"chosen": self._lanes.keys(session, times, plan)}
            if not chosen["chosen"]:
                return [], self._pause(wait)
        lease = {"lease_ends": moment + self._lease, "holder": own_name()}
        rows = session.scalars(self._lease_rows, {**times, **chosen, **lease}).all()
        if rows:
            if self._on_claimed is not None:
                self._on_claimed(session, rows)
            # Fewer than there was room for: there is no more now. Who ends next looks again.
            pause = 0.0 if len(rows) == limit else self._pause(wait)
            return sorted(rows, key=lambda row: row.next_attempt_at), pause
        soonest = session.scalar(self._next_due, {"moment": moment})
        return [], self._pause((soonest - moment).total_seconds() if soonest else None)

    def _leasing(self) -> Any:
        """One statement that chooses (with lanes, it is told) and leases, and returns the rows as they are then."""
        row = self._row
        if self._lanes is None:
            # Materialized, or PostgreSQL may choose again for each row that it looks at.
            due = self._due_keys().cte("due").prefix_with("MATERIALIZED", dialect="postgresql")
            chosen = sa.tuple_(*self._key).in_(sa.select(*due.c))
        else:
            chosen = self._key[0].in_(sa.bindparam("chosen", expanding=True))
        lease = {"leased_until": sa.bindparam("lease_ends", type_=UtcDateTime), "leased_by": sa.bindparam("holder")}
        return (
            sa.update(row)
            .where(chosen)
            .values(attempts=row.attempts + 1, **lease)
            .returning(row)
            .execution_options(synchronize_session=False)
        )

    def _by_keys(self) -> Any:
        keys: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
        return sa.select(self._row).where(
            self._key[0].in_(keys) if len(self._key) == 1 else sa.tuple_(*self._key).in_(keys)
        )

    def _due_keys(self) -> Any:
        row = self._row
        due = sa.and_(
            is_due(row),
            row.next_attempt_at <= FRESH,
            sa.or_(row.next_attempt_at <= MOMENT, row.attempts == 0),
            is_free(row),
        )
        first = sa.select(*self._key).where(due).order_by(row.next_attempt_at, *self._key).limit(MOST)
        return first.with_for_update(skip_locked=True)

    def _work(self, row: Any, this: _UnderWay) -> None:
        started = time.monotonic()
        with observe.request(getattr(row, "request_id", None)), self._span(row, this) as span:
            this.context = contextvars.copy_context()
            try:
                outcome = self._attempt(row)
            except Exception as error:
                _log_failure("due_work.raised", error, work=self.name, row=this.key)
                outcome = Retry(_words(error))
            ended = self._has_ended(this, outcome)
            this.wave.gather()
            state = self._written(ended)
            span.set({"countersign.outcome": state})
            if state in ("retry", "parked"):
                span.fail(state)
            duration = round((time.monotonic() - started) * 1000, 1)
            log.info(
                "due_work.attempted",
                work=self.name,
                row=this.key,
                attempt=this.attempts,
                outcome=state,
                error=getattr(outcome, "error", None),
                duration_ms=duration,
            )
        FINISHED.labels(self.name, state).inc()

    def _span(self, row: Any, this: _UnderWay) -> tracing.Span:
        """Return the span of one attempt: within the trace of what caused the work, also when it is tried again. What was
        planned for a later time begins a trace of its own, with a link to its cause: that one is over by then."""
        if not tracing.on():
            return tracing.NOTHING
        cause = getattr(row, "traceparent", None)
        attributes: tracing.Attributes = {
            "countersign.work": self.name,
            "countersign.row": _shown(this.key),
            "countersign.attempt": this.attempts,
        }
        parent, link = (None, cause) if self._scheduled else (cause, None)
        return tracing.span(self.name, attributes=attributes, parent=parent, root=True, link=link)

    def _has_ended(self, this: _UnderWay, outcome: Outcome) -> _Ended:
        """From now on whoever writes next writes this outcome, too."""
        ended = _Ended(this, outcome)
        self._ended.append(ended)
        return ended

    def _written(self, ended: _Ended) -> str:
        """Write the outcome, as soon as the database takes it; returns the state of the row then."""
        this, outcome = ended.attempt, ended.outcome
        note = outcome.note if isinstance(outcome, Done) else None
        state = self._try_to_write(ended)
        if state is None:
            if note is not None:
                _quietly(note.sync)
            state = self._write_later(this, outcome)
        if note is not None and state in ("done", "superseded"):
            _quietly(note.remove)
        return state

    def _write_later(self, this: _UnderWay, outcome: Outcome) -> str:
        state, pause = None, FIRST_PAUSE
        while state is None:
            this.held = this.unwritten = True
            self._count_unwritten()
            time.sleep(pause * random.uniform(1 - JITTER, 1 + JITTER))
            pause = min(2 * pause, LONGEST_PAUSE)
            state = self._try_to_write(self._has_ended(this, outcome))
        this.held = this.unwritten = False
        self._count_unwritten()
        return state

    def _count_unwritten(self) -> None:
        UNWRITTEN.labels(self.name).set(sum(attempt.unwritten for attempt in list(self._running.values())))

    def _try_to_write(self, ended: _Ended) -> str | None:
        """None when the database takes nothing. What cannot be recorded for another reason is a failed attempt.

        One thread at a time writes, for all those that are waiting by then.
        """
        with self._writing:
            while not ended.tried:
                self._write_together([self._ended.popleft() for _ in range(min(len(self._ended), _TOGETHER))])
        if ended.apart:
            self._write_apart(ended)
        return ended.state

    def _write_together(self, together: Sequence[_Ended]) -> None:
        """Write several outcomes at once; if that fails for another reason than the database, each is written apart."""
        try:
            self._keep_states(together, self._database.write(self._write_outcomes, together, wait=False))
        except Exception as error:
            keys = [ended.attempt.key for ended in together]
            _log_failure("due_work.outcome_failed", error, work=self.name, rows=keys)
            for ended in together:
                ended.apart = not _is_unavailable(error)
        finally:
            for ended in together:
                ended.tried = True

    def _write_apart(self, ended: _Ended) -> None:
        try:
            self._keep_states([ended], self._database.write(self._write_outcomes, [ended], wait=True))
            return
        except Exception as error:
            _log_failure("due_work.outcome_failed", error, work=self.name, row=ended.attempt.key)
            if _is_unavailable(error):
                return
            instead = replace(ended, outcome=Retry(_words(error)))
        try:
            self._keep_states([ended], self._database.write(self._write_outcomes, [instead], wait=True))
        except Exception as again:
            _log_failure("due_work.outcome_failed", again, work=self.name, row=ended.attempt.key)

    def _keep_states(self, together: Sequence[_Ended], states: Sequence[str | None]) -> None:
        for ended, state in zip(together, states, strict=True):
            ended.state, ended.apart, ended.attempt.over = state, state is None, state is not None
        if self._crowded or any(state in _TRIED_AGAIN for state in states):
            self._woken.set()  # to look whether there is more

    def _hold_leases(self) -> None:
        """Keep the leases of attempts that are under way, where there is a limit to that, and of those that are over and not
        written: when the database comes back after they would have ended, this loop does not take the rows again. A lease that
        was lost when the database was killed is taken again."""
        row, moment = self._row, time.monotonic()
        lease = self._lease.total_seconds()
        attempts = [attempt for thread, attempt in self._running.items() if thread.is_alive() and attempt.held]
        prolonged = [
            attempt for attempt in attempts if attempt.unwritten or attempt.prolong_at <= moment < attempt.ends
        ]
        if not prolonged:
            return
        for attempt in prolonged:
            if attempt.unwritten:
                attempt.ends = moment + lease

        def prolong(session: Session) -> None:
            for attempt in prolonged:
                this = self._is(attempt)
                ours = sa.or_(row.leased_by.is_(None), row.leased_by == own_name())
                until = now() + timedelta(seconds=min(lease, attempt.ends - moment))
                values = {"leased_until": until, "leased_by": own_name(), "attempts": attempt.attempts}
                session.execute(sa.select(row.attempts).where(this).with_for_update())
                # Or it was written before this transaction had the row, and may be due again: then nobody would take it.
                if attempt.held:
                    session.execute(
                        sa.update(row)
                        .where(this, row.state == "due", row.attempts <= attempt.attempts, ours)
                        .values(**values)
                    )

        self._database.write_unsynced(prolong)
        for attempt in prolonged:
            attempt.prolong_at = moment + lease * _PROLONGED_AFTER

    def _is(self, attempt: _UnderWay) -> sa.ColumnElement[bool]:
        return sa.and_(*(column == value for column, value in zip(self._key, attempt.key, strict=True)))

    def _write_outcomes(self, session: Session, together: Sequence[_Ended], *, wait: bool) -> list[str | None]:
        """The rows' states then; without ``wait`` None where one is locked by somebody else, or has gone."""
        keys = {ended.attempt.key for ended in together}
        chosen = {"keys": [key if len(key) > 1 else key[0] for key in keys]}
        locked = session.scalars(self._rows if wait else self._free_rows, chosen)
        rows = {sa.inspect(row).identity: row for row in locked}
        states: list[str | None] = []
        written = []
        for ended in together:
            row = rows.get(ended.attempt.key)
            if row is None and not wait:
                states.append(None)
                continue
            # While the row is locked: whoever has it next, to hold it, must see that there is nothing to hold any more.
            ended.attempt.held = False
            states.append(self._change(session, row, ended.attempt, ended.outcome))
            if row is not None and states[-1] in _TRIED_AGAIN:
                self._again_at = max(self._again_at, row.next_attempt_at)
            if states[-1] != "superseded":
                written.append(row)
        if self._on_written is not None and written:
            self._on_written(session, written)
        return states

    def _change(self, session: Session, row: Any, this: _UnderWay, outcome: Outcome) -> str:
        if row is None or row.state != "due":
            return "superseded"
        if row.attempts > this.attempts and not isinstance(outcome, Done):
            return "superseded"
        row.attempts = max(row.attempts, this.attempts)  # a database that was killed may have lost that it was begun
        row.leased_until = row.leased_by = None
        if isinstance(outcome, Done):
            row.state, row.finished_at, row.last_error = "done", now(), None
            this.context.run(_run, outcome.record, session, row)
        elif isinstance(outcome, Park):
            self._park(row, outcome.error)
            this.context.run(_run, outcome.record or self._on_park, session, row)
        elif isinstance(outcome, More):
            row.attempts, row.last_error, row.next_attempt_at = 0, None, now() + outcome.after
            return "more"
        elif not outcome.counts:
            row.attempts -= 1
            row.last_error = outcome.error[:_ERROR_LENGTH]
            row.next_attempt_at = now() + (outcome.after or self._pause_after(1))
            return "not tried"
        elif row.attempts > len(self._schedule):
            self._park(row, outcome.error)
            this.context.run(_run, outcome.record, session, row)
            this.context.run(_run, self._on_park, session, row)
        else:
            row.last_error = outcome.error[:_ERROR_LENGTH]
            row.next_attempt_at = now() + (outcome.after or self._pause_after(row.attempts))
            this.context.run(_run, outcome.record, session, row)
            return "retry"
        return str(row.state)

    def _park(self, row: Any, error: str) -> None:
        row.state, row.finished_at, row.last_error = "parked", now(), error[:_ERROR_LENGTH]

    def _pause_after(self, attempts: int) -> timedelta:
        return self._schedule[attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER)

    def _shorten_waits(self) -> None:
        """Once after the clock was put back: what was written down while it was ahead must not lie ahead for as long as that.

        No attempt waits for longer than the pause before it, and no lease ends later than one that is taken now. A pause that
        an outcome had asked for instead may be cut short by this.
        """
        put_back = clock.put_back_in_all()
        if put_back == self._put_back:
            return
        row, moment = self._row, now()
        latest = moment + self._lease
        leases = sa.update(row).where(is_due(row), row.leased_until > latest).values(leased_until=latest)
        pauses = {
            number: sa.literal(moment + pause * (1 + JITTER), UtcDateTime)
            for number, pause in enumerate(self._schedule, start=1)
        }

        def shorten(session: Session) -> None:
            session.execute(leases)
            if pauses:
                longest = sa.case(pauses, value=row.attempts, else_=pauses[len(pauses)])
                waiting = (is_due(row), row.attempts > 0, row.leased_until.is_(None), row.next_attempt_at > longest)
                session.execute(sa.update(row).where(*waiting).values(next_attempt_at=longest))

        self._database.write(shorten)
        self._put_back = put_back

    def _free_leases_of_the_dead(self) -> None:
        """Take over at once what a process on this machine had leased when it was killed; and count what waits."""
        if time.monotonic() < self._next_check_of_leases:
            return
        self._next_check_of_leases = time.monotonic() + 5
        row = self._row
        holders, parked, oldest = self._database.read(self._survey)
        PARKED.labels(self.name).set(parked)
        OLDEST.labels(self.name).set(max(0.0, (now() - oldest).total_seconds()) if oldest else 0.0)
        if dead := [holder for holder in holders if is_dead(holder)]:
            freed = (
                sa.update(row)
                .where(row.state == "due", row.leased_by.in_(dead))
                .values(leased_until=None, leased_by=None)
            )
            self._database.write(lambda session: session.execute(freed))
            log.warning("due_work.taken_over", work=self.name, holders=dead)

    def _survey(self, session: Session) -> tuple[list[str], int, datetime | None]:
        row, times = self._row, self._times()
        holds = row.leased_by.is_not(None)
        if self._lanes is None:
            # Nobody holds what is planned for later, which can be much. With lanes there is an index of what is held.
            holds = sa.and_(holds, is_due(row), row.next_attempt_at <= max(times["moment"], times["fresh"]))
        holders = sa.select(row.leased_by).where(holds)
        parked = session.scalar(sa.select(sa.func.count()).select_from(row).where(row.state == "parked"))
        if self._lanes is not None:
            oldest = self._lanes.oldest(session, times)
        else:
            oldest = session.scalar(sa.select(sa.func.min(row.next_attempt_at)).where(is_due(row)))
        return list(session.scalars(holders.distinct())), parked or 0, oldest


def _run(record: Record | None, session: Session, row: Any) -> None:
    if record is not None:
        record(session, row)


def _shown(key: Any) -> str:
    return "/".join(map(str, key))


def _words(error: Exception) -> str:
    """For ``last_error``: a refusal's own sentence, else the kind of exception with its text."""
    return error.message if isinstance(error, ServiceError) else f"{type(error).__name__}: {error}"


def _is_unavailable(error: Exception) -> bool:
    return isinstance(error, ServiceError) and error.code == "unavailable"


def _quietly(step: Callable[[], None]) -> None:
    """A note that cannot be synced or removed keeps nobody from going on."""
    try:
        step()
    except OSError as error:
        log.warning("due_work.note_failed", reason=error.strerror)


def _log_failure(event: str, error: Exception, **details: Any) -> None:
    log.warning(event, error=_words(error), exc_info=None if _is_unavailable(error) else error, **details)
