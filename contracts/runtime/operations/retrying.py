"""``python -m services.<name> retry``: for operators, work that was given up (``background.DueRow``, parked) is tried again::

    python -m services.notifications retry                  what is parked, and why
    python -m services.notifications retry mails            all of it is due again, with the whole schedule before it
    python -m services.notifications retry mails 12 15      only these rows

Rows of which nothing is left to be tried (erased, or tried anew in another way) are not listed (``DueRow.may_be_retried``).
"""

import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime import process
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, for_update
from contracts.runtime.data.due_work.background import DueRow
from contracts.runtime.monitoring import observe

SHOWN = 100
_AT_ONCE = 500


def retry(name: str, arguments: Sequence[str]) -> int:
    """The command; 0 when it did what was asked for."""
    settings = process.settings_of(name)
    observe.setup(name, "ERROR")
    tables = {row.__tablename__: row for row in kinds(name)}
    database = Database(settings.database_url)
    try:
        process.check_schema(name, settings.database_url)
        if not arguments:
            for line in _listed(name, database, tables):
                print(line)  # noqa: T201
            return 0
        table, *keys = arguments
        if table not in tables or not all(key.isascii() and key.isdigit() for key in keys):
            names = ", ".join(tables) or "nothing"
            print(f"{name} has work in: {names}. Rows are named by their number.", file=sys.stderr)  # noqa: T201
            return 2
        done = made_due(database, tables[table], [int(key) for key in keys])
        print(f"{done} due again")  # noqa: T201
        return 0 if done == len(set(keys)) or not keys else 1
    finally:
        database.dispose()


def kinds(name: str) -> list[Any]:
    """The tables of due work; each has one number as its key."""
    models = importlib.import_module(f"services.{name}.models")
    tables = [mapper.class_ for mapper in models.Base.registry.mappers if issubclass(mapper.class_, DueRow)]
    return sorted(tables, key=lambda row: str(row.__tablename__))


def _listed(name: str, database: Database, tables: dict[str, Any]) -> Iterator[str]:
    for table, row in tables.items():
        count, rows = database.read(parked, row)
        yield f"{table}: {count} parked"
        for key, finished_at, attempts, error in rows:
            when = f"{finished_at:%Y-%m-%d %H:%M:%S} UTC" if finished_at else "-"
            yield f"  {key}  {when}  after {attempts} attempts: {error or 'no reason kept'}"
        if count > len(rows):
            yield f"  and {count - len(rows)} older ones"
        if count:
            yield f"  try them again: python -m services.{name} retry {table} [NUMBER...]"


def parked(session: Session, row: Any) -> tuple[int, list[Any]]:
    """Return how many rows were given up and may be tried again, and the newest of them."""
    given_up = sa.and_(row.state == "parked", row.may_be_retried())
    count = session.scalar(sa.select(sa.func.count()).select_from(row).where(given_up)) or 0
    (key,) = sa.inspect(row).primary_key
    newest = sa.select(key, row.finished_at, row.attempts, row.last_error).where(given_up).order_by(key.desc())
    return count, list(session.execute(newest.limit(SHOWN)))


def made_due(database: Database, row: Any, keys: Sequence[int]) -> int:
    """In portions, so that the loops at work are not kept waiting. In the order of their numbers, so that what is given up anew
    meanwhile is not taken again; the clock may have been put back since it was given up."""
    done, last = 0, 0
    while portion := database.write(_portion_made_due, row, keys, last):
        done, last = done + len(portion), portion[-1]
    return done


def _portion_made_due(session: Session, row: Any, keys: Sequence[int], last: int) -> list[int]:
    (key,) = sa.inspect(row).primary_key
    query = sa.select(row).where(row.state == "parked", row.may_be_retried(), key > last)
    if keys:
        query = query.where(key.in_(keys))
    records = list(session.scalars(for_update(query.order_by(key).limit(_AT_ONCE))))
    for record in records:
        record.retry(now())
    return [sa.inspect(record).identity[0] for record in records]
