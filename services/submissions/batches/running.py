"""Works through batches, in the background: the rows that are due by a batch's rate, one after the other.

A portion is a second's worth of rows at most, each in a transaction of its own, and no other batch waits for it. It ends with a
batch that is due again when the next row is.
"""

import time
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import Counter, Gauge

from contracts.errors import ServiceError
from contracts.rpc.submissions.batches import BatchSettings, RowError
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Every, More, Outcome, Retry
from contracts.runtime.monitoring import observe
from contracts.types import Actor
from services.submissions.batches import commands, queries
from services.submissions.batches.requests import request_id, request_of
from services.submissions.creating.single import Creator
from services.submissions.models import BatchLineRow, BatchRow
from services.submissions.site import Site

PENDING = Gauge("countersign_batch_rows_pending", "Rows of batches that are still to be made")
OLDEST = Gauge(
    "countersign_batch_rows_oldest_seconds",
    "How long nothing has become of any row of the batch with pending rows that has waited longest",
)
ROWS = Counter("countersign_batch_rows_total", "Rows of batches that were dealt with", ["outcome"])

log = observe.logger(__name__)

AT_ONCE = 4
"""Batches that are worked on at once."""

LONGEST_PORTION = 20.0
"""Seconds after which a portion begins no further row: pictures that are fetched take their time."""

SCHEDULE = [timedelta(seconds=seconds) for seconds in (2, 5, 15, 60, *[300] * 288)]
"""Another service does not answer: a day of patience, then an operator is asked."""

MOST_TRIES, MOST_TRIES_UNAVAILABLE = 5, 288
"""Of a row that ends in an internal error; of one for which somebody who is needed does not answer."""

PAUSE = 5.0
"""Seconds for which a batch rests when none of its rows could be dealt with."""

LOOKED_EVERY, FORGOTTEN_EVERY = timedelta(seconds=20), timedelta(hours=1)


@dataclass(frozen=True)
class Batches:
    """``keep_for`` is how long a batch is kept once it has ended."""

    creator: Creator
    database: Database
    site: Site
    keep_for: timedelta

    def loops(self) -> list[DueWork | Every]:
        work = DueWork(
            "batches",
            self.database,
            BatchRow,
            self.portion,
            schedule=SCHEDULE,
            lease=timedelta(seconds=30),
            limit=timedelta(minutes=30),
            concurrency=AT_ONCE,
        )
        return [
            work,
            Every("measure-batches", LOOKED_EVERY, self.measure),
            Every("forget-batches", FORGOTTEN_EVERY, lambda: self.database.write(commands.forget, now()) > 0),
        ]

    def measure(self) -> None:
        pending, oldest = self.database.read(queries.backlog, now())
        PENDING.set(pending)
        OLDEST.set(oldest.total_seconds())

    def portion(self, batch: BatchRow) -> Outcome:
        """Make the rows of a batch that are due now."""
        began = time.monotonic()
        most = max(1, batch.rate // 60)
        lines = self.database.read(queries.due_lines, batch.id, most + 1)
        if batch.settings is None or batch.actor is None or not lines:
            return self._end_batch()
        settings, actor = BatchSettings.model_validate(batch.settings), Actor.model_validate(batch.actor)
        work = _Portion(self, batch.request_id, settings, actor)
        dealt_with = 0
        for line in lines[:most]:
            if time.monotonic() - began > LONGEST_PORTION:
                break
            if (trouble := work.make(line)) is not None:
                return Retry(trouble)
            dealt_with += 1
        if dealt_with == len(lines) and not work.put_back:
            return self._end_batch()
        pace = dealt_with * 60 / batch.rate - (time.monotonic() - began)
        return More(timedelta(seconds=max(pace, PAUSE if work.put_back == dealt_with else 0.0)))

    def _end_batch(self) -> Outcome:
        keep_for = self.keep_for
        return Done(record=lambda session, row: commands.finish(session, row, keep_for, now()))


class _Portion:
    """Makes rows of one batch, of the template as it was when the portion began. ``put_back`` counts those that are to be tried
    again."""

    def __init__(self, batches: Batches, batch_request_id: str, settings: BatchSettings, actor: Actor) -> None:
        self._batches, self._request_id = batches, batch_request_id
        self._settings, self._actor = settings, actor
        self._template: TemplateSnapshot | None = None
        self.put_back = 0

    def make(self, line: BatchLineRow) -> str | None:
        """Make the row, or note why it cannot be made. Returns what is in the way of all rows, for a while."""
        try:
            number = self._make(line)
        except ServiceError as error:
            if error.status < 500:
                self._fail(line, error)
                return None
            self._put_back(line, RowError(error=error.message, code=error.code), error)
            return error.message if error.code == "unavailable" else None
        except Exception as error:
            self._put_back(line, RowError(error="Internal error", code="internal"), error)
            return None
        ROWS.labels("created").inc()
        log.info("batch.row_created", batch=line.batch_id, row=line.number, submission=number)
        return None

    def _make(self, line: BatchLineRow) -> int:
        batches = self._batches
        own_id = request_id(self._request_id, line.number)
        command = request_of(self._settings, self._actor, line.input or {}, own_id)
        if self._template is None:
            self._template = batches.creator.snapshot(command)
        template = batches.creator.with_variables(command, self._template)
        return batches.creator.from_template(
            command,
            template,
            lambda basis, plan, prepared: batches.database.write(
                commands.make, line.id, command, basis, plan, prepared, batches.site, now()
            ),
        )

    def _fail(self, line: BatchLineRow, error: ServiceError) -> None:
        row_error = RowError(error=error.message, code=error.code, details=error.details)
        if self._batches.database.write(commands.fail, line.id, row_error, now()):
            ROWS.labels("failed").inc()
            log.info("batch.row_failed", batch=line.batch_id, row=line.number, code=error.code)

    def _put_back(self, line: BatchLineRow, row_error: RowError, cause: Exception) -> None:
        most = MOST_TRIES_UNAVAILABLE if row_error.code == "unavailable" else MOST_TRIES
        unforeseen = None if row_error.code == "unavailable" else cause
        log.warning(
            "batch.row_put_back",
            batch=line.batch_id,
            row=line.number,
            code=row_error.code,
            reason=row_error.error,
            exc_info=unforeseen,
        )
        self._batches.database.write(commands.put_back, line.id, row_error, most, now())
        self.put_back += 1
        ROWS.labels("put_back").inc()
