"""What several do at the same moment, written in one transaction: what each transaction takes by itself, and the wait for the
disk, are most of what a small write costs.

Who comes first waits a moment for others, then writes for all that are there. Each returns when its own part is written, or
gets its exception: where a transaction of several fails for another reason than the database, each is tried apart.
"""

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, Generic, ParamSpec, TypeVar

from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe

P = ParamSpec("P")
T = TypeVar("T")

log = observe.logger(__name__)

GATHERING_SECONDS = 0.004
"""Events of one transaction, published together, come from their queues within so long."""

FEW, TIMES_AS_LONG, LONGEST_GATHERING = 4, 3.0, 0.05
"""Where fewer than so many came last, whoever comes first waits so many times as long as that was written for, up to so many
seconds: where all processors are busy it is worth more."""

MOST = 50
"""In one transaction, which holds SQLite's write lock."""


@dataclass
class _Part(Generic[T]):
    """What one caller wants written. ``tried``: it was to be; ``error``: why it was not, where to try it again alone would end
    the same way."""

    item: T
    tried: bool = False
    written: bool = False
    error: Exception | None = None


class Together(Generic[T]):
    """``write`` writes all that it is given in one transaction. It must be harmless that it is called again after it failed."""

    def __init__(self, write: Callable[[Sequence[T]], None]) -> None:
        self._write = write
        self._waiting: deque[_Part[T]] = deque()
        self._writing = threading.Lock()
        self._gathering = GATHERING_SECONDS

    def write(self, item: T) -> None:
        """Write this, with what others want written. Returns when it is committed."""
        part = _Part(item)
        self._waiting.append(part)
        with self._writing:
            if not part.tried:
                time.sleep(self._gathering)
            while not part.tried:
                self._write_parts([self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))])
        if part.error is not None:
            raise part.error
        if not part.written:
            self._write([item])

    def _write_parts(self, parts: Sequence[_Part[T]]) -> None:
        began = time.monotonic()
        try:
            self._write([part.item for part in parts])
        except Exception as error:
            unavailable = isinstance(error, ServiceError) and error.code == "unavailable"
            if len(parts) > 1 and not unavailable:
                log.warning("together.one_by_one", parts=len(parts), exc_info=error)
                return
            for part in parts:
                part.error = error
        else:
            for part in parts:
                part.written = True
        finally:  # also when who writes is ended, as a worker's thread may be: then nothing is written
            for part in parts:
                part.tried = True
            self._gathering = GATHERING_SECONDS
            if len(parts) < FEW:
                took = time.monotonic() - began
                self._gathering = min(LONGEST_GATHERING, max(GATHERING_SECONDS, TIMES_AS_LONG * took))


@dataclass(frozen=True)
class _Step:
    """A use case, with what it is about, and the context that it was asked for in."""

    about: int
    context: contextvars.Context
    do: Callable[[Session], None]


class InTurn:
    """Use cases that come at the same moment, done one after the other in one transaction, each in the context of its own: what
    they emit says what caused it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._together = Together(self._write)

    def write(
        self, about: int, use_case: Callable[Concatenate[Session, P], None], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """As ``Database.write``. ``about`` is the row that it locks: all take their locks in the order of these."""
        step = _Step(about, contextvars.copy_context(), lambda session: use_case(session, *args, **kwargs))
        self._together.write(step)

    def _write(self, steps: Sequence[_Step]) -> None:
        self._database.write(_do, sorted(steps, key=lambda step: step.about))


def _do(session: Session, steps: Sequence[_Step]) -> None:
    for step in steps:
        step.context.run(step.do, session)
        session.flush()
