"""Which due rows come next where each belongs to somebody: a receiver that may be slow, or dead with 100,000 rows waiting.

Everything is found by index, lane by lane, so that a choice costs the same however long a backlog is. Wanted are two indexes:
``(lane, next_attempt_at, key) WHERE state = 'due'`` and ``(lane) WHERE leased_by IS NOT NULL``.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data.database import UtcDateTime

SLOW = timedelta(seconds=1)
"""An attempt that is under way for longer is one of a slow lane."""

LONGEST_REST = 1.0
"""Seconds between the attempts of a failing lane."""

MOMENT = sa.bindparam("moment", type_=UtcDateTime)
LEASES_OVER = sa.bindparam("leases_over", type_=UtcDateTime)
"""Leases until then are over: now, but not because the clock was put forward (``clock.without_leaps``)."""

FRESH = sa.bindparam("fresh", type_=UtcDateTime)
"""Rows that were never attempted are due until then: now, or later when the clock was put back (``clock.put_back``)."""

MOST = sa.bindparam("most", type_=sa.Integer)
_LANE: sa.BindParameter[Any] = sa.bindparam("lane")
_SLOW_BEFORE = sa.bindparam("slow_before", type_=UtcDateTime)


def is_due(row: Any) -> sa.ColumnElement[bool]:
    """A literal: PostgreSQL's plan of a prepared statement would else not count on the index of the due rows."""
    return row.state == sa.literal_column("'due'")  # type: ignore[no-any-return]


def is_free(row: Any) -> sa.ColumnElement[bool]:
    """Nobody is at it."""
    return sa.or_(row.leased_until.is_(None), row.leased_until <= LEASES_OVER)


def is_held(row: Any) -> sa.ColumnElement[bool]:
    """Return the condition for rows that somebody is at, or was. Of ``state`` an expression: SQLite would else take the index
    of the due rows, where it was made after that of the rows that are held, and read a whole backlog."""
    return sa.and_(row.leased_by.is_not(None), row.state.concat("") == sa.literal_column("'due'"))


@dataclass(frozen=True)
class Lanes:
    """Rows that agree in ``column``, which is never NULL, share a lane of ``places`` attempts at once.

    ``failing`` selects the lanes that do nothing but fail, and since when. Each of them gets one place, less and less often, in
    the end once a second; all of them together get a quarter of the places, so that the others have theirs. A lane of which
    half the places are taken by attempts that take longer than a second gets no more.
    """

    column: Any
    places: int = 1
    failing: sa.Executable | None = None


@dataclass(frozen=True)
class _Lane:
    """The work that is under way in a lane."""

    busy: int = 0
    slow: int = 0


