"""One look for all loops of a database that rest: is there something to do for one of them?

Each of a dozen loops would else wake up once a second, and ask in a transaction of its own: with PostgreSQL always, with SQLite
whenever anything was written. What SQLite says of changes is asked once; after one, and with PostgreSQL each time, there is one
statement, which asks for the first row of each. So nothing is found later than by looks of their own.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Loop, Rest

_SAME = timedelta(milliseconds=1)
"""Times that differ by less are those of one row: one of them was computed by way of a clock."""


class Watch(Loop):
    """Wakes those of ``loops`` that rest when that is over, looking every ``poll_seconds``. All work on ``database``."""

    def __init__(self, name: str, database: Database, loops: Sequence[Loop]) -> None:
        super().__init__(f"{name} watch")
        self._database = database
        self._loops = list(loops)
        for loop in self._loops:
            loop.watched = True
        selects = [(loop, select) for loop in self._loops if (select := loop.first_due()) is not None]
        self._asked_for = [loop for loop, _ in selects]
        # Compiled once: building a statement costs more than running it.
        self._firsts = sa.select(*(select.label(f"first_{number}") for number, (_, select) in enumerate(selects)))

    def turn(self) -> float:
        # Before the look: whoever begins to rest meanwhile is asked about the next time.
        resting = [(loop, rest) for loop in self._loops if (rest := loop.resting) is not None]
        changes = self._database.changes()
        firsts: dict[Loop, datetime | None] = {}
        changed = (
            any(rest.changes != changes for _, rest in resting) if changes is not None else not self._database.sqlite
        )
        if resting and self._asked_for and changed:
            firsts = self._database.read(self._first_rows)
        for loop, rest in resting:
            if _is_news(loop, rest, firsts):
                loop.look_again()
                continue
            if loop in firsts and (loop.knows_first or rest.until is None):
                rest.changes = changes
            if loop.rests_for(changes) <= 0:
                loop.look_again()
        return self.poll_seconds

    def _first_rows(self, session: Session) -> dict[Loop, datetime | None]:
        return dict(zip(self._asked_for, session.execute(self._firsts).one(), strict=True))


def _is_news(loop: Loop, rest: Rest, firsts: Mapping[Loop, datetime | None]) -> bool:
    first = firsts.get(loop)
    return first is not None and (rest.until is None or first < rest.until - _SAME)
