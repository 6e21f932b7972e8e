"""Find what does not go on in a service as it should: work that fails, that nobody does or that was given up, and events that
are not published or not taken. Nothing is changed; ``countersign stuck`` shows it."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.operating import GIVE_UP, RETRY, Stuck, StuckRow
from contracts.runtime.data.tables import missing_events, outbox
from contracts.runtime.operations import retrying

LATE = timedelta(minutes=5)
"""What is under way for as long is worth a look: the alerts in ``deploy/observability`` wait as long."""

SHOWN = 10
"""Rows of each kind that are named, the oldest first."""

FAILING, UNTOUCHED, UNDER_WAY, GIVEN_UP = "failing", "untouched", "under_way", "given_up"
"""Tried again and again without success; due for LATE, and no process is at it; begun LATE ago, and waiting for somebody else
(a provider, other work); no longer tried."""

TOLD, TAKEN = "events to be published", "events to be taken"
SEALING = "sealing of submissions"
"""What is called so is no table of due work."""


def stuck(session: Session, name: str, moment: datetime) -> list[Stuck]:
    """Return what is stuck in the database of the service ``name`` at ``moment``, and nothing that goes on as it should.

    A service adds what only it knows in ``services/<name>/stuck.py``: ``stuck(session, moment) -> list[Stuck]``, and in
    ``HELD_UP`` by the table of a work which of its rows wait for whoever fails, not for us.
    """
    stuck_of_service: Callable[[Session, datetime], list[Stuck]] | None = of_service(name, "stuck")
    stuck_work = [work for row in retrying.kinds(name) for work in _of_work(session, name, row, moment)]
    stuck_work += [*_not_published(session, name, moment), *_not_taken(session, name, moment)]
    return [*stuck_work, *(stuck_of_service(session, moment) if stuck_of_service is not None else ())]


def of_service(name: str, attribute: str) -> Any:
    """Return what ``services/<name>/stuck.py`` has under this name; None where there is nothing."""
    if importlib.util.find_spec(f"services.{name}.stuck") is None:
        return None
    return getattr(importlib.import_module(f"services.{name}.stuck"), attribute, None)


def _of_work(session: Session, name: str, row: Any, moment: datetime) -> Iterator[Stuck]:
    late = moment - LATE
    due, failed = row.state == "due", sa.and_(row.attempts > 0, row.last_error.is_not(None))
    at_work = sa.and_(row.leased_until.is_not(None), row.leased_until > moment)
    overdue = sa.and_(due, ~at_work, row.next_attempt_at <= late)
    held_up = (of_service(name, "HELD_UP") or {}).get(row, sa.false())
    untouched = sa.and_(overdue, ~held_up)
    failing = sa.and_(due, sa.or_(failed, sa.and_(overdue, held_up)), ~untouched)
    begun = sa.or_(row.state == "waiting", sa.and_(due, row.attempts > 0, row.last_error.is_(None)))
    work = row.__tablename__
    given_up = (GIVE_UP,) if row in (of_service(name, "GIVES_UP") or {}) else ()
    conditions = {
        UNTOUCHED: (untouched, f"See that the background process of {name} runs, and what its log says of {work}.", ()),
        FAILING: (
            failing,
            "Mend what the reasons say; it is tried again by itself.",
            given_up,
        ),
        UNDER_WAY: (
            sa.and_(begun, ~untouched, row.created_at <= late),
            "It waits for somebody else: a person, a provider, or work that is named here, too.",
            (),
        ),
        GIVEN_UP: (
            sa.and_(row.state == "parked", row.may_be_retried()),
            f"Mend what the reasons say, then: countersign retry {name} {work}",
            (RETRY,),
        ),
    }
    (key,) = sa.inspect(row).primary_key
    submission = row.submission_id if hasattr(row, "submission_id") else sa.null()
    columns = (key, submission, row.created_at, row.attempts, row.next_attempt_at, row.last_error, row.state)
    for state, (condition, remedy, actions) in conditions.items():
        count = session.scalar(sa.select(sa.func.count()).select_from(row).where(condition)) or 0
        if not count:
            continue
        oldest = session.execute(sa.select(*columns).where(condition).order_by(row.created_at, key).limit(SHOWN))
        rows = (
            StuckRow(str(number), about, since, attempts, next_at if state_is == "due" else None, error or "")
            for number, about, since, attempts, next_at, error, state_is in oldest
        )
        yield Stuck(work, state, count, tuple(rows), remedy, actions)


def _not_published(session: Session, name: str, moment: datetime) -> Iterator[Stuck]:
    remedy = (
        f"See that the broker and the background process of {name} run. What no queue takes is for a service that was"
        " never migrated: countersign migrate"
    )
    columns = (outbox.c.event_id, outbox.c.created_at, outbox.c.attempts, outbox.c.retry_at, outbox.c.error)
    yield from _of_events(session, TOLD, outbox, outbox.c.created_at <= moment - LATE, columns, remedy)


def _not_taken(session: Session, name: str, moment: datetime) -> Iterator[Stuck]:
    remedy = f"What {name} has parked of them: countersign parked list"
    table = missing_events.c
    columns = (table.event_id, table.noticed_at, table.tries, table.next_at, sa.null().label("error"))
    yield from _of_events(session, TAKEN, missing_events, table.noticed_at <= moment - LATE, columns, remedy)


def _of_events(
    session: Session,
    work: str,
    table: sa.Table,
    condition: sa.ColumnElement[bool],
    columns: tuple[Any, ...],
    remedy: str,
) -> Iterator[Stuck]:
    count = session.scalar(sa.select(sa.func.count()).select_from(table).where(condition)) or 0
    if not count:
        return
    oldest = session.execute(sa.select(table.c.type, *columns).where(condition).order_by(columns[1]).limit(SHOWN))
    rows = tuple(
        StuckRow(f"{kind} {event_id}", None, since, tries, next_at, error or "")
        for kind, event_id, since, tries, next_at, error in oldest
    )
    yield Stuck(work, FAILING if any(row.reason for row in rows) else UNTOUCHED, count, rows, remedy)