class LaneChoice:
    """Chooses for one process. ``concurrency`` is how many attempts it makes at once."""

    def __init__(self, row: Any, lanes: Lanes, lease: timedelta, concurrency: int) -> None:
        self._lanes, self._lease = lanes, lease
        self._probes = max(1, concurrency // 4)
        self._began: dict[Any, float] = {}
        self._left_out = False
        self.crowded = True
        """Was there perhaps more that is due, when it was looked at last, than was chosen?"""
        # Compiled once, and of the table: building a statement, and making objects of its rows, costs more than running it.
        table = sa.inspect(row).local_table
        due, lane = table.c, table.c[lanes.column.key]
        key = table.primary_key.columns[0]
        self._heads = _heads(due, lane)
        self._under_way = (
            sa.select(lane, sa.func.count(), sa.func.sum(sa.case((due.leased_until <= _SLOW_BEFORE, 1), else_=0)))
            .where(is_held(due), due.leased_until > LEASES_OVER)
            .group_by(lane)
        )
        self._first = (
            sa.select(key)
            .where(is_due(due), lane == _LANE, _may_be_tried(due), is_free(due))
            .order_by(due.next_attempt_at, key)
            .limit(MOST)
            .with_for_update(skip_locked=True)
        )

    def plan(self, session: Session, times: Mapping[str, datetime], free: int) -> tuple[dict[Any, int], float | None]:
        """Return how many rows of which lane may be begun, ``free`` in all; if none, in how many seconds there may be one."""
        moment = times["moment"]
        heads = {lane: at for lane, at in session.execute(self._heads, dict(times)) if at is not None}
        self._began = {lane: at for lane, at in self._began.items() if lane in heads}
        waits = [(at - moment).total_seconds() for at in heads.values() if at > times["fresh"]]
        due = [lane for lane, at in heads.items() if at <= times["fresh"]]
        self.crowded = bool(due)
        if not due:
            return {}, min(waits, default=None)
        lanes, failing = self._at_work(session, times), self._failing(session)
        probes = self._probes - sum(load.busy for lane, load in lanes.items() if lane in failing)
        plan: dict[Any, int] = {}
        # Who has least under way comes first, then who has waited longest for a turn.
        due.sort(key=lambda lane: (lanes.get(lane, _Lane()).busy, self._began.get(lane, 0.0)))
        room = {}
        for lane in due:
            if lane in failing:
                wait = self._rest(lane, moment - failing[lane])
                if wait > 0:
                    waits.append(wait)
                elif probes > 0 and lane not in lanes:
                    probes -= 1
                    room[lane] = 1
            else:
                room[lane] = self._room(lanes.get(lane, _Lane()))
        while free > 0 and (open_lanes := [lane for lane in room if room[lane] > plan.get(lane, 0)]):
            for lane in open_lanes[:free]:
                plan[lane] = plan.get(lane, 0) + 1
            free -= len(open_lanes[:free])
        self._left_out = len(plan) < len(due)
        return plan, min(waits, default=None)

    def oldest(self, session: Session, times: Mapping[str, datetime]) -> datetime | None:
        """Return since when the row has been due that waits longest for us. Those of a lane that fails, or that has no place
        left for being slow, wait for whoever they belong to."""
        lanes, failing = self._at_work(session, times), self._failing(session)
        heads = session.execute(self._heads, dict(times))
        ours = (
            at
            for lane, at in heads
            if at is not None and lane not in failing and not self._is_slow(lanes.get(lane, _Lane()))
        )
        return min(ours, default=None)

    def _at_work(self, session: Session, times: Mapping[str, datetime]) -> dict[Any, _Lane]:
        slow_before = times["moment"] + self._lease - SLOW
        rows = session.execute(self._under_way, {"leases_over": times["leases_over"], "slow_before": slow_before})
        return {lane: _Lane(busy, slow) for lane, busy, slow in rows}

    def _failing(self, session: Session) -> dict[Any, datetime]:
        """Return since when each lane fails that does."""
        if self._lanes.failing is None:
            return {}
        return {row[0]: row[1] for row in session.execute(self._lanes.failing)}

    def keys(self, session: Session, times: Mapping[str, datetime], plan: Mapping[Any, int]) -> list[Any]:
        """Keys of the first rows of each lane, as many as ``plan`` says; locked."""
        keys: list[Any] = []
        crowded = self._left_out
        for lane, limit in plan.items():
            self._began[lane] = time.monotonic()
            found = session.scalars(self._first, {**times, "lane": lane, "most": limit}).all()
            crowded |= len(found) == limit
            keys += found
        self.crowded = crowded
        return keys

    def _room(self, lane: _Lane) -> int:
        return 0 if self._is_slow(lane) else max(0, self._lanes.places - lane.busy)

    def _is_slow(self, lane: _Lane) -> bool:
        return 2 * lane.slow >= self._lanes.places

    def _rest(self, lane: Any, failing_for: timedelta) -> float:
        """Seconds for which a failing lane is left alone: a tenth of the time for which it has failed."""
        rest = min(LONGEST_REST, max(0.0, failing_for.total_seconds() / 10))
        return self._began.get(lane, -rest) + rest - time.monotonic()


def _may_be_tried(row: Any) -> sa.ColumnElement[bool]:
    return sa.and_(row.next_attempt_at <= FRESH, sa.or_(row.next_attempt_at <= MOMENT, row.attempts == 0))


def _heads(row: Any, column: Any) -> sa.Select[Any]:
    """The lanes that have due rows, now or later, each with the time of its first free one: the index is entered once per lane,
    not read through."""
    lanes = sa.select(sa.select(sa.func.min(column)).where(is_due(row)).scalar_subquery().label("lane")).cte(
        "lanes", recursive=True
    )
    following = sa.select(sa.func.min(column)).where(is_due(row), column > lanes.c.lane).correlate(lanes)
    lanes = lanes.union_all(sa.select(following.scalar_subquery()).where(lanes.c.lane.is_not(None)))
    # Not those that wait only because the clock was put back after they were tried: they would hide a fresh one.
    postponed = sa.and_(row.next_attempt_at > MOMENT, row.next_attempt_at <= FRESH, row.attempts > 0)
    head = (
        sa.select(row.next_attempt_at)
        .where(is_due(row), column == lanes.c.lane, is_free(row), sa.not_(postponed))
        .order_by(row.next_attempt_at)
        .limit(1)
        .correlate(lanes)
    )
    return sa.select(lanes.c.lane, head.scalar_subquery()).where(lanes.c.lane.is_not(None))
